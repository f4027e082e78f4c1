//! Regions: the calls of submodules that a flat method consists of.
//!
//! A region is a run of consecutive nodes of the method that one call of a module made, with the regions of the calls within it.
//! Its inputs are the values that it uses and that are defined before it, without constants and without tensors that the module itself
//! has; its outputs are the values that are used after it. Both are in the order of the nodes. An argument of a call counts as a use
//! by the caller, also if the called module does not use it. The cost is proportional to the number of uses times the depth of
//! the modules.

use super::stack::{Frame, Stack};
use flambeau_ir::{Graph, NodeId, Prim, ValueId, WalkStep};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use std::cmp::Reverse;
use std::ops::Range;

/// A part of a region.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// A node, by its position in the method.
    Node(usize),
    /// The region of a call, by its index.
    Call(usize),
}

/// The nodes of a call.
#[derive(Debug)]
pub(super) struct Region {
    /// The call; `None` for the method as a whole, which is the first region.
    pub(super) frame: Option<Frame>,
    pub(super) items: Vec<Item>,
    /// Positions of the nodes, those of calls within it included.
    span: Range<usize>,
    pub(super) inputs: Vec<ValueId>,
    pub(super) outputs: Vec<ValueId>,
    /// The values that the call takes as arguments: `inputs`, or those of a signature that has all of them.
    arguments: Vec<ValueId>,
}

impl Region {
    fn new(frame: Option<Frame>, start: usize) -> Region {
        let (items, inputs, outputs) = (Vec::new(), Vec::new(), Vec::new());
        Region { frame, items, span: start..start, inputs, outputs, arguments: Vec::new() }
    }

    /// Returns whether a value is defined before the region.
    pub(super) fn follows(&self, regions: &Regions<'_>, value: ValueId) -> bool {
        regions.defined.get(&value).is_none_or(|&at| at < self.span.start)
    }

    /// Returns whether one of the region's nodes, or of the calls within it, defines a value.
    pub(super) fn defines(&self, regions: &Regions<'_>, value: ValueId) -> bool {
        regions.defined.get(&value).is_some_and(|at| self.span.contains(at))
    }

    /// Returns the path of the module that is called.
    pub(super) fn path(&self) -> &str {
        self.frame.as_ref().map_or("", |frame| &frame.path)
    }
}

/// A method divided into regions.
pub(super) struct Regions<'g> {
    pub(super) graph: &'g Graph,
    /// The nodes of the method's block, without those in blocks of other nodes.
    pub(super) nodes: Vec<NodeId>,
    /// The regions; a region is before those of the calls within it.
    pub(super) regions: Vec<Region>,
    /// By value that is defined by one of `nodes`: the position of the node.
    defined: HashMap<ValueId, usize, FxBuildHasher>,
    /// By value: the position of its last use.
    last_use: HashMap<ValueId, usize, FxBuildHasher>,
}

