//! A graph over anything, in compressed rows, with petgraph's `visit` traits.
//!
//! Vertices are numbered densely in the order they were given, whatever holes the arenas they come from have, so petgraph's
//! algorithms can index by them. A view borrows what it shows: no edit can happen while one exists.

use petgraph::Direction;
use petgraph::visit::{Data, NodeRef};
use petgraph::visit::{
    EdgeRef, GraphBase, GraphProp, GraphRef, IntoEdgeReferences, IntoEdges, IntoEdgesDirected, IntoNeighbors,
    IntoNeighborsDirected, IntoNodeIdentifiers, IntoNodeReferences, NodeCompactIndexable, NodeCount,
    NodeIndexable, VisitMap, Visitable,
};

/// A vertex of a view: its number, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Vertex(pub u32);

/// An edge of a view: the number of its target among all edges, and its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeAt {
    index: u32,
    from: Vertex,
    to: Vertex,
}

/// Vertices that stand for `T`s, and edges between them.
#[derive(Clone, Debug)]
pub struct Dense<T> {
    items: Vec<T>,
    out_start: Vec<u32>,
    out: Vec<Vertex>,
    into_start: Vec<u32>,
    into: Vec<Vertex>,
}

impl<T> Dense<T> {
    /// A graph over `items` with edges by their positions. Repeated edges are kept once.
    #[must_use]
    pub fn new(items: Vec<T>, mut edges: Vec<(u32, u32)>) -> Self {
        edges.sort_unstable();
        edges.dedup();
        let n = items.len();
        let (out_start, out) = rows(n, &edges);
        let mut back: Vec<(u32, u32)> = edges.into_iter().map(|(a, b)| (b, a)).collect();
        back.sort_unstable();
        let (into_start, into) = rows(n, &back);
        Dense { items, out_start, out, into_start, into }
    }

    /// What a vertex stands for.
    #[must_use]
    pub fn item(&self, at: Vertex) -> &T {
        &self.items[at.0 as usize]
    }

    /// What all vertices stand for, by number.
    #[must_use]
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// Where the edges of a vertex lead, in order.
    #[must_use]
    pub fn successors(&self, at: Vertex) -> &[Vertex] {
        slice(&self.out_start, &self.out, at)
    }

    /// Where edges to a vertex come from, in order.
    #[must_use]
    pub fn predecessors(&self, at: Vertex) -> &[Vertex] {
        slice(&self.into_start, &self.into, at)
    }

    /// Number of edges.
    #[must_use]
    pub fn edge_count(&self) -> usize {
        self.out.len()
    }
}

fn rows(n: usize, edges: &[(u32, u32)]) -> (Vec<u32>, Vec<Vertex>) {
    let mut start = vec![0; n + 1];
    for &(from, _) in edges {
        start[from as usize + 1] += 1;
    }
    for i in 0..n {
        start[i + 1] += start[i];
    }
    (start, edges.iter().map(|&(_, to)| Vertex(to)).collect())
}

fn slice<'a>(start: &[u32], all: &'a [Vertex], at: Vertex) -> &'a [Vertex] {
    let at = at.0 as usize;
    &all[start[at] as usize..start[at + 1] as usize]
}

impl EdgeRef for EdgeAt {
    type NodeId = Vertex;
    type EdgeId = u32;
    type Weight = ();

    fn source(&self) -> Vertex {
        self.from
    }

    fn target(&self) -> Vertex {
        self.to
    }

    fn weight(&self) -> &() {
        &()
    }

    fn id(&self) -> u32 {
        self.index
    }
}

/// Visited vertices, one bit each.
#[derive(Clone, Debug, Default)]
pub struct VisitedSet(fixedbitset::FixedBitSet);

impl VisitMap<Vertex> for VisitedSet {
    fn visit(&mut self, at: Vertex) -> bool {
        !self.0.put(at.0 as usize)
    }

    fn is_visited(&self, at: &Vertex) -> bool {
        self.0.contains(at.0 as usize)
    }

    fn unvisit(&mut self, at: Vertex) -> bool {
        let was = self.0.contains(at.0 as usize);
        self.0.set(at.0 as usize, false);
        was
    }
}

impl<T> GraphBase for Dense<T> {
    type NodeId = Vertex;
    type EdgeId = u32;
}

impl<T> Data for Dense<T> {
    type NodeWeight = T;
    type EdgeWeight = ();
}

impl<T> GraphProp for Dense<T> {
    type EdgeType = petgraph::Directed;
}

impl<T> NodeCount for Dense<T> {
    fn node_count(&self) -> usize {
        self.items.len()
    }
}

impl<T> NodeIndexable for Dense<T> {
    fn node_bound(&self) -> usize {
        self.items.len()
    }

    fn to_index(&self, at: Vertex) -> usize {
        at.0 as usize
    }

    fn from_index(&self, index: usize) -> Vertex {
        Vertex(u32::try_from(index).expect("invariant: fewer than 2^32 vertices"))
    }
}

impl<T> NodeCompactIndexable for Dense<T> {}

