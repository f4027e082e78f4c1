//! Equality of methods: graphs that differ only in names and locations are the same method.

use flambeau_ir::{Attr, Graph, IValue, NodeId, Op, ValueId, WalkStep};
use hashbrown::HashMap;
use rustc_hash::{FxBuildHasher, FxHasher};
use std::hash::{Hash, Hasher};

/// The number of each value, in the order of definition.
type Numbers = HashMap<ValueId, usize, FxBuildHasher>;

/// Returns a hash that equal graphs share.
pub(super) fn fingerprint(graph: &Graph) -> u64 {
    let mut hasher = FxHasher::default();
    let mut numbers = Numbers::default();
    for step in graph.walk(graph.root()) {
        match step {
            WalkStep::Enter(block) => define(graph, &mut numbers, graph.block_inputs(block), &mut hasher),
            WalkStep::Node(node) => {
                graph.op(node).hash(&mut hasher);
                graph.operands(node).for_each(|value| numbers.get(&value).hash(&mut hasher));
                define(graph, &mut numbers, graph.results(node), &mut hasher);
            }
            WalkStep::Leave(block) => {
                graph.block_outputs(block).for_each(|value| numbers.get(&value).hash(&mut hasher));
            }
            WalkStep::Done(_) => 0.hash(&mut hasher),
        }
    }
    hasher.finish()
}

fn define(
    graph: &Graph,
    numbers: &mut Numbers,
    values: impl Iterator<Item = ValueId>,
    hasher: &mut FxHasher,
) {
    for value in values {
        let next = numbers.len();
        numbers.insert(value, next);
        graph.ty(value).hash(hasher);
    }
}

/// Returns whether two graphs with the same registry differ only in names and locations.
pub(super) fn is_same(a: &Graph, b: &Graph) -> bool {
    let mut pairs: HashMap<ValueId, ValueId, FxBuildHasher> = HashMap::default();
    let mut steps = (a.walk(a.root()), b.walk(b.root()));
    loop {
        let is_equal = match (steps.0.next(), steps.1.next()) {
            (None, None) => return true,
            (Some(WalkStep::Enter(x)), Some(WalkStep::Enter(y))) => {
                pair(a, b, a.block_inputs(x), b.block_inputs(y), &mut pairs)
            }
            (Some(WalkStep::Node(x)), Some(WalkStep::Node(y))) => {
                kind(a, x) == kind(b, y)
                    && a.operands(x).zip(b.operands(y)).all(|(v, w)| pairs.get(&v) == Some(&w))
                    && same_attributes(a, x, b, y)
                    && pair(a, b, a.results(x), b.results(y), &mut pairs)
            }
            (Some(WalkStep::Leave(x)), Some(WalkStep::Leave(y))) => {
                let (v, w) = (a.block_outputs(x), b.block_outputs(y));
                v.len() == w.len() && v.zip(w).all(|(v, w)| pairs.get(&v) == Some(&w))
            }
            (Some(WalkStep::Done(_)), Some(WalkStep::Done(_))) => true,
            _ => false,
        };
        if !is_equal {
            return false;
        }
    }
}

/// Returns the operator, the number of operands and the number of blocks, which equal nodes have in common.
fn kind(graph: &Graph, node: NodeId) -> (Op, usize, usize) {
    (graph.op(node), graph.operand_count(node), graph.block_count(node))
}

/// Pairs values in order; false if their numbers or types differ.
fn pair(
    a: &Graph,
    b: &Graph,
    v: impl ExactSizeIterator<Item = ValueId>,
    w: impl ExactSizeIterator<Item = ValueId>,
    pairs: &mut HashMap<ValueId, ValueId, FxBuildHasher>,
) -> bool {
    v.len() == w.len()
        && v.zip(w).all(|(v, w)| {
            pairs.insert(v, w);
            a.ty(v) == b.ty(w)
        })
}

fn same_attributes(a: &Graph, x: NodeId, b: &Graph, y: NodeId) -> bool {
    let (own, other) = (a.attrs(x).entries(), b.attrs(y).entries());
    let is_equal = |a: &Attr, b: &Attr| a.same(b) || same_constants(a, b);
    own.len() == other.len() && own.iter().zip(other).all(|(a, b)| a.0 == b.0 && is_equal(&a.1, &b.1))
}

/// Returns whether two constants that are separate objects are equal: lists, and tensors of one element.
fn same_constants(a: &Attr, b: &Attr) -> bool {
    match (a, b) {
        (Attr::Value(IValue::Tensor(a)), Attr::Value(IValue::Tensor(b))) => {
            let is_number = a.sizes().iter().product::<i64>() == 1;
            let is_alike = (a.dtype(), a.sizes()) == (b.dtype(), b.sizes());
            is_number
                && is_alike
                && IValue::Tensor(a.clone()).equals(&IValue::Tensor(b.clone())).unwrap_or(false)
        }
        (Attr::Value(a @ IValue::List(_)), Attr::Value(b @ IValue::List(_))) => {
            a.type_of() == b.type_of() && a.equals(b).unwrap_or(false)
        }
        _ => false,
    }
}
