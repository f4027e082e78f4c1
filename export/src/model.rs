//! The content of an exported program as plain data, for every schema version.
//!
//! The types follow the schema of `torch.export` (major version 8): one Rust type per dataclass, one enum per union. A
//! later version adds fields and tags, and every version has the fields of 8.2, so one model holds all of them: fields
//! that a version lacks are `None` or empty. Fields that this crate does not know are kept as [`Unknown`].
//!
//! The model states what a file says, no more: names may be undefined, counts may disagree. [`verify`](crate::verify)
//! checks the rules, and the printer and the lowering return errors where they depend on one. Nested graphs are bounded
//! by the reader ([`Limits`](crate::container)), so walks over arguments may recurse.

pub use crate::codes::{Layout, MemoryFormat, ScalarType, SchemaEnum};
use flambeau_tensor::Tensor;
use indexmap::IndexMap;
use std::sync::Arc;

pub use crate::expr::{ExprId, Exprs};

/// A map in the order of the file. Its hasher has a random seed, because names are chosen by the file.
pub type Map<V> = IndexMap<String, V, hashbrown::DefaultHashBuilder>;

/// The metadata of a node in a file, strings by key: `stack_trace`, `nn_module_stack`, `source_fn_stack`, `torch_fn`, `custom`. They
/// are most of a file, and many nodes have the same ones, so nodes share the maps and the strings in them.
pub type NodeMetadata = Arc<IndexMap<Arc<str>, Arc<str>, hashbrown::DefaultHashBuilder>>;

/// An exported program: its graph, and the tensors that the graph refers to.
#[derive(Debug, Clone, Default)]
pub struct ProgramModel {
    /// The graph with signature and call graph.
    pub module: GraphModule,
    /// The symbolic expressions of the program; the ids in this model refer to them.
    pub exprs: Exprs,
    /// Version of the operator set by namespace.
    pub opset_version: Map<i64>,
    /// Ranges of symbols, in the order of the file.
    pub range_constraints: Map<RangeConstraint>,
    /// Version of the schema of the file.
    pub schema_version: SchemaVersion,
    /// Kinds of the verifier: `TRAINING` or `ATEN`.
    pub verifiers: Vec<String>,
    /// Version of PyTorch that wrote the file, such as `2.9.1+cpu`; empty in some files.
    pub torch_version: String,
    /// Conditions on the inputs as Python expressions (since 8.14). They are never evaluated as code.
    pub guards_code: Vec<String>,
    /// Parameters and persistent buffers by name.
    pub state_dict: Map<Weight>,
    /// Other buffers, lifted tensors and objects by name.
    pub constants: Map<Constant>,
    /// True if the file has example inputs, which are not read: they may name classes of the user.
    pub has_example_inputs: bool,
    /// Additional files by name.
    pub extra_files: Map<Vec<u8>>,
    /// Fields of the file that this crate does not know.
    pub unknown: Vec<Unknown>,
}

/// Major and minor version of the schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaVersion {
    /// Changes when readers of the former version cannot read the file.
    pub major: i64,
    /// Changes when fields are added.
    pub minor: i64,
}

/// The range of a symbol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RangeConstraint {
    /// Least value; `None` for unbounded.
    pub min: Option<i64>,
    /// Greatest value; `None` for unbounded.
    pub max: Option<i64>,
}

/// A field that is not in the schema up to the supported version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Dataclass of the object that has the field, such as `Node`.
    pub object: &'static str,
    /// Name of the field.
    pub name: String,
    /// The value as JSON text.
    pub value: String,
    /// Byte offset of the value in the record of the program.
    pub offset: usize,
}

/// A tensor of the state dict.
#[derive(Debug, Clone)]
pub struct Weight {
    /// The tensor. Tensors of one storage share it.
    pub tensor: Tensor,
    /// True for a parameter, false for a buffer, `None` if the file does not say.
    pub is_parameter: Option<bool>,
}

/// A value that the graph takes as an input without being a parameter or persistent buffer.
#[derive(Debug, Clone)]
pub enum Constant {
    /// A tensor.
    Tensor(Tensor),
    /// An object of a custom class or any Python object, which cannot be used.
    Object {
        /// Name of the record, or the class if it is known.
        what: String,
    },
}

