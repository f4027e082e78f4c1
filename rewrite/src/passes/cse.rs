//! Common subexpression elimination: replaces the results of a node by those of an earlier node that computes the same.
//!
//! Two nodes compute the same if operator, operands, attributes and result types agree, the operator is deterministic
//! and free of effects, and the memory involved has no writers. Views of a tensor ([`AlwaysView`]) are also the same if writes change
//! its elements, but not its sizes. A merge makes results share memory that were distinct.
//! If that is observable (both escape the graph, directly or through containers or views), the nodes are not merged.
//!
//! One walk plans all merges on the unchanged graph, resolving operands through merges already planned. Then the edits
//! are made. A node is visible in nested blocks, but not the other way round: the table entries of a block are removed
//! at its end.

use crate::control::InjectedBug;
use crate::facets::AlwaysView;
use crate::memory;
use crate::pass::{Pass, PassCx, PassError};
use flambeau_analysis::AliasDb;
use flambeau_analysis::alias::MemorySet;
use flambeau_ir::{Graph, NodeId, Op, ValueId, ValueMap, WalkStep};
use hashbrown::hash_table::Entry;
use hashbrown::{HashMap, HashTable};
use rustc_hash::{FxBuildHasher, FxHasher};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::hash::{Hash, Hasher};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cse;

impl Pass for Cse {
    const NAME: &'static str = "cse";
    const ALIASES: &'static [&'static str] = &["common_subexpression_elimination"];
    const DOC: &'static str = "Merges nodes that compute the same values.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let ignore_writers = cx.injected_bug() == InjectedBug::CseIgnoresWriters;
        // In a graph without writers, the alias analysis is needed only if there is something to merge.
        let plan = match Search::new(cx.graph(), None, ignore_writers).run() {
            Some(plan) => plan,
            None => {
                let (graph, db) = cx.with::<AliasDb>();
                let search = Search::new(graph, Some(db), ignore_writers);
                search.run().expect("invariant: memory is known")
            }
        };
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for (node, kept) in plan {
            if !fuel.take("merge", editor.graph(), node) {
                break;
            }
            let results: SmallVec<[ValueId; 4]> = editor.graph().results(kept).collect();
            editor.replace_node(node, &results);
        }
        Ok(())
    }
}

struct Search<'a> {
    graph: &'a Graph,
    memory: Option<&'a AliasDb>,
    ignore_writers: bool,
    /// The memory of tensors that differ as objects; see [`memory::distinguished_objects`].
    distinguished: OnceCell<Option<MemorySet>>,
    /// Hash table of the nodes that others may merge into. Entries are 32-bit node numbers: lookups are memory-bound,
    /// and an id or a stored hash would double the memory traffic for large graphs.
    table: HashTable<u32>,
    /// The replacement of a merged value; `None` for the value itself.
    stands_for: ValueMap<Option<ValueId>>,
    /// By kept node: the merged nodes whose results escape the graph. The kept node's results then escape too, so a
    /// second such node is not merged and each list is short.
    leaving: HashMap<NodeId, SmallVec<[NodeId; 1]>, FxBuildHasher>,
    plan: Vec<(NodeId, NodeId)>,
    /// Nodes to look up, with their hashes.
    batch: Vec<(NodeId, u64)>,
    /// Table entries of nested blocks, with their hashes.
    made: Vec<(u64, u32)>,
}

/// Number of nodes hashed before the first of them is looked up. For a large graph the table exceeds the caches.
/// Consecutive lookups overlap their cache misses.
const BATCH: usize = 32;

impl<'a> Search<'a> {
    fn new(graph: &'a Graph, memory: Option<&'a AliasDb>, ignore_writers: bool) -> Self {
        Search {
            graph,
            memory,
            ignore_writers,
            distinguished: OnceCell::new(),
            table: HashTable::with_capacity(graph.node_count()),
            stands_for: ValueMap::sparse(None),
            leaving: HashMap::default(),
            plan: Vec::new(),
            batch: Vec::with_capacity(BATCH),
            made: Vec::new(),
        }
    }

