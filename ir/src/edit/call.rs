//! Insertion of calls by operator name, with overload resolution.
//!
//! Schema matching selects the overload, conversions and defaults become nodes, and results get the types of the
//! schema.
//!
//! Matching itself ([`match_call`]) works on types alone and returns a plan; [`Editor::bind_call`] turns the plan into
//! operands. The frontend emits every call through it, so a pass that inserts a call by name gets the same node as the
//! same call in source.

use super::Editor;
use crate::id::{NodeId, ValueId};
use crate::nearest::nearest;
use crate::op::{ImplicitConversion, OpId, Prim};
use crate::schema::{
    ArgInfo, Binding, CallError, Conversion, FunctionSchema, MatchedSchema, SchemaCall, match_call,
};
use crate::symbol::Symbol;
use crate::types::{NoClasses, Type};
use crate::value::IValue;
use flambeau_tensor::Device;
use smallvec::SmallVec;

/// The operands of a call, in the order of the schema's parameters.
pub type Operands = SmallVec<[ValueId; 8]>;

/// An argument of [`Editor::call`]: a value of the graph, or a constant to insert.
#[derive(Clone, Debug)]
pub enum CallArg {
    /// A value of the graph that dominates the cursor.
    Value(ValueId),
    /// A constant, inserted before the call under its own type.
    Constant(IValue),
}

impl From<ValueId> for CallArg {
    fn from(value: ValueId) -> Self {
        CallArg::Value(value)
    }
}

impl<T: Into<IValue>> From<T> for CallArg {
    fn from(value: T) -> Self {
        CallArg::Constant(value.into())
    }
}

/// The reason why [`Editor::call`] did not insert a call.
#[derive(Clone, Debug, thiserror::Error)]
pub enum InsertError {
    /// The registry has no operator of the name.
    #[error("no operator `{name}` is registered{}", did_you_mean(.nearest.as_deref()))]
    Unknown {
        /// The requested name.
        name: Symbol,
        /// The nearest registered name.
        nearest: Option<String>,
    },
    /// No overload accepts the arguments.
    #[error("call of `{name}`: {why}")]
    Mismatch {
        /// The operator.
        name: Symbol,
        /// The reason why each overload does not match.
        why: CallError,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// The values that the bindings of a matched call refer to.
#[derive(Clone, Copy, Debug)]
pub struct CallValues<'a> {
    /// The value of the receiver, if the call has one.
    pub receiver: Option<ValueId>,
    /// The values of the arguments by position.
    pub positional: &'a [ValueId],
    /// The values of the arguments by name, in the order of [`SchemaCall::kwargs`].
    pub keywords: &'a [ValueId],
}

impl Editor<'_> {
    /// Inserts a call of operator `name` (`aten::add`) with positional arguments and returns its result. Several
    /// results are packed into a tuple, as in source.
    ///
    /// # Errors
    /// Returns [`InsertError::Unknown`] if no operator has the name, and [`InsertError::Mismatch`] if no overload
    /// accepts the arguments. In both cases the graph is unchanged.
    ///
    /// ```
    /// use flambeau_ir::{Editor, Graph, OpDef, RegistryBuilder, Type};
    ///
    /// let mut registry = RegistryBuilder::new();
    /// registry.add([
    ///     OpDef::new("my::scale.Tensor(Tensor self, Tensor by, *, Scalar alpha=1) -> Tensor"),
    ///     OpDef::new("my::scale.Scalar(Tensor self, Scalar by, Scalar alpha=1) -> Tensor"),
    /// ]);
    /// let mut graph = Graph::new(registry.build().unwrap());
    /// let x = graph.edit().add_input(Type::TENSOR);
    /// let mut editor = graph.edit();
    /// let twice = editor.call("my::scale", &[x.into(), 2.into()])?;
    /// editor.add_output(twice);
    /// // The overload for numbers was chosen, and its default inserted.
    /// assert_eq!(graph.operand_count(graph.def(twice)), 3);
    /// assert!(graph.edit().call("my::scael", &[x.into()]).unwrap_err().to_string().contains("did you mean `my::scale`"));
    /// // A call that is refused inserts nothing.
    /// let before = graph.to_string();
    /// assert!(graph.edit().call("my::scale", &[x.into(), "two".into()]).is_err());
    /// assert_eq!(graph.to_string(), before);
    /// # Ok::<(), flambeau_ir::InsertError>(())
    /// ```
    pub fn call(&mut self, name: &str, args: &[CallArg]) -> Result<ValueId, InsertError> {
        let node = self.call_with(name, args, &[])?;
        if self.graph.result_count(node) == 1 {
            return Ok(self.graph.result(node, 0));
        }
        let results: Operands = self.graph.results(node).collect();
        Ok(self.tuple(&results))
    }

