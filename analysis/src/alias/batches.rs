//! Property test: after any batch of edits, an updated database reports every alias and write that a newly built one
//! reports.
//!
//! The edits of a batch happen between two synchronizations. So the journal mentions erased values and nodes, reused
//! slots, and operands that were set to values inserted later. Every answer is compared, for all pairs of values. The
//! test itself is tested: the planted bug, an update that drops the element of an inserted value (as replaying the
//! journal did), must be detected.

use super::tests::random_graph;
use super::*;
use crate::testing::{Random, registry};
use flambeau_ir::{At, Editor, Graph, IValue, OpKind, Prim, Type};
use flambeau_tensor::Tensor;

/// A fact that a newly built database reports and `db` does not.
fn missing_fact(g: &Graph, db: &AliasDb, fresh: &AliasDb) -> Option<String> {
    let values: Vec<ValueId> = g.values_in_order().filter(|&v| g.ty(v).is_mutable()).collect();
    let name = |v: ValueId| format!("%{}", g.name(v));
    for (i, &a) in values.iter().enumerate() {
        let facts = [
            ("is written", fresh.is_written(a) && !db.is_written(a)),
            ("has writers", fresh.has_writers(a) && !db.has_writers(a)),
            ("may be outside", fresh.may_be_wildcard(a) && !db.may_be_wildcard(a)),
            ("escapes", fresh.escapes_scope(&[a]) && !db.escapes_scope(&[a])),
        ];
        if let Some((fact, _)) = facts.iter().find(|(_, missing_fact)| *missing_fact) {
            return Some(format!("{} {fact}", name(a)));
        }
        for &b in &values[i + 1..] {
            if fresh.may_alias(a, b) && !db.may_alias(a, b) {
                return Some(format!("{} may alias {}", name(a), name(b)));
            }
            if fresh.may_contain_alias(a, b) && !db.may_contain_alias(a, b) {
                return Some(format!("{} may contain an alias of {}", name(a), name(b)));
            }
        }
    }
    for node in g.nodes_deep().filter(|&n| fresh.writes_itself(n)) {
        if fresh.writes_to_wildcard(g, node) && !db.writes_to_wildcard(g, node) {
            return Some(format!("{} writes to the outside", g.op_name(node)));
        }
        if let Some(&v) =
            values.iter().find(|&&v| fresh.writes_to(g, node, &[v]) && !db.writes_to(g, node, &[v]))
        {
            return Some(format!("{} writes to {}", g.op_name(node), name(v)));
        }
    }
    None
}

/// The edits of one batch.
struct Batch<'a> {
    g: &'a mut Graph,
    random: &'a mut Random,
    shared: &'a Tensor,
}

impl Batch<'_> {
    fn nodes(&self) -> Vec<NodeId> {
        self.g.nodes_deep().collect()
    }

    /// A tensor that is visible before `node`: one of its operands, or an input.
    fn visible_value(&mut self, node: NodeId) -> ValueId {
        let operands: Vec<ValueId> =
            self.g.operands(node).filter(|&v| self.g.ty(v) == Type::TENSOR).collect();
        let inputs: Vec<ValueId> = self.g.inputs().filter(|&v| self.g.ty(v) == Type::TENSOR).collect();
        let all = if operands.is_empty() || self.random.below(4) == 0 { inputs } else { operands };
        all[self.random.below(all.len())]
    }

    fn op(&self, name: &str) -> flambeau_ir::OpId {
        registry().lookup(name).unwrap()
    }

    /// Inserts a new node with a tensor result before `node`.
    fn insert(&mut self, node: NodeId, of: ValueId) -> ValueId {
        let kind = self.random.below(6);
        let constant = if self.random.below(2) == 0 {
            self.shared.clone()
        } else {
            Tensor::from_slice(&[1.0_f32], &[1]).unwrap()
        };
        let ops = ["aten::relu", "aten::t", "aten::add_.Tensor"].map(|name| self.op(name));
        let n = self.g.inputs().nth(3).unwrap();
        let mut e: Editor<'_> = self.g.edit();
        e.at(At::before(node));
        match kind {
            0 => e.value(ops[0], &[of], Type::TENSOR),
            1 | 2 => e.value(ops[1], &[of], Type::TENSOR),
            3 => e.constant(IValue::Tensor(constant)),
            4 => e.value(Prim::Annotate, &[of], Type::TENSOR),
            _ => e.value(ops[2], &[of, of, n], Type::TENSOR),
        }
    }

    fn edit(&mut self) {
        let nodes = self.nodes();
        let node = nodes[self.random.below(nodes.len())];
        let of = self.visible_value(node);
        match self.random.below(8) {
            // The bug of replaying the journal: an operand is set to a value that was inserted after the operand's
            // user.
            0 | 1 => {
                let v = self.insert(node, of);
                let user = self.g.def(v);
                let earlier = self.insert(user, of);
                if self.g.operand_count(user) > 0 {
                    self.g.edit().set_operand(user, 0, earlier);
                }
            }
            2 => {
                let v = self.insert(node, of);
                let operands: Vec<ValueId> = self.g.operands(node).collect();
                if let Some(i) = operands.iter().position(|&v| self.g.ty(v) == Type::TENSOR) {
                    self.g.edit().set_operand(node, i, v);
                }
            }
            3 => {
                let results: Vec<ValueId> =
                    self.g.results(node).filter(|&v| self.g.ty(v) == Type::TENSOR).collect();
                if let [v] = results[..] {
                    self.g.edit().replace_all_uses(v, of);
                }
            }
            // A chain of replacements whose middle value is erased at the end.
            4 => {
                let results: Vec<ValueId> =
                    self.g.results(node).filter(|&v| self.g.ty(v) == Type::TENSOR).collect();
                if let [v] = results[..] {
                    let after = self.g.next(node).unwrap();
                    let mid = self.insert(after, of);
                    let end = self.insert(after, of);
                    self.g.edit().replace_all_uses(v, mid);
                    self.g.edit().replace_all_uses(mid, end);
                    if self.g.use_count(mid) == 0 {
                        let gone = self.g.def(mid);
                        self.g.edit().erase(gone);
                    }
                }
            }
            5 => {
                let ret = self.g.ret(self.g.parent(node));
                let outputs: Vec<ValueId> = self.g.operands(ret).collect();
                if let Some(i) = outputs.iter().position(|&v| self.g.ty(v) == Type::TENSOR) {
                    let v = self.visible_value(ret);
                    self.g.edit().set_operand(ret, i, v);
                }
            }
            // The next insertion reuses freed slots.
            _ => {
                let unused =
                    |g: &Graph, n: NodeId| g.block_count(n) == 0 && g.results(n).all(|v| g.use_count(v) == 0);
                for &n in nodes.iter().rev() {
                    let of_registry = matches!(self.g.op(n).kind(), OpKind::Row(_));
                    if of_registry && unused(self.g, n) && self.random.below(3) == 0 {
                        self.g.edit().erase(n);
                    }
                }
            }
        }
    }
}

