//! Copying nodes between graphs and within a graph, for inlining, outlining and duplication of blocks.

use super::Editor;
use crate::attr::AttrsId;
use crate::graph::Graph;
use crate::id::{BlockId, NodeId, ValueId};
use crate::loc::LocId;
use crate::op::Op;
use crate::symbol::Symbol;
use crate::types::Type;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// Map from values of the source to values of the target.
#[derive(Clone, Debug, Default)]
pub struct ValueSubstitution(HashMap<ValueId, ValueId, FxBuildHasher>);

impl ValueSubstitution {
    /// Creates an empty substitution.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty substitution with space for this many values.
    pub fn with_capacity(values: usize) -> Self {
        Self(HashMap::with_capacity_and_hasher(values, FxBuildHasher))
    }

    /// Substitutes `to` for `from`.
    pub fn set(&mut self, from: ValueId, to: ValueId) {
        self.0.insert(from, to);
    }

    /// Returns the substitute of `from`, if there is one.
    pub fn get(&self, from: ValueId) -> Option<ValueId> {
        self.0.get(&from).copied()
    }
}

/// Error: nodes cannot be copied from another graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloneError {
    /// A copied node or an output uses this value of the source, which was not copied and has no substitute.
    #[error("a copied node uses a value of the source graph that has no substitute")]
    NoSubstitute(ValueId),
    /// The registry of the target does not extend that of the source
    /// ([`Registry::extends`](crate::Registry::extends)): ids of operators in one denote other operators in the other.
    #[error("the graphs have different registries of operators")]
    OtherRegistry,
}

/// The locations of copied nodes.
#[derive(Clone, Copy)]
enum Origin {
    /// The locations of the source nodes.
    Same,
    /// The locations of the source nodes, inlined at the call site with this location from the function with this name.
    Call(LocId, Symbol),
}

/// The graph to copy from.
#[derive(Clone, Copy)]
enum CloneSource<'s> {
    /// Another graph: every value needs a substitute. The registry of the target extends that of the source, since
    /// operators are copied as row numbers.
    Other(&'s Graph),
    /// The edited graph itself: a value without a substitute is used as it is.
    Itself,
}

enum Task {
    Node(NodeId),
    Outputs(BlockId, BlockId),
}

/// The data of a node to copy, read before the target changes.
struct CopiedNode {
    op: Op,
    attrs: AttrsId,
    loc: LocId,
    operands: SmallVec<[ValueId; 8]>,
    results: SmallVec<[(ValueId, Type, Option<Symbol>); 4]>,
    blocks: SmallVec<[BlockId; 2]>,
}

impl CopiedNode {
    fn read(g: &Graph, node: NodeId) -> Self {
        CopiedNode {
            op: g.op(node),
            attrs: g.attrs_id(node),
            loc: g.loc(node),
            operands: g.operands(node).collect(),
            results: g.results(node).map(|v| (v, g.ty(v), g.name(v).symbol())).collect(),
            blocks: g.blocks(node).collect(),
        }
    }
}

