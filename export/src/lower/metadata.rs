//! The metadata of nodes and values in a file, as tables beside the graph.
//!
//! A row belongs to a node or value of the lowered graph, and is found as long as that entity exists: passes that edit the
//! graph keep the rows of what they keep. Rows of replaced entities read as absent; they never describe another entity.
//!
//! Locations of nodes point into one text, the stack traces of all nodes, and are mapped to file and line of the
//! original source when they are displayed.

use flambeau_ir::{
    BlockId, Graph, LocId, NodeId, Origin, Source, SourceRange, Symbol, TrackedNodeMap, TrackedValueMap,
    ValueId,
};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::ops::Range;
use std::sync::Arc;

use crate::model::{Argument, GraphModel, NodeMetadata, NodeModel, SymBool, SymFloat, SymInt, TensorMeta};

/// The node of the file from which a node of the graph was made.
#[derive(Clone, Debug)]
pub struct NodeOrigin {
    /// Its target: `torch.ops.aten.add.Tensor`.
    pub target: String,
    /// Its metadata by key.
    pub metadata: NodeMetadata,
}

/// The metadata of a value: what PyTorch calls `val`.
#[derive(Clone, Debug)]
pub enum ValueMeta {
    /// A tensor: dtype, sizes, strides, device, whether it requires a gradient.
    Tensor(Arc<TensorMeta>),
    /// An integer.
    Int(SymInt),
    /// A bool.
    Bool(SymBool),
    /// A float.
    Float(SymFloat),
}

/// Metadata of a lowered graph.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// By node: index of its origin plus 1.
    nodes: TrackedNodeMap<u32>,
    origins: Vec<NodeOrigin>,
    /// By value: index of its metadata plus 1.
    values: TrackedValueMap<u32>,
    metas: Vec<ValueMeta>,
    traces: Traces,
}

impl Metadata {
    /// Creates empty tables for the lowering of a graph.
    pub(super) fn new(graph: &GraphModel) -> Metadata {
        Metadata {
            nodes: TrackedNodeMap::sparse(0),
            origins: Vec::new(),
            values: TrackedValueMap::sparse(0),
            metas: Vec::new(),
            traces: Traces::of(graph),
        }
    }

    /// Returns the node of the file from which a node was made.
    #[must_use]
    pub fn origin(&self, node: NodeId) -> Option<&NodeOrigin> {
        self.origins.get((self.nodes.get(node) as usize).checked_sub(1)?)
    }

    /// Returns the metadata of a value.
    #[must_use]
    pub fn meta(&self, value: ValueId) -> Option<&ValueMeta> {
        self.metas.get((self.values.get(value) as usize).checked_sub(1)?)
    }

    /// Records the metadata that `graph` has for the value called `name`.
    pub(super) fn describe(&mut self, value: ValueId, graph: &GraphModel, name: &str) {
        if self.meta(value).is_some() {
            return;
        }
        let tensor = || graph.tensor_values.get(name).cloned().map(ValueMeta::Tensor);
        let int = || graph.sym_int_values.get(name).cloned().map(ValueMeta::Int);
        let bool = || graph.sym_bool_values.get(name).cloned().map(ValueMeta::Bool);
        let float = || graph.sym_float_values.get(name).cloned().map(ValueMeta::Float);
        if let Some(meta) = tensor().or_else(int).or_else(bool).or_else(float) {
            self.metas.push(meta);
            self.values.set(value, self.metas.len() as u32);
        }
    }

    /// Records `origin` for the nodes after `before` in a block, unless they have an origin: those of an inlined subgraph
    /// do.
    pub(super) fn record(
        &mut self,
        graph: &Graph,
        before: Option<NodeId>,
        block: BlockId,
        origin: &NodeModel,
    ) {
        let first = before.map_or_else(|| graph.next(graph.param(block)), |node| graph.next(node));
        let end = graph.ret(block);
        let mut row = 0;
        let mut next = first;
        while let Some(node) = next.filter(|&node| node != end) {
            if self.nodes.get(node) == 0 {
                if row == 0 {
                    self.origins.push(NodeOrigin {
                        target: origin.target.clone(),
                        metadata: origin.metadata.clone(),
                    });
                    row = self.origins.len() as u32;
                }
                self.nodes.set(node, row);
            }
            next = graph.next(node);
        }
    }

