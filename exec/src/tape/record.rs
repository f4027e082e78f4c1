//! Recording of one operator call in the histories of its results.

use super::history::{self, ArgEdges, Edge, Node, NodeKind, OpCall, Saved};
use super::region::{self, Geometry};
use super::{Derivative, FormulaInput, Tape};
use crate::error::KernelError;
use crate::kernel::{Kernel, KernelCx, KernelResult};
use flambeau_ir::schema::{AliasInfo, Argument};
use flambeau_ir::value::{Generator, IValue, List, ListItems, Tuple};
use flambeau_ir::{FunctionSchema, OpId, Type};
use flambeau_tensor::Tensor;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// Returns the tensors of an argument or result: the tensor itself, or those of a list.
pub(super) fn tensors_of(value: &IValue) -> SmallVec<[Tensor; 1]> {
    match value {
        IValue::Tensor(t) => SmallVec::from_elem(t.clone(), 1),
        IValue::List(list) => match &*list.read() {
            ListItems::Tensors(v) => v.iter().cloned().collect(),
            items => items.iter().filter_map(|v| v.as_tensor().cloned()).collect(),
        },
        _ => SmallVec::new(),
    }
}

/// Appends the edges of an argument: one per element of a list (`None` for elements other than tensors), else a single
/// one.
fn edges_of(value: &IValue, edges: &mut Vec<Option<Edge>>) -> ArgEdges {
    let start = edges.len();
    match value {
        IValue::List(list) => {
            let items: Vec<IValue> = list.read().iter().collect();
            edges.extend(items.iter().map(|v| v.as_tensor().and_then(history::gradient_edge)));
            ArgEdges { start, list: Some(items.len()) }
        }
        _ => {
            edges.push(value.as_tensor().and_then(history::gradient_edge));
            ArgEdges { start, list: None }
        }
    }
}

/// Returns the value with its tensors replaced by aliases without history; appends these and their versions to `notes`.
pub(super) fn without_history(value: &IValue, notes: &mut Vec<(Tensor, u64)>) -> IValue {
    match value {
        IValue::Tensor(t) => {
            let alias = t.alias();
            notes.push((alias.clone(), alias.version()));
            IValue::Tensor(alias)
        }
        IValue::List(list) => {
            let items: Vec<IValue> = list.read().iter().collect();
            if !items.iter().any(IValue::is_tensor) {
                return IValue::List(list.copy());
            }
            let items: Vec<IValue> = items.iter().map(|item| without_history(item, notes)).collect();
            IValue::List(List::from_values(list.elem_type(), items))
        }
        IValue::Tuple(tuple) => {
            let items: Vec<IValue> = tuple.items().iter().map(|item| without_history(item, notes)).collect();
            IValue::Tuple(match tuple.named_type() {
                Some(ty) => Tuple::named(ty, items),
                None => Tuple::new(items),
            })
        }
        other => other.clone(),
    }
}

/// Returns zeros of the same sizes and dtype, which take the memory of one element.
fn zeros_like(value: &IValue) -> Result<IValue, KernelError> {
    Ok(match value {
        IValue::Tensor(t) => IValue::Tensor(Tensor::zeros(&[], t.dtype())?.expand(t.sizes())?),
        IValue::List(list) => {
            let items: Result<Vec<IValue>, _> = list.read().iter().map(|item| zeros_like(&item)).collect();
            IValue::List(List::from_values(list.elem_type(), items?))
        }
        other => other.clone(),
    })
}

/// State of a call before its kernel runs.
struct PreCallState {
    args: Vec<IValue>,
    /// Tensors among the arguments, taken before the call because the call may remove elements from a list.
    read: Vec<Tensor>,
    edges: Vec<Option<Edge>>,
    arg_edges: Vec<ArgEdges>,
    derivative: Option<Arc<Derivative>>,
    generator: Option<Generator>,
    /// Arguments as formulas read them.
    saved: Vec<IValue>,
    shapes: Vec<(usize, IValue)>,
    notes: Vec<(Tensor, u64)>,
}

impl PreCallState {
    fn new(
        tape: &Tape,
        schema: &FunctionSchema,
        op: OpId,
        args: &[IValue],
        generator: &Generator,
    ) -> Result<PreCallState, KernelError> {
        let mut edges = Vec::new();
        let arg_edges = args.iter().map(|arg| edges_of(arg, &mut edges)).collect();
        let derivative = tape.derivatives.of(op);
        let mut before = PreCallState {
            args: args.to_vec(),
            read: args.iter().flat_map(tensors_of).collect(),
            edges,
            arg_edges,
            derivative,
            generator: None,
            saved: vec![IValue::None; args.len()],
            shapes: Vec::new(),
            notes: Vec::new(),
        };
        if before.tracked() {
            before.save(schema)?;
            let draws = matches!(before.derivative.as_deref(), Some(Derivative::Body { draws: true, .. }));
            before.generator = draws.then(|| generator.fork());
        }
        Ok(before)
    }

