//! Solves points-to constraints to location sets, in time linear in elements and edges.
//!
//! The set of an element is the union of its own location and the sets of all elements it points to. If all edges point
//! to older elements, one sweep in order of creation computes the sets. Loops make cycles; then Tarjan's algorithm
//! assigns the same set to every element of a strongly connected component. Both are iterative.

use super::dag::{ElementId, MemoryDag, NONE};
use super::locations::{LocSet, Sets};

/// The location sets of all elements.
#[derive(Clone)]
pub(crate) struct Solution {
    pub(crate) sets: Sets,
    /// The locations that each element may be.
    pub(crate) locs: Vec<LocSet>,
    /// The locations that each element may be or hold, at any depth.
    pub(crate) deep: Vec<LocSet>,
}

pub(crate) fn solve(dag: &mut MemoryDag) -> Solution {
    dag.locations.flatten();
    dag.locations.merged = false;
    let mut sets = Sets::new();
    let locs = sweep(dag, &mut sets, false);
    let deep = sweep(dag, &mut sets, true);
    let mut solution = Solution { sets, locs, deep };
    solution.normalise(dag);
    solution
}

impl Solution {
    /// Merges the locations of elements that share memory after some node; see [`MemoryDag::unify`]. A merge adds to a
    /// set only locations merged with one of its members, so one pass over all groups suffices.
    pub(crate) fn unify(&mut self, dag: &mut MemoryDag) {
        for at in 0..dag.unified().len() {
            let group = &dag.unified()[at];
            let sets = group.iter().map(|e| self.deep[e.0 as usize]);
            let members: Vec<u32> = sets.flat_map(|set| self.sets.iter(set)).collect();
            for pair in members.windows(2) {
                dag.locations.merge(pair[0], pair[1]);
            }
        }
        self.normalise(dag);
    }

    /// Rewrites all sets in terms of representatives.
    fn normalise(&mut self, dag: &mut MemoryDag) {
        if !dag.locations.merged {
            return;
        }
        dag.locations.flatten();
        let rows = self.sets.normalise(&dag.locations);
        for set in self.locs.iter_mut().chain(&mut self.deep) {
            *set = match (set.as_single(), set.row()) {
                (Some(loc), _) => LocSet::single(dag.locations.find(loc)),
                (None, Some(row)) => rows[row],
                (None, None) => LocSet::EMPTY,
            };
        }
        dag.locations.merged = false;
    }
}

/// Computes the set of every element, with the sets of its contents if `with_contents`.
fn sweep(dag: &mut MemoryDag, sets: &mut Sets, with_contents: bool) -> Vec<LocSet> {
    let n = dag.elements.len();
    let mut search = Search {
        with_contents,
        out: vec![LocSet::EMPTY; n],
        index: vec![0; n],
        low: Vec::new(),
        count: 0,
        open: Vec::new(),
        frames: Vec::new(),
    };
    let cyclic = dag.late || (with_contents && dag.has_contents);
    search.low = vec![0; if cyclic { n } else { dag.wildcard_list.last().map_or(0, |e| e.0 as usize + 1) }];
    // Wildcards first: they point only to each other, and any element may point to them.
    for at in 0..dag.wildcard_list.len() {
        search.from(dag, sets, dag.wildcard_list[at]);
    }
    for at in 0..n as u32 {
        if cyclic {
            search.from(dag, sets, ElementId(at));
        } else if search.index[at as usize] == 0 {
            search.out[at as usize] = search.total(dag, sets, ElementId(at));
        }
    }
    search.out
}

struct DfsFrame {
    element: ElementId,
    /// The next edge to visit: first the one to the contents, then the points-to edges.
    next: Cursor,
}

#[derive(Clone, Copy)]
enum Cursor {
    Contents,
    Edge(u32),
}

struct Search {
    with_contents: bool,
    out: Vec<LocSet>,
    /// Order of discovery from 1; 0 if not discovered.
    index: Vec<u32>,
    low: Vec<u32>,
    count: u32,
    /// Elements discovered but not yet assigned to a component.
    open: Vec<ElementId>,
    frames: Vec<DfsFrame>,
}

/// Marks in `low` an element whose component is complete.
const COMPONENT_DONE: u32 = u32::MAX;

impl Search {
    /// Computes the sets of the elements that are reachable from `root`, by a depth-first search.
    fn from(&mut self, dag: &mut MemoryDag, sets: &mut Sets, root: ElementId) {
        if self.index[root.0 as usize] != 0 {
            return;
        }
        self.discover(root);
        while let Some(frame) = self.frames.last_mut() {
            let at = frame.element;
            let target = match frame.next {
                Cursor::Contents => {
                    frame.next = Cursor::Edge(dag.first_edge(at));
                    let inside = dag.elements[at].contents;
                    (self.with_contents && inside != NONE).then_some(ElementId(inside))
                }
                Cursor::Edge(edge) => match dag.edge_at(edge) {
                    Some((to, next)) => {
                        frame.next = Cursor::Edge(next);
                        Some(to)
                    }
                    None => {
                        self.frames.pop();
                        self.finish(dag, sets, at);
                        continue;
                    }
                },
            };
            let Some(target) = target else { continue };
            if self.index[target.0 as usize] == 0 {
                self.discover(target);
            } else if self.low[target.0 as usize] != COMPONENT_DONE {
                let low = self.index[target.0 as usize].min(self.low[at.0 as usize]);
                self.low[at.0 as usize] = low;
            }
        }
    }

    fn discover(&mut self, e: ElementId) {
        self.count += 1;
        self.index[e.0 as usize] = self.count;
        self.low[e.0 as usize] = self.count;
        self.open.push(e);
        self.frames.push(DfsFrame { element: e, next: Cursor::Contents });
    }

    /// Ends the visit of an element. If it is the root of a component, all members of the component get their common set.
    fn finish(&mut self, dag: &mut MemoryDag, sets: &mut Sets, e: ElementId) {
        let low = self.low[e.0 as usize];
        if low == self.index[e.0 as usize] {
            let start =
                self.open.iter().rposition(|&o| o == e).expect("invariant: discovered elements are open");
            let mut set = LocSet::EMPTY;
            for at in start..self.open.len() {
                let part = self.total(dag, sets, self.open[at]);
                set = sets.union(set, part, &mut dag.locations);
            }
            for member in self.open.drain(start..) {
                self.out[member.0 as usize] = set;
                self.low[member.0 as usize] = COMPONENT_DONE;
            }
        }
        if let Some(parent) = self.frames.last() {
            let parent = parent.element.0 as usize;
            if low != COMPONENT_DONE && self.low[e.0 as usize] != COMPONENT_DONE {
                self.low[parent] = self.low[parent].min(low);
            }
        }
    }

    /// The element's own location and the sets of its targets, as far as they are computed.
    fn total(&self, dag: &mut MemoryDag, sets: &mut Sets, e: ElementId) -> LocSet {
        let element = &dag.elements[e];
        let mut set = match element.location {
            NONE => LocSet::EMPTY,
            location => LocSet::single(dag.locations.find(location)),
        };
        if self.with_contents && element.contents != NONE {
            set = sets.union(set, self.out[element.contents as usize], &mut dag.locations);
        }
        let mut edge = dag.first_edge(e);
        while let Some((to, next)) = dag.edge_at(edge) {
            set = sets.union(set, self.out[to.0 as usize], &mut dag.locations);
            edge = next;
        }
        set
    }
}
