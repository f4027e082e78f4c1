//! A graph seen through petgraph's `visit` traits, so that its algorithms run on programs.
//!
//! | view | vertices | an edge `a → b` |
//! |---|---|---|
//! | [`DataFlow`] | nodes, nested ones included | `b` uses a result of `a`, or stands in a block of `a`, or uses a result of the node whose block gives out a result of `a` |
//! | [`Effects`] | the same | as above, and where memory or side effects demand that `a` runs first |
//! | [`BlockTree`] | blocks | `b` is a block of a node in `a` |
//! | [`Memory`] | elements of the memory graph | `a` may be `b`, or holds `b` |
//!
//! `DataFlow` and `Effects` are acyclic and follow program order. A view is built per question in time linear in what it
//! shows and borrows the graph, so no edit can make it stale. petgraph is a view of the program, never its storage.

mod dense;
mod effects;

pub use dense::{Dense, EdgeAt, EdgesAt, Vertex, VertexRef, VertexRefs, Vertices, VisitedSet};

use crate::alias::{AliasDb, ElementId};
use flambeau_ir::{BlockId, Graph, NodeId, NodeMap, Step};
use std::marker::PhantomData;
use std::ops::Deref;

const NONE: u32 = u32::MAX;

/// Who uses whose results. See the [module](self).
#[derive(Clone, Debug)]
pub struct DataFlow<'g> {
    nodes: Nodes<'g>,
}

/// In which order nodes must run. See the [module](self).
#[derive(Clone, Debug)]
pub struct Effects<'g> {
    nodes: Nodes<'g>,
}

/// Which blocks are nested in which. See the [module](self).
#[derive(Clone, Debug)]
pub struct BlockTree<'g> {
    dense: Dense<BlockId>,
    graph: PhantomData<&'g Graph>,
}

/// What may point to what in memory. See the [module](self).
#[derive(Clone, Debug)]
pub struct Memory<'g> {
    dense: Dense<ElementId>,
    graph: PhantomData<&'g AliasDb>,
}

/// Nodes with their numbers.
#[derive(Clone, Debug)]
struct Nodes<'g> {
    dense: Dense<NodeId>,
    number: NodeMap<u32>,
    graph: PhantomData<&'g Graph>,
}

impl Nodes<'_> {
    fn vertex(&self, node: NodeId) -> Option<Vertex> {
        let number = self.number[node];
        (number != NONE && self.dense.items()[number as usize] == node).then_some(Vertex(number))
    }
}

macro_rules! node_view {
    ($name:ident) => {
        impl $name<'_> {
            /// The vertex of a node; `None` for brackets of blocks and nodes that are gone.
            #[must_use]
            pub fn vertex(&self, node: NodeId) -> Option<Vertex> {
                self.nodes.vertex(node)
            }

            /// The node of a vertex.
            #[must_use]
            pub fn node(&self, at: Vertex) -> NodeId {
                *self.nodes.dense.item(at)
            }
        }

        impl Deref for $name<'_> {
            type Target = Dense<NodeId>;

            fn deref(&self) -> &Dense<NodeId> {
                &self.nodes.dense
            }
        }
    };
}

node_view!(DataFlow);
node_view!(Effects);

/// All nodes of a graph in program order, and their numbers.
fn number(graph: &Graph) -> (Vec<NodeId>, NodeMap<u32>) {
    let mut number = NodeMap::for_nodes(graph, NONE);
    let items: Vec<NodeId> = graph.nodes_deep().collect();
    for (i, &node) in items.iter().enumerate() {
        number[node] = i as u32;
    }
    (items, number)
}

/// Data-flow edges by number.
fn data_edges(graph: &Graph, items: &[NodeId], number: &NodeMap<u32>) -> Vec<(u32, u32)> {
    let mut edges = Vec::with_capacity(2 * items.len());
    let mut add = |from: NodeId, to: u32| {
        let from = match number[from] {
            NONE => graph.enclosing(from).map_or(NONE, |owner| number[owner]),
            known => known,
        };
        if from != NONE && from != to {
            edges.push((from, to));
        }
    };
    for (i, &node) in items.iter().enumerate() {
        let i = i as u32;
        if let Some(owner) = graph.enclosing(node) {
            add(owner, i);
        }
        for v in graph.operands(node) {
            let def = graph.def(v);
            add(def, i);
            // What a node with blocks gives is what its blocks give out: one step in, the rest follows from there.
            for block in graph.blocks(def) {
                if let Some(out) =
                    graph.block_outputs(block).nth(inner_index(graph, def, graph.result_index(v)))
                {
                    add(graph.def(out), i);
                }
            }
        }
    }
    edges
}

/// The position among a block's outputs of what becomes result `index` of the node.
fn inner_index(graph: &Graph, node: NodeId, index: usize) -> usize {
    if graph.is_prim(node, flambeau_ir::Prim::Loop) { index + 1 } else { index }
}

impl<'g> DataFlow<'g> {
    /// The view of a graph.
    #[must_use]
    pub fn new(graph: &'g Graph) -> Self {
        let (items, number) = number(graph);
        let edges = data_edges(graph, &items, &number);
        DataFlow { nodes: Nodes { dense: Dense::new(items, edges), number, graph: PhantomData } }
    }
}

impl<'g> Effects<'g> {
    /// The view of a graph, with the alias analysis that says which nodes meet in memory.
    #[must_use]
    pub fn new(graph: &'g Graph, db: &AliasDb) -> Self {
        let (items, number) = number(graph);
        let mut edges = data_edges(graph, &items, &number);
        effects::order(graph, db, &items, &mut edges);
        Effects { nodes: Nodes { dense: Dense::new(items, edges), number, graph: PhantomData } }
    }
}

