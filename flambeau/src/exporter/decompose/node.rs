//! Nodes of a program that is decomposed: kept, replaced by functions, or made functional.

use super::super::sizes::sized_by_contents;
use super::super::symbolic::Symbolic;
use super::super::table::Use;
use super::super::{Res, Stop, refused};
use super::{Decomposition, Value};
use flambeau_exec::KernelError;
use flambeau_export::build::target_of;
use flambeau_export::fx::Target;
use flambeau_export::lower::constant;
use flambeau_export::model::{
    Argument, GraphModel, NamedArgument, NodeModel, Sym, SymBool, SymFloat, SymInt,
};
use flambeau_ir::schema::FunctionSchema;
use flambeau_ir::types::TypeKind;
use flambeau_ir::{Fault, IValue, OpId, Type};
use flambeau_tensor::{DType, Tensor};
use std::sync::Arc;

/// The operator that returns a view of other sizes, and the one that copies where that is not possible.
const VIEW: &str = "aten::view";
const RESHAPE: &str = "aten::reshape";

/// The operands of a call: values, and the symbolic numbers among them.
type Operands = (Vec<IValue>, Vec<Option<Symbolic>>);

impl Decomposition<'_> {
    pub(super) fn node(&mut self, graph: &GraphModel, node: &NodeModel) -> Res<()> {
        self.tracer.given_metadata = Some(node.metadata.clone());
        match Target::parse(&node.target) {
            Target::HigherOrder(name) => self.higher_order(graph, node, name),
            Target::Function(_) => self.keep(graph, node, None),
            target => {
                let registry = Arc::clone(self.tracer.recorder.registry());
                let op = target.operator(&registry);
                let op = op.ok_or_else(|| refused(format!("no operator `{}` is registered", node.target)))?;
                self.operator(graph, node, op)
            }
        }
    }

    fn operator(&mut self, graph: &GraphModel, node: &NodeModel, op: OpId) -> Res<()> {
        let registry = Arc::clone(self.tracer.recorder.registry());
        let (operands, symbols) = self.operands(node, registry.schema(op))?;
        let (op, operands) = self.for_numbers(op, operands)?;
        let schema = registry.schema(op);
        let table = self.tracer.table.ok_or_else(|| KernelError::internal("a decomposition has no table"))?;
        let canonical = table.canonical(op);
        let is_replaced =
            [Use::Replaces, Use::Views].iter().any(|&use_| table.function(use_, canonical).is_some());
        let writes = schema.args.iter().any(|arg| arg.is_write());
        // PyTorch states dtypes in a region of automatic mixed precision that the operators do not have.
        let is_mixed = self.tracer.autocast.is_some() && !sized_by_contents(schema, &operands);
        let op = match self.copies(op, schema, &operands) {
            Some(copies) => copies,
            None if is_replaced || writes || is_mixed => op,
            None => return self.keep(graph, node, Some((op, (operands, symbols)))),
        };
        let results = self.tracer.call_operator(op, operands, &symbols)?;
        self.results(graph, node, &results)
    }

    /// Returns the operator that replaces a view which the strides of the operand do not permit: those of a decomposition may
    /// differ from those of the operator that it replaces.
    fn copies(&mut self, op: OpId, schema: &FunctionSchema, operands: &[IValue]) -> Option<OpId> {
        let registry = Arc::clone(self.tracer.recorder.registry());
        let own = registry.lookup(VIEW).filter(|&view| view == op)?;
        let reshape = registry.lookup(RESHAPE)?;
        let can_copy =
            |this: &mut Self| this.tracer.kernel(reshape, registry.schema(reshape), operands).is_ok();
        (self.tracer.kernel(own, schema, operands).is_err() && can_copy(self)).then_some(reshape)
    }

    /// Returns the operands of a call in the order of the schema, with defaults.
    fn operands(&mut self, node: &NodeModel, schema: &FunctionSchema) -> Res<Operands> {
        let mut found: Vec<Option<(IValue, Option<Symbolic>)>> = vec![None; schema.args.len()];
        for (position, input) in node.inputs.iter().enumerate() {
            let index = match input.name.as_str() {
                "" => Some(position),
                name => schema.arg_index(name),
            };
            let place = index.filter(|&i| i < found.len()).ok_or_else(|| {
                refused(format!("`{}` has no parameter `{}`", schema.full_name(), input.name))
            })?;
            found[place] = Some(self.value(&input.arg, schema.args[place].ty)?);
        }
        let mut operands = (Vec::with_capacity(found.len()), Vec::with_capacity(found.len()));
        for (value, parameter) in found.into_iter().zip(&schema.args) {
            let (value, symbol) = match (value, &parameter.default) {
                (Some(value), _) => value,
                (None, Some(default)) => (default.clone(), None),
                (None, None) => {
                    return Err(refused(format!(
                        "`{}` needs the argument `{}`",
                        schema.full_name(),
                        parameter.name
                    )));
                }
            };
            operands.0.push(value);
            operands.1.push(symbol);
        }
        Ok(operands)
    }

    /// Returns the value of an argument for a parameter of type `ty`.
    pub(super) fn value(&mut self, arg: &Argument, ty: Type) -> Res<(IValue, Option<Symbolic>)> {
        let elem = ty.unwrap_optional().list_elem();
        Ok(match arg {
            Argument::None | Argument::OptionalTensor(None) => (IValue::None, None),
            Argument::Tensors(names) => {
                let items = names.iter().map(|name| Ok(self.named(name)?.example.clone()));
                (IValue::list(elem.unwrap_or(Type::TENSOR), items.collect::<Res<_>>()?), None)
            }
            Argument::OptionalTensors(names) => {
                let items = names.iter().map(|name| match name {
                    Some(name) => Ok(self.named(name)?.example.clone()),
                    None => Ok(IValue::None),
                });
                let elem = elem.unwrap_or(Type::optional(Type::TENSOR));
                (IValue::list(elem, items.collect::<Res<_>>()?), None)
            }
            Argument::SymInts(items) => self.numbers(items, IValue::Int)?,
            Argument::SymFloats(items) => self.numbers(items, IValue::Float)?,
            Argument::SymBools(items) => self.numbers(items, IValue::Bool)?,
            arg => match arg.name() {
                Some(name) => {
                    let Value { example, symbol } = self.named(name)?.clone();
                    (example, symbol)
                }
                None => (constant(arg, ty.unwrap_optional())?.0, None),
            },
        })
    }

    /// Returns a list of numbers of which some are symbolic.
    fn numbers<T: Copy>(
        &mut self,
        items: &[Sym<T>],
        of: impl Fn(T) -> IValue,
    ) -> Res<(IValue, Option<Symbolic>)> {
        let mut values = Vec::with_capacity(items.len());
        let mut symbols = Vec::with_capacity(items.len());
        for item in items {
            let value = match item {
                Sym::Value(value) => Value { example: of(*value), symbol: None },
                Sym::Name(name) => self.named(name)?.clone(),
            };
            values.push(value.example);
            symbols.push(value.symbol);
        }
        let elem = values.first().map_or(Type::INT, IValue::type_of);
        let list = IValue::list(elem, values);
        if symbols.iter().any(Option::is_some) {
            self.tracer.recorder.set_symbols(&list, symbols);
        }
        Ok((list, None))
    }

    pub(super) fn named(&self, name: &str) -> Res<&Value> {
        self.values.get(name).ok_or_else(|| refused(format!("the value `{name}` is not defined")))
    }

    /// Returns the overload for numbers that are given for tensors (`mul.Tensor(x, 2)`), if there is one; else makes tensors
    /// without dimensions of them.
    fn for_numbers(&mut self, op: OpId, mut operands: Vec<IValue>) -> Res<(OpId, Vec<IValue>)> {
        let registry = Arc::clone(self.tracer.recorder.registry());
        let schema = registry.schema(op);
        let is_number = |i: usize, operands: &[IValue]| {
            schema.args[i].ty.unwrap_optional().is_tensor() && operands[i].as_scalar().is_some()
        };
        if !(0..operands.len()).any(|i| is_number(i, &operands)) {
            return Ok((op, operands));
        }
        let accepts = |other: &FunctionSchema| {
            other.args.len() == schema.args.len()
                && other.args.iter().zip(&schema.args).enumerate().all(|(i, (own, given))| {
                    let is_same = own.ty.unwrap_optional() == given.ty.unwrap_optional();
                    own.name == given.name
                        && if is_number(i, &operands) {
                            matches!(own.ty.unwrap_optional().kind(), TypeKind::Number)
                        } else {
                            is_same
                        }
                })
        };
        if let Some(&other) = registry.overloads(schema.name).iter().find(|&&id| accepts(registry.schema(id)))
        {
            return Ok((other, operands));
        }
        let like = operands.iter().find_map(IValue::as_tensor).map(Tensor::dtype);
        for i in 0..operands.len() {
            if let (true, Some(scalar)) = (is_number(i, &operands), operands[i].as_scalar()) {
                let own = scalar.dtype();
                let dtype = like.filter(|like| like.is_floating() || !own.is_floating());
                let tensor = Tensor::full(&[], scalar, dtype.unwrap_or(own)).map_err(KernelError::from)?;
                self.tracer.recorder.literal(&tensor);
                operands[i] = IValue::Tensor(tensor);
            }
        }
        Ok((op, operands))
    }

    /// Returns the target of the operator that the table has in place of one, if its arguments have the same names.
    fn canonical_target(&self, op: OpId) -> Option<String> {
        let registry = self.tracer.recorder.registry();
        let canonical = self.tracer.table?.canonical(op);
        let names = |op| registry.schema(op).args.iter().map(|arg| arg.name);
        (canonical != op && names(op).eq(names(canonical))).then(|| target_of(registry.schema(canonical)))
    }

    /// Appends a node as it is. `call` has the operator and its operands, if it has a schema.
    fn keep(&mut self, graph: &GraphModel, node: &NodeModel, call: Option<(OpId, Operands)>) -> Res<()> {
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for input in &node.inputs {
            let arg = self.renamed(&input.arg)?;
            inputs.push(NamedArgument { arg, ..input.clone() });
        }
        let target = call.as_ref().and_then(|(op, _)| self.canonical_target(*op));
        let mut views = None;
        let mut unknown = Vec::new();
        if let Some((op, (operands, symbols))) = call {
            let registry = Arc::clone(self.tracer.recorder.registry());
            let schema = registry.schema(op);
            if schema.returns.iter().any(|result| result.alias.is_some()) {
                match self.tracer.kernel(op, schema, &operands) {
                    Ok(results) => views = Some((op, results, operands, symbols)),
                    Err(Stop::Run(e)) if e.fault() == Fault::Limit => return Err(Stop::Run(e)),
                    // The examples of symbols need not satisfy the program's assertions. The results have examples without the
                    // memory of the operands, so none of them may be written.
                    Err(_) => unknown.extend(operands),
                }
            }
        }
        let name = node.name.as_deref().or_else(|| node.outputs.first().and_then(Argument::name));
        let builder = &mut self.tracer.recorder.scope().builder;
        let mut own = None;
        let mut outputs = Vec::with_capacity(node.outputs.len());
        if !matches!(&node.outputs[..], [one] if one.name().is_some()) {
            own = Some(builder.node_name(name.unwrap_or("node")));
        }
        for (i, output) in node.outputs.iter().enumerate() {
            let made = views.as_ref().and_then(|(_, results, ..)| results.get(i));
            outputs.push(self.output_of(graph, output, made)?);
        }
        let own = own.or_else(|| outputs.first().and_then(Argument::name).map(str::to_owned));
        if !unknown.is_empty() {
            let names = node.outputs.iter().flat_map(|output| match output {
                Argument::Tensors(names) => names.clone(),
                other => other.name().map(str::to_owned).into_iter().collect(),
            });
            unknown.extend(names.filter_map(|name| Some(self.values.get(&name)?.example.clone())));
            let aliases = &mut self.tracer.recorder.aliases;
            unknown.iter().for_each(|value| value.visit_tensors(|tensor| aliases.share(tensor, tensor)));
        }
        self.tracer.recorder.scope().builder.graph.nodes.push(NodeModel {
            target: target.unwrap_or_else(|| node.target.clone()),
            inputs,
            outputs,
            metadata: node.metadata.clone(),
            is_hop_single_tensor_return: node.is_hop_single_tensor_return,
            name: own,
        });
        if let Some((op, results, operands, symbols)) = views {
            self.tracer.note_views(op, &operands, &symbols, &results);
        }
        Ok(())
    }

    /// Defines the values of an output of a node. `made` is the result on the examples, if the operator ran.
    pub(super) fn output_of(
        &mut self,
        graph: &GraphModel,
        output: &Argument,
        made: Option<&IValue>,
    ) -> Res<Argument> {
        let one = |this: &mut Self, name: &String, made: Option<IValue>| -> Res<String> {
            let own = this.tracer.recorder.scope().builder.node_name(name);
            let value = match made {
                Some(IValue::Tensor(tensor)) => this.adopt(graph, name, &own, tensor)?,
                _ => this.define(graph, name, &own, output)?,
            };
            this.values.insert(name.clone(), value);
            Ok(own)
        };
        Ok(match output {
            Argument::Tensor(name) => Argument::Tensor(one(self, name, made.cloned())?),
            Argument::Tensors(names) => {
                let items = made.and_then(IValue::as_list).map(|list| list.to_vec()).unwrap_or_default();
                let each = names.iter().enumerate().map(|(i, name)| one(self, name, items.get(i).cloned()));
                Argument::Tensors(each.collect::<Res<_>>()?)
            }
            Argument::SymInt(Sym::Name(name)) => Argument::SymInt(Sym::Name(one(self, name, None)?)),
            Argument::SymFloat(Sym::Name(name)) => Argument::SymFloat(Sym::Name(one(self, name, None)?)),
            Argument::SymBool(Sym::Name(name)) => Argument::SymBool(Sym::Name(one(self, name, None)?)),
            Argument::OptionalTensor(Some(name)) => {
                Argument::OptionalTensor(Some(one(self, name, made.cloned())?))
            }
            other if other.name().is_none() => other.clone(),
            _ => return Err(refused("a result is neither a tensor nor a number")),
        })
    }

    /// Gives a tensor that an operator computed on the examples the name and metadata that the program states.
    fn adopt(&mut self, graph: &GraphModel, name: &str, own: &str, tensor: Tensor) -> Res<Value> {
        let Some(meta) = graph.tensor_values.get(name) else {
            return Err(refused(format!("the tensor `{name}` has no metadata")));
        };
        let recorder = &mut self.tracer.recorder;
        let dims = self.symbols.sizes(meta, recorder)?;
        recorder.sizes.set(&tensor, dims, &[]);
        recorder.bind(&tensor, own, meta.clone());
        Ok(Value { example: IValue::Tensor(tensor), symbol: None })
    }

    /// Makes the example of a value, and defines it in the innermost graph under the name `own`.
    pub(super) fn define(&mut self, graph: &GraphModel, name: &str, own: &str, arg: &Argument) -> Res<Value> {
        let none = || refused(format!("the value `{name}` has no metadata"));
        let recorder = &mut self.tracer.recorder;
        let depth = recorder.scopes.len() - 1;
        let is_number = matches!(arg, Argument::SymInt(_) | Argument::SymFloat(_) | Argument::SymBool(_));
        if !is_number {
            let meta = graph.tensor_values.get(name).ok_or_else(none)?;
            let example = self.symbols.tensor(meta, recorder)?;
            recorder.bind(&example, own, meta.clone());
            return Ok(Value { example: IValue::Tensor(example), symbol: None });
        }
        let values = &mut recorder.scope().builder.graph;
        let (example, expr, dim) = match arg {
            Argument::SymInt(_) => {
                let meta = graph.sym_int_values.get(name).ok_or_else(none)?;
                values.sym_int_values.insert(own.to_owned(), meta.clone());
                let expr = match meta {
                    SymInt::Expr { expr, .. } => *expr,
                    SymInt::Int(n) => recorder.exprs.int(*n),
                };
                let dim = self.symbols.dim(meta, recorder)?;
                (IValue::Int(self.symbols.value(meta, recorder)?), expr, Some(dim))
            }
            Argument::SymFloat(_) => {
                let meta = graph.sym_float_values.get(name).ok_or_else(none)?;
                values.sym_float_values.insert(own.to_owned(), meta.clone());
                let example = self.symbols.float(meta, recorder)?;
                let expr = match (meta, &example) {
                    (SymFloat::Expr { expr, .. }, _) => *expr,
                    _ => recorder.exprs.int(0),
                };
                (example, expr, None)
            }
            _ => {
                let meta = graph.sym_bool_values.get(name).ok_or_else(none)?;
                values.sym_bool_values.insert(own.to_owned(), meta.clone());
                let expr = match meta {
                    SymBool::Expr { expr, .. } => *expr,
                    SymBool::Bool(_) => recorder.exprs.int(0),
                };
                (self.symbols.truth(meta, recorder)?, expr, None)
            }
        };
        let symbol = Some(Symbolic::of_node(own, depth, expr, example.clone(), dim));
        Ok(Value { example, symbol })
    }

    /// Makes the results of a decomposition the values that the node defines.
    fn results(&mut self, graph: &GraphModel, node: &NodeModel, results: &[IValue]) -> Res<()> {
        for (output, result) in node.outputs.iter().zip(results) {
            match (output, result) {
                (Argument::Tensors(names), IValue::List(list)) => {
                    for (name, tensor) in names.iter().zip(list.to_tensors().unwrap_or_default()) {
                        self.result(graph, node, name, tensor)?;
                    }
                }
                (output, IValue::Tensor(tensor)) => {
                    if let Some(name) = output.name() {
                        self.result(graph, node, name, tensor.clone())?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn result(&mut self, graph: &GraphModel, node: &NodeModel, name: &str, tensor: Tensor) -> Res<()> {
        let Some(meta) = graph.tensor_values.get(name) else {
            return Err(refused(format!("the tensor `{name}` has no metadata")));
        };
        let recorder = &mut self.tracer.recorder;
        let mut sizes = Vec::with_capacity(meta.sizes.len());
        for size in &meta.sizes {
            sizes.push(self.symbols.value(size, recorder)?);
        }
        if meta.dtype.dtype() != Some(tensor.dtype()) && self.tracer.autocast.is_none() {
            return Err(refused(format!(
                "the decomposition of `{}` makes `{name}` a {}, which is {}",
                node.target,
                tensor.dtype().name(),
                meta.dtype.dtype().map_or("of an unsupported dtype", DType::name)
            )));
        }
        // PyTorch 2.6 states a dimension too many for the last state of a recurrent network.
        let agrees = sizes == tensor.sizes() && meta.dtype.dtype() == Some(tensor.dtype());
        if agrees && !recorder.aliases.is_input(&tensor) {
            let dims = self.symbols.sizes(meta, recorder)?;
            self.tracer.refresh_all(&[IValue::Tensor(tensor.clone())])?;
            self.tracer.recorder.resize(&tensor, dims)?;
        }
        self.values.insert(name.to_owned(), Value { example: IValue::Tensor(tensor), symbol: None });
        Ok(())
    }

    /// Returns the name that a value has now.
    pub(super) fn name_now(&mut self, name: &str) -> Res<String> {
        let Value { example, symbol } = self.named(name)?.clone();
        match (&example, symbol) {
            (_, Some(symbol)) => self.tracer.recorder.number_name(&symbol),
            (IValue::Tensor(tensor), None) => {
                self.tracer.refresh_all(std::slice::from_ref(&example))?;
                self.tracer.recorder.name_of(tensor)
            }
            _ => Err(refused(format!("the value `{name}` is neither a tensor nor a number"))),
        }
    }

    /// Returns an argument with the names that its values have now.
    pub(super) fn renamed(&mut self, arg: &Argument) -> Res<Argument> {
        fn syms<T: Clone>(this: &mut Decomposition<'_>, items: &[Sym<T>]) -> Res<Vec<Sym<T>>> {
            let each = items.iter().map(|item| match item {
                Sym::Name(name) => Ok(Sym::Name(this.name_now(name)?)),
                Sym::Value(_) => Ok(item.clone()),
            });
            each.collect()
        }
        Ok(match arg {
            Argument::Tensor(name) => Argument::Tensor(self.name_now(name)?),
            Argument::OptionalTensor(Some(name)) => Argument::OptionalTensor(Some(self.name_now(name)?)),
            Argument::Tensors(names) => {
                Argument::Tensors(names.iter().map(|name| self.name_now(name)).collect::<Res<_>>()?)
            }
            Argument::OptionalTensors(names) => {
                let each = names.iter().map(|name| name.as_ref().map(|name| self.name_now(name)).transpose());
                Argument::OptionalTensors(each.collect::<Res<_>>()?)
            }
            Argument::NestedTensors(lists) => {
                let each = lists.iter().map(|names| names.iter().map(|name| self.name_now(name)).collect());
                Argument::NestedTensors(each.collect::<Res<_>>()?)
            }
            Argument::SymInt(Sym::Name(name)) => Argument::SymInt(Sym::Name(self.name_now(name)?)),
            Argument::SymFloat(Sym::Name(name)) => Argument::SymFloat(Sym::Name(self.name_now(name)?)),
            Argument::SymBool(Sym::Name(name)) => Argument::SymBool(Sym::Name(self.name_now(name)?)),
            Argument::SymInts(items) => Argument::SymInts(syms(self, items)?),
            Argument::SymFloats(items) => Argument::SymFloats(syms(self, items)?),
            Argument::SymBools(items) => Argument::SymBools(syms(self, items)?),
            Argument::Dict(items) => {
                // The reader bounds the nesting of arguments.
                let each = items.iter().map(|(key, item)| Ok((key.clone(), self.renamed(item)?)));
                Argument::Dict(each.collect::<Res<_>>()?)
            }
            other => other.clone(),
        })
    }
}