/// A graph with the signature of its call.
#[derive(Debug, Clone, Default)]
pub struct GraphModule {
    /// The graph.
    pub graph: GraphModel,
    /// The meaning of the graph's inputs and outputs.
    pub signature: Signature,
    /// One entry per submodule; the first is the program's own.
    pub module_call_graph: Vec<ModuleCall>,
    /// Free metadata, in files of 8.2 empty.
    pub metadata: Map<String>,
    /// Field names of registered named tuples, by registered name (since 8.8).
    pub namedtuple_fields: Map<Vec<String>>,
}

/// A graph: inputs, nodes in the order of execution, outputs, and the metadata of all values.
#[derive(Debug, Clone, Default)]
pub struct GraphModel {
    /// The inputs; a constant stands for itself.
    pub inputs: Vec<Argument>,
    /// The outputs.
    pub outputs: Vec<Argument>,
    /// The nodes in the order of execution.
    pub nodes: Vec<NodeModel>,
    /// Metadata of tensors by value name. Tensors of the same metadata may share it.
    pub tensor_values: Map<Arc<TensorMeta>>,
    /// Symbolic integers by value name.
    pub sym_int_values: Map<SymInt>,
    /// Symbolic booleans by value name.
    pub sym_bool_values: Map<SymBool>,
    /// Symbolic floats by value name.
    pub sym_float_values: Map<SymFloat>,
    /// Classes of custom objects by value name.
    pub custom_obj_values: Map<CustomObj>,
    /// True for a subgraph that returns a bare tensor instead of a tuple.
    pub is_single_tensor_return: bool,
}

/// A call of an operator.
#[derive(Debug, Clone)]
pub struct NodeModel {
    /// The operator, such as `torch.ops.aten.add.Tensor` or `_operator.add`.
    pub target: String,
    /// The arguments.
    pub inputs: Vec<NamedArgument>,
    /// The results.
    pub outputs: Vec<Argument>,
    /// Metadata by key.
    pub metadata: NodeMetadata,
    /// For a higher-order operator: true if it returns a bare tensor instead of a tuple (since 8.8).
    pub is_hop_single_tensor_return: Option<bool>,
    /// Name of the FX node (since 8.20).
    pub name: Option<String>,
}

/// How an argument is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    /// By position.
    Positional,
    /// By name.
    Keyword,
}

/// An argument of a node.
#[derive(Debug, Clone)]
pub struct NamedArgument {
    /// Name of the parameter in the schema; empty for higher-order operators.
    pub name: String,
    /// The value.
    pub arg: Argument,
    /// How the argument is passed (since 8.8).
    pub kind: Option<ArgumentKind>,
}

/// A value, or the name of a value.
#[derive(Debug, Clone)]
pub enum Argument {
    /// `as_none`.
    None,
    /// `as_tensor`: the name of a tensor.
    Tensor(String),
    /// `as_tensors`: names of tensors.
    Tensors(Vec<String>),
    /// `as_optional_tensor`: the name of a tensor, or nothing.
    OptionalTensor(Option<String>),
    /// `as_optional_tensors`: names of tensors, or nothing, by element.
    OptionalTensors(Vec<Option<String>>),
    /// `as_nested_tensors`: lists of names of tensors.
    NestedTensors(Vec<Vec<String>>),
    /// `as_int`.
    Int(i64),
    /// `as_ints`.
    Ints(Vec<i64>),
    /// `as_int_lists`.
    IntLists(Vec<Vec<i64>>),
    /// `as_float`.
    Float(f64),
    /// `as_floats`.
    Floats(Vec<f64>),
    /// `as_float_lists`.
    FloatLists(Vec<Vec<f64>>),
    /// `as_complex`.
    Complex {
        /// Real part.
        real: f64,
        /// Imaginary part.
        imag: f64,
    },
    /// `as_string`.
    String(String),
    /// `as_strings`.
    Strings(Vec<String>),
    /// `as_bool`.
    Bool(bool),
    /// `as_bools`.
    Bools(Vec<bool>),
    /// `as_sym_int`.
    SymInt(Sym<i64>),
    /// `as_sym_ints`.
    SymInts(Vec<Sym<i64>>),
    /// `as_sym_float`.
    SymFloat(Sym<f64>),
    /// `as_sym_floats`.
    SymFloats(Vec<Sym<f64>>),
    /// `as_sym_bool`.
    SymBool(Sym<bool>),
    /// `as_sym_bools`.
    SymBools(Vec<Sym<bool>>),
    /// `as_scalar_type`.
    ScalarType(ScalarType),
    /// `as_memory_format`.
    MemoryFormat(MemoryFormat),
    /// `as_layout`.
    Layout(Layout),
    /// `as_device`.
    Device(Device),
    /// `as_graph`: a subgraph with its name.
    Graph {
        /// Name of the attribute that holds the subgraph.
        name: String,
        /// The subgraph.
        graph: Box<GraphModel>,
    },
    /// `as_custom_obj`: the name of a custom object.
    CustomObj {
        /// Name of the value.
        name: String,
        /// Qualified name of the class.
        class: String,
    },
    /// `as_operator`: an operator as a value.
    Operator(String),
    /// `as_string_to_argument`: a dictionary with string keys.
    Dict(Vec<(String, Argument)>),
}