    /// Whether any tensor that the call reads requires a gradient.
    fn tracked(&self) -> bool {
        self.edges.iter().any(Option::is_some)
    }

    /// Returns the inputs of the formulas of all arguments that require a gradient.
    fn required_inputs(&self) -> Vec<FormulaInput> {
        match self.derivative.as_deref() {
            Some(Derivative::Body { inputs, .. }) => inputs.clone(),
            Some(Derivative::Formulas(formulas)) => {
                let needed = formulas.iter().filter(|formula| {
                    let arg_edges = formula.args.iter().filter_map(|arg| self.arg_edges.get(*arg));
                    arg_edges.flat_map(|range| range.of(&self.edges)).any(Option::is_some)
                });
                needed.filter_map(|formula| formula.inputs.as_ref()).flatten().copied().collect()
            }
            _ => Vec::new(),
        }
    }

    fn save(&mut self, schema: &FunctionSchema) -> Result<(), KernelError> {
        for input in self.required_inputs() {
            if let FormulaInput::Like(i) = input {
                self.shapes.push((i, zeros_like(&self.args[i])?));
            }
            let FormulaInput::Arg(i) = input else { continue };
            self.saved[i] = match &self.args[i] {
                // The call overwrites this argument, so its value is copied.
                IValue::Tensor(t) if schema.is_write(i) => IValue::Tensor(t.clone_data()?),
                other => without_history(other, &mut self.notes),
            };
        }
        Ok(())
    }

    fn call(&mut self, op: OpId, schema: &FunctionSchema, results: &[IValue], outputs: Outputs) -> OpCall {
        let mut notes = std::mem::take(&mut self.notes);
        // Some operators write tensors although their schemas do not declare it (running statistics). Such a write is
        // not a later modification, so versions are taken after the call.
        for (tensor, version) in &mut notes {
            *version = tensor.version();
        }
        let mut saved = vec![IValue::None; results.len()];
        for input in self.required_inputs() {
            if let FormulaInput::Result(i) = input {
                saved[i] = without_history(&results[i], &mut notes);
            }
        }
        let saved = Saved {
            args: std::mem::take(&mut self.saved),
            results: saved,
            shapes: std::mem::take(&mut self.shapes),
            saved_versions: notes,
            is_released: false,
        };
        OpCall {
            op,
            name: schema.full_name(),
            derivative: self.derivative.clone(),
            saved: Mutex::new(saved),
            result_outputs: outputs.first,
            outputs: outputs.geometry,
            arg_edges: std::mem::take(&mut self.arg_edges),
            generator: self.generator.take(),
        }
    }
}

/// The tensors among the results of a call.
struct Outputs {
    geometry: Vec<Geometry>,
    /// Per result, the position of its first tensor.
    first: Vec<usize>,
}

/// Calls a kernel and records it.
pub(crate) fn call(
    kernel: &Kernel,
    op: OpId,
    schema: &FunctionSchema,
    cx: &mut KernelCx<'_>,
) -> KernelResult {
    let Some(tape) = cx.host().tape().cloned().filter(|_| cx.host().grad_enabled()) else {
        return kernel.call(cx);
    };
    let generator = cx.host().rng().clone();
    let before = PreCallState::new(&tape, schema, op, cx.args(), &generator)?;
    if before.derivative.as_deref() == Some(&Derivative::Constant) {
        return kernel.call(cx);
    }
    let target = (0..before.args.len()).find(|i| is_target(schema, *i));
    if let Some(target) = target.filter(|_| before.tracked()) {
        check_target(&before, schema, target)?;
    }
    kernel.call(cx)?;
    let (_, rets, _) = cx.parts();
    match target {
        Some(target) if before.tracked() => written(before, op, schema, target, rets),
        Some(_) => Ok(()),
        None => after(before, op, schema, rets),
    }
}

/// Refuses a write that PyTorch does not record.
///
/// # Errors
/// Returns an input error if the written tensor is a leaf that requires a gradient, a view of such a leaf, or an `out`
/// argument.
fn check_target(before: &PreCallState, schema: &FunctionSchema, target: usize) -> KernelResult {
    if schema.args[target].is_out() {
        return Err(KernelError::input(format!(
            "{}(): functions with out=... arguments don't support automatic differentiation, but one of the \
             arguments requires grad.",
            schema.name.base()
        )));
    }
    let IValue::Tensor(tensor) = &before.args[target] else { return Ok(()) };
    let own = before.arg_edges[target].start;
    if before.edges[own].as_ref().is_some_and(history::is_leaf) {
        return Err(KernelError::input(
            "a leaf Variable that requires grad is being used in an in-place operation.",
        ));
    }
    let base = history::base(tensor);
    if !base.ptr_eq(tensor) && history::gradient_edge(&base).as_ref().is_some_and(history::is_leaf) {
        return Err(KernelError::input(
            "a view of a leaf Variable that requires grad is being used in an in-place operation.",
        ));
    }
    Ok(())
}

