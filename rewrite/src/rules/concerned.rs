//! The nodes that edits may concern: those that were edited, and all nodes that use their results, directly or through
//! other nodes, branches and loops. A rule matches a root by the operands below it and by facts about them, which flow
//! from definitions to uses. So after a sweep only these nodes may match anew.
//!
//! A node whose match was refused because another use of its operands observes the change may match after that use has
//! been erased. Such a node is not found here; the next run of the pass begins with all nodes.

use flambeau_ir::{Change, Graph, NodeId, NodeSet, Prim, Revision, ValueId, ValueSet};

/// Returns the nodes that the edits since a revision may concern; `None` if that may be any node.
pub(super) fn by_changes(graph: &Graph, since: Revision) -> Option<NodeSet> {
    let mut search = Search { graph, nodes: NodeSet::new(), values: ValueSet::new(), pending: Vec::new() };
    for change in graph.journal().since(since)? {
        match *change {
            Change::Metadata | Change::Erased(_) => {}
            Change::Inserted(node)
            | Change::Moved(node)
            | Change::OperandSet { node, .. }
            | Change::OperandsChanged(node)
            | Change::ResultsChanged(node)
            | Change::OpSet(node) => search.node(node),
            Change::UsesReplaced { new: value, .. } | Change::TypeSet { value, .. } => search.value(value),
            Change::BlocksChanged(_) | Change::SignatureChanged(_) => return None,
        }
    }
    search.close();
    Some(search.nodes)
}

struct Search<'g> {
    graph: &'g Graph,
    nodes: NodeSet,
    values: ValueSet,
    /// Values whose uses have not been visited.
    pending: Vec<ValueId>,
}

impl Search<'_> {
    fn value(&mut self, value: ValueId) {
        if self.graph.has_value(value) && self.values.insert(value) {
            self.pending.push(value);
        }
    }

    /// Adds a node and the values that depend on it.
    fn node(&mut self, node: NodeId) {
        let g = self.graph;
        if !g.has_node(node) || !self.nodes.insert(node) {
            return;
        }
        g.results(node).for_each(|v| self.value(v));
        g.blocks(node).flat_map(|b| g.block_inputs(b)).for_each(|v| self.value(v));
        if g.is_prim(node, Prim::Return)
            && let Some(owner) = g.owner(g.parent(node))
        {
            self.node(owner);
        }
    }

    fn close(&mut self) {
        while let Some(value) = self.pending.pop() {
            let users: smallvec::SmallVec<[NodeId; 8]> = self.graph.uses(value).map(|u| u.user).collect();
            users.into_iter().for_each(|user| self.node(user));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read, toy};

    fn concerned(g: &Graph, since: Revision) -> Vec<String> {
        let found = by_changes(g, since).expect("known nodes");
        let name = |n: NodeId| g.results(n).next().map_or_else(String::new, |v| g.name(v).to_string());
        g.nodes_deep().filter(|&n| found.contains(n)).map(name).collect()
    }

    #[test]
    fn users_are_concerned_through_loops() {
        let mut g = read(
            &toy(),
            "graph(%x : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %a : Tensor = toy::relu(%x)
  %o : Tensor = toy::relu(%x)
  %r : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %c : Tensor):
      %d : Tensor = toy::relu(%c)
      %e : Tensor = toy::mul(%d, %a)
      -> (%t, %e)
  %s : Tensor = toy::relu(%r)
  return (%s, %o)
",
        );
        let since = g.journal().revision();
        assert!(concerned(&g, since).is_empty());
        let value =
            |g: &Graph, name: &str| g.values_in_order().find(|&v| g.name(v).to_string() == name).unwrap();
        let (a, o) = (value(&g, "a"), value(&g, "o"));
        let user = g.uses(a).next().unwrap().user;
        g.edit().set_operand(user, 1, o);
        assert_eq!(concerned(&g, since), ["r", "d", "e", "s"], "the product, and through the loop the rest");
    }
}