impl Argument {
    /// Returns the name of the one value that the argument refers to, if it refers to one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Argument::Tensor(name)
            | Argument::OptionalTensor(Some(name))
            | Argument::SymInt(Sym::Name(name))
            | Argument::SymFloat(Sym::Name(name))
            | Argument::SymBool(Sym::Name(name))
            | Argument::CustomObj { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Calls `visit` for the name of each value that the argument refers to, in order. Subgraphs do not refer to values
    /// of the graph.
    pub fn for_each_name<'a>(&'a self, visit: &mut impl FnMut(&'a str)) {
        fn syms<'a, T>(values: &'a [Sym<T>], visit: &mut impl FnMut(&'a str)) {
            for value in values {
                if let Sym::Name(name) = value {
                    visit(name);
                }
            }
        }
        match self {
            Argument::Tensors(names) => names.iter().for_each(|name| visit(name)),
            Argument::OptionalTensors(names) => names.iter().flatten().for_each(|name| visit(name)),
            Argument::NestedTensors(lists) => lists.iter().flatten().for_each(|name| visit(name)),
            Argument::SymInts(values) => syms(values, visit),
            Argument::SymFloats(values) => syms(values, visit),
            Argument::SymBools(values) => syms(values, visit),
            // The reader bounds the nesting of arguments.
            Argument::Dict(items) => items.iter().for_each(|(_, item)| item.for_each_name(visit)),
            other => other.name().into_iter().for_each(visit),
        }
    }
}

/// A symbolic scalar in an argument: the name of a value, or a constant.
#[derive(Debug, Clone, PartialEq)]
pub enum Sym<T> {
    /// The name of a value.
    Name(String),
    /// A constant.
    Value(T),
}

/// Metadata of a tensor.
#[derive(Debug, Clone)]
pub struct TensorMeta {
    /// Element type.
    pub dtype: ScalarType,
    /// Sizes by dimension.
    pub sizes: Vec<SymInt>,
    /// Whether the tensor requires a gradient.
    pub requires_grad: bool,
    /// Device of the tensor when it was exported.
    pub device: Device,
    /// Strides by dimension, in elements.
    pub strides: Vec<SymInt>,
    /// Offset of the first element, in elements. Always 0 before 8.14, whatever the offset was.
    pub storage_offset: SymInt,
    /// Memory layout.
    pub layout: Layout,
}

impl TensorMeta {
    /// Returns the metadata of a tensor with its sizes as numbers; `None` if the schema has no such dtype.
    #[must_use]
    pub fn of(tensor: &Tensor) -> Option<TensorMeta> {
        let ints = |of: &[i64]| of.iter().map(|&n| SymInt::Int(n)).collect();
        Some(TensorMeta {
            dtype: ScalarType::of_dtype(tensor.dtype())?,
            sizes: ints(tensor.sizes()),
            requires_grad: tensor.requires_grad(),
            device: Device { kind: tensor.device().type_name().to_owned(), index: None },
            strides: ints(tensor.strides()),
            storage_offset: SymInt::Int(tensor.offset()),
            layout: Layout::Strided,
        })
    }
}

/// An integer or an expression over symbols.
#[derive(Debug, Clone, PartialEq)]
pub enum SymInt {
    /// A constant.
    Int(i64),
    /// An expression.
    Expr {
        /// The expression.
        expr: ExprId,
        /// The value in the example.
        hint: Option<i64>,
    },
}

/// A float or an expression over symbols.
#[derive(Debug, Clone, PartialEq)]
pub enum SymFloat {
    /// A constant.
    Float(f64),
    /// An expression.
    Expr {
        /// The expression.
        expr: ExprId,
        /// The value in the example.
        hint: Option<f64>,
    },
}

/// A boolean or an expression over symbols.
#[derive(Debug, Clone, PartialEq)]
pub enum SymBool {
    /// A constant.
    Bool(bool),
    /// An expression.
    Expr {
        /// The expression.
        expr: ExprId,
        /// The value in the example.
        hint: Option<bool>,
    },
}

/// Class of a custom object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomObj {
    /// Name of the value.
    pub name: String,
    /// Qualified name of the class.
    pub class: String,
}

