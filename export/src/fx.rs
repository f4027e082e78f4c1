//! A program as PyTorch's reader makes it: an FX graph.
//!
//! A file names values, and an FX graph names nodes. A node with several results is one node of its own and a `getitem` node
//! per result, a subgraph is a `get_attr` node before its use, and arguments are split into positional and keyword
//! arguments. [`FxGraph`] makes these explicit for the printer and the verifier, which follow PyTorch's definitions.
//!
//! The arguments of operators before schema 8.8 do not state how they are passed: that follows from the operator's schema,
//! so the registry is asked for it. Nested graphs are bounded by the reader, so the construction may recurse.

mod build;
mod names;

pub use build::shown_name;
pub(crate) use build::{build, check, val_of};
pub use names::Namespace;

use std::collections::BTreeMap;

use flambeau_ir::{OpId, Registry, Symbol};

use crate::model::{
    Device, GraphModel, Layout, Map, MemoryFormat, NodeMetadata, ScalarType, SymBool, SymFloat, SymInt,
    TensorMeta,
};

/// An FX graph.
#[derive(Debug)]
pub struct FxGraph<'m> {
    /// The nodes: placeholders, then calls in the order of execution, then one output.
    pub nodes: Vec<FxNode<'m>>,
    /// The subgraphs by name, in order of first use.
    pub subgraphs: Map<FxGraph<'m>>,
    /// The model of the graph.
    pub model: &'m GraphModel,
}

/// Index of a node in its graph.
pub type NodeIndex = u32;

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FxOp {
    /// An input of the graph.
    Placeholder,
    /// A subgraph.
    GetAttr,
    /// A call of an operator or function.
    Call,
    /// The result of the graph.
    Output,
}

/// A node of an FX graph.
#[derive(Debug)]
pub struct FxNode<'m> {
    /// The kind.
    pub op: FxOp,
    /// The unique name.
    pub name: String,
    /// The operator, the name of the subgraph, or the name of the input.
    pub target: &'m str,
    /// Positional arguments.
    pub args: Vec<FxArg<'m>>,
    /// Keyword arguments.
    pub kwargs: Vec<(&'m str, FxArg<'m>)>,
    /// Metadata of the result.
    pub val: Val<'m>,
    /// The metadata of the node in the file.
    pub metadata: Option<&'m NodeMetadata>,
}

/// Metadata of a result.
#[derive(Debug, Clone, Copy)]
pub enum Val<'m> {
    /// There is none, or the result is a tuple or constant.
    None,
    /// A tensor.
    Tensor(&'m TensorMeta),
    /// An integer.
    Int(&'m SymInt),
    /// A float.
    Float(&'m SymFloat),
    /// A boolean.
    Bool(&'m SymBool),
}

/// An argument of a node.
#[derive(Debug, Clone)]
pub enum FxArg<'m> {
    /// The result of a node.
    Node(NodeIndex),
    /// `None`.
    None,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
    /// A string.
    Str(&'m str),
    /// A dtype.
    ScalarType(ScalarType),
    /// A memory format.
    MemoryFormat(MemoryFormat),
    /// A memory layout.
    Layout(Layout),
    /// A device.
    Device(&'m Device),
    /// An operator, by its full name in Python.
    Operator(&'m str),
    /// A custom object that is not an input, by its name among the constants.
    Object(&'m str),
    /// A list.
    List(Vec<FxArg<'m>>),
    /// A tuple.
    Tuple(Vec<FxArg<'m>>),
    /// A dictionary.
    Dict(Vec<(&'m str, FxArg<'m>)>),
}

impl<'m> FxArg<'m> {
    /// Calls `visit` for each node in the argument, in order.
    pub fn for_each_node(&self, visit: &mut impl FnMut(NodeIndex)) {
        match self {
            FxArg::Node(node) => visit(*node),
            FxArg::List(items) | FxArg::Tuple(items) => {
                items.iter().for_each(|item| item.for_each_node(visit))
            }
            FxArg::Dict(items) => items.iter().for_each(|(_, item)| item.for_each_node(visit)),
            _ => {}
        }
    }
}

impl FxNode<'_> {
    /// Calls `visit` for each node among the arguments, positional ones first.
    pub fn for_each_operand(&self, visit: &mut impl FnMut(NodeIndex)) {
        self.args.iter().for_each(|arg| arg.for_each_node(visit));
        self.kwargs.iter().for_each(|(_, arg)| arg.for_each_node(visit));
    }
}

impl FxGraph<'_> {
    /// Returns the number of distinct users of each node.
    pub fn users(&self) -> Vec<u32> {
        let mut count = vec![0; self.nodes.len()];
        let mut last_user = vec![u32::MAX; self.nodes.len()];
        for (user, node) in (0u32..).zip(&self.nodes) {
            node.for_each_operand(&mut |used| {
                if std::mem::replace(&mut last_user[used as usize], user) != user {
                    count[used as usize] += 1;
                }
            });
        }
        count
    }
}

/// The function that a node calls, by the form of its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'m> {
    /// `torch.ops.NS.NAME.OVERLOAD`.
    Operator {
        /// The namespace.
        namespace: &'m str,
        /// The name without namespace.
        name: &'m str,
        /// The overload; `default` is the unnamed one.
        overload: &'m str,
    },
    /// `torch.ops.higher_order.NAME`.
    HigherOrder(&'m str),
    /// A function of Python or `torch`: `_operator.add`, `math.trunc`, `torch.sym_max`.
    Function(&'m str),
}

/// The registered operators of a program's targets. A program calls few operators many times.
#[derive(Debug)]
pub(crate) struct Operators<'m, 'r> {
    registry: &'r Registry,
    found: BTreeMap<&'m str, Option<OpId>>,
}

impl<'m, 'r> Operators<'m, 'r> {
    pub(crate) fn new(registry: &'r Registry) -> Self {
        Operators { registry, found: BTreeMap::new() }
    }

    /// Returns the registry.
    pub(crate) fn registry(&self) -> &'r Registry {
        self.registry
    }

    /// Returns the operator with a target, if it is registered.
    pub(crate) fn find(&mut self, target: &'m str) -> Option<OpId> {
        let registry = self.registry;
        *self.found.entry(target).or_insert_with(|| Target::parse(target).operator(registry))
    }
}

impl<'m> Target<'m> {
    /// Returns the operator, if the target is one that is registered.
    pub fn operator(self, registry: &Registry) -> Option<OpId> {
        let Target::Operator { namespace, name, overload } = self else { return None };
        let overload = if overload == "default" { "" } else { overload };
        registry.find(Symbol::new(&format!("{namespace}::{name}")), Symbol::new(overload))
    }

    /// Classifies a target.
    pub fn parse(target: &'m str) -> Self {
        let Some(rest) = target.strip_prefix("torch.ops.") else { return Target::Function(target) };
        if let Some(name) = rest.strip_prefix("higher_order.") {
            return Target::HigherOrder(name);
        }
        let mut parts = rest.split('.');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(namespace), Some(name), Some(overload), None) => {
                Target::Operator { namespace, name, overload }
            }
            _ => Target::Function(target),
        }
    }
}