impl<T> Visitable for Dense<T> {
    type Map = VisitedSet;

    fn visit_map(&self) -> VisitedSet {
        VisitedSet(fixedbitset::FixedBitSet::with_capacity(self.items.len()))
    }

    fn reset_map(&self, map: &mut VisitedSet) {
        map.0.clear();
        map.0.grow(self.items.len());
    }
}

/// All vertices in order.
#[derive(Clone, Debug)]
pub struct Vertices(std::ops::Range<u32>);

impl Iterator for Vertices {
    type Item = Vertex;

    fn next(&mut self) -> Option<Vertex> {
        self.0.next().map(Vertex)
    }
}

impl<T> IntoNodeIdentifiers for &Dense<T> {
    type NodeIdentifiers = Vertices;

    fn node_identifiers(self) -> Vertices {
        Vertices(0..self.items.len() as u32)
    }
}

/// A vertex with what it stands for.
#[derive(Debug)]
pub struct VertexRef<'a, T>(Vertex, &'a T);

impl<T> Clone for VertexRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for VertexRef<'_, T> {}

impl<T> NodeRef for VertexRef<'_, T> {
    type NodeId = Vertex;
    type Weight = T;

    fn id(&self) -> Vertex {
        self.0
    }

    fn weight(&self) -> &T {
        self.1
    }
}

/// All vertices with what they stand for.
#[derive(Debug)]
pub struct VertexRefs<'a, T>(std::iter::Enumerate<std::slice::Iter<'a, T>>);

impl<'a, T> Iterator for VertexRefs<'a, T> {
    type Item = VertexRef<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(i, item)| VertexRef(Vertex(i as u32), item))
    }
}

impl<'a, T> IntoNodeReferences for &'a Dense<T> {
    type NodeRef = VertexRef<'a, T>;
    type NodeReferences = VertexRefs<'a, T>;

    fn node_references(self) -> VertexRefs<'a, T> {
        VertexRefs(self.items.iter().enumerate())
    }
}

impl<'a, T> IntoNeighbors for &'a Dense<T> {
    type Neighbors = std::iter::Copied<std::slice::Iter<'a, Vertex>>;

    fn neighbors(self, at: Vertex) -> Self::Neighbors {
        self.successors(at).iter().copied()
    }
}

impl<'a, T> IntoNeighborsDirected for &'a Dense<T> {
    type NeighborsDirected = std::iter::Copied<std::slice::Iter<'a, Vertex>>;

    fn neighbors_directed(self, at: Vertex, direction: Direction) -> Self::NeighborsDirected {
        match direction {
            Direction::Outgoing => self.successors(at).iter().copied(),
            Direction::Incoming => self.predecessors(at).iter().copied(),
        }
    }
}

/// Edges at one vertex, or all.
#[derive(Clone, Debug)]
pub struct EdgesAt<'a> {
    /// Vertices still to go through, as ranges of `others`.
    starts: &'a [u32],
    others: &'a [Vertex],
    vertex: u32,
    at: u32,
    end: u32,
    incoming: bool,
}

impl Iterator for EdgesAt<'_> {
    type Item = EdgeAt;

    fn next(&mut self) -> Option<EdgeAt> {
        if self.at >= self.end {
            return None;
        }
        while self.starts[self.vertex as usize + 1] <= self.at {
            self.vertex += 1;
        }
        let (index, here, other) = (self.at, Vertex(self.vertex), self.others[self.at as usize]);
        self.at += 1;
        let (from, to) = if self.incoming { (other, here) } else { (here, other) };
        Some(EdgeAt { index, from, to })
    }
}

impl<T> Dense<T> {
    fn edges_at(&self, vertex: Vertex, incoming: bool) -> EdgesAt<'_> {
        let (starts, others) =
            if incoming { (&self.into_start, &self.into) } else { (&self.out_start, &self.out) };
        let (at, end) = (starts[vertex.0 as usize], starts[vertex.0 as usize + 1]);
        EdgesAt { starts, others, vertex: vertex.0, at, end, incoming }
    }
}

impl<'a, T> IntoEdgeReferences for &'a Dense<T> {
    type EdgeRef = EdgeAt;
    type EdgeReferences = EdgesAt<'a>;

    fn edge_references(self) -> EdgesAt<'a> {
        let end = self.out.len() as u32;
        EdgesAt { starts: &self.out_start, others: &self.out, vertex: 0, at: 0, end, incoming: false }
    }
}

impl<'a, T> IntoEdges for &'a Dense<T> {
    type Edges = EdgesAt<'a>;

    fn edges(self, at: Vertex) -> EdgesAt<'a> {
        self.edges_at(at, false)
    }
}

impl<'a, T> IntoEdgesDirected for &'a Dense<T> {
    type EdgesDirected = EdgesAt<'a>;

    fn edges_directed(self, at: Vertex, direction: Direction) -> EdgesAt<'a> {
        self.edges_at(at, direction == Direction::Incoming)
    }
}

const _: () = {
    const fn is_graph_ref<G: GraphRef>() {}
    is_graph_ref::<&Dense<()>>();
};
