//! Structural operators without control flow: one implementation of each, shared by the reference and the machine.
//!
//! Operators that run blocks, call functions, or end a frame are implemented by each evaluator ([`is_control`]).

mod autograd;
mod fusion;
mod objects;
mod products;
mod types;

pub(crate) use autograd::{any_defined, sum_gradients};

pub(crate) use types::{GuardCheck, SymbolSizes, check_declared};
pub use types::{fits_inputs, fits_tensor, is_refined};

use crate::callees::Callees;
use crate::error::{Fault, KernelError};
use crate::kernel::{CallOrigin, KernelCx, KernelResult};
use flambeau_ir::attr::names;
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::{Future, IValue, MAX_TEXT, PrintStyle, Task, print_value};
use flambeau_ir::{Graph, NodeId, Prim, Type};

/// Whether a structural operator runs blocks or subgraphs, calls a function, or ends a frame. Evaluators implement
/// these operators themselves.
#[must_use]
pub fn is_control(prim: Prim) -> bool {
    matches!(
        prim,
        Prim::Param
            | Prim::Return
            | Prim::If
            | Prim::Loop
            | Prim::CallFunction
            | Prim::CallMethod
            | Prim::Fork
            | Prim::AwaitableWait
            | Prim::Enter
            | Prim::Exit
            | Prim::BailOut
            | Prim::GradOf
    ) || prim.runs_subgraph()
}

/// Runs a structural operator without control flow.
pub(crate) fn run(prim: Prim, cx: &mut KernelCx<'_>, callees: &dyn Callees) -> KernelResult {
    match prim {
        Prim::Constant => {
            let (graph, node) = current_node(cx)?;
            let value = graph.constant(graph.result(node, 0)).unwrap_or_default();
            cx.ret(value);
        }
        Prim::TupleConstruct => objects::tuple_construct(cx),
        Prim::TupleUnpack => objects::tuple_unpack(cx)?,
        Prim::TupleIndex => objects::tuple_index(cx)?,
        Prim::TupleSlice => objects::tuple_slice(cx)?,
        Prim::ListConstruct | Prim::EmptyListLiteral => objects::list_construct(cx),
        Prim::ListUnpack => objects::list_unpack(cx)?,
        Prim::DictConstruct => objects::dict_construct(cx)?,
        Prim::Uninitialized => cx.ret(IValue::Uninitialized),
        Prim::UncheckedCast | Prim::UncheckedUnwrapOptional | Prim::Annotate => {
            let value = cx.take(0);
            cx.ret(value);
        }
        Prim::Awaitable => {
            let (graph, node) = current_node(cx)?;
            let elem = awaited_type(cx.result_type(0));
            let args = cx.args().iter_mut().map(std::mem::take).collect();
            cx.ret(Future::awaitable(elem, Task { graph: crate::resolve::subgraph(graph, node)?, args }));
        }
        Prim::AwaitableNowait => {
            let elem = awaited_type(cx.result_type(0));
            let value = cx.take(0);
            cx.ret(Future::awaited(elem, value));
        }
        Prim::Isinstance => types::isinstance(cx, callees)?,
        Prim::RaiseException => return Err(raise(cx)),
        Prim::Print => print(cx)?,
        Prim::ToList => objects::to_list(cx)?,
        Prim::GetAttr => objects::get_attr(cx, callees)?,
        Prim::SetAttr => objects::set_attr(cx, callees)?,
        Prim::HasAttr => objects::has_attr(cx, callees)?,
        Prim::CreateObject => objects::create(cx, callees)?,
        Prim::ModuleContainerIndex => objects::container_index(cx, callees)?,
        Prim::Profile | Prim::ProfileIvalue => types::profile(cx)?,
        Prim::Guard => types::guard(cx)?,
        Prim::TypeCheck | Prim::RequiresGradCheck | Prim::TensorExprDynamicGuard => types::check(prim, cx)?,
        Prim::BailoutTemplate => cx.ret(0i64),
        Prim::IfThenElse => {
            let value = cx.take(if cx.boolean(0)? { 1 } else { 2 });
            cx.ret(value);
        }
        Prim::AutogradZero
        | Prim::AutogradAdd
        | Prim::AutogradAnyNonZero
        | Prim::AutogradAllNonZero
        | Prim::AutogradAllZero => autograd::run(prim, cx)?,
        Prim::BroadcastSizes
        | Prim::ReductionSizes
        | Prim::ChunkSizes
        | Prim::ConstantChunk
        | Prim::BroadcastingChunk => fusion::run(prim, cx)?,
        Prim::MMTreeReduce | Prim::MMBatchSide => products::run(prim, cx)?,
        Prim::PythonOp | Prim::IgnoredPythonOp | Prim::CastFromPython => types::host_call(prim, cx)?,
        Prim::Store
        | Prim::Load
        | Prim::ReturnStmt
        | Prim::BreakStmt
        | Prim::ContinueStmt
        | Prim::LoopContinuation
        | Prim::With
        | Prim::ComprehensionScope
        | Prim::Closure
        | Prim::ForkClosure => {
            return Err(KernelError::misuse(format!(
                "`{}` must be lowered before a graph is run",
                prim.name()
            )));
        }
        Prim::FusedConcat | Prim::VarConcat | Prim::VarStack => {
            return Err(KernelError::unsupported(format!("`{}` cannot be run", prim.name())));
        }
        control => return Err(KernelError::internal(format!("`{}` is control flow", control.name()))),
    }
    Ok(())
}

