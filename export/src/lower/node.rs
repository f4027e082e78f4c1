//! Nodes that call an operator or a Python function.

use flambeau_ir::schema::{ArgInfo, FunctionSchema, SchemaCall, match_call, match_one};
use flambeau_ir::types::{NoClasses, TypeKind};
use flambeau_ir::{
    CallValues, IValue, ImplicitConversion, LoweringRole, NodeId, OpId, Prim, Symbol, Type, ValueId,
};
use flambeau_tensor::Tensor;

use super::control::of_both;
use super::{Lowering, Res, ValueMeta, arguments};
use crate::error::quoted;
use crate::fx::Target;
use crate::model::{Argument, GraphModel, NodeModel, Sym};
use crate::{ExportCode, ExportError};

impl<'m> Lowering<'m> {
    /// Lowers a node at the end of the current block.
    pub(super) fn node(&mut self, graph: &'m GraphModel, node: &'m NodeModel) -> Res<()> {
        let target = Target::parse(&node.target);
        let results = match target {
            Target::Operator { .. } => {
                let op = self.registered(target, &node.target)?;
                self.operator(op, node)?
            }
            Target::HigherOrder(name) => self.higher_order(name, node)?,
            Target::Function(name) => vec![self.python(name, node)?],
        };
        self.results(graph, node, results)
    }

    /// Returns the operator of a target, whose text is for the error.
    pub(super) fn registered(&self, target: Target<'_>, text: &str) -> Res<OpId> {
        target.operator(&self.registry).ok_or_else(|| {
            let path = text.strip_prefix("torch.ops.").unwrap_or(text);
            ExportError::new(ExportCode::Operator, format!("no operator {} is registered", quoted(path)))
        })
    }

    /// Inserts a call of an operator and returns its results.
    fn operator(&mut self, op: OpId, node: &'m NodeModel) -> Res<Vec<ValueId>> {
        let registry = std::sync::Arc::clone(&self.registry);
        let schema = registry.schema(op);
        let mut given: Vec<(usize, ValueId)> = Vec::with_capacity(node.inputs.len());
        for (position, input) in node.inputs.iter().enumerate() {
            let index = match input.name.as_str() {
                "" => Some(position).filter(|i| *i < schema.args.len()),
                name => schema.arg_index(name),
            };
            let index = index.ok_or_else(|| {
                unfit(format!("{} has no parameter {}", schema.full_name(), quoted(&input.name)))
            })?;
            let value = self
                .argument(&input.arg, schema.args[index].ty)
                .map_err(|e| e.in_field(schema.args[index].name.as_str()))?;
            given.push((index, value));
        }
        let op = self.overload_for_numbers(op, &given);
        let given = self.as_tensors(op, given)?;
        let node = self.call(op, &given)?;
        self.in_region(node)
    }

    /// Returns the overload to call if numbers are given for tensors. PyTorch's operators accept a number for a tensor
    /// (`mul.Tensor(x, 2)`) and do not let it determine the dtype of the result; the overload with a `Scalar` in its place
    /// does the same.
    fn overload_for_numbers(&self, op: OpId, given: &[(usize, ValueId)]) -> OpId {
        let own = self.registry.schema(op);
        let is_number = |index: usize| {
            let value =
                given.iter().find(|(i, _)| *i == index).map(|(_, value)| self.graph.ty(*value).kind());
            matches!(
                value,
                Some(TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Number | TypeKind::Complex)
            )
        };
        let accepts = |schema: &FunctionSchema| {
            let parameters = own.args.iter().zip(&schema.args).enumerate();
            schema.args.len() == own.args.len()
                && parameters.into_iter().all(|(i, (a, b))| {
                    let (was, is) = (a.ty.unwrap_optional(), b.ty.unwrap_optional());
                    let replaced = was.is_tensor() && is_number(i);
                    a.name == b.name && if replaced { is == Type::NUMBER } else { was == is }
                })
        };
        if accepts(own) {
            return op;
        }
        let other =
            self.registry.overloads(own.name).iter().find(|&&other| accepts(self.registry.schema(other)));
        other.copied().unwrap_or(op)
    }