impl<'g> BlockTree<'g> {
    /// The view of a graph. Vertex 0 is the root.
    #[must_use]
    pub fn new(graph: &'g Graph) -> Self {
        let (mut items, mut edges, mut stack) = (Vec::new(), Vec::new(), Vec::new());
        for step in graph.walk(graph.root()) {
            match step {
                Step::Enter(block) => {
                    let at = items.len() as u32;
                    items.push(block);
                    if let Some(&outer) = stack.last() {
                        edges.push((outer, at));
                    }
                    stack.push(at);
                }
                Step::Leave(_) => drop(stack.pop()),
                Step::Node(_) | Step::Done(_) => {}
            }
        }
        BlockTree { dense: Dense::new(items, edges), graph: PhantomData }
    }
}

impl Deref for BlockTree<'_> {
    type Target = Dense<BlockId>;

    fn deref(&self) -> &Dense<BlockId> {
        &self.dense
    }
}

impl<'g> Memory<'g> {
    /// The view of a memory graph.
    #[must_use]
    pub fn new(db: &'g AliasDb) -> Self {
        let (items, edges) = db.memory_edges();
        Memory { dense: Dense::new(items, edges), graph: PhantomData }
    }
}

impl Deref for Memory<'_> {
    type Target = Dense<ElementId>;

    fn deref(&self) -> &Dense<ElementId> {
        &self.dense
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, def, graph, registry};
    use flambeau_ir::Type;
    use petgraph::algo::{dominators, toposort};
    use petgraph::visit::{Dfs, NodeIndexable, Reversed};

    #[test]
    fn data_flow_goes_through_blocks() {
        let g = graph(
            "graph(%x : Tensor, %p : bool):
  %a : Tensor = aten::relu(%x)
  %r : Tensor = prim::If(%p)
    block0():
      %b : Tensor = aten::relu(%a)
      -> (%b)
    block1():
      %c : Tensor = aten::relu(%x)
      -> (%c)
  %d : Tensor = aten::relu(%r)
  %e : Tensor = aten::relu(%x)
  return (%d, %e)",
        );
        let flow = DataFlow::new(&g);
        let at = |name: &str| flow.vertex(def(&g, name)).unwrap();
        assert!(flow.successors(at("b")).contains(&at("d")));
        let mut needed = Vec::new();
        let mut dfs = Dfs::new(Reversed(&*flow), at("d"));
        while let Some(v) = dfs.next(Reversed(&*flow)) {
            needed.push(flow.node(v));
        }
        needed.sort_by_key(|&n| flow.vertex(n));
        assert_eq!(needed, ["a", "r", "b", "c", "d"].map(|n| def(&g, n)));
        let tree = BlockTree::new(&g);
        let dom = dominators::simple_fast(&*tree, tree.from_index(0));
        assert_eq!(dom.immediate_dominator(Vertex(2)), Some(Vertex(0)));
    }

    #[test]
    fn effects_order_what_meets_in_memory() {
        let g = graph(
            "graph(%x : Tensor, %i : int):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::tanh(%a)
  %w : Tensor = aten::add_(%a, %x, %i)
  %c : Tensor = aten::tanh(%a)
  %o : Tensor = aten::tanh(%x)
   = prim::Print(%i)
   = prim::Print(%i)
  return (%b, %c)",
        );
        let db = AliasDb::new(&g);
        let view = Effects::new(&g, &db);
        let at = |name: &str| view.vertex(def(&g, name)).unwrap();
        let edge = |a: &str, b: &str| view.successors(at(a)).contains(&at(b));
        assert!(edge("b", "w") && edge("w", "c") && !edge("w", "o") && !edge("b", "c"));
        let prints: Vec<_> = g.nodes(g.root()).filter(|&n| g.result_count(n) == 0).collect();
        assert!(view.successors(view.vertex(prints[0]).unwrap()).contains(&view.vertex(prints[1]).unwrap()));
        let memory = Memory::new(&db);
        assert!(!memory.items().is_empty());
    }

    #[test]
    fn numbering_survives_removals() {
        let relu = registry().lookup("aten::add.Tensor").unwrap();
        for seed in 1..30 {
            let mut random = Random(seed * 6_700_417);
            let mut g = Graph::new(registry());
            let mut e = g.edit();
            let mut live = vec![e.add_input(Type::TENSOR)];
            let one = e.add_input(Type::INT);
            for _ in 0..60 {
                let (a, b) = (live[random.below(live.len())], live[random.below(live.len())]);
                live.push(e.value(relu, &[a, b, one], Type::TENSOR));
            }
            let nodes: Vec<_> = g.nodes(g.root()).collect();
            for node in nodes.into_iter().rev() {
                if random.below(3) > 0 && g.use_count(g.result(node, 0)) == 0 {
                    g.edit().erase(node);
                }
            }
            let flow = DataFlow::new(&g);
            let order = toposort(&*flow, None).expect("blocks are acyclic");
            assert_eq!(order.len(), g.nodes_deep().count());
            let mut place = vec![0; order.len()];
            order.iter().enumerate().for_each(|(i, v)| place[v.0 as usize] = i);
            for node in g.nodes_deep() {
                let at = flow.vertex(node).unwrap();
                assert_eq!(flow.node(at), node);
                for v in g.operands(node) {
                    if let Some(from) = flow.vertex(g.def(v)) {
                        assert!(place[from.0 as usize] < place[at.0 as usize]);
                    }
                }
            }
            let db = AliasDb::new(&g);
            assert!(toposort(&*Effects::new(&g, &db), None).is_ok());
        }
    }
}