impl<'g> Regions<'g> {
    /// Divides a method. `stack` gives the stack of each node: `None` for a node that belongs to the region of the node before
    /// it. Nodes for which `is_free` holds belong to no region.
    pub(super) fn new(
        graph: &'g Graph,
        mut stack: impl FnMut(NodeId) -> Option<Stack>,
        is_free: impl Fn(NodeId) -> bool,
    ) -> Regions<'g> {
        let nodes: Vec<NodeId> = graph.nodes(graph.root()).collect();
        let mut regions = vec![Region::new(None, 0)];
        // The regions that are open at the current node, and the call of each but the first.
        let mut open = vec![0];
        for (position, &node) in nodes.iter().enumerate() {
            if is_free(node) {
                continue;
            }
            if let Some(stack) = stack(node) {
                let own = open.iter().skip(1).map(|&region: &usize| regions[region].frame.as_ref());
                let shared = own.zip(stack.iter()).take_while(|(a, b)| *a == Some(*b)).count();
                open.truncate(shared + 1);
                for frame in &stack[shared..] {
                    let caller = open.last().copied().unwrap_or(0);
                    let called = regions.len();
                    regions.push(Region::new(Some(frame.clone()), position));
                    regions[caller].items.push(Item::Call(called));
                    open.push(called);
                }
            }
            for &region in &open {
                regions[region].span.end = position + 1;
            }
            let innermost = open.last().copied().unwrap_or(0);
            regions[innermost].items.push(Item::Node(position));
        }
        let (mut defined, mut last_use) = (HashMap::default(), HashMap::default());
        for (position, &node) in nodes.iter().enumerate() {
            defined.extend(graph.results(node).map(|value| (value, position)));
            uses(graph, node, |value| {
                last_use.insert(value, position);
            });
        }
        last_use.extend(graph.outputs().map(|value| (value, nodes.len())));
        Regions { graph, nodes, regions, defined, last_use }
    }

    /// Returns the regions but the first in the order in which they end; a region is behind those of the calls within it.
    pub(super) fn by_end(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (1..self.regions.len()).collect();
        order.sort_by_key(|&index| (self.regions[index].span.end, Reverse(index)));
        order
    }

    /// Finds inputs and outputs of all regions but the first. A value for which `is_own` holds in a region is not an input of
    /// it. `arguments` returns the values that the call of a region takes; it is called once per region, when the inputs and
    /// outputs of the region are known, for later regions first.
    pub(super) fn connect(
        &mut self,
        is_own: impl Fn(&Region, ValueId) -> bool,
        mut arguments: impl FnMut(&Regions<'g>, usize) -> Vec<ValueId>,
    ) {
        for index in (1..self.regions.len()).rev() {
            let region = &self.regions[index];
            let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
            let mut seen: HashSet<ValueId, FxBuildHasher> = HashSet::default();
            let mut input = |value: ValueId| {
                let is_inside = self.defined.get(&value).is_some_and(|at| region.span.contains(at));
                let is_constant = self.graph.is_prim(self.graph.def(value), Prim::Constant);
                if !is_inside && !is_constant && !is_own(region, value) && seen.insert(value) {
                    inputs.push(value);
                }
            };
            let mut output = |value: ValueId| {
                if self.last_use.get(&value).is_some_and(|&at| at >= region.span.end) {
                    outputs.push(value);
                }
            };
            for item in &region.items {
                match *item {
                    Item::Node(position) => {
                        uses(self.graph, self.nodes[position], &mut input);
                        self.graph.results(self.nodes[position]).for_each(&mut output);
                    }
                    Item::Call(called) => {
                        self.regions[called].arguments.iter().copied().for_each(&mut input);
                        self.regions[called].outputs.iter().copied().for_each(&mut output);
                    }
                }
            }
            let region = &mut self.regions[index];
            (region.inputs, region.outputs) = (inputs, outputs);
            let start = region.span.start;
            let arguments = arguments(self, index);
            for &value in &arguments {
                let last = self.last_use.entry(value).or_insert(start);
                *last = start.max(*last);
            }
            self.regions[index].arguments = arguments;
        }
    }
}

/// Calls `visit` with the values of the method's block that a node uses, also those that nodes in its blocks use.
pub(super) fn uses(graph: &Graph, node: NodeId, mut visit: impl FnMut(ValueId)) {
    let root = graph.root();
    let mut outer = |value: ValueId| {
        if graph.parent(graph.def(value)) == root {
            visit(value);
        }
    };
    graph.operands(node).for_each(&mut outer);
    for block in graph.blocks(node) {
        for step in graph.walk(block) {
            match step {
                WalkStep::Node(inner) => graph.operands(inner).for_each(&mut outer),
                WalkStep::Leave(inner) => graph.block_outputs(inner).for_each(&mut outer),
                WalkStep::Enter(_) | WalkStep::Done(_) => {}
            }
        }
    }
}