    /// Makes tensors of the constant numbers that are given for tensors. Their dtype is that of the first tensor among the
    /// operands, if it holds such numbers, since a number does not determine the dtype of a result.
    fn as_tensors(&mut self, op: OpId, given: Vec<(usize, ValueId)>) -> Res<Vec<(usize, ValueId)>> {
        let registry = std::sync::Arc::clone(&self.registry);
        let schema = registry.schema(op);
        let stated = given.iter().find_map(|&(_, value)| match self.metadata.meta(value)? {
            ValueMeta::Tensor(meta) => meta.dtype.dtype(),
            _ => None,
        });
        let mut tensors = Vec::with_capacity(given.len());
        for (index, value) in given {
            let wanted = schema.args[index].ty.unwrap_optional().is_tensor();
            let number = self.graph.constant(value).and_then(|v| v.as_scalar()).filter(|_| wanted);
            let Some(number) = number else {
                tensors.push((index, value));
                continue;
            };
            let own = number.default_dtype();
            let dtype = stated.filter(|dtype| dtype.category() >= own.category()).unwrap_or(own);
            let tensor = Tensor::from_scalars(&[number], &[], dtype);
            let tensor = tensor.map_err(|e| unfit(format!("a number is not a tensor: {e}")))?;
            tensors.push((index, self.constant(IValue::Tensor(tensor), Type::TENSOR)));
        }
        Ok(tensors)
    }

    /// Inserts a call of an operator with values for some of its parameters.
    pub(super) fn call(&mut self, op: OpId, given: &[(usize, ValueId)]) -> Res<NodeId> {
        let registry = std::sync::Arc::clone(&self.registry);
        let schema = registry.schema(op);
        let given: Vec<(usize, ValueId)> = given
            .iter()
            .map(|&(index, value)| (index, self.as_scalar(value, schema.args[index].ty)))
            .collect();
        let mut positional = Vec::new();
        let mut keywords = Vec::new();
        for (index, argument) in schema.args.iter().enumerate() {
            let Some(&(_, value)) = given.iter().find(|(i, _)| *i == index) else { continue };
            if !argument.kwarg_only && positional.len() == index {
                positional.push(value);
            } else {
                keywords.push((argument.name, value));
            }
        }
        let of_type = |graph: &flambeau_ir::Graph, value: ValueId| ArgInfo::from(graph.ty(value));
        let args: Vec<ArgInfo> = positional.iter().map(|&v| of_type(&self.graph, v)).collect();
        let kwargs: Vec<(Symbol, ArgInfo)> =
            keywords.iter().map(|&(name, v)| (name, of_type(&self.graph, v))).collect();
        let call = SchemaCall { receiver: None, args: &args, kwargs: &kwargs };
        let matched = match_one(schema, call, true, &NoClasses)
            .map_err(|(_, why)| unfit(format!("{}: {why}", schema.full_name())))?;
        let keywords: Vec<ValueId> = keywords.into_iter().map(|(_, value)| value).collect();
        let values = CallValues { receiver: None, positional: &positional, keywords: &keywords };
        let mut edit = self.edit();
        let operands = edit.bind_call(schema, &matched, values);
        Ok(edit.node(op, &operands, &matched.returns))
    }

    /// Returns a bool as a value that a parameter of type `Scalar` accepts.
    fn as_scalar(&mut self, value: ValueId, ty: Type) -> ValueId {
        let is_bool = self.graph.ty(value) == Type::BOOL;
        if is_bool && matches!(ty.unwrap_optional().kind(), TypeKind::Number) {
            return self.edit().value(Prim::UncheckedCast, &[value], Type::NUMBER);
        }
        value
    }

