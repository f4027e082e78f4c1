//! Effects including nested blocks: [`Graph::effects`] returns the effects of a node itself, the functions here those
//! of the node and all its nested nodes.
//!
//! A single query walks the nested nodes ([`effects_in`]). A pass that queries every node uses the analysis
//! [`NestedEffects`], which is built in one walk over the graph: separate walks would cost O(depth * nodes).

use crate::analysis::{Analysis, AnalysisCx, Update};
use flambeau_ir::{Change, Effects, Graph, NodeId, TrackedNodeMap, WalkStep};

/// Returns the effects of a node and of all nodes nested in it. O(nested nodes).
#[must_use]
pub fn effects_in(graph: &Graph, node: NodeId) -> Effects {
    let nested = graph.blocks(node).flat_map(|block| graph.nodes_deep_in(block));
    nested.fold(graph.effects(node), |all, inner| all | graph.effects(inner))
}

/// Table of the effects of every node including its nested nodes.
///
/// ```
/// use flambeau_analysis::{Analyses, effects::NestedEffects};
/// use flambeau_ir::{At, Effects, Graph, Prim, Registry, Type};
///
/// let mut graph = Graph::new(Registry::empty());
/// let mut e = graph.edit();
/// let condition = e.add_input(Type::BOOL);
/// let branch = e.node(Prim::If, &[condition], &[]);
/// let (block, _) = (e.add_block(branch), e.add_block(branch));
/// e.at(At::end(block)).node(Prim::Print, &[condition], &[]);
/// assert!(!graph.effects(branch).contains(Effects::IO));
/// let mut analyses = Analyses::new();
/// assert!(analyses.get::<NestedEffects>(&graph).of(&graph, branch).contains(Effects::IO));
/// ```
#[derive(Debug)]
pub struct NestedEffects {
    /// For nodes with blocks: the union over all nested nodes. The default for other nodes is pure.
    nested: TrackedNodeMap<Effects>,
}

impl NestedEffects {
    /// Returns the effects of `node`, nested blocks included.
    #[must_use]
    pub fn of(&self, graph: &Graph, node: NodeId) -> Effects {
        graph.effects(node) | self.nested.get(node)
    }

    /// Adds the effects of a node to its enclosing nodes, until a node already has them.
    fn propagate(&mut self, graph: &Graph, node: NodeId) {
        let mut effects = graph.effects(node) | self.nested.get(node);
        let mut at = graph.enclosing(node);
        while let Some(outer) = at.filter(|&outer| !self.nested.get(outer).contains(effects)) {
            self.nested.set(outer, self.nested.get(outer) | effects);
            effects |= graph.effects(outer);
            at = graph.enclosing(outer);
        }
    }
}

impl Analysis for NestedEffects {
    const NAME: &'static str = "nested-effects";

    fn build(cx: &AnalysisCx<'_>) -> Self {
        let graph = cx.graph();
        let mut nested = TrackedNodeMap::sparse(Effects::PURE);
        // The union of effects of each open block; the first is the root's.
        let mut open = vec![Effects::PURE];
        for step in graph.walk(graph.root()) {
            match step {
                WalkStep::Enter(_) => open.push(Effects::PURE),
                WalkStep::Node(node) => {
                    if let Some(all) = open.last_mut() {
                        *all |= graph.effects(node);
                    }
                }
                WalkStep::Leave(block) => {
                    let inner = open.pop().unwrap_or(Effects::PURE);
                    if let Some(owner) = graph.owner(block) {
                        nested.set(owner, nested.get(owner) | inner);
                    }
                    if let Some(all) = open.last_mut() {
                        *all |= inner;
                    }
                }
                WalkStep::Done(_) => {}
            }
        }
        NestedEffects { nested }
    }