/// Returns `T` of `Await[T]`.
fn awaited_type(ty: Type) -> Type {
    if let TypeKind::Await(elem) = ty.kind() { *elem } else { Type::ANY }
}

/// Returns the future of an awaitable with its value, or with the task that computes the value.
pub(crate) fn await_value(args: &[IValue]) -> Result<(Future, Result<IValue, Task>), KernelError> {
    let Some(IValue::Future(future)) = args.first() else {
        return Err(KernelError::input("expected a value to await"));
    };
    match future.result_or_task() {
        Some(Ok(Ok(value))) => Ok((future.clone(), Ok(value))),
        Some(Ok(Err(error))) => Err(KernelError::input(error.to_string())),
        Some(Err(task)) => Ok((future.clone(), Err(task))),
        None => Err(KernelError::input("expected an awaitable, but found the future of a running task")),
    }
}

/// Combines the results of a run or task into one value: a single result, or a tuple of all.
pub fn one_value(mut results: impl ExactSizeIterator<Item = IValue>) -> IValue {
    match (results.len(), results.next()) {
        (1, Some(only)) => only,
        (_, first) => IValue::tuple(first.into_iter().chain(results).collect()),
    }
}

/// Returns the node that is being run.
fn current_node<'a>(cx: &KernelCx<'a>) -> Result<(&'a Graph, NodeId), KernelError> {
    match cx.site() {
        CallOrigin::Node(graph, node) => Ok((graph, node)),
        CallOrigin::Schema(_) => Err(KernelError::internal("a structural operator outside a graph")),
    }
}

/// Creates the error of `prim::RaiseException` from the message and, if given, the class name.
fn raise(cx: &mut KernelCx<'_>) -> KernelError {
    let message = match cx.arg(0) {
        Ok(IValue::Str(s)) => s.to_text().into_owned(),
        Ok(other) => format!("{other}"),
        Err(e) => return e,
    };
    let class = match cx.args().get(1) {
        Some(IValue::Str(s)) => s.to_text().into_owned(),
        _ => "RuntimeError".to_owned(),
    };
    KernelError::new(Fault::Input, class, message)
}

fn print(cx: &mut KernelCx<'_>) -> KernelResult {
    let mut out = String::new();
    let (args, _, host) = cx.parts();
    for (i, value) in args.iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        if let IValue::Str(s) = value
            && s.to_str().is_none()
        {
            // Strings are byte sequences: bytes that are not UTF-8 are printed unchanged.
            host.print(out.as_bytes())?;
            host.print(s.as_bytes())?;
            out.clear();
            continue;
        }
        let mut tensor_failed = false;
        let mut tensor = |out: &mut dyn std::fmt::Write, t: &flambeau_tensor::Tensor| {
            let written = host.tensor_text(out, t);
            tensor_failed |= written.is_err();
            written
        };
        let written = print_value(&mut out, value, PrintStyle::Str, &mut tensor);
        written.map_err(|_| match tensor_failed {
            true => KernelError::input("a tensor cannot be printed"),
            false => KernelError::limit(format!("the text of a value has more than {MAX_TEXT} bytes")),
        })?;
    }
    out.push('\n');
    host.print(out.as_bytes())
}

/// Returns a node's attribute `name`.
fn name_of(graph: &Graph, node: NodeId) -> Result<flambeau_ir::Symbol, KernelError> {
    let text = graph.attr(node, names::name()).and_then(|a| a.as_str());
    text.map(flambeau_ir::Symbol::new).ok_or_else(|| KernelError::misuse("a node lacks its attribute `name`"))
}