    /// Returns pairs of a node and the node it merges into, in program order; `None` if the alias analysis is needed.
    fn run(mut self) -> Option<Vec<(NodeId, NodeId)>> {
        let graph = self.graph;
        // For each open block, the number of entries of nested blocks at its start. Entries of the root block stay.
        let mut open: Vec<usize> = Vec::new();
        for step in graph.walk(graph.root()) {
            match step {
                WalkStep::Enter(_) => {
                    self.look_up(open.len() > 1)?;
                    open.push(self.made.len());
                }
                WalkStep::Leave(_) => {
                    self.look_up(open.len() > 1)?;
                    let mark = open.pop().expect("invariant: blocks are entered before they are left");
                    if open.is_empty() {
                        break;
                    }
                    for (hash, made) in self.made.drain(mark..) {
                        if let Ok(entry) = self.table.find_entry(hash, |&other| other == made) {
                            entry.remove();
                        }
                    }
                }
                WalkStep::Node(node) => {
                    if self.is_candidate(node)? {
                        self.batch.push((node, hash_of(graph, &self.stands_for, node)));
                        if self.batch.len() == BATCH {
                            self.look_up(open.len() > 1)?;
                        }
                    }
                }
                WalkStep::Done(_) => {}
            }
        }
        Some(self.plan)
    }

    /// Looks up the batch, whose nodes are all in one block.
    fn look_up(&mut self, nested: bool) -> Option<()> {
        let merged = self.plan.len();
        let mut batch = std::mem::take(&mut self.batch);
        for (node, mut hash) in batch.drain(..) {
            if self.plan.len() > merged {
                // A merge since the hash was computed may have changed an operand.
                hash = hash_of(self.graph, &self.stands_for, node);
            }
            let (graph, stands_for) = (self.graph, &self.stands_for);
            let same = |&other: &u32| same(graph, stands_for, graph.numbered(other), node);
            let hash_of = |&other: &u32| hash_of(graph, stands_for, graph.numbered(other));
            match self.table.entry(hash, same, hash_of) {
                // One entry represents all equal nodes, merged or not: a chain of equal entries would be traversed
                // repeatedly.
                Entry::Occupied(entry) => {
                    let kept = graph.numbered(*entry.get());
                    if self.may_merge(node, kept)? {
                        self.merge(node, kept);
                    }
                }
                Entry::Vacant(entry) => {
                    entry.insert(graph.number(node));
                    if nested {
                        self.made.push((hash, graph.number(node)));
                    }
                }
            }
        }
        self.batch = batch;
        Some(())
    }

    /// Whether a node may merge or be merged into; `None` if the alias analysis is needed.
    fn is_candidate(&self, node: NodeId) -> Option<bool> {
        let g = self.graph;
        let effects = g.effects(node);
        if effects.may_write() && self.memory.is_none() && !self.ignore_writers {
            return None;
        }
        if !effects.is_pure() {
            return Some(false);
        }
        if g.result_count(node) == 0 || g.block_count(node) > 0 {
            return Some(false);
        }
        Some(self.memory.is_none_or(|db| {
            self.ignore_writers || !memory::has_writers(db, g, node) || self.is_lasting_view(db, node)
        }))
    }

    /// Whether a node makes a view that is the same wherever it is made, although its elements are written.
    fn is_lasting_view(&self, db: &AliasDb, node: NodeId) -> bool {
        let g = self.graph;
        let is_view = g.op(node).row().is_some_and(|row| g.registry().facet::<AlwaysView>(row).is_some());
        is_view && {
            let distinguished = self.distinguished.get_or_init(|| memory::distinguished_objects(db, g));
            let differs = |value| distinguished.as_ref().is_some_and(|memory| memory.intersects(db, value));
            !g.operands(node).chain(g.results(node)).any(differs)
        }
    }

    /// Whether the results of `kept` may replace those of `node`; `None` if the alias analysis is needed.
    fn may_merge(&self, node: NodeId, kept: NodeId) -> Option<bool> {
        let g = self.graph;
        if g.results(node).all(|v| !g.ty(v).is_mutable()) {
            return Some(true);
        }
        let db = self.memory?;
        let others = self.leaving.get(&kept).map_or(&[] as &[NodeId], SmallVec::as_slice);
        Some(std::iter::once(kept).chain(others.iter().copied()).all(|other| {
            g.results(node).all(|x| g.results(other).all(|y| memory::may_share(db, g, x, y)))
                || self.stays(node)
                || self.stays(other)
        }))
    }

    /// Whether the results of a node stay inside the graph.
    fn stays(&self, node: NodeId) -> bool {
        self.graph.results(node).all(|v| memory::stays_inside(self.graph, v, None))
    }

