//! Lowering of a program model to a graph of the IR.
//!
//! Every node of the model becomes a call of the operator that its target names; the registry's schema gives the order of
//! the parameters and the defaults. Python functions on symbolic numbers and the few operators that control flow needs are
//! found by facets ([`PythonFunction`], [`LoweringRole`]), so this crate names no
//! operator. Higher-order operators become `prim::If` and `prim::Loop`, or their subgraph is inlined. A subgraph sees only
//! its operands, so each has a table of names of its own.
//!
//! The inputs of the graph are those of the model in the same order, without constants; [`Lowered::inputs`] states where
//! the value of each comes from. Tensors among the arguments have types with the sizes that calls check, and the graph states
//! the ranges of symbolic sizes, so that analyses of shapes know them. All other tensors have the type `Tensor` without
//! properties: PyTorch runs a program on other dtypes than it was exported with, and nothing checks the metadata in a file. The
//! metadata is kept beside the graph ([`Metadata`]) and survives passes as far as its nodes and values do.
//!
//! Mutations that the signature states are outputs of the graph; the caller copies them into their targets. In-place
//! operators of programs that were not made functional write to the inputs themselves.

mod arguments;
mod autocast;
mod control;
mod metadata;
mod node;
mod signature;

pub(crate) use control::is_lowered;

pub use arguments::constant;
pub use autocast::Composites;
pub use metadata::{Metadata, NodeOrigin, ValueMeta};
pub use signature::{InputSource, OutputTarget};

use flambeau_ir::{
    At, BlockId, Editor, Graph, IValue, LocId, LoweringRole, NodeId, OpId, PythonFunction, Registry, Type,
    ValueId,
};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

use crate::error::quoted;
use crate::expr::ExprId;
use crate::fx::shown_name;
use crate::info::node_count;
use crate::model::{GraphModel, ProgramModel};
use crate::{ExportCode, ExportError};

/// Bound on the number of times that nodes of the model are lowered, per node of the model and in addition. A condition of
/// a loop is lowered twice, so loops nested in conditions multiply.
const REPEATS: usize = 8;
const SPARE: usize = 1 << 14;

type Res<T> = Result<T, ExportError>;

/// A program as a graph.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The graph.
    pub graph: Graph,
    /// The source of each input of the graph.
    pub inputs: Vec<InputSource>,
    /// The destination of each output of the graph.
    pub outputs: Vec<OutputTarget>,
    /// The metadata of nodes and values in the file.
    pub metadata: Metadata,
}

/// Lowers a program. Calls of composite operators in regions of automatic mixed precision become their functions.
///
/// # Errors
/// `E011` for an operator that is not registered or a feature that is not supported, `E012` for arguments that do not fit
/// an operator, `E007` for an undefined name, `E009` if nested loops make the graph too large; with the node.
pub fn lower(
    model: &ProgramModel,
    registry: &Arc<Registry>,
    composites: &Composites<'_>,
) -> Result<Lowered, ExportError> {
    let mut lowering = Lowering::new(model, registry, composites);
    let inputs = lowering.inputs()?;
    lowering.nodes(&model.module.graph)?;
    let outputs = lowering.outputs()?;
    let Lowering { graph, metadata, .. } = lowering;
    Ok(Lowered { graph, inputs, outputs, metadata })
}

/// The operators that the lowering needs by their meaning.
struct Operators {
    python: HashMap<&'static str, Vec<OpId>, FxBuildHasher>,
    roles: HashMap<LoweringRole, OpId, FxBuildHasher>,
}

impl Operators {
    fn new(registry: &Registry) -> Operators {
        let mut python: HashMap<_, Vec<OpId>, FxBuildHasher> = HashMap::default();
        for (id, functions) in registry.column::<PythonFunction>().iter() {
            functions.0.iter().for_each(|name| python.entry(*name).or_default().push(id));
        }
        let roles = registry.column::<LoweringRole>().iter().map(|(id, role)| (*role, id)).collect();
        Operators { python, roles }
    }
}

/// The values of a graph of the model by name.
type Names<'m> = HashMap<&'m str, ValueId, FxBuildHasher>;

/// The state of a lowering.
struct Lowering<'m> {
    model: &'m ProgramModel,
    registry: Arc<Registry>,
    operators: Operators,
    graph: Graph,
    /// The functions of composite operators.
    composites: &'m Composites<'m>,
    /// The block to which nodes are appended.
    block: BlockId,
    /// The node before which nodes are inserted instead.
    before: Option<NodeId>,
    loc: LocId,
    /// The dtype of the region of automatic mixed precision, as the number that TorchScript uses.
    autocast: Option<i64>,
    /// The names of the graph being lowered.
    names: Names<'m>,
    /// Number of nodes of the model lowered so far.
    lowered: usize,
    /// Bound on this number.
    limit: usize,
    /// The numbers in types of the symbols in sizes of arguments.
    symbols: HashMap<ExprId, i64, FxBuildHasher>,
    metadata: Metadata,
}

