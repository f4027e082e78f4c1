//! Random edit scripts, checked against a naive model of node order and uses.

use super::Graph;
use crate::edit::{At, CloneError, ValueSubstitution};
use crate::id::{NodeId, ValueId};
use crate::op::{Op, OpDef, Registry, RegistryBuilder};
use crate::symbol::Symbol;
use crate::types::Type;
use crate::value::IValue;
use crate::verify::verify;

/// A small deterministic generator, so that failures are reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// Expected nodes of the root block in order, with operands and result.
#[derive(Default)]
struct Model {
    nodes: Vec<(NodeId, Vec<ValueId>, ValueId)>,
}

impl Model {
    fn check(&self, g: &Graph) {
        let order: Vec<NodeId> = g.nodes(g.root()).collect();
        assert_eq!(order, self.nodes.iter().map(|n| n.0).collect::<Vec<_>>());
        let mut back: Vec<NodeId> = g.nodes(g.root()).rev().collect();
        back.reverse();
        assert_eq!(order, back);
        for (i, (node, operands, result)) in self.nodes.iter().enumerate() {
            assert_eq!(&g.operands(*node).collect::<Vec<_>>(), operands);
            let mut uses: Vec<(NodeId, u32)> = g.uses(*result).map(|u| (u.user, u.index)).collect();
            let mut expected = Vec::new();
            for (user, operands, _) in &self.nodes {
                for (k, v) in operands.iter().enumerate() {
                    if v == result {
                        expected.push((*user, k as u32));
                    }
                }
            }
            uses.sort();
            expected.sort();
            assert_eq!(uses, expected);
            assert_eq!(g.use_count(*result), expected.len());
            if i > 0 {
                assert!(g.is_before(self.nodes[i - 1].0, *node) && !g.is_before(*node, self.nodes[i - 1].0));
            }
        }
        g.check_use_lists().expect("use lists mirror operands");
    }
}

#[test]
fn random_edits_agree_with_a_naive_model() {
    for seed in 0..40u64 {
        let mut r = Random(seed);
        let mut g = Graph::new(Registry::empty());
        let op = Op::unknown(Symbol::new("test::op"));
        let input = g.edit().add_input(Type::TENSOR);
        let mut model = Model::default();
        for step in 0..300 {
            let n = model.nodes.len();
            match r.below(10) {
                0..=4 => {
                    let at = r.below(n + 1);
                    let operands: Vec<ValueId> = (0..r.below(5))
                        .map(|_| if at == 0 { input } else { model.nodes[r.below(at)].2 })
                        .collect();
                    let mut e = g.edit();
                    match model.nodes.get(at) {
                        Some(next) => e.at(At::before(next.0)),
                        None => e.at(At::end(e.graph().root())),
                    };
                    let node = e.node(op, &operands, &[Type::TENSOR]);
                    let result = g.result(node, 0);
                    model.nodes.insert(at, (node, operands, result));
                }
                5 if n > 0 => {
                    let i = r.below(n);
                    let (node, _, result) = model.nodes[i].clone();
                    g.edit().replace_all_uses(result, input);
                    for (_, operands, _) in &mut model.nodes {
                        operands.iter_mut().filter(|v| **v == result).for_each(|v| *v = input);
                    }
                    g.edit().erase(node);
                    model.nodes.remove(i);
                }
                6 if n > 0 => {
                    let i = r.below(n);
                    if !model.nodes[i].1.is_empty() {
                        let k = r.below(model.nodes[i].1.len());
                        g.edit().set_operand(model.nodes[i].0, k, input);
                        model.nodes[i].1[k] = input;
                    }
                }
                7 if n > 0 => {
                    let i = r.below(n);
                    let k = r.below(model.nodes[i].1.len() + 1);
                    g.edit().insert_operand(model.nodes[i].0, k, input);
                    model.nodes[i].1.insert(k, input);
                }
                8 if n > 0 => {
                    let i = r.below(n);
                    if !model.nodes[i].1.is_empty() {
                        let k = r.below(model.nodes[i].1.len());
                        g.edit().remove_operand(model.nodes[i].0, k);
                        model.nodes[i].1.remove(k);
                    }
                }
                _ => {}
            }
            if step % 20 == 0 {
                model.check(&g);
            }
        }
        model.check(&g);
        verify(&g).expect("every edit script leaves a valid graph");
        let copy = g.clone();
        model.check(&copy);
    }
}

