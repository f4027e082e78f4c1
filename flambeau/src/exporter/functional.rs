//! Calls of operators in a program whose operators write to nothing.
//!
//! A call of an operator that a table replaces becomes the run of the table's function ([`super::table`]). A call of an operator
//! that writes becomes a call of its functional variant; its result is the new content of the written tensor, and the
//! inverses of the views between this tensor and the base of its storage make the new content of the base ([`super::aliases`]).
//! The run itself writes its tensors in place, so later reads of the run get the values that the program would read.
//!
//! Functions of tables run on frames of the same evaluator, nested at most [`MAX_NESTING`] deep.

use super::aliases::{Origin, ViewOf};
use super::symbolic::Symbolic;
use super::table::Use;
use super::tracer::{ReturnTarget, Tracer};
use super::{Res, refused};
use flambeau_exec::{Kernel, KernelError};
use flambeau_ir::schema::{Argument, FunctionSchema};
use flambeau_ir::{AutocastPolicy, Fault, Graph, IValue, OpId, Registry, Symbol};
use flambeau_tensor::{DType, Scalar, Tensor};
use std::sync::Arc;

/// Maximum number of functions of tables that are active at a time.
const MAX_NESTING: usize = 24;

/// The operator that returns one tensor's elements with the metadata of another.
const COPY: &str = "aten::copy";