impl<'m> Lowering<'m> {
    fn new(
        model: &'m ProgramModel,
        registry: &Arc<Registry>,
        composites: &'m Composites<'m>,
    ) -> Lowering<'m> {
        let mut graph = Graph::new(Arc::clone(registry));
        let count = model.module.graph.nodes.len();
        graph.reserve(2 * count, 4 * count);
        let block = graph.root();
        Lowering {
            model,
            registry: Arc::clone(registry),
            operators: Operators::new(registry),
            graph,
            composites,
            block,
            before: None,
            loc: LocId::UNKNOWN,
            autocast: None,
            names: Names::default(),
            lowered: 0,
            limit: node_count(model).saturating_mul(REPEATS).saturating_add(SPARE),
            symbols: HashMap::default(),
            metadata: Metadata::new(&model.module.graph),
        }
    }

    /// Returns an editor at the end of the current block, or before the node that is being changed.
    fn edit(&mut self) -> Editor<'_> {
        let at = self.before.map_or(At::end(self.block), At::before);
        let mut editor = self.graph.edit();
        editor.at(at).loc(self.loc);
        editor
    }

    fn constant(&mut self, value: IValue, ty: Type) -> ValueId {
        self.edit().constant_of(value, ty)
    }

    fn int(&mut self, value: i64) -> ValueId {
        self.constant(IValue::Int(value), Type::INT)
    }

    /// Gives a value the name by which arguments refer to it.
    fn define(&mut self, graph: &'m GraphModel, name: &'m str, value: ValueId) -> Res<()> {
        if self.names.insert(name, value).is_some() {
            let message = format!("the name {} is defined twice", quoted(name));
            return Err(ExportError::new(ExportCode::DuplicateName, message));
        }
        self.metadata.describe(value, graph, name);
        // A value that a subgraph was given keeps its first name. Other texts would not read back as names.
        let is_word = name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if is_word && !self.graph.has_debug_name(value) {
            self.edit().set_name(value, name);
        }
        Ok(())
    }

    fn value(&self, name: &str) -> Res<ValueId> {
        let undefined = || {
            let message = format!("the value {} is not defined before its use", quoted(name));
            ExportError::new(ExportCode::UndefinedName, message)
        };
        self.names.get(name).copied().ok_or_else(undefined)
    }

    /// Lowers the nodes of a graph whose inputs have names.
    fn nodes(&mut self, graph: &'m GraphModel) -> Res<()> {
        for node in &graph.nodes {
            self.lowered += 1;
            self.check_size()?;
            let before = self.graph.prev(self.graph.ret(self.block));
            self.loc = self.metadata.location(&mut self.graph, node);
            let name = shown_name(node);
            self.node(graph, node).map_err(|e| e.at_node(name))?;
            self.metadata.record(&self.graph, before, self.block, node);
        }
        Ok(())
    }

    /// Checks the bound on the number of lowered nodes.
    fn check_size(&self) -> Res<()> {
        if self.lowered > self.limit {
            let message = format!("nested loops and composite operators have more than {} nodes", self.limit);
            return Err(ExportError::new(ExportCode::Limit, message));
        }
        Ok(())
    }

    /// Lowers a subgraph at the end of the current block, with these values as its inputs, and returns its outputs.
    fn inline(&mut self, graph: &'m GraphModel, args: &[ValueId]) -> Res<Vec<ValueId>> {
        if graph.inputs.len() != args.len() {
            let message = format!("a subgraph has {} inputs but gets {}", graph.inputs.len(), args.len());
            return Err(ExportError::new(ExportCode::Argument, message));
        }
        let outer = std::mem::take(&mut self.names);
        for (input, &value) in graph.inputs.iter().zip(args) {
            if let Some(name) = arguments::value_name(input) {
                self.define(graph, name, value)?;
            }
        }
        // The reader bounds the nesting of graphs, and with it this recursion.
        self.nodes(graph)?;
        let outputs = graph.outputs.iter().map(|output| self.free(output)).collect();
        self.names = outer;
        outputs
    }

    /// Inserts a node of the operator with a role.
    fn role(&mut self, role: LoweringRole, operands: &[ValueId], results: &[Type]) -> Res<NodeId> {
        let op = self.operators.roles.get(&role).copied().ok_or_else(|| {
            let message = format!("no registered operator has the role {role:?}");
            ExportError::new(ExportCode::Operator, message)
        })?;
        Ok(self.edit().node(op, operands, results))
    }

    /// Inserts a node of the operator with a role and returns its result.
    fn role_value(&mut self, role: LoweringRole, operands: &[ValueId], result: Type) -> Res<ValueId> {
        let node = self.role(role, operands, &[result])?;
        Ok(self.graph.result(node, 0))
    }
}
