//! Positions of writes in program order, by memory location: whether memory that a node reads is written between two
//! positions of the program.
//!
//! [`AliasDb::has_writers`] reports writes anywhere in the graph. A node without effects that moves computes the same
//! if no node it passes writes memory it reads. [`WriteOrder`] answers that in O(log writes) per location, for nodes in
//! any blocks, by the numbers of [`Dominance`]. A node that may raise must not pass certain other nodes either, even if
//! they write nothing it reads ([`ErrorOrder`](super::ErrorOrder)).
//!
//! Every write is listed under at most [`MAX_LOCATIONS`] locations, and a query inspects at most that many; writes and reads of
//! larger sets conflict with every other one. So construction is linear, and answers are conservative.

use super::AliasDb;
use super::locations::LocSet;
use crate::dominance::Dominance;
use flambeau_ir::{Graph, NodeId, ValueId, WalkStep};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::ops::Range;

/// A larger set of locations conflicts with all others.
const MAX_LOCATIONS: usize = 64;

/// The positions of writes in a graph at the time of construction. See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct WriteOrder {
    /// By location (overlapping ones counted as equal): numbers of its writers, ascending.
    by_location: HashMap<u32, Vec<u32>, FxBuildHasher>,
    /// Numbers of all writers, ascending.
    all: Vec<u32>,
    /// Numbers of writers of more than [`MAX_LOCATIONS`] locations, ascending.
    large: Vec<u32>,
}

/// The nearest nodes before and after a node that it must not pass. For [`WriteOrder`] these are the writes of memory
/// that the node reads, for [`ErrorOrder`](super::ErrorOrder) the events that an error must not pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveBounds {
    /// The number of the last such node before the node.
    pub after: Option<u32>,
    /// The number of the first such node after the node.
    pub before: Option<u32>,
}

impl MoveBounds {
    /// Whether there is no such node on either side.
    #[must_use]
    pub fn is_unbounded(self) -> bool {
        self == MoveBounds::default()
    }

    /// Whether a node with this span may be moved directly before the node with number `at`.
    #[must_use]
    pub fn allows(self, at: u32) -> bool {
        self.after.is_none_or(|after| after < at) && self.before.is_none_or(|before| before >= at)
    }

    /// Returns the positions that both spans allow.
    #[must_use]
    pub fn intersection(self, other: MoveBounds) -> MoveBounds {
        let before = match (self.before, other.before) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        MoveBounds { after: self.after.max(other.after), before }
    }

    /// Restricts the span by the nearest numbers of `list` (ascending) outside of `own`.
    pub(super) fn narrow(&mut self, list: &[u32], own: Range<u32>) {
        let first = list.partition_point(|&at| at < own.start);
        let next = first + list[first..].partition_point(|&at| at < own.end);
        let after = first.checked_sub(1).map(|last| list[last]);
        *self = self.intersection(MoveBounds { after, before: list.get(next).copied() });
    }
}

impl WriteOrder {
    /// Lists the writes of a graph. O(nodes).
    #[must_use]
    pub fn new(graph: &Graph, db: &AliasDb, dominance: &Dominance) -> WriteOrder {
        WriteOrder::of_writers(graph, db, dominance, |_| true)
    }

    /// Lists the writes of the nodes for which `counts` is true. O(nodes).
    #[must_use]
    pub fn of_writers(
        graph: &Graph,
        db: &AliasDb,
        dominance: &Dominance,
        counts: impl Fn(NodeId) -> bool,
    ) -> WriteOrder {
        let mut order = WriteOrder::default();
        if db.writes.rows.is_empty() {
            return order;
        }
        for step in graph.walk(graph.root()) {
            let WalkStep::Node(node) = step else { continue };
            if !counts(node) {
                continue;
            }
            let at = dominance.order(node);
            for set in db.own_writes(node) {
                order.add(db, set, at);
            }
        }
        order
    }

    fn add(&mut self, db: &AliasDb, set: LocSet, at: u32) {
        let push = |list: &mut Vec<u32>| {
            if list.last() != Some(&at) {
                list.push(at);
            }
        };
        push(&mut self.all);
        match locations(db, set) {
            Some(found) => found.for_each(|loc| push(self.by_location.entry(loc).or_default())),
            None => push(&mut self.large),
        }
    }

    /// Whether no node of the graph writes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether any node with a number in `range` writes anything.
    #[must_use]
    pub fn any_in(&self, range: Range<u32>) -> bool {
        hits(&self.all, &range)
    }

    /// Whether a node with a number in `range` may write memory that a value may be or hold.
    #[must_use]
    pub fn writes_to(&self, db: &AliasDb, value: ValueId, range: Range<u32>) -> bool {
        self.any_in(range.clone()) && self.lists(db, db.deep(value)).any(|list| hits(list, &range))
    }