    /// Inserts a call of operator `name` with positional and keyword arguments and returns its node.
    ///
    /// # Errors
    /// As [`Editor::call`].
    pub fn call_with(
        &mut self,
        name: &str,
        args: &[CallArg],
        kwargs: &[(&str, CallArg)],
    ) -> Result<NodeId, InsertError> {
        let name = Symbol::new(name);
        let registry = std::sync::Arc::clone(self.graph.registry());
        let rows: &[OpId] = registry.overloads(name);
        if rows.is_empty() {
            let known = registry.ids().map(|id| registry.schema(id).name.as_str());
            let nearest = nearest(name.as_str(), known).map(str::to_owned);
            return Err(InsertError::Unknown { name, nearest });
        }
        let types: SmallVec<[ArgInfo; 8]> = args.iter().map(|arg| self.arg(arg)).collect();
        let named = kwargs.iter().map(|(name, arg)| (Symbol::new(name), self.arg(arg)));
        let named: SmallVec<[(Symbol, ArgInfo); 4]> = named.collect();
        let call = SchemaCall { receiver: None, args: &types, kwargs: &named };
        let schemas: SmallVec<[&FunctionSchema; 8]> = rows.iter().map(|&id| registry.schema(id)).collect();
        let matched =
            match_call(&schemas, call, &NoClasses).map_err(|why| InsertError::Mismatch { name, why })?;
        let positional: Operands = args.iter().map(|arg| self.argument(arg)).collect();
        let keywords: Operands = kwargs.iter().map(|(_, arg)| self.argument(arg)).collect();
        let values = CallValues { receiver: None, positional: &positional, keywords: &keywords };
        let operands = self.bind_call(schemas[matched.schema], &matched, values);
        Ok(self.node(rows[matched.schema], &operands, &matched.returns))
    }

    /// Returns the value of an argument, inserting a constant if necessary.
    fn argument(&mut self, arg: &CallArg) -> ValueId {
        match arg {
            CallArg::Value(value) => *value,
            CallArg::Constant(value) => self.constant(value.clone()),
        }
    }

    /// Describes an argument for schema matching.
    fn arg(&self, arg: &CallArg) -> ArgInfo {
        let g = &*self.graph;
        match arg {
            CallArg::Value(value) => {
                let empty_list = g.is_prim(g.def(*value), Prim::EmptyListLiteral);
                ArgInfo { ty: g.ty(*value), empty_list, inferred: false }
            }
            CallArg::Constant(value) => ArgInfo { ty: value.type_of(), empty_list: false, inferred: false },
        }
    }

    /// Inserts the defaults, packed lists and conversions of a matched call and returns its operands.
    ///
    /// # Panics
    /// If `values` lacks an argument that `matched` binds.
    pub fn bind_call(
        &mut self,
        schema: &FunctionSchema,
        matched: &MatchedSchema,
        values: CallValues<'_>,
    ) -> Operands {
        let mut operands = Operands::with_capacity(matched.params.len());
        for (param, formal) in matched.params.iter().zip(&schema.args) {
            let source = match &param.binding {
                Binding::Receiver => values.receiver,
                Binding::Positional(i) => values.positional.get(*i).copied(),
                Binding::Keyword(i) => values.keywords.get(*i).copied(),
                Binding::Default => {
                    let default = formal.default.clone().unwrap_or_default();
                    let ty = constant_type(&default, formal.ty);
                    Some(self.constant_of(default, ty))
                }
                Binding::Varargs { range, elem, conversions } => {
                    let items = values.positional[range.clone()].iter().zip(conversions);
                    let items: Operands = items.map(|(&v, steps)| self.convert(v, steps)).collect();
                    Some(self.value(Prim::ListConstruct, &items, Type::list(*elem)))
                }
            };
            let source = source.expect("invariant: matching binds parameters to arguments that are there");
            operands.push(self.convert(source, &param.conversions));
        }
        operands.extend(values.positional[matched.extra.clone()].iter().copied());
        operands
    }

