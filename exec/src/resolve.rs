//! Resolution of the references of a node: callee, subgraph, kernel, default arguments. Public for evaluators outside this
//! crate, which run nodes one by one ([`run_node`](crate::run_node)).

use crate::callees::Callees;
use crate::error::{Fault, KernelError};
use crate::kernel::Kernel;
use flambeau_ir::attr::names;
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::IValue;
use flambeau_ir::{Graph, NodeId, Op, OpKind, Symbol};
use std::sync::Arc;

/// Returns the function that `prim::CallFunction` calls.
///
/// # Errors
/// Returns an error if the node lacks a callee.
pub fn callee(graph: &Graph, node: NodeId) -> Result<Symbol, KernelError> {
    let function =
        graph.operands(node).next().ok_or_else(|| KernelError::misuse("a call without a callee"))?;
    if let TypeKind::Function(name) = graph.ty(function).kind()
        && !name.is_empty()
    {
        return Ok(*name);
    }
    if let Some(IValue::Function(name)) = graph.constant(function) {
        return Ok(name);
    }
    name_attr(graph, graph.def(function))
}

/// Returns the function that implements a method of the first argument's class.
///
/// # Errors
/// Returns an error if the first argument is not an object, or its class lacks the method.
pub fn method(callees: &dyn Callees, args: &[IValue], name: Symbol) -> Result<Symbol, KernelError> {
    let class = match args.first() {
        Some(IValue::Object(o)) => o.class(),
        other => {
            let why = match other {
                Some(value) => format!("on a value of type {}", value.tag()),
                None => "without a receiver".to_owned(),
            };
            return Err(KernelError::input(format!("cannot call method '{name}' {why}")));
        }
    };
    let missing =
        || KernelError::new(Fault::Input, "AttributeError", format!("'{class}' has no method '{name}'"));
    callees.method(class, name).ok_or_else(missing)
}

/// Returns a node's attribute `name`.
///
/// # Errors
/// Returns an error if the node lacks the attribute.
pub fn name_attr(graph: &Graph, node: NodeId) -> Result<Symbol, KernelError> {
    let text = graph.attr(node, names::name()).and_then(|a| a.as_str());
    let missing = || KernelError::misuse(format!("`{}` lacks its attribute `name`", graph.op_name(node)));
    text.map(Symbol::new).ok_or_else(missing)
}

/// Returns a node's attribute `Subgraph`.
///
/// # Errors
/// Returns an error if the node lacks the attribute.
pub fn subgraph(graph: &Graph, node: NodeId) -> Result<Arc<Graph>, KernelError> {
    let found = graph.attr(node, names::subgraph()).and_then(|a| a.as_graph());
    let missing = || KernelError::misuse(format!("`{}` lacks its attribute `Subgraph`", graph.op_name(node)));
    found.cloned().ok_or_else(missing)
}

/// Returns the kernel of an operator that is not structural.
pub(crate) fn kernel(graph: &Graph, op: Op) -> Result<&Kernel, KernelError> {
    let missing = || {
        let registry = graph.registry();
        let name = registry.schema_of(op).map_or_else(|| registry.name(op).to_string(), |s| s.full_name());
        let why = if matches!(op.kind(), OpKind::Unknown(_)) { "not a known operator" } else { "no kernel" };
        let help = "register a kernel for it: `Session::builder().standard().ops([OpDef::named(";
        KernelError::unsupported(format!("`{name}`: {why}"))
            .help(format!("{help}\"{name}\").with(Kernel::new(…))])`"))
    };
    op.row().and_then(|row| graph.registry().facet::<Kernel>(row)).ok_or_else(missing)
}

/// Returns the default values of the arguments that a node omits.
///
/// # Errors
/// Returns an error if an omitted argument has no default.
pub fn defaults(graph: &Graph, node: NodeId) -> Result<Vec<IValue>, KernelError> {
    let Some(schema) = graph.registry().schema_of(graph.op(node)) else { return Ok(Vec::new()) };
    let supplied = graph.operand_count(node);
    let left_out = schema.args.get(supplied..).unwrap_or(&[]);
    let default = |a: &flambeau_ir::schema::Argument| {
        let missing =
            || KernelError::misuse(format!("`{}`: argument `{}` is missing", schema.full_name(), a.name));
        a.default.as_ref().map(unshared).ok_or_else(missing)
    };
    left_out.iter().map(default).collect()
}

/// Returns a copy that the program may modify without changing the original.
pub(crate) fn unshared(value: &IValue) -> IValue {
    match value {
        IValue::List(l) => IValue::List(l.copy()),
        IValue::Dict(d) => IValue::Dict(d.copy()),
        other => other.clone(),
    }
}