#[test]
fn repeated_insertion_at_one_position_stays_ordered() {
    let mut g = Graph::new(Registry::empty());
    let op = Op::unknown(Symbol::new("test::op"));
    let first = g.edit().node(op, &[], &[]);
    let last = g.edit().node(op, &[], &[]);
    for i in 0..100_000 {
        let at = if i % 2 == 0 { At::after(first) } else { At::before(last) };
        g.edit().at(at).node(op, &[], &[]);
    }
    assert!(g.block_order_holds(g.root()));
    for _ in 0..50_000 {
        let root = g.root();
        g.edit().at(At::start(root)).node(op, &[], &[]);
    }
    assert!(g.block_order_holds(g.root()));
}

#[test]
fn a_stale_id_is_detected() {
    let mut g = Graph::new(Registry::empty());
    let op = Op::unknown(Symbol::new("test::op"));
    let node = g.edit().node(op, &[], &[]);
    g.edit().erase(node);
    let other = g.edit().node(op, &[], &[]);
    assert!(!g.has_node(node) && g.has_node(other));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| g.op(node))).is_err());
}

#[test]
fn deep_nesting_costs_no_stack() {
    let mut g = Graph::new(Registry::empty());
    let op = Op::unknown(Symbol::new("test::op"));
    let mut block = g.root();
    let mut outermost = None;
    for _ in 0..100_000 {
        let node = g.edit().at(At::end(block)).node(op, &[], &[]);
        outermost.get_or_insert(node);
        block = g.edit().add_block(node);
    }
    assert_eq!(g.nodes_deep().count(), 100_000);
    let copy = g.clone();
    let outermost = outermost.expect("a node was made");
    g.edit().erase(outermost);
    assert_eq!((g.node_count(), copy.node_count()), (0, 100_000));
}

#[test]
fn a_clone_is_another_graph() {
    let g = Graph::new(Registry::empty());
    let (revision, clone) = (g.journal().revision(), g.clone());
    let other = clone.journal().revision();
    assert_eq!(revision.check(g.journal().revision()), Ok(()));
    assert!(revision.check(other).is_err() && clone.journal().since(revision).is_none());
    assert_eq!(revision.edits(), other.edits());
    // The debug text of an identity is the same for all graphs.
    assert_eq!(format!("{revision:?}"), format!("{other:?}"));
}

#[test]
fn nodes_are_copied_only_between_graphs_of_one_registry() {
    let of = |schemas: &'static str| {
        let mut builder = RegistryBuilder::new();
        builder.declare(schemas);
        builder.build().unwrap()
    };
    let registry = of("test::a(int x) -> int\ntest::b(int x) -> int");
    let (mut target, mut same) = (Graph::new(registry.clone()), Graph::new(registry));
    let mut other = Graph::new(of("test::b(int x) -> int"));
    let first = of("test::a(int x) -> int");
    assert!(target.registry().extends(&first) && !first.extends(target.registry()));
    // An extension that states a declared schema again has the same rows.
    let mut builder = RegistryBuilder::new();
    builder.declare("test::a(int x) -> int");
    builder.add([OpDef::new("test::a(int x) -> int"), OpDef::new("test::c(int x) -> int")]);
    assert!(builder.build().unwrap().extends(&first));
    for source in [&mut same, &mut other] {
        let value = source.edit().constant(IValue::Int(1));
        source.edit().add_output(value);
    }
    let root = target.root();
    let mut e = target.edit();
    e.at(At::end(root));
    assert_eq!(e.inline_graph(&other, &[], None), Err(CloneError::OtherRegistry));
    let nodes = other.nodes(other.root());
    assert_eq!(e.copy_from(&other, nodes, &mut ValueSubstitution::new()), Err(CloneError::OtherRegistry));
    assert_eq!(e.graph().node_count(), 0);
    assert_eq!(e.inline_graph(&same, &[], None).map(|values| values.len()), Ok(1));
    assert_eq!(e.graph().node_count(), 1);
}