/// Runs batches on random graphs. Returns the first fact that an update misses, and the numbers of updates kept and
/// rebuilt.
fn run(graphs: u64, batches: usize, plant: bool) -> (Option<String>, usize, usize) {
    let (mut kept, mut rebuilt) = (0, 0);
    for seed in 1..=graphs {
        let mut random = Random(seed * 104_729);
        let mut g = random_graph(&mut random, 12 + (seed % 20) as usize);
        let shared = Tensor::from_slice(&[1.0_f32], &[1]).unwrap();
        let mut db = AliasDb::new(&g);
        for _ in 0..batches {
            let before: Vec<ValueId> = g.values_in_order().collect();
            for _ in 0..1 + random.below(5) {
                Batch { g: &mut g, random: &mut random, shared: &shared }.edit();
            }
            flambeau_ir::verify::verify(&g).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{g}"));
            let changes: Vec<Change> = g.journal().since(db.revision()).unwrap().copied().collect();
            let fresh = AliasDb::new(&g);
            if update::update(&mut db, &g, &changes) == Update::Rebuild {
                rebuilt += 1;
                db = fresh;
                continue;
            }
            kept += 1;
            if plant {
                g.values_in_order().filter(|v| !before.contains(v)).for_each(|v| db.of_value.set(v, 0));
            }
            if let Some(why) = missing_fact(&g, &db, &fresh) {
                return (Some(format!("seed {seed}: {why}\n{g}\n{}", fresh.dump(&g))), kept, rebuilt);
            }
        }
    }
    (None, kept, rebuilt)
}

#[test]
fn batched_updates_report_every_fresh_alias() {
    let (wrong, kept, rebuilt) = run(300, 10, false);
    assert_eq!(wrong, None);
    assert!(kept > 2 * rebuilt, "{kept} kept, {rebuilt} rebuilt");
}

#[test]
fn a_stale_element_is_detected() {
    assert!(run(300, 10, true).0.is_some(), "the checks do not detect the planted bug");
}

/// A minimal example of the bug: `n` is bound to the previous operand of `y` before the node of `y` is visited.
#[test]
fn an_operand_may_be_set_to_a_later_value() {
    let r = registry();
    let (relu, view, write) = (
        r.lookup("aten::relu").unwrap(),
        r.lookup("aten::t").unwrap(),
        r.lookup("aten::add_.Tensor").unwrap(),
    );
    let mut g = Graph::new(r);
    let mut e = g.edit();
    let (x, one) = (e.add_input(Type::TENSOR), e.add_input(Type::INT));
    let mut analyses = crate::cache::Analyses::new();
    analyses.get::<AliasDb>(&g);
    let v = g.edit().value(view, &[x], Type::TENSOR);
    let n = g.def(v);
    let y = g.edit().at(At::before(n)).value(relu, &[x], Type::TENSOR);
    g.edit().set_operand(n, 0, y);
    g.edit().value(write, &[v, v, one], Type::TENSOR);
    let db = analyses.get::<AliasDb>(&g);
    assert!(db.may_alias(v, y) && db.has_writers(y));
    assert_eq!(analyses.stats().next().unwrap().kept, 1);
}