impl Tracer<'_> {
    /// Calls an operator on all of its operands, in a program without writes.
    pub(super) fn functional(
        &mut self,
        op: OpId,
        operands: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<Vec<IValue>> {
        let Some(dtype) = self.autocast else { return self.in_own_dtypes(op, operands, symbols) };
        // The policy of an operator is in place of those of the operators that compute it.
        let policy = self.recorder.registry().facet::<AutocastPolicy>(op).copied();
        let operands = match policy {
            Some(AutocastPolicy::Reduced) => {
                self.converted(operands, DType::from_scalar_type(dtype).unwrap_or(DType::BF16))?
            }
            Some(AutocastPolicy::Full) => self.converted(operands, DType::F32)?,
            Some(AutocastPolicy::Composite) | None => operands,
        };
        let inner = self.autocast.filter(|_| policy == Some(AutocastPolicy::Composite));
        let outer = std::mem::replace(&mut self.autocast, inner);
        let results = self.in_own_dtypes(op, operands, symbols);
        self.autocast = outer;
        results
    }

    /// Converts tensors to a dtype as a region of automatic mixed precision does.
    fn converted(&mut self, operands: Vec<IValue>, dtype: DType) -> Res<Vec<IValue>> {
        let mut converted = Vec::with_capacity(operands.len());
        for operand in operands {
            converted.push(match &operand {
                IValue::Tensor(tensor)
                    if tensor.dtype().is_floating()
                        && tensor.dtype() != dtype
                        && tensor.dtype() != DType::F64 =>
                {
                    IValue::Tensor(self.record_cast(tensor, dtype)?)
                }
                _ => operand,
            });
        }
        Ok(converted)
    }

    /// Calls an operator on operands that are not converted.
    fn in_own_dtypes(
        &mut self,
        op: OpId,
        operands: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<Vec<IValue>> {
        let registry = Arc::clone(self.recorder.registry());
        let table =
            self.table.ok_or_else(|| KernelError::internal("the program has no table of decompositions"))?;
        let op = table.canonical(op);
        let schema = registry.schema(op);
        self.refresh_all(&operands)?;
        if !self.active.contains(&op) {
            if let Some((name, function)) = table.function(Use::Replaces, op) {
                return self.replaced(op, *name, function, operands, symbols);
            }
            if let (Some(views), Some(copies)) =
                (table.function(Use::Views, op), table.function(Use::Copies, op))
            {
                let is_view = self.is_view(op, schema, &operands)?;
                let (name, function) = if is_view { views } else { copies };
                return self.replaced(op, *name, function, operands, symbols);
            }
        }
        if schema.args.iter().any(|arg| arg.is_write() && arg.ty.contains_tensor()) {
            return self.write(op, schema, operands, symbols);
        }
        self.emit_view(op, schema, operands, symbols)
    }

    /// Calls an operator that writes to nothing, and notes which results are views.
    fn emit_view(
        &mut self,
        op: OpId,
        schema: &FunctionSchema,
        operands: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<Vec<IValue>> {
        let results = self.emit(op, schema, operands.clone(), symbols)?;
        self.note_views(op, &operands, symbols, &results);
        Ok(results)
    }

    /// Notes which results of a call are views of an operand.
    pub(super) fn note_views(
        &mut self,
        op: OpId,
        operands: &[IValue],
        symbols: &[Option<Symbolic>],
        results: &[IValue],
    ) {
        let mut parent: Option<Tensor> = None;
        let mut made = Vec::new();
        results.iter().for_each(|value| value.visit_tensors(|tensor| made.push(tensor.clone())));
        for operand in operands {
            operand.visit_tensors(|tensor| {
                let is_parent = made.iter().any(|own| own.shares_storage(tensor) && own.id() != tensor.id());
                if parent.is_none() && is_parent {
                    parent = Some(tensor.clone());
                }
            });
        }
        let Some(parent) = parent else { return };
        let (operands, symbols, results) = (operands.to_vec(), symbols.to_vec(), results.to_vec());
        self.recorder.keep(&results);
        self.recorder.aliases.add(Origin { op, operands, symbols, results, parent });
    }

    /// Runs a function of the table in place of an operator.
    fn replaced(
        &mut self,
        op: OpId,
        name: Symbol,
        function: &Arc<Graph>,
        operands: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<Vec<IValue>> {
        let count = self.recorder.registry().schema(op).returns.len();
        self.active.push(op);
        let results = self.apply(name, function, operands, symbols)?;
        self.active.pop();
        match (&results[..], count) {
            ([IValue::Tuple(tuple)], 2..) => Ok(tuple.items().to_vec()),
            _ => Ok(results),
        }
    }

    /// Runs a function of the table.
    fn apply(
        &mut self,
        name: Symbol,
        function: &Arc<Graph>,
        operands: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<Vec<IValue>> {
        if self.nesting >= MAX_NESTING {
            return Err(refused(format!("decompositions are nested more than {MAX_NESTING} deep")));
        }
        let table =
            self.table.ok_or_else(|| KernelError::internal("the function has no table of decompositions"))?;
        let callees = std::mem::replace(&mut self.callees, table.unit());
        self.nesting += 1;
        self.push(Arc::clone(function), name, operands, symbols, ReturnTarget::Done)?;
        let results = loop {
            if let Some(results) = self.step()? {
                break results;
            }
        };
        self.nesting -= 1;
        self.callees = callees;
        Ok(results)
    }

    /// Runs a kernel on values without recording it.
    pub(super) fn kernel(&mut self, op: OpId, schema: &FunctionSchema, args: &[IValue]) -> Res<Vec<IValue>> {
        let registry = Arc::clone(self.recorder.registry());
        let kernel = registry
            .facet::<Kernel>(op)
            .ok_or_else(|| KernelError::unsupported(format!("`{}` has no kernel", schema.full_name())))?;
        let mut given = args.to_vec();
        let result = match kernel.call_on(schema, &mut given, self.host) {
            // The examples of a decomposition are zeros. Some operators fail on zeros (integers cannot be divided by them, and
            // they are not pivots) but not on ones, and only the metadata of the results counts. A call that fails on ones, too,
            // has the error of the first attempt.
            Err(error) if self.table.is_some() && error.fault() == Fault::Input => {
                let mut given = with_ones(schema, args)?;
                kernel.call_on(schema, &mut given, self.host).map_err(|_| error)?
            }
            result => result?,
        };
        Ok(result.into_iter().collect())
    }

    /// Returns whether the result of an operator shares memory with its first operand.
    fn is_view(&mut self, op: OpId, schema: &FunctionSchema, operands: &[IValue]) -> Res<bool> {
        let results = self.kernel(op, schema, operands)?;
        let pair =
            (results.first().and_then(IValue::as_tensor), operands.first().and_then(IValue::as_tensor));
        Ok(matches!(pair, (Some(result), Some(operand)) if result.shares_storage(operand)))
    }

    /// Computes the values of views whose memory was written since their last use.
    pub(super) fn refresh_all(&mut self, values: &[IValue]) -> Res<()> {
        let mut tensors = Vec::new();
        values.iter().for_each(|value| value.visit_tensors(|tensor| tensors.push(tensor.clone())));
        tensors.iter().try_for_each(|tensor| self.refresh(tensor))
    }

    fn refresh(&mut self, tensor: &Tensor) -> Res<()> {
        let mut pending: Vec<ViewOf> = Vec::new();
        let mut at = tensor.clone();
        while !self.recorder.is_named(&at) {
            let Some(view) = self.recorder.aliases.view(&at).cloned() else { break };
            at = view.origin.parent.clone();
            pending.push(view);
        }
        for ViewOf { origin, .. } in pending.into_iter().rev() {
            let registry = Arc::clone(self.recorder.registry());
            let schema = registry.schema(origin.op);
            let inputs = self.recorder.arguments(schema, &origin.operands, &origin.symbols)?;
            let effects = registry.effects(origin.op);
            let (own, outputs) =
                self.recorder.results(short(schema), effects, &origin.operands, &origin.results)?;
            self.append(own, schema, inputs, outputs);
        }
        Ok(())
    }

    /// Records a write: the functional variant of an operator, and the new contents.
    fn write(
        &mut self,
        op: OpId,
        schema: &FunctionSchema,
        mut operands: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<Vec<IValue>> {
        let name = schema.full_name();
        let registry = Arc::clone(self.recorder.registry());
        let mut written = schema.args.iter().enumerate().filter(|(_, arg)| arg.is_write()).map(|(i, _)| i);
        let (Some(index), None) = (written.next(), written.next()) else {
            return Err(refused(format!("`{name}` writes to several tensors and has no functional form")));
        };
        let Some(IValue::Tensor(target)) = operands.get(index).cloned() else {
            return Err(refused(format!("`{name}` writes to a list of tensors and has no functional form")));
        };
        self.recorder.check_write(&name, &target)?;
        let value = match variant(&registry, op, schema) {
            Some(Variant::SameOperands(pure)) => {
                let defaults = registry.schema(pure).args.iter().skip(operands.len());
                operands.extend(defaults.map(|arg| arg.default.clone().unwrap_or_default()));
                if self.makes_view(pure, registry.schema(pure), &operands)? {
                    return self.write_view(op, pure, schema, operands, symbols);
                }
                match self.copied_whole(registry.schema(pure), &target, &operands) {
                    Some(source) => vec![IValue::Tensor(source)],
                    None => self.functional(pure, operands, symbols)?,
                }
            }
            Some(Variant::WithoutOut(pure)) => {
                operands.truncate(index);
                self.functional(pure, operands, symbols)?
            }
            None => {
                return Err(refused(format!("`{name}` writes to a tensor and has no functional variant")));
            }
        };
        let Some(IValue::Tensor(value)) = value.first() else {
            return Err(KernelError::internal(format!("`{name}` has a variant without a tensor")).into());
        };
        self.assign(&name, &target, &value.clone())?;
        Ok(vec![IValue::Tensor(target)])
    }

    /// Returns the source of a copy whose value is the target's new content as it is: a tensor that the program made, with
    /// the dtype, sizes and strides of the target. Inputs are excluded: the target would then be
    /// represented by the value of the input, and a later write to the input would change the target.
    fn copied_whole(&self, pure: &FunctionSchema, target: &Tensor, operands: &[IValue]) -> Option<Tensor> {
        let source = operands.get(1).and_then(IValue::as_tensor).filter(|_| pure.name.as_str() == COPY)?;
        let sizes = &self.recorder.sizes;
        let is_whole = source.dtype() == target.dtype()
            && source.sizes() == target.sizes()
            && source.strides() == target.strides()
            && sizes.of(source) == sizes.of(target)
            && self.recorder.is_named(source)
            && !self.recorder.aliases.is_input(source);
        is_whole.then(|| source.clone())
    }

    /// Returns whether the functional variant of an operator returns a view of its first operand.
    fn makes_view(&mut self, pure: OpId, schema: &FunctionSchema, operands: &[IValue]) -> Res<bool> {
        match schema.returns.iter().any(|result| result.alias.is_some()) {
            true => self.is_view(pure, schema, operands),
            false => Ok(false),
        }
    }

    /// Records an operator that gives a tensor other sizes or strides: the tensor becomes a view of its former self.
    fn write_view(
        &mut self,
        op: OpId,
        pure: OpId,
        schema: &FunctionSchema,
        mut operands: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<Vec<IValue>> {
        let Some(IValue::Tensor(target)) = operands.first().cloned() else {
            return Err(KernelError::internal("a view of no tensor").into());
        };
        if self.recorder.aliases.is_input(&target) {
            return Err(refused(format!(
                "`{}` gives an argument or attribute other sizes or strides",
                schema.full_name()
            )));
        }
        let before = Tensor::from_storage(target.storage().clone(), target.dtype(), target.layout().clone());
        let before = before.map_err(KernelError::from)?;
        self.recorder.rename(&target, &before)?;
        operands[0] = IValue::Tensor(before);
        let made = self.functional(pure, operands.clone(), symbols)?;
        let Some(IValue::Tensor(made)) = made.first() else {
            return Err(KernelError::internal("a view of no tensor").into());
        };
        operands[0] = IValue::Tensor(target.clone());
        self.kernel(op, schema, &operands)?;
        self.recorder.rename(made, &target)?;
        Ok(vec![IValue::Tensor(target)])
    }

    /// Gives a tensor new content, and with it the base of its storage.
    pub(super) fn assign(&mut self, operator: &str, target: &Tensor, value: &Tensor) -> Res<()> {
        let value = self.converted_to(target, value)?;
        if value.sizes() != target.sizes() {
            return Err(refused(format!(
                "`{operator}` gives a tensor of sizes {:?} the sizes {:?}",
                target.sizes(),
                value.sizes()
            )));
        }
        let varies = self.recorder.varies(&value);
        let (mut base, mut content) = (target.clone(), value.clone());
        while let Some(ViewOf { origin, position }) = self.recorder.aliases.view(&base).cloned() {
            self.refresh(&origin.parent)?;
            content = self.inverse(operator, &origin, position, content)?;
            base = origin.parent.clone();
        }
        if self.recorder.aliases.is_ambiguous(&base) {
            return Err(refused(format!(
                "`{operator}` writes to memory that several arguments or attributes share"
            )));
        }
        // A base that has not been used is a constant, and gets its name before it is written.
        self.recorder.name_of(&base)?;
        self.recorder.before_write(&base)?;
        let (name, own) = (self.recorder.name_of(&content)?, self.recorder.name_of(&value)?);
        target.copy_(&value).map_err(KernelError::from)?;
        self.recorder.written(&base, name, target, own);
        if varies {
            self.recorder.mark_varying(target);
        }
        Ok(())
    }

    /// Returns the new content of a viewed tensor for that of a view.
    fn inverse(&mut self, operator: &str, origin: &Origin, position: usize, content: Tensor) -> Res<Tensor> {
        let table =
            self.table.ok_or_else(|| KernelError::internal("the program has no table of decompositions"))?;
        let Some((name, function)) = table.function(Use::Inverts, origin.op) else {
            let registry = self.recorder.registry();
            let made_by = registry.schema(origin.op).full_name();
            return Err(refused(format!("`{operator}` writes to a view that `{made_by}` made")));
        };
        let mut args = vec![IValue::Tensor(origin.parent.clone()), IValue::Tensor(content)];
        let mut symbols = vec![None, None];
        args.extend(origin.operands.iter().skip(1).cloned());
        symbols.extend(origin.symbols.iter().skip(1).cloned());
        symbols.resize(args.len(), None);
        if function.inputs().len() > args.len() {
            args.push(IValue::Int(position as i64));
        }
        args.truncate(function.inputs().len());
        let results = self.apply(*name, function, args, &symbols)?;
        match results.into_iter().next() {
            Some(IValue::Tensor(tensor)) => Ok(tensor),
            _ => Err(KernelError::internal("the inverse of a view is not a tensor").into()),
        }
    }

    /// Returns a value with the dtype of the tensor that it is written to.
    fn converted_to(&mut self, target: &Tensor, value: &Tensor) -> Res<Tensor> {
        match value.dtype() == target.dtype() {
            true => Ok(value.clone()),
            false => self.record_cast(value, target.dtype()),
        }
    }

    /// Records the conversion of a tensor to another dtype.
    pub(super) fn record_cast(&mut self, tensor: &Tensor, dtype: DType) -> Res<Tensor> {
        let registry = Arc::clone(self.recorder.registry());
        let op = registry.lookup("aten::_to_copy");
        let op = op.ok_or_else(|| refused("`aten::_to_copy` is not registered"))?;
        let defaults =
            registry.schema(op).args.iter().skip(2).map(|arg| arg.default.clone().unwrap_or_default());
        let mut operands = vec![IValue::Tensor(tensor.clone()), IValue::Int(dtype.scalar_type())];
        operands.extend(defaults);
        match self.functional(op, operands, &[])?.into_iter().next() {
            Some(IValue::Tensor(tensor)) => Ok(tensor),
            _ => Err(KernelError::internal("a conversion has no tensor").into()),
        }
    }
}

/// A functional variant of an operator that writes.
enum Variant {
    /// With the same operands.
    SameOperands(OpId),
    /// Without the last operand, `out`.
    WithoutOut(OpId),
}

fn variant(registry: &Registry, op: OpId, schema: &FunctionSchema) -> Option<Variant> {
    if let Some(pure) = registry.functional_variant(op) {
        return Some(Variant::SameOperands(pure));
    }
    let (out, rest) = schema.args.split_last()?;
    if !(out.kwarg_only && out.is_write()) {
        return None;
    }
    let is_same = |other: &FunctionSchema| {
        other.args.len() == rest.len()
            && other.args.iter().zip(rest).all(|(a, b)| a.name == b.name && a.ty == b.ty)
    };
    let found = registry.overloads(schema.name).iter().find(|&&other| is_same(registry.schema(other)));
    found.copied().map(Variant::WithoutOut)
}

/// Returns the name of an operator without namespace.
pub(super) fn short(schema: &FunctionSchema) -> &str {
    schema.name.as_str().rsplit("::").next().unwrap_or_default()
}

/// Returns the operands for the second attempt to compute an example: with ones as the elements of tensors whose dtype is not
/// floating. Tensors that the operator writes are those of the first attempt, which may have changed some of their elements before
/// it failed; only their metadata counts, too.
fn with_ones(schema: &FunctionSchema, args: &[IValue]) -> Res<Vec<IValue>> {
    let with_one = |(arg, parameter): (&IValue, &Argument)| match arg {
        IValue::Tensor(tensor) if !parameter.is_write() && !tensor.dtype().is_floating() => {
            let ones = tensor.clone_data().map_err(KernelError::from)?;
            ones.fill_(Scalar::Int(1)).map_err(KernelError::from)?;
            Ok(IValue::Tensor(ones))
        }
        other => Ok(other.clone()),
    };
    args.iter().zip(&schema.args).map(with_one).collect()
}