    /// Returns the location of nodes that are made from a node of the file: its stack trace, and the module as scope.
    pub(super) fn location(&self, graph: &mut Graph, node: &NodeModel) -> LocId {
        let locs = graph.locs_mut();
        let mut loc = LocId::UNKNOWN;
        if let (Some(source), Some(range)) = (&self.traces.source, self.traces.ranges.get(&address(node))) {
            let source = locs.add_source(source);
            loc = locs.at(source, range.clone());
        }
        match node.metadata.get("nn_module_stack").and_then(|stack| innermost_module(stack)) {
            Some(path) => locs.in_scope(loc, Symbol::new(path)),
            None => loc,
        }
    }
}

/// Returns the path of the innermost module of a stack: `key,path,class;key,path,class`.
fn innermost_module(stack: &str) -> Option<&str> {
    let path = stack.rsplit(';').next()?.split(',').nth(1)?.trim();
    (!path.is_empty()).then_some(path)
}

/// Returns the address of the metadata of a node. Nodes whose metadata were made together share it.
fn address(node: &NodeModel) -> usize {
    Arc::as_ptr(&node.metadata) as usize
}

/// The stack traces of all nodes as one text, each once.
#[derive(Clone, Debug, Default)]
struct Traces {
    source: Option<Arc<Source>>,
    /// By address of the metadata in the model, which outlives the lowering.
    ranges: HashMap<usize, Range<u32>, FxBuildHasher>,
}

impl Traces {
    fn of(graph: &GraphModel) -> Traces {
        let mut text = String::new();
        let mut ranges: HashMap<usize, Range<u32>, FxBuildHasher> = HashMap::default();
        // Nodes that one line of the model made have the same trace.
        let mut known: HashMap<&str, Range<u32>> = HashMap::new();
        let mut open = vec![graph];
        while let Some(graph) = open.pop() {
            for node in &graph.nodes {
                open.extend(node.inputs.iter().filter_map(|input| match &input.arg {
                    Argument::Graph { graph, .. } => Some(&**graph),
                    _ => None,
                }));
                let Some(trace) = node.metadata.get("stack_trace") else { continue };
                if let Some(range) = known.get(&**trace) {
                    ranges.insert(address(node), range.clone());
                    continue;
                }
                let (start, end) = (text.len(), text.len() + trace.len());
                let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end)) else { continue };
                text.push_str(trace);
                text.push('\n');
                known.insert(trace, start..end);
                ranges.insert(address(node), start..end);
            }
        }
        if text.is_empty() {
            return Traces::default();
        }
        let origin = Arc::new(TraceOrigin { text: text.clone() });
        Traces { source: Some(Source::printed("exported program", text, origin)), ranges }
    }
}

/// Maps a stack trace to the line of source that it ends in.
#[derive(Debug)]
struct TraceOrigin {
    text: String,
}

impl Origin for TraceOrigin {
    fn of(&self, range: Range<u32>) -> Option<SourceRange> {
        let trace = self.text.get(range.start as usize..range.end as usize)?;
        // `  File "model.py", line 19, in forward`, and the code in the next line.
        let frame = trace.rfind("File \"")?;
        let (name, rest) = trace[frame + "File \"".len()..].split_once("\", line ")?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let line = rest[..digits].parse().ok()?;
        let code = rest.split_once('\n').map_or("", |(_, code)| code.lines().next().unwrap_or("").trim());
        let end = code.len() as u32;
        let source = Source { name: name.to_owned(), text: code.to_owned(), first_line: line, origin: None };
        Some(SourceRange { source: Arc::new(source), range: 0..end })
    }
}