    /// Inserted and moved nodes add their effects to the enclosing nodes. Effects of erased nodes remain, which is
    /// conservative.
    fn update(&mut self, cx: &AnalysisCx<'_>, changes: &[Change]) -> Update {
        let graph = cx.graph();
        for change in changes {
            match *change {
                Change::Metadata
                | Change::Erased(_)
                | Change::ResultsChanged(_)
                | Change::SignatureChanged(_)
                | Change::TypeSet { .. } => {}
                Change::Inserted(node) | Change::Moved(node) | Change::OpSet(node)
                    if graph.has_node(node) =>
                {
                    self.propagate(graph, node);
                }
                Change::Inserted(_) | Change::Moved(_) | Change::OpSet(_) => {}
                // The effects of a few operators depend on operands, such as a flag that enables writing.
                Change::OperandSet { node, .. } | Change::OperandsChanged(node) => {
                    if graph.has_node(node) {
                        self.propagate(graph, node);
                    }
                }
                Change::UsesReplaced { .. } | Change::BlocksChanged(_) => return Update::Rebuild,
            }
        }
        Update::Kept
    }

    fn agrees(&self, cx: &AnalysisCx<'_>, fresh: &Self) -> Result<(), String> {
        let graph = cx.graph();
        for node in graph.nodes_deep() {
            let (mine, theirs) = (self.of(graph, node), fresh.of(graph, node));
            if !mine.contains(theirs) {
                return Err(format!("{node:?} has effects {theirs}, not {mine}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Analyses;
    use flambeau_ir::{At, Prim, Registry, Type, ValueId};

    fn nest(depth: usize) -> (Graph, Vec<NodeId>) {
        let mut graph = Graph::new(Registry::empty());
        let mut e = graph.edit();
        let p = e.add_input(Type::BOOL);
        let mut nodes = Vec::new();
        for _ in 0..depth {
            let node = e.node(Prim::If, &[p], &[]);
            let block = e.add_block(node);
            e.add_block(node);
            e.at(At::end(block));
            nodes.push(node);
        }
        (graph, nodes)
    }

    fn check(graph: &Graph, analyses: &mut Analyses) {
        let table = analyses.get::<NestedEffects>(graph);
        for node in graph.nodes_deep() {
            assert!(table.of(graph, node).contains(effects_in(graph, node)), "{node:?}\n{graph}");
        }
    }

    #[test]
    fn nested_effects_follow_edits() {
        let (mut graph, nodes) = nest(5);
        let mut analyses = Analyses::new();
        check(&graph, &mut analyses);
        let p: ValueId = graph.inputs().next().unwrap();
        let inner = graph.block(nodes[4], 1);
        let print = graph.edit().at(At::end(inner)).node(Prim::Print, &[p], &[]);
        check(&graph, &mut analyses);
        assert!(analyses.get::<NestedEffects>(&graph).of(&graph, nodes[0]).contains(Effects::IO));
        let other = graph.edit().node(Prim::If, &[p], &[]);
        graph.edit().add_block(other);
        graph.edit().add_block(other);
        check(&graph, &mut analyses);
        let target = graph.block(other, 0);
        let anchor = graph.edit().at(At::start(target)).node(Prim::Isinstance, &[p], &[Type::BOOL]);
        graph.edit().move_after(print, anchor);
        check(&graph, &mut analyses);
        assert!(analyses.get::<NestedEffects>(&graph).of(&graph, other).contains(Effects::IO));
        graph.edit().erase(print);
        check(&graph, &mut analyses);
    }

    #[test]
    fn a_reused_slot_starts_pure() {
        let (mut graph, nodes) = nest(1);
        let p: ValueId = graph.inputs().next().unwrap();
        let block = graph.block(nodes[0], 0);
        graph.edit().at(At::end(block)).node(Prim::Print, &[p], &[]);
        let mut analyses = Analyses::new();
        check(&graph, &mut analyses);
        graph.edit().erase(nodes[0]);
        for _ in 0..4 {
            let node = graph.edit().node(Prim::Isinstance, &[p], &[Type::BOOL]);
            assert_eq!(analyses.get::<NestedEffects>(&graph).of(&graph, node), Effects::PURE);
        }
    }
}
