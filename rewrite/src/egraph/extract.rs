//! Extraction: chooses one e-node per class such that the program gets cheap. The algorithm is greedy over sets of
//! classes, so a subterm that two operands share is counted once. Results are deterministic, including ties.
//!
//! The solution of a class is the set of classes that its chosen term contains, each with its own cost. A worklist
//! revisits e-nodes until no class finds a cheaper set. An e-node whose operands contain the class itself is never
//! chosen, so terms are finite. Ties prefer e-nodes that exist in the program, then fewer nodes, then the smaller
//! e-node.

use super::facts::EGraphAnalysis;
use super::language::{ENode, NodeHead};
use super::saturate::canonical;
use crate::facets::Cost;
use egg::{EGraph, Id, Language};
use flambeau_ir::{OpId, Registry};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// The chosen e-node of each class.
pub(crate) struct Choice {
    best: HashMap<Id, Solution, FxBuildHasher>,
}

#[derive(Clone)]
struct Solution {
    node: ENode,
    /// The classes of the term, this one included, with their own costs.
    needs: HashMap<Id, u64, FxBuildHasher>,
    total: u64,
    /// Whether the e-node exists in the program.
    original: bool,
    /// Position among the members of the last leaf that the term uses.
    available_from: u32,
}

impl Choice {
    /// The node chosen for a class, operands canonical.
    pub(crate) fn node(&self, class: Id) -> Option<&ENode> {
        self.best.get(&class).map(|s| &s.node)
    }

    /// The number of members that must precede the chosen term: all its leaves are defined by then.
    pub(crate) fn available_from(&self, class: Id) -> u32 {
        self.best.get(&class).map_or(u32::MAX, |s| s.available_from)
    }
}

/// Costs of nodes by operator.
pub(crate) struct Costs<'r> {
    pub(crate) registry: &'r Registry,
}

impl Costs<'_> {
    fn of_op(&self, id: OpId) -> u64 {
        // Scaled by 4, so that lists and constants can cost less than any operator.
        4 * u64::from(Cost::of(self.registry, id).0) + 1
    }

    fn of(&self, node: &ENode) -> u64 {
        match node.head {
            NodeHead::Leaf(_) => 0,
            NodeHead::Constant(_) => 1,
            NodeHead::List(_) => 2,
            NodeHead::Op(id) => self.of_op(id),
        }
    }
}

/// Chooses an e-node for every class. `original` holds the program's own e-nodes; `available_from` maps a leaf to the
/// member position at which it is defined.
pub(crate) fn extract(
    egraph: &EGraph<ENode, EGraphAnalysis>,
    costs: &Costs<'_>,
    original: &HashSet<ENode, FxBuildHasher>,
    available_from: impl Fn(u32) -> u32,
) -> Choice {
    let mut classes: Vec<Id> = egraph.classes().map(|c| c.id).collect();
    classes.sort_unstable();
    let mut nodes: HashMap<Id, Vec<ENode>, FxBuildHasher> = HashMap::default();
    let mut users: HashMap<Id, Vec<Id>, FxBuildHasher> = HashMap::default();
    for &class in &classes {
        let mut all: Vec<ENode> = egraph[class].iter().map(|n| canonical(egraph, n)).collect();
        all.sort_unstable();
        all.dedup();
        for node in &all {
            for &child in node.children() {
                let list = users.entry(child).or_default();
                if list.last() != Some(&class) {
                    list.push(class);
                }
            }
        }
        nodes.insert(class, all);
    }
    let mut choice = Choice { best: HashMap::default() };
    let mut queue: VecDeque<Id> = classes.iter().copied().collect();
    let mut queued: HashSet<Id, FxBuildHasher> = classes.iter().copied().collect();
    // Each improvement lowers a cost, so the loop terminates; the budget bounds pathological cases.
    let mut budget = 64 * classes.len().max(16);
    while let Some(class) = queue.pop_front() {
        queued.remove(&class);
        if budget == 0 {
            break;
        }
        budget -= 1;
        let mut improved = false;
        for node in &nodes[&class] {
            let Some(found) = solution(class, node, costs, original, &choice, &available_from) else {
                continue;
            };
            if choice.best.get(&class).is_none_or(|old| better(&found, old)) {
                choice.best.insert(class, found);
                improved = true;
            }
        }
        if improved {
            for &user in users.get(&class).map_or(&[] as &[Id], Vec::as_slice) {
                if queued.insert(user) {
                    queue.push_back(user);
                }
            }
        }
    }
    choice
}

fn better(a: &Solution, b: &Solution) -> bool {
    let key = |s: &Solution| (s.total, !s.original, s.needs.len());
    match key(a).cmp(&key(b)) {
        Ordering::Equal => a.node < b.node,
        order => order.is_lt(),
    }
}

fn solution(
    class: Id,
    node: &ENode,
    costs: &Costs<'_>,
    original: &HashSet<ENode, FxBuildHasher>,
    choice: &Choice,
    available_from: impl Fn(u32) -> u32,
) -> Option<Solution> {
    let mut needs: HashMap<Id, u64, FxBuildHasher> = HashMap::default();
    let mut last = match node.head {
        NodeHead::Leaf(n) => available_from(n),
        _ => 0,
    };
    for &child in node.children() {
        let of = choice.best.get(&child)?;
        if of.needs.contains_key(&class) {
            return None;
        }
        last = last.max(of.available_from);
        needs.extend(of.needs.iter().map(|(k, c)| (*k, *c)));
    }
    needs.insert(class, costs.of(node));
    let total = needs.values().sum();
    Some(Solution {
        node: node.clone(),
        needs,
        total,
        original: original.contains(node),
        available_from: last,
    })
}