/// A device: `cpu`, or a type with an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Such as `cpu` or `cuda`.
    pub kind: String,
    /// Number of the device.
    pub index: Option<i64>,
}

/// The meaning of a graph's inputs and outputs, in their order.
#[derive(Debug, Clone, Default)]
pub struct Signature {
    /// One per input.
    pub inputs: Vec<InputSpec>,
    /// One per output.
    pub outputs: Vec<OutputSpec>,
}

/// The meaning of an input.
#[derive(Debug, Clone)]
pub enum InputSpec {
    /// An argument of the call.
    UserInput {
        /// Its value.
        arg: Argument,
    },
    /// A parameter.
    Parameter {
        /// Name of the value.
        arg: String,
        /// Name in the state dict.
        target: String,
    },
    /// A buffer.
    Buffer {
        /// Name of the value.
        arg: String,
        /// Name in the state dict, or among the constants if not persistent.
        target: String,
        /// Whether the buffer is in the state dict.
        persistent: bool,
    },
    /// A tensor among the constants.
    TensorConstant {
        /// Name of the value.
        arg: String,
        /// Name among the constants.
        target: String,
    },
    /// An object among the constants.
    CustomObj {
        /// Name of the value.
        arg: CustomObj,
        /// Name among the constants.
        target: String,
    },
    /// A token that orders effects.
    Token {
        /// Name of the value.
        arg: String,
    },
    /// An argument of the call that was a constant: `as_int`, `as_float`, `as_string`, `as_bool` or `as_none`.
    ConstantInput {
        /// Name of the placeholder.
        name: String,
        /// The only value that the argument may have.
        value: Argument,
    },
}

/// The meaning of an output.
#[derive(Debug, Clone)]
pub enum OutputSpec {
    /// A result of the call.
    UserOutput {
        /// Its value.
        arg: Argument,
    },
    /// The loss of a joint graph.
    LossOutput {
        /// Name of the value.
        arg: String,
    },
    /// The new value of a buffer.
    BufferMutation {
        /// Name of the value.
        arg: String,
        /// Name of the buffer.
        target: String,
    },
    /// The new value of a parameter.
    ParameterMutation {
        /// Name of the value.
        arg: String,
        /// Name of the parameter.
        target: String,
    },
    /// The gradient of a parameter.
    GradientToParameter {
        /// Name of the value.
        arg: String,
        /// Name of the parameter.
        target: String,
    },
    /// The gradient of an argument.
    GradientToUserInput {
        /// Name of the value.
        arg: String,
        /// Name of the input.
        target: String,
    },
    /// The new value of an argument.
    UserInputMutation {
        /// Name of the value.
        arg: String,
        /// Name of the input.
        target: String,
    },
    /// A token that orders effects.
    Token {
        /// Name of the value.
        arg: String,
    },
}

/// A submodule that the program called.
#[derive(Debug, Clone)]
pub struct ModuleCall {
    /// Path of the module; empty for the program itself, `a@1` for a second call of `a`.
    pub fqn: String,
    /// The interface of the call, if it was kept.
    pub signature: Option<ModuleCallSignature>,
}

/// The interface of a call.
#[derive(Debug, Clone)]
pub struct ModuleCallSignature {
    /// Values of the graph that go in; empty for the program itself.
    pub inputs: Vec<Argument>,
    /// Values of the graph that come out; empty for the program itself.
    pub outputs: Vec<Argument>,
    /// Structure of the arguments, as the JSON text of a tree spec.
    pub in_spec: String,
    /// Structure of the results, as the JSON text of a tree spec.
    pub out_spec: String,
    /// Names of the arguments.
    pub forward_arg_names: Option<Vec<String>>,
}
