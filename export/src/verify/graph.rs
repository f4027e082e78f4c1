//! Rules of graphs and nodes.

use std::collections::BTreeSet;

use super::{Check, Strictness};
use crate::error::quoted;
use crate::fx::{Target, shown_name};
use crate::lower::is_lowered;
use crate::model::{Argument, GraphModel, InputSpec, NodeModel, Signature};
use crate::{ExportCode, ExportError};

/// Functions of Python that a node may call on symbolic scalars and tuples.
const PYTHON: &[&str] = &[
    "_operator.getitem",
    "_operator.add",
    "_operator.sub",
    "_operator.mul",
    "_operator.truediv",
    "_operator.floordiv",
    "_operator.mod",
    "_operator.pow",
    "_operator.neg",
    "_operator.pos",
    "_operator.abs",
    "_operator.eq",
    "_operator.ne",
    "_operator.lt",
    "_operator.le",
    "_operator.gt",
    "_operator.ge",
    "_operator.and_",
    "_operator.or_",
    "_operator.xor",
    "_operator.not_",
    "_operator.lshift",
    "_operator.rshift",
    "math.ceil",
    "math.floor",
    "math.trunc",
    "builtins.round",
    "builtins.max",
    "builtins.min",
    "round",
];

/// Functions of PyTorch that a node may call, by the beginning of their path.
const TORCH: &[&str] = &[
    "torch.sym_",
    "torch._sym_",
    "torch._C._set_grad_enabled",
    "torch.autograd.grad_mode.set_grad_enabled",
    "torch.amp.autocast_mode._enter_autocast",
    "torch.amp.autocast_mode._exit_autocast",
    "torch.fx.experimental.symbolic_shapes.cast_symbool_to_symint_guardless",
    "torch._functorch.predispatch.",
];

/// The first character of the target of a node that calls an operator of an extension (`torch._export.serde`'s `register_extension`):
/// `#NAMESPACE:NAME`. Only the extension knows its operators, so they are not checked.
const EXTENSION_MARK: char = '#';

/// The kinds of metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tensor,
    Int,
    Float,
    Bool,
    Object,
}

impl<'p> Check<'p> {
    /// Checks a graph and its subgraphs. `field` is the path of the graph.
    pub(super) fn graph(&mut self, graph: &'p GraphModel, functional: bool, field: &str) {
        for input in &graph.inputs {
            self.metadata(graph, input, None, field);
        }
        for (n, node) in graph.nodes.iter().enumerate() {
            self.callee(node, functional, field, n);
            for output in &node.outputs {
                self.metadata(graph, output, Some(node), field);
            }
            for (i, input) in node.inputs.iter().enumerate() {
                if let Argument::Graph { graph, .. } = &input.arg {
                    self.graph(
                        graph,
                        functional,
                        &format!("{field}.nodes[{n}].inputs[{i}].arg.as_graph.graph"),
                    );
                }
            }
        }
    }

    /// Checks what a node calls.
    fn callee(&mut self, node: &'p NodeModel, functional: bool, field: &str, n: usize) {
        let target = node.target.as_str();
        match Target::parse(target) {
            Target::HigherOrder(name) => {
                if !is_lowered(name) {
                    self.unknown(node, (field, n), "the higher-order operator");
                }
            }
            Target::Operator { .. } => {
                let Some(id) = self.operators.find(target) else {
                    return self.unknown(node, (field, n), "the operator");
                };
                if functional && self.operators.registry().schema(id).is_mutable() {
                    let message = format!("the operator {} writes to its inputs", quoted(target));
                    self.at_target(ExportCode::NotFunctional, node, (field, n), message);
                }
            }
            Target::Function(path) => {
                let known = PYTHON.contains(&path)
                    || TORCH.iter().any(|prefix| path.starts_with(prefix))
                    || path.starts_with(EXTENSION_MARK);
                if !known {
                    let message = format!(
                        "{} is neither an operator nor a function that a node may call",
                        quoted(path)
                    );
                    self.at_target(ExportCode::NotOperator, node, (field, n), message);
                }
            }
        }
    }

    /// Reports an operator that is not known, at its first node. A program is loaded without it and then not lowered.
    fn unknown(&mut self, node: &'p NodeModel, at: (&str, usize), what: &str) {
        if self.strictness == Strictness::Full && self.unknown.insert(&node.target) {
            let message = format!("{what} {} is not registered", quoted(&node.target));
            self.at_target(ExportCode::Operator, node, at, message);
        }
    }

    /// Reports a violation by the target of a node, given the path of its graph and its position there.
    fn at_target(&mut self, code: ExportCode, node: &NodeModel, (field, n): (&str, usize), message: String) {
        let field = format!("{field}.nodes[{n}].target");
        self.report(ExportError::new(code, message).in_field(&field).at_node(shown_name(node)));
    }

    /// Checks that the values that an argument defines have metadata.
    fn metadata(&mut self, graph: &GraphModel, defined: &Argument, node: Option<&NodeModel>, field: &str) {
        let missing = |name: &&str, kind| !match kind {
            Kind::Tensor => graph.tensor_values.contains_key(*name),
            Kind::Int => graph.sym_int_values.contains_key(*name),
            Kind::Float => graph.sym_float_values.contains_key(*name),
            Kind::Bool => graph.sym_bool_values.contains_key(*name),
            Kind::Object => graph.custom_obj_values.contains_key(*name),
        };
        let kind = match defined {
            Argument::SymInt(_) => Kind::Int,
            Argument::SymFloat(_) => Kind::Float,
            Argument::SymBool(_) => Kind::Bool,
            Argument::CustomObj { .. } => Kind::Object,
            _ => Kind::Tensor,
        };
        let names: Vec<&str> = match defined {
            Argument::Tensors(names) => names.iter().map(String::as_str).collect(),
            other => other.name().into_iter().collect(),
        };
        for name in names.iter().filter(|name| missing(name, kind)) {
            let what = match kind {
                Kind::Tensor => "tensor",
                Kind::Int => "integer",
                Kind::Float => "float",
                Kind::Bool => "boolean",
                Kind::Object => "object",
            };
            let message = format!("the {what} {} has no metadata", quoted(name));
            let error = ExportError::new(ExportCode::Metadata, message).in_field(field);
            self.report(match node {
                Some(node) => error.at_node(shown_name(node)),
                None => error,
            });
        }
    }
}

/// Returns the names of the values that nodes and outputs of a graph refer to. Subgraphs do not refer to values of the graph.
pub(super) fn used_names(graph: &GraphModel) -> BTreeSet<&str> {
    let mut used = BTreeSet::new();
    let inputs = graph.nodes.iter().flat_map(|n| &n.inputs).map(|input| &input.arg);
    for argument in inputs.chain(&graph.outputs) {
        argument.for_each_name(&mut |name| used.extend([name]));
    }
    used
}

/// Returns the names of the values that inputs and nodes of a graph define.
pub(super) fn defined_names<'m>(graph: &'m GraphModel, signature: &'m Signature) -> BTreeSet<&'m str> {
    let mut defined = BTreeSet::new();
    for argument in graph.inputs.iter().chain(graph.nodes.iter().flat_map(|n| &n.outputs)) {
        argument.for_each_name(&mut |name| defined.extend([name]));
    }
    defined.extend(signature.inputs.iter().filter_map(|spec| match spec {
        InputSpec::ConstantInput { name, .. } => Some(name.as_str()),
        _ => None,
    }));
    defined
}