    /// Whether a node with a number in `range` may write memory that a value may be; what a container holds does not count.
    #[must_use]
    pub fn writes_to_itself(&self, db: &AliasDb, value: ValueId, range: Range<u32>) -> bool {
        self.any_in(range.clone()) && self.lists(db, db.locs(value)).any(|list| hits(list, &range))
    }

    /// Returns the writes nearest to a node, of memory that it and its nested nodes read. The node's own writes are
    /// ignored.
    #[must_use]
    pub fn around(&self, graph: &Graph, db: &AliasDb, dominance: &Dominance, node: NodeId) -> MoveBounds {
        let mut span = MoveBounds::default();
        if !self.is_empty() {
            let own = dominance.span(node);
            for value in read_in(graph, node) {
                self.lists(db, db.deep(value)).for_each(|list| span.narrow(list, own.clone()));
            }
        }
        span
    }

    /// The lists of writes that may affect memory of a value.
    fn lists<'a>(&'a self, db: &'a AliasDb, set: LocSet) -> impl Iterator<Item = &'a [u32]> {
        // A value without an element is memory that no node writes.
        let found = if set.is_empty() { None } else { locations(db, set) };
        let whole: Option<&[u32]> = match (&found, set.is_empty()) {
            (_, true) => None,
            (Some(_), _) => Some(&self.large),
            (None, _) => Some(&self.all),
        };
        let listed = found.into_iter().flatten().filter_map(|loc| self.by_location.get(&loc));
        whole.into_iter().chain(listed.map(Vec::as_slice))
    }
}

/// The locations of a set, with overlapping ones mapped to one representative; `None` if there are too many.
fn locations(db: &AliasDb, set: LocSet) -> Option<impl Iterator<Item = u32> + '_> {
    let few = db.solution.sets.iter(set).nth(MAX_LOCATIONS).is_none();
    few.then(|| db.solution.sets.iter(set).map(|loc| db.overlapping(loc)))
}

fn hits(list: &[u32], range: &Range<u32>) -> bool {
    let first = list.partition_point(|&at| at < range.start);
    list.get(first).is_some_and(|&at| at < range.end)
}

/// The values that a node and its nested nodes use: operands and block outputs.
pub(super) fn read_in(graph: &Graph, node: NodeId) -> impl Iterator<Item = ValueId> + '_ {
    let nested = graph.blocks(node).flat_map(move |block| {
        graph.walk(block).filter_map(move |step| match step {
            WalkStep::Node(inner) => Some(inner),
            WalkStep::Leave(inner) => Some(graph.ret(inner)),
            WalkStep::Enter(_) | WalkStep::Done(_) => None,
        })
    });
    graph.operands(node).chain(nested.flat_map(|inner| graph.operands(inner)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{def, graph, value};

    #[test]
    fn writes_limit_moves_of_readers() {
        let g = graph(
            "graph(%x : Tensor, %p : bool, %i : int):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::tanh(%a)
  %w : Tensor = aten::add_(%a, %x, %i)
  %c : Tensor = aten::tanh(%a)
  %o : Tensor = aten::tanh(%x)
  %r : Tensor = prim::If(%p)
    block0():
      %v : Tensor = aten::add_(%a, %x, %i)
      -> (%v)
    block1():
      -> (%c)
  return (%b, %o, %r)",
        );
        let (db, dominance) = (AliasDb::new(&g), Dominance::new(&g));
        let writes = WriteOrder::new(&g, &db, &dominance);
        let at = |name: &str| dominance.order(def(&g, name));
        let around = |name: &str| writes.around(&g, &db, &dominance, def(&g, name));
        assert_eq!(around("b"), MoveBounds { after: None, before: Some(at("w")) });
        assert_eq!(around("c"), MoveBounds { after: Some(at("w")), before: Some(at("v")) });
        assert!(around("o").is_unbounded(), "only `a` is written");
        assert_eq!(
            around("r"),
            MoveBounds { after: Some(at("w")), before: None },
            "nested writes belong to the node"
        );
        assert!(writes.writes_to(&db, value(&g, "b"), 0..1) || !writes.any_in(0..at("w")));
        assert!(writes.writes_to(&db, value(&g, "a"), at("b")..at("c")));
        assert!(!writes.writes_to(&db, value(&g, "x"), at("b")..at("c")));
        assert!(!writes.writes_to(&db, value(&g, "a"), at("c")..at("r")));
        let others = WriteOrder::of_writers(&g, &db, &dominance, |node| node != def(&g, "w"));
        assert!(!others.writes_to(&db, value(&g, "a"), at("b")..at("c")));
        assert!(others.writes_to(&db, value(&g, "a"), at("b")..at("v") + 1));
    }
}