    /// Inserts the operator that computes a Python function on numbers, and returns its result.
    fn python(&mut self, name: &str, node: &'m NodeModel) -> Res<ValueId> {
        let args: Vec<ValueId> = match (name, node.inputs.as_slice()) {
            // The sum of a list.
            ("torch.sym_sum", [only]) => {
                let items = self.operands(&only.arg)?;
                let zero = self.int(0);
                return items
                    .into_iter()
                    .try_fold(zero, |sum, item| self.function("_operator.add", &[sum, item]));
            }
            (_, inputs) => inputs.iter().map(|input| self.free(&input.arg)).collect::<Res<_>>()?,
        };
        if let ("torch.sym_ite", [condition, yes, no]) = (name, args.as_slice()) {
            // A branch, because `prim::IfThenElse` has no source form.
            let ty = of_both(self.graph.ty(*yes), self.graph.ty(*no));
            let mut edit = self.edit();
            let node = edit.node(Prim::If, &[*condition], &[ty]);
            for value in [*yes, *no] {
                let block = edit.add_block(node);
                edit.add_block_output(block, value);
            }
            return Ok(self.graph.result(node, 0));
        }
        if let ("round" | "builtins.round", [x]) = (name, args.as_slice()) {
            // Python's `round` returns an integer.
            let rounded = self.function("numpy.rint", &[*x])?;
            return self.function("math.trunc", &[rounded]);
        }
        if let ("math.trunc" | "torch.sym_int", [x]) | ("torch.sym_float", [x]) = (name, args.as_slice()) {
            // A number that is of the wanted kind is its own conversion.
            let own = if name == "torch.sym_float" { Type::FLOAT } else { Type::INT };
            if self.graph.ty(*x) == own {
                return Ok(*x);
            }
        }
        self.function(name, &args)
    }

    /// Inserts the operator that computes a Python function on these values, and returns its result.
    pub(super) fn function(&mut self, name: &str, args: &[ValueId]) -> Res<ValueId> {
        let Some(ops) = self.operators.python.get(name).cloned() else {
            let message = format!("the function {} is not supported", quoted(name));
            return Err(ExportError::new(ExportCode::Operator, message));
        };
        let registry = std::sync::Arc::clone(&self.registry);
        let schemas: Vec<&FunctionSchema> = ops.iter().map(|&op| registry.schema(op)).collect();
        let given: Vec<ArgInfo> = args.iter().map(|&v| ArgInfo::from(self.graph.ty(v))).collect();
        let call = SchemaCall { receiver: None, args: &given, kwargs: &[] };
        let types: Vec<String> = args.iter().map(|&v| self.graph.ty(v).to_string()).collect();
        let mismatch = |_| unfit(format!("{} is not defined for {}", quoted(name), types.join(", ")));
        let matched = match_call(&schemas, call, &NoClasses).map_err(mismatch)?;
        let values = CallValues { receiver: None, positional: args, keywords: &[] };
        let mut edit = self.edit();
        let operands = edit.bind_call(schemas[matched.schema], &matched, values);
        let node = edit.node(ops[matched.schema], &operands, &matched.returns);
        match self.graph.result_count(node) {
            1 => Ok(self.graph.result(node, 0)),
            _ => Err(unfit(format!("{} does not have one result", quoted(name)))),
        }
    }

    /// Names the results of a node.
    fn results(&mut self, graph: &'m GraphModel, node: &'m NodeModel, results: Vec<ValueId>) -> Res<()> {
        let outputs = node.outputs.as_slice();
        // A list is one output with several names, or one output per result that is a list.
        if let ([Argument::Tensors(names)], [list]) = (outputs, results.as_slice())
            && self.graph.ty(*list).list_elem().is_some()
        {
            return self.unpack(graph, names.iter().map(|name| Some(name.as_str())), *list);
        }
        if let ([Argument::OptionalTensors(names)], [list]) = (outputs, results.as_slice()) {
            return self.unpack(graph, names.iter().map(Option::as_deref), *list);
        }
        if let ([Argument::SymInts(items)], [list]) = (outputs, results.as_slice()) {
            let names = items.iter().map(|item| match item {
                Sym::Name(name) => Some(name.as_str()),
                Sym::Value(_) => None,
            });
            return self.unpack(graph, names, *list);
        }
        let flat: Vec<Option<(&'m str, &'m Argument)>> = flattened(outputs);
        if flat.len() != results.len() {
            // A file may omit the results of an operator that nothing uses.
            if flat.is_empty() {
                return Ok(());
            }
            let (stated, own) = (flat.len(), results.len());
            return Err(unfit(format!(
                "{} has {own} results, the file states {stated}",
                quoted(&node.target)
            )));
        }
        for (output, value) in flat.into_iter().zip(results) {
            let Some((name, output)) = output else { continue };
            let value = self.converted(output, value)?;
            self.define(graph, name, value)?;
        }
        Ok(())
    }