impl Editor<'_> {
    /// Copies the body of `source`'s root block to the cursor with `inputs` in place of its inputs. Returns the values
    /// of its outputs.
    ///
    /// Locations are imported. With `call`, they record that they were inlined at that call site.
    ///
    /// # Errors
    /// Returns [`CloneError`] if the registry of this graph does not extend that of the source, or if a copied node or
    /// an output uses a value that has no substitute, which happens if `inputs` is too short. Nodes copied so far remain
    /// in the graph.
    pub fn inline_graph(
        &mut self,
        source: &Graph,
        inputs: &[ValueId],
        call: Option<(LocId, Symbol)>,
    ) -> Result<Vec<ValueId>, CloneError> {
        let nodes: Vec<NodeId> = source.nodes(source.root()).collect();
        let mut map = ValueSubstitution::with_capacity(inputs.len() + nodes.len());
        for (from, &to) in source.inputs().zip(inputs) {
            map.set(from, to);
        }
        let origin = call.map_or(Origin::Same, |(loc, name)| Origin::Call(loc, name));
        self.copy(CloneSource::Other(source), nodes, &mut map, origin)?;
        source.outputs().map(|v| map.get(v).ok_or(CloneError::NoSubstitute(v))).collect()
    }

    /// Copies nodes of `source`, with everything nested in them, to the cursor in the given order. `map` substitutes
    /// operands and receives the results.
    ///
    /// # Errors
    /// Returns [`CloneError`] if the registry of this graph does not extend that of the source, or if a copied node uses
    /// a value that was not copied and has no substitute in `map`.
    pub fn copy_from(
        &mut self,
        source: &Graph,
        nodes: impl IntoIterator<Item = NodeId>,
        map: &mut ValueSubstitution,
    ) -> Result<(), CloneError> {
        self.copy(CloneSource::Other(source), nodes.into_iter().collect(), map, Origin::Same)
    }

    /// Copies nodes of the edited graph to the cursor. Values without a substitute in `map` are used as they are.
    #[expect(clippy::missing_panics_doc, reason = "values of the edited graph stand for themselves")]
    pub fn duplicate(&mut self, nodes: impl IntoIterator<Item = NodeId>, map: &mut ValueSubstitution) {
        self.copy(CloneSource::Itself, nodes.into_iter().collect(), map, Origin::Same)
            .expect("invariant: values of the edited graph stand for themselves");
    }

    /// Copies a location of `source`, with the call sites it was inlined through.
    pub fn import_loc(&mut self, source: &Graph, loc: LocId) -> LocId {
        import_loc(&mut self.graph.locs, &mut HashMap::default(), source, loc, Origin::Same)
    }

    fn copy(
        &mut self,
        from: CloneSource<'_>,
        nodes: Vec<NodeId>,
        map: &mut ValueSubstitution,
        origin: Origin,
    ) -> Result<(), CloneError> {
        if let CloneSource::Other(source) = from
            && !self.graph.registry().extends(source.registry())
        {
            return Err(CloneError::OtherRegistry);
        }
        let (back, loc) = (self.next, self.loc);
        let mut locs: HashMap<LocId, LocId, FxBuildHasher> = HashMap::default();
        // Each entry has its own insertion point. The stack is filled in reverse so that nodes keep their order.
        let mut stack: Vec<(NodeId, Task)> = nodes.into_iter().rev().map(|n| (back, Task::Node(n))).collect();
        let mut done = Ok(());
        while let Some((next, task)) = stack.pop() {
            self.next = next;
            let step = match task {
                Task::Node(node) => self.copy_node(from, node, map, origin, &mut locs, &mut stack),
                Task::Outputs(old, new) => self.copy_outputs(from, old, new, map),
            };
            if step.is_err() {
                done = step;
                break;
            }
        }
        (self.next, self.loc) = (back, loc);
        done
    }

    fn source<'a>(&'a self, from: CloneSource<'a>) -> &'a Graph {
        match from {
            CloneSource::Other(g) => g,
            CloneSource::Itself => self.graph,
        }
    }

    fn copy_node(
        &mut self,
        from: CloneSource<'_>,
        node: NodeId,
        map: &mut ValueSubstitution,
        origin: Origin,
        locs: &mut HashMap<LocId, LocId, FxBuildHasher>,
        stack: &mut Vec<(NodeId, Task)>,
    ) -> Result<(), CloneError> {
        let mut plan = CopiedNode::read(self.source(from), node);
        for v in &mut plan.operands {
            *v = substitute(from, map, *v)?;
        }
        let (attrs, here) = match from {
            CloneSource::Itself => (plan.attrs, plan.loc),
            CloneSource::Other(g) => {
                let locs_here = &mut self.graph.locs;
                let here = import_loc(locs_here, locs, g, plan.loc, origin);
                (self.graph.attrs.import(g.attrs(node)), here)
            }
        };
        self.loc = here;
        let types: SmallVec<[Type; 4]> = plan.results.iter().map(|r| r.1).collect();
        let copy = self.insert(plan.op, &plan.operands, attrs, &types);
        for (i, &(old, _, name)) in plan.results.iter().enumerate() {
            let new = self.graph.result(copy, i);
            self.adopt(old, new, name, map);
        }
        let mut tasks = Vec::new();
        for &block in &plan.blocks {
            let inputs: SmallVec<[(ValueId, Type, Option<Symbol>); 4]> = {
                let g = self.source(from);
                g.block_inputs(block).map(|v| (v, g.ty(v), g.name(v).symbol())).collect()
            };
            let inner = self.add_block(copy);
            for (old, ty, name) in inputs {
                let new = self.add_block_input(inner, ty);
                self.adopt(old, new, name, map);
            }
            let end = self.graph.ret(inner);
            tasks.extend(self.source(from).nodes(block).map(|n| (end, Task::Node(n))));
            tasks.push((end, Task::Outputs(block, inner)));
        }
        stack.extend(tasks.into_iter().rev());
        Ok(())
    }

    fn copy_outputs(
        &mut self,
        from: CloneSource<'_>,
        old: BlockId,
        new: BlockId,
        map: &ValueSubstitution,
    ) -> Result<(), CloneError> {
        let outputs: SmallVec<[ValueId; 8]> = self.source(from).block_outputs(old).collect();
        for v in outputs {
            let v = substitute(from, map, v)?;
            self.add_block_output(new, v);
        }
        Ok(())
    }

    fn adopt(&mut self, old: ValueId, new: ValueId, name: Option<Symbol>, map: &mut ValueSubstitution) {
        if let Some(name) = name {
            self.graph.raw_name_value(new, name);
        }
        map.set(old, new);
    }
}

fn substitute(from: CloneSource<'_>, map: &ValueSubstitution, value: ValueId) -> Result<ValueId, CloneError> {
    match (map.get(value), from) {
        (Some(v), _) => Ok(v),
        (None, CloneSource::Itself) => Ok(value),
        (None, CloneSource::Other(_)) => Err(CloneError::NoSubstitute(value)),
    }
}

/// Copies a location together with the chain of call sites it was inlined through; the outermost location gets the call
/// site of `origin`. `known` makes shared call sites be copied once.
fn import_loc(
    locs: &mut crate::loc::LocTable,
    known: &mut HashMap<LocId, LocId, FxBuildHasher>,
    source: &Graph,
    loc: LocId,
    origin: Origin,
) -> LocId {
    if let Some(&here) = known.get(&loc) {
        return here;
    }
    let theirs = source.locs();
    // The chain from the innermost location up to the first one that is already copied.
    let mut chain = vec![(loc, None)];
    while let Some(&(at, _)) = chain.last()
        && !known.contains_key(&at)
        && let Some((caller, callee)) = theirs.caller(at)
    {
        chain.push((caller, Some(callee)));
    }
    let mut caller = match origin {
        Origin::Call(at, callee) => Some((at, callee)),
        Origin::Same => None,
    };
    let mut here = LocId::UNKNOWN;
    for (at, called) in chain.into_iter().rev() {
        here = *known.entry(at).or_insert_with(|| locs.import(theirs, at, caller));
        caller = called.map(|callee| (here, callee));
    }
    here
}