/// Whether an argument is the in-place result: a tensor that is written and, if the operator has results, returned.
/// Other written tensors (running statistics) are auxiliary state, and a change of a list changes no tensor.
fn is_target(schema: &FunctionSchema, arg: usize) -> bool {
    // Further arguments of an operator with a variable number are not declared, and not written.
    let Some(declared) = schema.args.get(arg) else { return false };
    let ty = declared.ty.unwrap_optional();
    let holds = ty.list_elem().unwrap_or(ty).unwrap_optional() == Type::TENSOR;
    let is_written = |alias: &AliasInfo| match ty.list_elem() {
        Some(_) => alias.contained.iter().any(AliasInfo::writes),
        None => alias.write,
    };
    let set = |of: &Argument| of.alias.as_ref().map(|alias| alias.before.clone());
    let returned = || schema.returns.iter().any(|result| set(result) == set(declared));
    declared.alias.as_ref().is_some_and(is_written) && holds && (schema.returns.is_empty() || returned())
}

/// Returns which results of an operator are constants for differentiation: those whose gradients no formula reads, if some
/// formula reads another one's.
fn constant_results(derivative: Option<&Derivative>, results: usize) -> Vec<bool> {
    let Some(Derivative::Formulas(formulas)) = derivative else { return vec![false; results] };
    let mut constant = vec![true; results];
    for input in formulas.iter().flat_map(|formula| formula.inputs.iter().flatten()) {
        if let FormulaInput::Grad(i) = input {
            constant[*i] = false;
        }
    }
    if constant.iter().all(|c| *c) { vec![false; results] } else { constant }
}

fn after(mut before: PreCallState, op: OpId, schema: &FunctionSchema, rets: &[IValue]) -> KernelResult {
    let read = std::mem::take(&mut before.read);
    let known = before.derivative.is_some();
    let constant = constant_results(before.derivative.as_deref(), rets.len());
    let mut fresh = Vec::new();
    let mut outputs = Vec::new();
    let mut first = Vec::new();
    // A wildcard result was taken from a container: it existed before the call and has its own history.
    let taken = |i: usize| {
        let alias = schema.returns.get(i).and_then(|result| result.alias.as_ref());
        !known && alias.is_some_and(AliasInfo::is_wildcard_after)
    };
    for (i, result) in rets.iter().enumerate() {
        first.push(outputs.len());
        if taken(i) {
            continue;
        }
        for result in tensors_of(result) {
            let output = outputs.len();
            outputs.push(Geometry::of(&result));
            if read.iter().any(|t| t.ptr_eq(&result)) {
                continue;
            }
            let source = read.iter().find(|t| t.shares_storage(&result));
            match source.filter(|t| !known || region::reads_as(t.dtype(), result.dtype())) {
                Some(source) if result.numel() > 0 || !known => history::set_view(&result, source),
                _ if constant[i] => {}
                _ => fresh.push((result, output)),
            }
        }
    }
    let differentiable = |t: &Tensor| t.dtype().is_floating() || t.dtype().is_complex();
    fresh.retain(|(t, _)| differentiable(t));
    if fresh.is_empty() || !before.tracked() {
        return Ok(());
    }
    let call = before.call(op, schema, rets, Outputs { geometry: outputs, first });
    let node = Node::new(NodeKind::Op(call), before.edges);
    for (tensor, output) in fresh {
        history::set_result(&tensor, &node, output);
    }
    Ok(())
}

/// Records a call that wrote to one of its arguments.
fn written(
    mut before: PreCallState,
    op: OpId,
    schema: &FunctionSchema,
    target: usize,
    rets: &[IValue],
) -> KernelResult {
    let IValue::Tensor(tensor) = before.args[target].clone() else {
        return Err(KernelError::unsupported(format!("gradients through `{}`", schema.full_name())));
    };
    let own = before.arg_edges[target].start;
    let base = history::base(&tensor);
    let geometry = Geometry::of(&tensor);
    if before.derivative.as_deref() == Some(&Derivative::Layout) {
        history::update_view(&tensor, &base);
        return Ok(());
    }
    if !base.ptr_eq(&tensor) && before.edges[own].as_ref().is_some_and(|e| e.geometry != geometry) {
        let message = format!("gradients through `{}` of a view that it resizes", schema.full_name());
        return Err(KernelError::unsupported(message));
    }
    let first = vec![0; rets.len()];
    let call = before.call(op, schema, rets, Outputs { geometry: vec![geometry], first });
    if base.ptr_eq(&tensor) {
        let node = Node::new(NodeKind::Op(call), before.edges);
        history::set_result(&tensor, &node, 0);
        return Ok(());
    }
    let mut edges = vec![history::gradient_edge(&base)];
    edges.append(&mut before.edges);
    let kind = NodeKind::Write { base: Geometry::of(&base), view: Geometry::of(&tensor), call, target };
    history::rebase_history(&tensor, &Node::new(kind, edges));
    Ok(())
}