#[test]
fn a_node_cannot_be_moved_into_its_own_block() {
    let mut g = Graph::new(Registry::empty());
    let op = Op::unknown(Symbol::new("test::op"));
    let outer = g.edit().node(op, &[], &[]);
    let block = g.edit().add_block(outer);
    let inner = g.edit().at(At::end(block)).node(op, &[], &[]);
    let deepest = g.edit().add_block(inner);
    for next in [inner, g.ret(deepest)] {
        let moved = std::panic::AssertUnwindSafe(|| g.edit().move_before(outer, next));
        assert!(std::panic::catch_unwind(moved).is_err());
    }
    assert_eq!(g.nodes_deep().collect::<Vec<_>>(), [outer, inner]);
    g.edit().move_before(inner, outer);
    assert_eq!(g.nodes(g.root()).collect::<Vec<_>>(), [inner, outer]);
}

#[test]
#[cfg(debug_assertions)]
fn side_tables_refuse_foreign_entities() {
    let panics = |f: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err();
    let mut g = Graph::new(Registry::empty());
    let mut other = Graph::new(Registry::empty());
    let (v, foreign) = (g.edit().constant(IValue::Int(1)), other.edit().constant(IValue::Int(1)));
    let table = super::ValueMap::for_values(&g, 0);
    assert_eq!(table[v], 0);
    assert!(panics(&|| assert_eq!(table[foreign], 0)), "a value of another graph");
    assert_eq!(
        table.clone()[g.clone().edit().constant(IValue::Int(2))],
        0,
        "made later, in a slot of its own"
    );
    let node = g.def(v);
    g.edit().erase(node);
    let again = g.edit().constant(IValue::Int(3));
    assert!(panics(&|| assert_eq!(table[again], 0)), "a slot that is used again");
    let mut written = table.clone();
    written[again] = 7;
    assert_eq!(written[again], 7);
    assert!(panics(&|| assert_eq!(written[v], 0)), "a stale value");
    let mut tracked = super::TrackedValueMap::for_values(&g, 0);
    tracked.set(v, 1);
    assert_eq!((tracked.get(again), tracked.get(foreign)), (0, 0));
    tracked.set(again, 2);
    assert_eq!((tracked.get(v), tracked.get(again)), (0, 2));
}

#[test]
fn retained_inputs_and_outputs_are_those_that_single_removals_leave() {
    let of = |keep: &[bool], at_once: bool| {
        let mut graph = Graph::new(Registry::empty());
        let root = graph.root();
        let mut editor = graph.edit();
        let inputs: Vec<ValueId> = keep.iter().map(|_| editor.add_input(Type::INT)).collect();
        for (i, input) in inputs.iter().enumerate() {
            editor.set_name(*input, format!("i{i}").as_str());
            // Every second input has a second use; a removed one is returned nowhere.
            (0..=i % 2).for_each(|_| editor.add_output(*input));
        }
        let outputs: Vec<bool> = keep.iter().enumerate().flat_map(|(i, k)| vec![*k; 1 + i % 2]).collect();
        if at_once {
            editor.retain_block_outputs(root, |i| outputs[i]);
            editor.retain_block_inputs(root, |i| keep[i]);
        } else {
            (0..outputs.len())
                .rev()
                .filter(|i| !outputs[*i])
                .for_each(|i| editor.remove_block_output(root, i));
            (0..keep.len()).rev().filter(|i| !keep[*i]).for_each(|i| editor.remove_block_input(root, i));
        }
        graph.check_use_lists().expect("use lists mirror operands");
        assert!(graph.inputs().enumerate().all(|(i, v)| graph.result_index(v) == i));
        graph.to_string()
    };
    let mut random = Random(7);
    for n in 0..20 {
        for _ in 0..8 {
            let keep: Vec<bool> = (0..n).map(|_| random.below(2) == 0).collect();
            assert_eq!(of(&keep, true), of(&keep, false), "{keep:?}");
        }
    }
}
