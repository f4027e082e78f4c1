//! Positions of writes in program order, by memory location: whether something writes what a node reads between two
//! places of the program.
//!
//! [`AliasDb::has_writers`] asks for writes anywhere in the graph. A node without effects that is put elsewhere computes
//! the same as long as none of the nodes it passes writes what it reads. [`WriteOrder`] answers that in O(log writes)
//! per location, for nodes in any blocks, by the numbers of [`Dominance`].
//!
//! Every write is listed under at most [`MOST`] locations, and a query looks at no more: writes and reads of larger sets
//! meet every other one. So building is linear, and answers err on the side of a write.

use super::AliasDb;
use super::locations::LocSet;
use crate::dominance::Dominance;
use flambeau_ir::{Graph, NodeId, ValueId, WalkStep};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::ops::Range;

/// A set of more locations meets all others.
const MOST: usize = 64;

/// Where the nodes of a graph write, as it was when this was made. See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct WriteOrder {
    /// By location (those that overlap as one): numbers of its writers, ascending.
    by_location: HashMap<u32, Vec<u32>, FxBuildHasher>,
    /// Numbers of all writers, ascending.
    all: Vec<u32>,
    /// Numbers of writers of more than [`MOST`] locations, ascending.
    large: Vec<u32>,
}

/// The writes next to a node, of memory that the node reads: a place between them is as good as the node's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The number of the last writer before the node.
    pub after: Option<u32>,
    /// The number of the first writer after the node.
    pub before: Option<u32>,
}

impl Span {
    /// Whether no write is next to the node on either side.
    #[must_use]
    pub fn is_unbounded(self) -> bool {
        self == Span::default()
    }

    fn narrow(&mut self, list: &[u32], own: Range<u32>) {
        let first = list.partition_point(|&at| at < own.start);
        self.after = self.after.max(first.checked_sub(1).map(|last| list[last]));
        let next = list[first..].iter().copied().find(|&at| at >= own.end);
        self.before = match (self.before, next) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

impl WriteOrder {
    /// Lists the writes of a graph. O(nodes).
    #[must_use]
    pub fn new(graph: &Graph, db: &AliasDb, dominance: &Dominance) -> WriteOrder {
        let mut order = WriteOrder::default();
        if db.writes.rows.is_empty() {
            return order;
        }
        for step in graph.walk(graph.root()) {
            let WalkStep::Node(node) = step else { continue };
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

    /// Whether nothing in the graph writes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether any node with a number in `range` writes anything.
    #[must_use]
    pub fn any_in(&self, range: Range<u32>) -> bool {
        hits(&self.all, &range)
    }

    /// Whether a node with a number in `range` may write what a value may be or hold.
    #[must_use]
    pub fn writes_to(&self, db: &AliasDb, value: ValueId, range: Range<u32>) -> bool {
        self.any_in(range.clone()) && self.lists(db, value).any(|list| hits(list, &range))
    }

    /// The writes next to a node, of what it and all nested in it read. A node that writes is no bound of its own.
    #[must_use]
    pub fn around(&self, graph: &Graph, db: &AliasDb, dominance: &Dominance, node: NodeId) -> Span {
        let mut span = Span::default();
        if !self.is_empty() {
            let own = dominance.span(node);
            for value in read_in(graph, node) {
                self.lists(db, value).for_each(|list| span.narrow(list, own.clone()));
            }
        }
        span
    }

    /// The lists of writes that may meet a value.
    fn lists<'a>(&'a self, db: &'a AliasDb, value: ValueId) -> impl Iterator<Item = &'a [u32]> {
        // A value without an element is memory that no node writes.
        let set = db.deep(value);
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

/// The locations of a set, those that overlap as one; `None` if there are too many.
fn locations(db: &AliasDb, set: LocSet) -> Option<impl Iterator<Item = u32> + '_> {
    let few = db.solution.sets.iter(set).nth(MOST).is_none();
    few.then(|| db.solution.sets.iter(set).map(|loc| db.overlapping(loc)))
}

fn hits(list: &[u32], range: &Range<u32>) -> bool {
    let first = list.partition_point(|&at| at < range.start);
    list.get(first).is_some_and(|&at| at < range.end)
}

/// What a node and all nested in it use: operands, and what blocks give out.
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
    fn writes_bound_what_reads_their_memory() {
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
        assert_eq!(around("b"), Span { after: None, before: Some(at("w")) });
        assert_eq!(around("c"), Span { after: Some(at("w")), before: Some(at("v")) });
        assert!(around("o").is_unbounded(), "only `a` is written");
        assert_eq!(
            around("r"),
            Span { after: Some(at("w")), before: None },
            "what is nested is the node's own"
        );
        assert!(writes.writes_to(&db, value(&g, "b"), 0..1) || !writes.any_in(0..at("w")));
        assert!(writes.writes_to(&db, value(&g, "a"), at("b")..at("c")));
        assert!(!writes.writes_to(&db, value(&g, "x"), at("b")..at("c")));
        assert!(!writes.writes_to(&db, value(&g, "a"), at("c")..at("r")));
    }
}