    fn merge(&mut self, node: NodeId, kept: NodeId) {
        let g = self.graph;
        for (old, new) in g.results(node).zip(g.results(kept)) {
            self.stands_for[old] = Some(new);
        }
        if let Some(db) = self.memory
            && g.results(node).any(|v| !memory::may_share(db, g, v, v))
            && !self.stays(node)
        {
            self.leaving.entry(kept).or_default().push(node);
        }
        self.plan.push((node, kept));
    }
}

fn resolve(stands_for: &ValueMap<Option<ValueId>>, value: ValueId) -> ValueId {
    stands_for[value].unwrap_or(value)
}

/// Whether two nodes compute the same: operator, attributes, result types, and operands after resolution.
fn same(g: &Graph, stands_for: &ValueMap<Option<ValueId>>, a: NodeId, b: NodeId) -> bool {
    g.op(a) == g.op(b)
        && g.attrs_id(a) == g.attrs_id(b)
        && g.operand_count(a) == g.operand_count(b)
        && g.result_count(a) == g.result_count(b)
        && g.operands(a)
            .zip(g.operands(b))
            .all(|(x, y)| x == y || resolve(stands_for, x) == resolve(stands_for, y))
        && g.results(a).zip(g.results(b)).all(|(x, y)| g.ty(x) == g.ty(y))
}

/// Hash of everything that [`same`] compares, with operands as resolved now. Operands precede the node, so their
/// resolution is final.
fn hash_of(g: &Graph, stands_for: &ValueMap<Option<ValueId>>, node: NodeId) -> u64 {
    let mut h = FxHasher::default();
    let op: Op = g.op(node);
    op.hash(&mut h);
    g.attrs_id(node).hash(&mut h);
    for v in g.operands(node) {
        resolve(stands_for, v).hash(&mut h);
    }
    h.finish()
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn merges_equal_nodes_in_enclosing_blocks() {
        assert_passes(
            &toy(),
            "cse",
            "graph(%x : Tensor, %c : bool):
  %a : Tensor = toy::relu(%x)
  %b : Tensor = toy::relu(%x)
  %y : Tensor = toy::mul(%a, %b)
  %z : Tensor = prim::If(%c)
    block0():
      %d : Tensor = toy::relu(%x)
      %e : Tensor = toy::mul(%d, %y)
      -> (%e)
    block1():
      %f : Tensor = toy::mul(%b, %y)
      -> (%f)
  return (%z)
",
            "graph(%x : Tensor, %c : bool):
  %a : Tensor = toy::relu(%x)
  %y : Tensor = toy::mul(%a, %a)
  %z : Tensor = prim::If(%c)
    block0():
      %e : Tensor = toy::mul(%a, %y)
      -> (%e)
    block1():
      %f : Tensor = toy::mul(%a, %y)
      -> (%f)
  return (%z)
",
        );
    }

    #[test]
    fn merges_nodes_that_became_equal() {
        // Each pair becomes equal only after the previous pair has merged, across batches.
        let (mut before, mut after) = (String::new(), String::new());
        for i in 0..3 * super::BATCH {
            let (a, b) = if i == 0 {
                ("x".into(), "x".into())
            } else {
                (format!("a{}", i - 1), format!("b{}", i - 1))
            };
            before += &format!("  %a{i} : Tensor = toy::relu(%{a})\n  %b{i} : Tensor = toy::relu(%{b})\n");
            after += &format!("  %a{i} : Tensor = toy::relu(%{a})\n");
        }
        let last = 3 * super::BATCH - 1;
        assert_passes(
            &toy(),
            "cse",
            &format!(
                "graph(%x : Tensor):\n{before}  %r : Tensor = toy::mul(%a{last}, %b{last})\n  return (%r)\n"
            ),
            &format!(
                "graph(%x : Tensor):\n{after}  %r : Tensor = toy::mul(%a{last}, %a{last})\n  return (%r)\n"
            ),
        );
    }

    #[test]
    fn leaves_random_written_and_returned_values_apart() {
        let text = "graph(%x : Tensor, %n : int[]):
  %a : Tensor = toy::rand(%n)
  %b : Tensor = toy::rand(%n)
  %c : Tensor = toy::relu(%x)
  %d : Tensor = toy::relu_(%c)
  %e : Tensor = toy::relu(%x)
  %f : Tensor = toy::t(%b)
  %g : Tensor = toy::t(%b)
  return (%a, %b, %d, %e, %f, %g)
";
        assert_passes(&toy(), "cse", text, text);
    }
}