    fn unpack(
        &mut self,
        graph: &'m GraphModel,
        names: impl Iterator<Item = Option<&'m str>>,
        list: ValueId,
    ) -> Res<()> {
        let names: Vec<Option<&'m str>> = names.collect();
        let elem = self.graph.ty(list).list_elem().ok_or_else(|| unfit("the result is not a list"))?;
        let types = vec![elem; names.len()];
        let node = self.edit().node(Prim::ListUnpack, &[list], &types);
        for (i, name) in names.into_iter().enumerate() {
            if let Some(name) = name {
                let value = self.graph.result(node, i);
                self.define(graph, name, value)?;
            }
        }
        Ok(())
    }

    /// Returns a result as the kind of number that the output states: the element of a tensor is a `Scalar`.
    fn converted(&mut self, output: &Argument, value: ValueId) -> Res<ValueId> {
        if !matches!(self.graph.ty(value).kind(), TypeKind::Number) {
            return Ok(value);
        }
        let converter = match output {
            Argument::SymInt(_) => ImplicitConversion::NumberToInt,
            Argument::SymFloat(_) => ImplicitConversion::NumberToFloat,
            Argument::SymBool(_) => {
                // The element of a tensor.
                let element = self.graph.def(value);
                if let [tensor] = self.graph.operands(element).collect::<Vec<_>>()[..]
                    && self.graph.ty(tensor).is_tensor()
                {
                    self.edit().erase(element);
                    return self.role_value(LoweringRole::ToBool, &[tensor], Type::BOOL);
                }
                let zero = self.constant(IValue::Int(0), Type::NUMBER);
                return self.function("_operator.ne", &[value, zero]);
            }
            _ => return Ok(value),
        };
        let op = self.registry.converter(converter);
        Ok(self.edit().value(op, &[value], converter.result()))
    }

    /// Returns a condition as a bool: a tensor is tested for being nonzero.
    pub(super) fn condition(&mut self, value: ValueId) -> Res<ValueId> {
        let ty = self.graph.ty(value);
        if ty.is_tensor() {
            return self.role_value(LoweringRole::ToBool, &[value], Type::BOOL);
        }
        match ty.kind() {
            TypeKind::Bool => Ok(value),
            TypeKind::Int => {
                let zero = self.constant(IValue::Int(0), Type::INT);
                self.function("_operator.ne", &[value, zero])
            }
            _ => Err(unfit(format!("a condition cannot be of type {ty}"))),
        }
    }
}

/// Returns one entry per result: its name, or `None` for a result that is `None` or a constant.
fn flattened(outputs: &[Argument]) -> Vec<Option<(&str, &Argument)>> {
    let mut flat = Vec::new();
    for output in outputs {
        match output {
            Argument::Tensors(names) => flat.extend(names.iter().map(|name| Some((name.as_str(), output)))),
            Argument::OptionalTensors(names) => {
                flat.extend(names.iter().map(|name| Some((name.as_deref()?, output))));
            }
            _ => flat.push(arguments::value_name(output).map(|name| (name, output))),
        }
    }
    flat
}

#[cold]
fn unfit(message: impl Into<String>) -> ExportError {
    ExportError::new(ExportCode::Argument, message)
}