    /// Inserts the nodes of a sequence of conversions and returns the last result.
    pub fn convert(&mut self, value: ValueId, steps: &[Conversion]) -> ValueId {
        let mut value = value;
        for step in steps {
            let from = self.graph.ty(value);
            value = match step {
                Conversion::Repeat { elem, n } => {
                    self.value(Prim::ListConstruct, &vec![value; *n as usize], Type::list(*elem))
                }
                Conversion::EmptyList(elem) => self.value(Prim::ListConstruct, &[], Type::list(*elem)),
                Conversion::TupleToList(elem) => {
                    let items = self.unpack_tuple(value);
                    self.value(Prim::ListConstruct, &items, Type::list(*elem))
                }
                Conversion::TupleElements(parts) => {
                    let items = self.unpack_tuple(value);
                    // The recursion is bounded by `Type::MAX_DEPTH`.
                    let items: Operands =
                        items.iter().zip(parts).map(|(&v, steps)| self.convert(v, steps)).collect();
                    self.tuple(&items)
                }
                Conversion::FloatImplicit => self.converted(ImplicitConversion::TensorToFloat, value),
                Conversion::ComplexImplicit => self.converted(ImplicitConversion::TensorToComplex, value),
                Conversion::IntImplicit => self.converted(ImplicitConversion::TensorToInt, value),
                Conversion::ScalarImplicit => self.converted(ImplicitConversion::TensorToNumber, value),
                Conversion::ToFloat => self.converted(ImplicitConversion::to_float(from), value),
                Conversion::ToComplex => self.converted(ImplicitConversion::NumberToComplex, value),
                Conversion::ToInt => self.converted(ImplicitConversion::to_int(from), value),
                Conversion::StrToDevice => match device_of(self.graph.constant(value)) {
                    Some(device) => self.constant(device),
                    None => self.converted(ImplicitConversion::StrToDevice, value),
                },
            };
        }
        value
    }

    fn converted(&mut self, converter: ImplicitConversion, value: ValueId) -> ValueId {
        let op = self.graph.registry().converter(converter);
        self.value(op, &[value], converter.result())
    }

    /// Inserts a tuple of values.
    pub fn tuple(&mut self, values: &[ValueId]) -> ValueId {
        let types: SmallVec<[Type; 8]> = values.iter().map(|&v| self.graph.ty(v)).collect();
        self.value(Prim::TupleConstruct, values, Type::tuple(&types))
    }

    /// Inserts a node that unpacks a tuple and returns the elements; returns none if the type of `value` is not a
    /// tuple.
    pub fn unpack_tuple(&mut self, value: ValueId) -> Operands {
        let elems = self.graph.ty(value).as_tuple().map(|t| t.elems.to_vec()).unwrap_or_default();
        let node = self.node(Prim::TupleUnpack, &[value], &elems);
        self.graph.results(node).collect()
    }
}

/// Returns the device that a constant string names; `None` if the constant is not a string or names no device.
pub fn device_of(constant: Option<IValue>) -> Option<IValue> {
    Device::parse(constant?.as_str()?.to_str()?).ok().map(IValue::Device)
}

/// Returns the type of the constant for a default: the type of the value, except that a list has the parameter's
/// element type.
fn constant_type(default: &IValue, formal: Type) -> Type {
    match default {
        IValue::List(_) if !formal.has_vars() => formal.unwrap_optional(),
        _ => default.type_of(),
    }
}
