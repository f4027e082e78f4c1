//! Recording of one operator call in the histories of its results.

use super::history::{self, ArgEdges, Edge, Node, NodeKind, OpCall, Saved};
use super::region::{self, Geometry};
use super::view::{self, NewView, ViewOrigin, ViewSource};
use super::{Derivative, FormulaInput, Keeping, Refusals, Tape, ViewRecord};
use crate::error::KernelError;
use crate::kernel::{Kernel, KernelCx, KernelResult, Rets};
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
fn edges_of(value: &IValue, edges: &mut Vec<Option<Edge>>) -> Result<ArgEdges, KernelError> {
    let start = edges.len();
    let edge = |value: &IValue| value.as_tensor().map_or(Ok(None), history::read_edge);
    match value {
        IValue::List(list) => {
            let items: Vec<IValue> = list.read().iter().collect();
            for item in &items {
                edges.push(edge(item)?);
            }
            Ok(ArgEdges { start, list: Some(items.len()) })
        }
        _ => {
            edges.push(edge(value)?);
            Ok(ArgEdges { start, list: None })
        }
    }
}

/// Removes the edges of arguments on which no result depends differentiably.
fn drop_constant_edges(
    tape: &Tape,
    op: OpId,
    derivative: Option<&Derivative>,
    arg_edges: &[ArgEdges],
    edges: &mut [Option<Edge>],
) {
    let is_constant = |arg: usize| match derivative {
        Some(Derivative::Formulas(formulas)) => {
            formulas.iter().any(|formula| formula.inputs.is_none() && formula.args.contains(&arg))
        }
        Some(Derivative::Body { .. }) => !tape.derivatives.may_depend_on(op, arg),
        _ => false,
    };
    for (arg, range) in arg_edges.iter().enumerate() {
        if range.of(edges).iter().any(Option::is_some) && is_constant(arg) {
            edges[range.start..range.start + range.list.unwrap_or(1)].fill(None);
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

/// Returns the value with copies of its tensors.
fn copied(value: &IValue) -> Result<IValue, KernelError> {
    Ok(match value {
        IValue::Tensor(t) => IValue::Tensor(t.clone_data()?),
        IValue::List(list) => {
            let items: Result<Vec<IValue>, _> = list.read().iter().map(|item| copied(&item)).collect();
            IValue::List(List::from_values(list.elem_type(), items?))
        }
        other => other.clone(),
    })
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
    refusals: Option<Arc<Refusals>>,
    generator: Option<Generator>,
    /// Arguments that formulas read, without history; `None` for all others.
    saved: Vec<IValue>,
    /// Arguments of which formulas read only sizes and dtype, as zeros, by position.
    shapes: Vec<(usize, IValue)>,
    /// Whether a saved argument is a copy.
    has_copies: bool,
    /// Whether it is not known if derivatives read a saved argument.
    may_save_nothing: bool,
    /// Saved tensors and their versions.
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
        let arg_edges: Vec<ArgEdges> =
            args.iter().map(|arg| edges_of(arg, &mut edges)).collect::<Result<_, _>>()?;
        let derivative = tape.derivatives.of(op);
        let refusals = tape.derivatives.refusals(op);
        if let Some(refusals) = &refusals {
            let requires = |arg: usize| arg_edges[arg].of(&edges).iter().any(Option::is_some);
            let is_integral = |arg: usize| args[arg].as_tensor().is_some_and(|t| t.dtype().is_integral(true));
            refusals.check_args(schema, &requires, &is_integral)?;
        }
        drop_constant_edges(tape, op, derivative.as_deref(), &arg_edges, &mut edges);
        let mut before = PreCallState {
            args: args.to_vec(),
            read: args.iter().flat_map(tensors_of).collect(),
            edges,
            arg_edges,
            derivative,
            refusals,
            generator: None,
            saved: vec![IValue::None; args.len()],
            shapes: Vec::new(),
            has_copies: false,
            may_save_nothing: false,
            notes: Vec::new(),
        };
        if before.tracked() {
            before.save(tape, op, schema)?;
            let draws = matches!(before.derivative.as_deref(), Some(Derivative::Body { draws: true, .. }));
            before.generator = draws.then(|| generator.fork());
        }
        Ok(before)
    }

    /// Returns whether any tensor that the call reads requires a gradient.
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

    /// Saves the arguments that formulas read.
    fn save(&mut self, tape: &Tape, op: OpId, schema: &FunctionSchema) -> Result<(), KernelError> {
        for input in self.required_inputs() {
            if let FormulaInput::Like(i) = input {
                self.shapes.push((i, zeros_like(&self.args[i])?));
            }
            let (i, keeping) = match input {
                FormulaInput::Arg(i) => (i, self.keeping(tape, op, i)),
                FormulaInput::Copy(i) => (i, Keeping::Copied),
                _ => continue,
            };
            self.saved[i] = match (&self.args[i], keeping) {
                // The call overwrites this argument, so its value is copied.
                (IValue::Tensor(t), _) if schema.is_write(i) => IValue::Tensor(t.clone_data()?),
                (value, Keeping::Saved) => without_history(value, &mut self.notes),
                (value, Keeping::Unknown) => {
                    self.may_save_nothing = true;
                    without_history(value, &mut self.notes)
                }
                (value, Keeping::Unread) => without_history(value, &mut Vec::new()),
                (value, Keeping::Copied) => {
                    self.has_copies |= !tensors_of(value).is_empty();
                    copied(value)?
                }
            };
        }
        Ok(())
    }

    /// Gives the call of an operator that returns views the formulas by which its results would be copies.
    ///
    /// # Errors
    /// Returns an unsupported error if the operator has no formulas.
    fn require_formulas(
        &mut self,
        tape: &Tape,
        op: OpId,
        schema: &FunctionSchema,
    ) -> Result<(), KernelError> {
        if self.derivative.is_none() {
            self.derivative = tape.derivatives.of_copy(op);
            self.save(tape, op, schema)?;
        }
        if self.derivative.is_none() {
            let feature =
                format!("the gradient of `{}` of a tensor whose elements share memory", schema.full_name());
            return Err(KernelError::unsupported(feature));
        }
        Ok(())
    }

    fn is_body(&self) -> bool {
        matches!(self.derivative.as_deref(), Some(Derivative::Body { .. }))
    }

    /// Whether an argument requires a gradient.
    fn requires(&self, arg: usize) -> bool {
        self.arg_edges.get(arg).is_some_and(|range| range.of(&self.edges).iter().any(Option::is_some))
    }

    /// Checks a tensor that the call gives a history.
    fn check_result(&self, result: &Tensor) -> KernelResult {
        self.refusals.as_ref().map_or(Ok(()), |refusals| refusals.check_result(result.dtype().is_complex()))
    }

    /// Returns how the call keeps an argument that a formula or body reads.
    fn keeping(&self, tape: &Tape, op: OpId, arg: usize) -> Keeping {
        match self.is_body() {
            true => tape.derivatives.keeping(op, &self.args, arg, &|arg| self.requires(arg)),
            false => Keeping::Saved,
        }
    }

    /// Returns the call as part of the history of its results; moves the saved values into it.
    fn call(
        &mut self,
        tape: &Tape,
        op: OpId,
        schema: &FunctionSchema,
        results: &[IValue],
        outputs: Outputs,
    ) -> OpCall {
        let mut notes = std::mem::take(&mut self.notes);
        // Some operators write tensors although their schemas do not declare it: running statistics in training, which their
        // formulas then do not read. So such a tensor may be written later, as in PyTorch, which does not count these writes. A
        // declared write to memory that formulas read also as another argument is a modification.
        let written = (0..self.args.len()).filter(|i| schema.is_write(*i));
        let written: SmallVec<[Tensor; 1]> = written.flat_map(|i| tensors_of(&self.args[i])).collect();
        notes.retain(|(tensor, version)| {
            tensor.version() == *version || written.iter().any(|w| w.shares_storage(tensor))
        });
        let mut saved = vec![IValue::None; results.len()];
        for input in self.required_inputs() {
            if let FormulaInput::Result(i) = input {
                saved[i] = without_history(&results[i], &mut notes);
            }
        }
        if self.is_body() {
            let requires = |arg: usize| self.requires(arg);
            let saves = |i: &usize| tape.derivatives.saves_result(op, &self.args, *i, &requires);
            (0..results.len()).filter(saves).for_each(|i| drop(without_history(&results[i], &mut notes)));
        }
        let saved = Saved {
            args: std::mem::take(&mut self.saved),
            results: saved,
            shapes: std::mem::take(&mut self.shapes),
            has_copies: self.has_copies,
            may_save_nothing: self.may_save_nothing,
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
    let Some(tape) = cx.host().tape().cloned() else { return kernel.call(cx) };
    if !cx.host().grad_enabled() {
        return call_unrecorded(kernel, &tape, op, schema, cx);
    }
    let generator = cx.host().rng().clone();
    let before = PreCallState::new(&tape, schema, op, cx.args(), &generator)?;
    if before.derivative.as_deref() == Some(&Derivative::Constant) {
        return kernel.call(cx);
    }
    let target = (0..before.args.len()).find(|i| is_target(schema, *i));
    if let Some(target) = target {
        check_target(&before, schema, target)?;
    }
    kernel.call(cx)?;
    let site = cx.site();
    let (_, rets, host) = cx.parts();
    match target {
        Some(target) if before.tracked() => record_write(before, &tape, op, schema, target, rets),
        Some(_) => Ok(()),
        None => {
            let views = Views { recorded_by: Some((&tape, op)), origin: ViewOrigin::Recorded, schema };
            let mut again = |args: &mut [IValue]| {
                let mut rets = Rets::new();
                kernel.call(&mut KernelCx::new(args, &mut rets, site, host))?;
                Ok(rets)
            };
            record_results(before, &tape, op, &views, rets, &mut again)
        }
    }
}

/// Calls a kernel with grad mode off: records of its results only which tensors they are views of.
fn call_unrecorded(
    kernel: &Kernel,
    tape: &Tape,
    op: OpId,
    schema: &FunctionSchema,
    cx: &mut KernelCx<'_>,
) -> KernelResult {
    let returns_views =
        schema.returns.iter().any(|result| result.alias.as_ref().is_some_and(|a| !a.writes()));
    let derivative = if returns_views { tape.derivatives.of(op) } else { None };
    if !returns_views || derivative.as_deref() == Some(&Derivative::Constant) {
        return kernel.call(cx);
    }
    let read: Vec<Tensor> = cx.args().iter().flat_map(tensors_of).collect();
    kernel.call(cx)?;
    let (_, rets, _) = cx.parts();
    let views = Views { recorded_by: None, origin: ViewOrigin::Unrecorded, schema };
    let results = rets.iter().enumerate().filter(|(i, _)| !views.is_taken(*i, derivative.is_some()));
    for (_, result) in results {
        let results = tensors_of(result);
        for (i, result) in results.iter().enumerate() {
            if let Some(source) = views.source(&read, &results, i, derivative.is_some()) {
                history::set_view(result, &source, NewView { origin: views.origin, ..NewView::default() });
            }
        }
    }
    Ok(())
}

/// The views that an operator returns.
struct Views<'a> {
    /// The tape and the operator of a recorded call.
    recorded_by: Option<(&'a Tape, OpId)>,
    origin: ViewOrigin,
    schema: &'a FunctionSchema,
}

impl Views<'_> {
    /// Whether a result was taken from a container: it existed before the call and has its own history.
    fn is_taken(&self, result: usize, has_derivative: bool) -> bool {
        let alias = self.schema.returns.get(result).and_then(|result| result.alias.as_ref());
        !has_derivative && alias.is_some_and(AliasInfo::is_wildcard_after)
    }

    /// Returns the operand that a result is a view of; `None` if the result is an operand, or no view whose gradient follows
    /// from that of an operand. Of the results of an operator on a list, `results[i]` is a view of element `i` rather than
    /// of another one that shares its memory.
    fn source(&self, read: &[Tensor], results: &[Tensor], i: usize, has_derivative: bool) -> Option<Tensor> {
        let result = &results[i];
        if read.iter().any(|t| t.ptr_eq(result)) {
            return None;
        }
        let own = read.get(i).filter(|_| read.len() == results.len());
        let source = own.into_iter().chain(read).find(|t| t.shares_storage(result))?;
        let is_view = !has_derivative || region::reads_as(source.dtype(), result.dtype());
        is_view.then(|| source.clone())
    }

    /// Returns how the operator records its views. Only results that are views need it.
    fn record(&self) -> Option<ViewRecord> {
        let (tape, op) = self.recorded_by?;
        tape.derivatives.view_record(op)
    }

    fn new_view(
        &self,
        record: Option<ViewRecord>,
        output: usize,
        positions: Option<Arc<(Geometry, Geometry)>>,
    ) -> NewView {
        let origin = match record {
            Some(ViewRecord::Several(_)) => ViewOrigin::Several,
            _ => self.origin,
        };
        NewView { origin, source: Some(ViewSource::of(self.schema, record, output)), positions }
    }
}

/// Calls the operator again with other arguments; returns its results.
type CallAgain<'a> = &'a mut dyn FnMut(&mut [IValue]) -> Result<Vec<IValue>, KernelError>;

/// Returns a value with `old` replaced by `new`, also in a list.
fn replaced(value: &IValue, old: &Tensor, new: &Tensor) -> IValue {
    match value {
        IValue::Tensor(t) if t.ptr_eq(old) => IValue::Tensor(new.clone()),
        IValue::List(list) if list.read().iter().any(|item| item.is_tensor()) => {
            let items: Vec<IValue> = list.read().iter().collect();
            let items = items.iter().map(|item| replaced(item, old, new));
            IValue::List(List::from_values(list.elem_type(), items.collect()))
        }
        other => other.clone(),
    }
}

/// Where the elements of a view are among those of its base.
enum Placement {
    /// As the layouts state, or these [positions](view::ViewMeta::positions).
    Layout(Option<Arc<(Geometry, Geometry)>>),
    /// At no strides: the operator makes a view only because elements of the base share memory, and otherwise a copy.
    Unknown,
}

/// Returns the placement of a view. If elements of the base share memory, it is that which the operator gives to a view of a
/// base whose elements do not.
///
/// # Errors
/// Returns the error of a layout that is too large.
fn placement(
    source: &Tensor,
    args: &[IValue],
    (result, output): (usize, usize),
    again: CallAgain<'_>,
) -> Result<Placement, KernelError> {
    let Some(known) = view::positions(source)? else { return Ok(Placement::Layout(None)) };
    let (base, own) = &*known;
    let example = own.example(base)?;
    let mut args: Vec<IValue> = args.iter().map(|arg| replaced(arg, source, &example)).collect();
    let results = again(&mut args).unwrap_or_default();
    let found = results.get(result).and_then(|result| tensors_of(result).get(output).cloned());
    Ok(match found.filter(|view| view.shares_storage(&example)) {
        Some(view) => Placement::Layout(Some(Arc::new((base.clone(), Geometry::of(&view))))),
        None => Placement::Unknown,
    })
}

/// Refuses a write that PyTorch does not record.
///
/// # Errors
/// Returns an input error if the written tensor is a leaf that requires a gradient, a view of such a leaf, a view without
/// history of its own, or an `out` argument.
fn check_target(before: &PreCallState, schema: &FunctionSchema, target: usize) -> KernelResult {
    if let IValue::Tensor(tensor) = &before.args[target]
        && let Some(view) = history::view_meta(tensor)
        && (before.tracked() || history::gradient_edge(&view.base).is_some())
    {
        view::check_write(&view)?;
    }
    if !before.tracked() {
        return Ok(());
    }
    if schema.args[target].is_out() {
        return Err(KernelError::input(format!(
            "{}(): functions with out=... arguments don't support automatic differentiation, but one of the \
             arguments requires grad.",
            schema.name.base()
        )));
    }
    let IValue::Tensor(tensor) = &before.args[target] else { return Ok(()) };
    let base = history::base(tensor);
    if !base.ptr_eq(tensor) && history::gradient_edge(&base).as_ref().is_some_and(history::is_leaf) {
        return Err(KernelError::input(
            "a view of a leaf Variable that requires grad is being used in an in-place operation.",
        ));
    }
    let own = before.arg_edges[target].start;
    if before.edges[own].as_ref().is_some_and(history::is_leaf) {
        return Err(KernelError::input(
            "a leaf Variable that requires grad is being used in an in-place operation.",
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
/// formula reads another one's, and those that the body of a composite operator does not compute from its arguments.
fn constant_results(tape: &Tape, op: OpId, derivative: Option<&Derivative>, results: usize) -> Vec<bool> {
    let formulas = match derivative {
        Some(Derivative::Formulas(formulas)) => formulas,
        Some(Derivative::Body { .. }) if results > 1 => {
            return (0..results).map(|i| tape.derivatives.is_constant_result(op, i)).collect();
        }
        _ => return vec![false; results],
    };
    let mut constant = vec![true; results];
    for input in formulas.iter().flat_map(|formula| formula.inputs.iter().flatten()) {
        if let FormulaInput::Grad(i) | FormulaInput::Grads(i) = input {
            constant[*i] = false;
        }
    }
    if constant.iter().all(|c| *c) { vec![false; results] } else { constant }
}

/// Records the results of a call that writes to none of its arguments: views, whose history follows from their operand, and
/// results of a new node.
///
/// # Errors
/// As [`placement`] and [`PreCallState::require_formulas`].
fn record_results(
    mut before: PreCallState,
    tape: &Tape,
    op: OpId,
    views: &Views<'_>,
    rets: &[IValue],
    again: CallAgain<'_>,
) -> KernelResult {
    let read = std::mem::take(&mut before.read);
    let known = before.derivative.is_some();
    let constant = constant_results(tape, op, before.derivative.as_deref(), rets.len());
    let mut fresh = Vec::new();
    let mut outputs = Vec::new();
    let mut first = Vec::new();
    for (i, result) in rets.iter().enumerate() {
        first.push(outputs.len());
        if views.is_taken(i, known) {
            continue;
        }
        let results = tensors_of(result);
        for (position, result) in results.iter().enumerate() {
            let output = outputs.len();
            outputs.push(Geometry::of(result));
            if read.iter().any(|t| t.ptr_eq(result)) {
                continue;
            }
            if let Some(source) = views.source(&read, &results, position, known) {
                let record = views.record();
                let placement = match record {
                    Some(ViewRecord::Memory) => Placement::Layout(None),
                    _ => placement(&source, &before.args, (i, position), again)?,
                };
                match placement {
                    Placement::Layout(positions) => {
                        history::set_view(result, &source, views.new_view(record, output, positions));
                    }
                    // Without a gradient, and not read after a write that would give it one.
                    Placement::Unknown if !before.tracked() => {
                        let view = NewView { origin: ViewOrigin::Unrecorded, ..NewView::default() };
                        history::set_view(result, &source, view);
                    }
                    // The gradient is that of a copy.
                    Placement::Unknown => {
                        before.require_formulas(tape, op, views.schema)?;
                        fresh.push((result.clone(), output));
                    }
                }
            } else if !constant[i] {
                fresh.push((result.clone(), output));
            }
        }
    }
    fresh.retain(|(t, _)| is_differentiable(t));
    if fresh.is_empty() || !before.tracked() {
        return Ok(());
    }
    fresh.iter().try_for_each(|(result, _)| before.check_result(result))?;
    let call = before.call(tape, op, views.schema, rets, Outputs { geometry: outputs, first });
    let node = Node::new(NodeKind::Op(call), before.edges);
    for (tensor, output) in fresh {
        history::set_result(&tensor, &node, output);
    }
    Ok(())
}

/// Whether tensors of this dtype have gradients.
fn is_differentiable(tensor: &Tensor) -> bool {
    tensor.dtype().is_floating() || tensor.dtype().is_complex()
}

/// Records a call that wrote to its argument `target`: the new history of that tensor and, if it is a view, of its base.
///
/// # Errors
/// Returns an unsupported error if the argument is a list, or a view that the call resized.
fn record_write(
    mut before: PreCallState,
    tape: &Tape,
    op: OpId,
    schema: &FunctionSchema,
    target: usize,
    rets: &[IValue],
) -> KernelResult {
    let IValue::Tensor(tensor) = before.args[target].clone() else {
        return Err(KernelError::unsupported(format!("gradients through `{}`", schema.full_name())));
    };
    // Integers have no gradients, also where they are overwritten by a tensor that requires one.
    if !is_differentiable(&tensor) {
        return Ok(());
    }
    before.check_result(&tensor)?;
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
    // The only output is the written tensor, which is the first result.
    let first = (0..rets.len()).map(|i| i.min(1)).collect();
    let call = before.call(tape, op, schema, rets, Outputs { geometry: vec![geometry], first });
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
