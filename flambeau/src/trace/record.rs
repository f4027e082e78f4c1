//! The recorder of traces: appends calls of operators to a graph.
//!
//! The recorder knows values of the graph only. The caller maps tensors of a run to values:
//! [`super::Tracer`] identifies tensors of this library, the Python package those of PyTorch as well. Operands are
//! converted as PyTorch's tracer converts them: a tensor where an integer is expected becomes `aten::Int`, a number where a
//! tensor is expected a constant.

use crate::error::Error;
use crate::program::Program;
use crate::session::Session;
use flambeau_ir::attr::names;
use flambeau_ir::module::{CompilationUnit, Function};
use flambeau_ir::schema::{ArgInfo, SchemaCall, match_call};
use flambeau_ir::types::{NoClasses, TypeKind};
use flambeau_ir::{
    At, Attr, CallArg, Editor, Fault, Graph, IValue, ImplicitConversion, LocId, NodeId, OpId, Prim, Registry,
    ScalarOverload, Source, Symbol, Type, ValueId,
};
use flambeau_tensor::{Scalar, Tensor};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// An operand of a recorded call.
#[derive(Clone, Debug)]
pub enum TraceOperand {
    /// A value of the graph.
    Value(ValueId),
    /// A constant.
    Constant(IValue),
    /// A list whose elements are operands.
    List(Vec<TraceOperand>),
    /// A tuple whose elements are operands.
    Tuple(Vec<TraceOperand>),
    /// A dictionary whose keys and values are operands. It has at least one entry.
    Dict(Vec<(TraceOperand, TraceOperand)>),
}

/// A graph under construction, to which calls are appended in the order in which a run makes them.
///
/// ```
/// use flambeau::trace::{Recorder, TraceOperand};
/// use flambeau::{IValue, Session, Type};
///
/// let session = Session::standard()?;
/// let mut recorder = Recorder::new(&session);
/// let x = recorder.input("x", Type::TENSOR);
/// let sum = recorder.call("aten::add.Tensor", &[x.into(), x.into(), IValue::Int(1).into()])?;
/// let program = recorder.finish(&sum[0].into())?;
/// assert_eq!(program.entry("forward")?.graph().outputs().len(), 1);
/// # Ok::<(), flambeau::Error>(())
/// ```
pub struct Recorder {
    session: Session,
    graph: Graph,
    registry: Arc<Registry>,
    unit: Arc<CompilationUnit>,
    /// The name of the function that is recorded.
    name: Symbol,
    receiver: Option<ValueId>,
    /// Reads of attributes, which are at the start of the graph: each attribute of each object is read once.
    reads: HashMap<(ValueId, Symbol), ValueId, FxBuildHasher>,
    last_read: Option<NodeId>,
    loc: LocId,
}

impl From<ValueId> for TraceOperand {
    fn from(value: ValueId) -> Self {
        TraceOperand::Value(value)
    }
}

impl From<IValue> for TraceOperand {
    fn from(value: IValue) -> Self {
        TraceOperand::Constant(value)
    }
}

impl Recorder {
    /// Creates a recorder of a function.
    pub fn new(session: &Session) -> Recorder {
        Recorder::with_unit(session, Arc::new(CompilationUnit::new()))
    }

    /// Creates a recorder of a graph that may use the functions and classes of a unit.
    pub fn with_unit(session: &Session, unit: Arc<CompilationUnit>) -> Recorder {
        let registry = Arc::clone(session.registry());
        Recorder {
            session: session.clone(),
            graph: Graph::new(Arc::clone(&registry)),
            registry,
            unit,
            name: Symbol::new("forward"),
            receiver: None,
            reads: HashMap::default(),
            last_read: None,
            loc: LocId::UNKNOWN,
        }
    }

    /// Sets the name of the recorded function, which is `forward` otherwise.
    #[must_use]
    pub fn named(mut self, name: &str) -> Recorder {
        self.name = Symbol::new(name);
        self
    }

    /// Returns the graph as recorded so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Adds an input to the graph.
    pub fn input(&mut self, name: &str, ty: Type) -> ValueId {
        let mut edit = self.graph.edit();
        let value = edit.add_input(ty);
        edit.set_name(value, name);
        value
    }

    /// Names a value after a variable that held it.
    pub fn set_name(&mut self, value: ValueId, name: &str) {
        self.graph.edit().set_name(value, name);
    }

    /// Adds the input `self`, whose attributes [`Recorder::attribute`] reads. It must be the first input.
    pub fn receiver(&mut self, class: Type) -> ValueId {
        let value = self.input("self", class);
        self.receiver = Some(value);
        value
    }

    /// Returns an attribute of the receiver or of a module below it. Every attribute is read once, at the start of the
    /// graph.
    ///
    /// # Errors
    /// `X0003` without a receiver, or if an object on the path has no such attribute.
    pub fn attribute(&mut self, path: &[&str]) -> Result<ValueId, Error> {
        let receiver = self.receiver.ok_or_else(|| Error::misuse("the trace has no module"))?;
        path.iter().try_fold(receiver, |object, name| self.read(object, Symbol::new(name)))
    }

    fn read(&mut self, object: ValueId, name: Symbol) -> Result<ValueId, Error> {
        if let Some(&value) = self.reads.get(&(object, name)) {
            return Ok(value);
        }
        let class = self.unit.class(self.graph.ty(object));
        let attribute = class.and_then(|class| class.attribute(name));
        let ty = attribute.ok_or_else(|| Error::misuse(format!("the module has no attribute `{name}`")))?.ty;
        let at = match self.last_read {
            Some(node) => At::after(node),
            None => At::start(self.graph.root()),
        };
        let mut edit = self.graph.edit();
        edit.at(at);
        let attrs = edit.attrs([(names::name(), Attr::str(name.as_str()))]);
        let node = edit.insert(Prim::GetAttr, &[object], attrs, &[ty]);
        let value = edit.graph().result(node, 0);
        let is_word = name.as_str().bytes().next().is_some_and(|c| c.is_ascii_alphabetic());
        if is_word {
            edit.set_name(value, name);
        }
        self.reads.insert((object, name), value);
        self.last_read = Some(node);
        Ok(value)
    }

    /// Sets the location of the next nodes: a line of a source, from 1, and the scope, such as `__module.head`.
    pub fn set_location(&mut self, at: Option<(&Arc<Source>, u32)>, scope: &str) {
        let mut edit = self.graph.edit();
        let locs = edit.locs_mut();
        let mut loc = LocId::UNKNOWN;
        if let Some((source, line)) = at {
            let id = locs.add_source(source);
            let start = source.text.split_inclusive('\n').take(line.saturating_sub(1) as usize);
            let start = start.map(str::len).sum::<usize>() as u32;
            loc = locs.at(id, start..start);
        }
        if !scope.is_empty() {
            loc = locs.in_scope(loc, Symbol::new(scope));
        }
        self.loc = loc;
    }

    fn end(&mut self) -> Editor<'_> {
        let (root, loc) = (self.graph.root(), self.loc);
        let mut edit = self.graph.edit();
        edit.at(At::end(root)).loc(loc);
        edit
    }

    /// Appends a call of an operator, given by its full name (`aten::add.Tensor`), with the operands of its schema in
    /// order. Omitted operands at the end are the defaults. Returns the results.
    ///
    /// # Errors
    /// `X0002` for an unknown operator, `X0003` for operands that the schema does not have.
    pub fn call(&mut self, operator: &str, operands: &[TraceOperand]) -> Result<Vec<ValueId>, Error> {
        let (name, overload) = operator.split_once('.').unwrap_or((operator, ""));
        // As PyTorch, traces name operators that have synonyms by one of them.
        let name = self.registry.canonical(Symbol::new(name)).unwrap_or_else(|| Symbol::new(name));
        let op = self.registry.find(name, Symbol::new(overload)).or_else(|| self.registry.lookup(operator));
        let op = op.ok_or_else(|| unknown(operator))?;
        let op = self.overload_for_number(op, operands);
        let registry = Arc::clone(&self.registry);
        let schema = registry.schema(op);
        if operands.len() > schema.args.len() {
            return Err(Error::misuse(format!("`{operator}` has {} parameters", schema.args.len())));
        }
        // As PyTorch, conversions come before the lists of all operands.
        let operands: Result<Vec<TraceOperand>, Error> = operands
            .iter()
            .zip(&schema.args)
            .map(|(operand, formal)| self.prepared(operand, formal.ty))
            .collect();
        let operands = operands?;
        let mut values = Vec::with_capacity(schema.args.len());
        for (i, formal) in schema.args.iter().enumerate() {
            let value = match (operands.get(i), &formal.default) {
                (Some(operand), _) => self.operand(operand, formal.ty)?,
                (None, Some(default)) => self.operand(&operand_of(default), formal.ty)?,
                (None, None) => {
                    return Err(Error::misuse(format!("`{operator}` needs an argument `{}`", formal.name)));
                }
            };
            values.push(value);
        }
        let types = self.result_types(op, &values);
        let mut edit = self.end();
        let node = edit.node(op, &values, &types);
        Ok(self.graph.results(node).collect())
    }

    /// Appends a call of an operator by name, with the overload that fits the arguments, and returns its result. Several
    /// results are packed into a tuple.
    ///
    /// # Errors
    /// `X0003` if no overload fits.
    pub(super) fn call_by_name(
        &mut self,
        name: &str,
        args: &[CallArg],
        kwargs: &[(&str, CallArg)],
    ) -> Result<ValueId, Error> {
        let mut edit = self.end();
        let node = edit.call_with(name, args, kwargs).map_err(|error| Error::misuse(error.to_string()))?;
        let results: Vec<ValueId> = edit.graph().results(node).collect();
        Ok(packed(&mut edit, &results))
    }

    /// Returns the value of an operand.
    pub(super) fn value_of(&mut self, operand: &TraceOperand) -> Result<ValueId, Error> {
        self.operand(operand, Type::ANY)
    }

    /// Returns the last recorded node.
    pub(super) fn last_node(&self) -> Option<NodeId> {
        let last = self.graph.prev(self.graph.ret(self.graph.root()))?;
        Some(last).filter(|&node| !self.graph.is_prim(node, Prim::Param))
    }

    /// Returns the nodes behind what was the [`Recorder::last_node`].
    fn nodes_behind(&self, last: Option<NodeId>) -> impl Iterator<Item = NodeId> + '_ {
        let graph = &self.graph;
        let first = last.unwrap_or_else(|| graph.param(graph.root()));
        std::iter::successors(graph.next(first), |&node| graph.next(node))
    }

    /// Returns the overload for the operands: that for a number, if a number is given where the operator takes a tensor.
    /// PyTorch marks the tensor that it makes of the number; our type promotion knows numbers only.
    fn overload_for_number(&self, op: OpId, operands: &[TraceOperand]) -> OpId {
        let is_number = |value: &IValue| number_of(value).is_some() && value.as_bool().is_none();
        let number = matches!(operands.get(1), Some(TraceOperand::Constant(value)) if is_number(value));
        match self.registry.facet::<ScalarOverload>(op) {
            Some(ScalarOverload(overload)) if number => self.other_overload(op, overload),
            // A truth value is not a number of programs, but a tensor of one is an operand.
            _ if matches!(operands.get(1), Some(TraceOperand::Constant(IValue::Bool(_)))) => {
                let takes_number =
                    self.registry.schema(op).args.get(1).is_some_and(|arg| arg.ty == Type::NUMBER);
                if takes_number { self.other_overload(op, "Tensor") } else { op }
            }
            _ => op,
        }
    }

    fn other_overload(&self, op: OpId, overload: &str) -> OpId {
        self.registry.find(self.registry.schema(op).name, Symbol::new(overload)).unwrap_or(op)
    }

    /// Returns the types of a call's results: those of operators on containers follow from their operands.
    fn result_types(&self, op: OpId, values: &[ValueId]) -> Vec<Type> {
        let schema = self.registry.schema(op);
        let declared = || schema.returns.iter().map(|r| r.ty).collect();
        if !schema.returns.iter().any(|r| r.ty.has_vars()) {
            return declared();
        }
        let args: Vec<ArgInfo> = values
            .iter()
            .map(|&value| ArgInfo { ty: self.graph.ty(value), empty_list: false, inferred: false })
            .collect();
        let call = SchemaCall { receiver: None, args: &args, kwargs: &[] };
        match_call(&[schema], call, &NoClasses)
            .map_or_else(|_| declared(), |matched| matched.returns.to_vec())
    }

    /// Appends the body of a graph: a compiled function that the run calls is kept with its control flow. Returns its
    /// result; several results are packed into a tuple.
    ///
    /// # Errors
    /// `X0003` if the operands do not fit the graph's inputs.
    pub fn inline(&mut self, body: &Graph, operands: &[TraceOperand]) -> Result<ValueId, Error> {
        let types: Vec<Type> = body.inputs().map(|input| body.ty(input)).collect();
        if types.len() != operands.len() {
            let (wanted, found) = (types.len(), operands.len());
            return Err(Error::misuse(format!("expected {wanted} arguments but {found} were given")));
        }
        let values: Result<Vec<ValueId>, Error> =
            operands.iter().zip(types).map(|(operand, ty)| self.operand(operand, ty)).collect();
        let values = values?;
        let last = self.last_node();
        let results = self.end().inline_graph(body, &values, None);
        let mut results = results.map_err(|error| Error::misuse(error.to_string()))?;
        self.move_conversions(last, &values, &mut results)?;
        Ok(packed(&mut self.end(), &results))
    }

    /// As [`Recorder::inline`] for the graph of a program that calls an operator: its nodes have the location of the trace.
    ///
    /// # Errors
    /// As [`Recorder::inline`].
    pub fn inline_operator(&mut self, body: &Graph, operands: &[TraceOperand]) -> Result<ValueId, Error> {
        let last = self.last_node();
        let result = self.inline(body, operands)?;
        if self.loc != LocId::UNKNOWN {
            let added: Vec<NodeId> = self.nodes_behind(last).collect();
            let (mut edit, loc) = (self.graph.edit(), self.loc);
            added.into_iter().for_each(|node| edit.set_loc(node, loc));
        }
        Ok(result)
    }

    /// Replaces implicit conversions of operands to numbers, in the nodes behind `last`, by those that a call of an operator has. PyTorch's
    /// tracer sees no other conversions.
    fn move_conversions(
        &mut self,
        last: Option<NodeId>,
        operands: &[ValueId],
        results: &mut [ValueId],
    ) -> Result<(), Error> {
        let graph = &self.graph;
        let conversion = |node: NodeId| {
            self.registry.facet::<ImplicitConversion>(graph.op(node).row()?)?;
            let operand = graph.operands(node).next()?;
            (graph.ty(operand).is_tensor() && operands.contains(&operand)).then_some((
                node,
                operand,
                graph.result(node, 0),
            ))
        };
        let found: Vec<(NodeId, ValueId, ValueId)> = self.nodes_behind(last).filter_map(conversion).collect();
        for (node, operand, result) in found {
            let number = self.converted(operand, self.graph.ty(result))?;
            let mut edit = self.graph.edit();
            edit.replace_all_uses(result, number);
            edit.erase(node);
            results.iter_mut().filter(|value| **value == result).for_each(|value| *value = number);
        }
        Ok(())
    }

    /// Appends a call of a function, which the recorded program then has as well under the given name, or one made of it, with the
    /// functions that it calls. Returns its result. A method of an object, and a function whose program has classes, or whose
    /// callees have names that other functions of the recorded program have, is not called: its body is appended.
    ///
    /// # Errors
    /// `X0003` if the operands do not fit the function's parameters.
    pub fn call_function(
        &mut self,
        entry: &crate::Entry,
        name: &str,
        operands: &[TraceOperand],
    ) -> Result<ValueId, Error> {
        let Some(function) = self.adopt(entry, name) else {
            return self.inline(&entry.optimized("inline")?, operands);
        };
        let mut values = self.arguments(&function, operands)?;
        let mut edit = self.end();
        // The name that is shown is that of the source, as in PyTorch.
        let attrs = edit.attrs([(names::name(), Attr::str(name))]);
        let callee = edit.insert(Prim::Constant, &[], attrs, &[Type::function(function.name)]);
        values.insert(0, edit.graph().result(callee, 0));
        Ok(self.called(Prim::CallFunction, &values, None, &function))
    }

    /// Appends a call of a method of an object whose class is one of the recorded program. Returns its result.
    ///
    /// # Errors
    /// `X0003` if the class has no such method, or the operands do not fit its parameters.
    pub fn call_method(
        &mut self,
        object: ValueId,
        name: &str,
        operands: &[TraceOperand],
    ) -> Result<ValueId, Error> {
        let class = self.graph.ty(object);
        let method = self.unit.method(class, Symbol::new(name)).map(Arc::clone);
        let method = method.ok_or_else(|| Error::misuse(format!("'{class}' has no method '{name}'")))?;
        let all: Vec<TraceOperand> = std::iter::once(object.into()).chain(operands.iter().cloned()).collect();
        let values = self.arguments(&method, &all)?;
        Ok(self.called(Prim::CallMethod, &values, Some(name), &method))
    }

    fn arguments(&mut self, function: &Function, operands: &[TraceOperand]) -> Result<Vec<ValueId>, Error> {
        let params = &function.schema.args;
        if params.len() != operands.len() {
            let (wanted, found) = (params.len(), operands.len());
            return Err(Error::misuse(format!("expected {wanted} arguments but {found} were given")));
        }
        operands.iter().zip(params).map(|(operand, param)| self.operand(operand, param.ty)).collect()
    }

    fn called(&mut self, call: Prim, values: &[ValueId], name: Option<&str>, function: &Function) -> ValueId {
        let types: Vec<Type> = function.schema.returns.iter().map(|r| r.ty).collect();
        let mut edit = self.end();
        let attrs =
            edit.attrs(name.map(|name| (names::name(), Attr::str(name))).into_iter().collect::<Vec<_>>());
        let node = edit.insert(call, values, attrs, &types);
        let results: Vec<ValueId> = edit.graph().results(node).collect();
        packed(&mut edit, &results)
    }

    /// Adds a function of another program, and those that it calls, to the unit. Returns `None` if definitions of the programs may
    /// be in conflict.
    fn adopt(&mut self, entry: &crate::Entry, name: &str) -> Option<Arc<Function>> {
        let unit = entry.unit();
        let has_types = unit.classes().next().is_some()
            || unit.interfaces().next().is_some()
            || unit.enumerations().next().is_some();
        // A graph of another registry can be inlined, not called.
        let is_of_other_registry = |graph: &Graph| !Arc::ptr_eq(graph.registry(), &self.registry);
        if has_types || entry.is_method() || is_of_other_registry(entry.graph()) {
            return None;
        }
        let mut reached: Vec<&Arc<Function>> = Vec::new();
        let mut pending: Vec<Symbol> = callees(entry.graph());
        while let Some(next) = pending.pop() {
            if reached.iter().any(|known| known.name == next) {
                continue;
            }
            let callee = unit.function(next)?;
            if next == self.name || is_of_other_registry(&callee.graph) {
                return None;
            }
            if self.unit.function(next).is_some_and(|known| !Arc::ptr_eq(&known.graph, &callee.graph)) {
                return None;
            }
            pending.extend(callees(&callee.graph));
            reached.push(callee);
        }
        let mut own = Symbol::new(name);
        let mut count = 0;
        let of_trace = self.name;
        let is_taken = |unit: &CompilationUnit, own: Symbol| {
            own == of_trace || unit.function(own).is_some() || reached.iter().any(|callee| callee.name == own)
        };
        while is_taken(&self.unit, own) {
            if let Some(known) =
                self.unit.function(own).filter(|known| Arc::ptr_eq(&known.graph, entry.graph()))
            {
                return Some(Arc::clone(known));
            }
            count += 1;
            own = Symbol::new(&format!("{name}_{count}"));
        }
        let units = Arc::make_mut(&mut self.unit);
        for callee in reached {
            units.define_function((**callee).clone());
        }
        let (schema, graph) = (Arc::new(entry.schema().clone()), Arc::clone(entry.graph()));
        Some(units.define_function(Function { name: own, schema, graph }))
    }

    /// Appends the size of a tensor in a dimension, as a zero-dimensional tensor: sizes follow the arguments of later
    /// calls.
    ///
    /// # Errors
    /// `X0002` if the session has no operator for sizes.
    pub fn size(&mut self, tensor: &TraceOperand, dim: i64) -> Result<ValueId, Error> {
        let size = self.call("aten::size.int", &[tensor.clone(), IValue::Int(dim).into()])?;
        self.number(size[0])
    }

    /// Appends the conversion of a number to a tensor.
    ///
    /// # Errors
    /// `X0002` if the session has no such operator.
    pub fn number(&mut self, number: ValueId) -> Result<ValueId, Error> {
        let by_type = if self.graph.ty(number) == Type::BOOL {
            "prim::NumToTensor.bool"
        } else {
            "prim::NumToTensor.Scalar"
        };
        Ok(self.call(by_type, &[number.into()])?[0])
    }

    /// Appends the elements of a list of known length, or of a tuple.
    ///
    /// # Errors
    /// `X0003` if the value is neither.
    pub fn unpack(&mut self, value: ValueId, count: usize) -> Result<Vec<ValueId>, Error> {
        let ty = self.graph.ty(value);
        if ty.as_tuple().is_some() {
            let made = self.graph.def(value);
            return Ok(match self.graph.is_prim(made, Prim::TupleConstruct) {
                true => self.graph.operands(made).collect(),
                false => self.end().unpack_tuple(value).to_vec(),
            });
        }
        let elem =
            ty.list_elem().ok_or_else(|| Error::misuse(format!("a value of type {ty} has no elements")))?;
        let mut edit = self.end();
        let node = edit.node(Prim::ListUnpack, &[value], &vec![elem; count]);
        Ok(self.graph.results(node).collect())
    }

    /// Converts the values of an operand to the types of a parameter and of its elements.
    fn prepared(&mut self, operand: &TraceOperand, ty: Type) -> Result<TraceOperand, Error> {
        let inner = ty.optional_elem().unwrap_or(ty);
        match operand {
            TraceOperand::Value(value) => Ok(TraceOperand::Value(self.converted(*value, inner)?)),
            TraceOperand::List(items) => {
                let elem = inner.list_elem().filter(|elem| !elem.has_vars()).unwrap_or(Type::ANY);
                items
                    .iter()
                    .map(|item| self.prepared(item, elem))
                    .collect::<Result<_, _>>()
                    .map(TraceOperand::List)
            }
            other => Ok(other.clone()),
        }
    }

    /// Inserts an operand under a type.
    fn operand(&mut self, operand: &TraceOperand, ty: Type) -> Result<ValueId, Error> {
        let inner = match ty.kind() {
            TypeKind::Optional(inner) => *inner,
            _ => ty,
        };
        match operand {
            TraceOperand::Value(value) => self.converted(*value, inner),
            TraceOperand::Constant(value) => match number_of(value).filter(|_| inner.is_tensor()) {
                Some(number) => {
                    let tensor = Tensor::scalar(number, number.dtype())?;
                    Ok(self.end().constant(IValue::Tensor(tensor)))
                }
                None => Ok(self.end().constant(value.clone())),
            },
            TraceOperand::List(items) => {
                let elem = inner.list_elem().filter(|elem| !elem.has_vars());
                let values = self.operands(items, elem)?;
                let elem = elem.or(values.first().map(|&v| self.graph.ty(v))).unwrap_or(Type::TENSOR);
                Ok(self.end().value(Prim::ListConstruct, &values, Type::list(elem)))
            }
            TraceOperand::Tuple(items) => {
                let elems = inner.as_tuple().map(|tuple| tuple.elems.to_vec());
                let values: Result<Vec<ValueId>, Error> = items
                    .iter()
                    .enumerate()
                    .map(|(i, item)| {
                        let elem = elems.as_ref().and_then(|elems| elems.get(i)).copied();
                        self.operand(item, elem.unwrap_or(Type::ANY))
                    })
                    .collect();
                Ok(self.end().tuple(&values?))
            }
            TraceOperand::Dict(entries) => {
                let (mut values, mut types) = (Vec::new(), (Type::STR, Type::TENSOR));
                for (key, value) in entries {
                    let (key, value) = (self.operand(key, Type::ANY)?, self.operand(value, Type::ANY)?);
                    types = (self.graph.ty(key), self.graph.ty(value));
                    values.extend([key, value]);
                }
                Ok(self.end().value(Prim::DictConstruct, &values, Type::dict(types.0, types.1)))
            }
        }
    }

    fn operands(&mut self, items: &[TraceOperand], elem: Option<Type>) -> Result<Vec<ValueId>, Error> {
        items.iter().map(|item| self.operand(item, elem.unwrap_or(Type::ANY))).collect()
    }

    /// Converts a value to the type of a parameter.
    fn converted(&mut self, value: ValueId, ty: Type) -> Result<ValueId, Error> {
        let from = self.graph.ty(value);
        if ty.is_tensor() && [Type::INT, Type::FLOAT, Type::BOOL, Type::NUMBER].contains(&from) {
            return self.number(value);
        }
        if !from.is_tensor() {
            return Ok(value);
        }
        let conversion = match ty.kind() {
            TypeKind::Int => "aten::Int.Tensor",
            TypeKind::Float => "aten::Float.Tensor",
            TypeKind::Bool => "aten::Bool.Tensor",
            TypeKind::Number => "aten::ScalarImplicit",
            _ => return Ok(value),
        };
        self.convert_at_definition(conversion, value)
    }

    /// Converts a tensor to a number directly behind the node that defines it, where PyTorch's tracer converts it: later conversions
    /// of the same tensor come before earlier ones, and before all nodes that ran in between.
    fn convert_at_definition(&mut self, conversion: &str, value: ValueId) -> Result<ValueId, Error> {
        let op = self.registry.lookup(conversion).ok_or_else(|| unknown(conversion))?;
        let result = self.registry.schema(op).returns.first().map_or(Type::ANY, |ret| ret.ty);
        let definition = self.graph.def(value);
        let loc = self.graph.loc(definition);
        let mut edit = self.graph.edit();
        edit.at(At::after(definition)).loc(loc);
        Ok(edit.value(op, &[value], result))
    }

    /// Ends the trace with a result; the graph becomes a function of a program with the classes and functions of the unit.
    ///
    /// # Errors
    /// `V…` if the graph does not verify.
    pub fn finish(mut self, result: &TraceOperand) -> Result<Program, Error> {
        self.end_graph(result)?;
        let mut unit = (*self.unit).clone();
        unit.define_function(Function::of_graph(self.name, Arc::new(self.graph)));
        Ok(Program::of_unit(&self.session, unit))
    }

    /// Ends the trace with a result; the graph becomes a method of the receiver's class, in a program with the classes and
    /// functions of the unit.
    ///
    /// # Errors
    /// As [`Recorder::finish`]; `X0003` without a receiver.
    pub fn finish_method(mut self, name: &str, result: &TraceOperand) -> Result<Program, Error> {
        let receiver = self.receiver.ok_or_else(|| Error::misuse("the trace has no module"))?;
        self.end_graph(result)?;
        let class = self.graph.ty(receiver);
        let mut unit = (*self.unit).clone();
        let qualified = Symbol::new(&format!("{}.{name}", class.annotation_str()));
        unit.define_function(Function::of_graph(qualified, Arc::new(self.graph)));
        if let Some(class) = unit.class_mut(class) {
            class.methods.insert(Symbol::new(name), qualified);
        }
        Ok(Program::of_unit(&self.session, unit))
    }

    /// Replaces tensors that were made of numbers in the same submodule by these numbers where numbers are needed. PyTorch's tracer does
    /// so in the methods that it makes of submodules, and keeps the conversions of functions and of the module itself.
    fn drop_conversions(&mut self) {
        let graph = &self.graph;
        let scope_of = |node: NodeId| graph.locs().scope(graph.loc(node));
        let number_of = |node: NodeId| {
            let name = graph.op_name(node);
            let name = name.as_str();
            if !["aten::Int", "aten::Float", "aten::ScalarImplicit"].contains(&name) {
                return None;
            }
            let made = graph.def(graph.operands(node).next()?);
            let number = graph.operands(made).next()?;
            let is_same_kind = match name {
                "aten::Int" => graph.ty(number) == Type::INT,
                "aten::Float" => graph.ty(number) == Type::FLOAT,
                _ => true,
            };
            let scope = scope_of(node)?;
            let is_made =
                graph.op_name(made).as_str() == "prim::NumToTensor" && scope_of(made) == Some(scope);
            (is_made && is_same_kind).then_some(number)
        };
        let found: Vec<(NodeId, ValueId)> =
            graph.nodes_deep().filter_map(|node| Some((node, number_of(node)?))).collect();
        for (node, number) in found {
            let results: Vec<ValueId> = self.graph.results(node).collect();
            let mut edit = self.graph.edit();
            for result in results {
                edit.replace_all_uses(result, number);
            }
            edit.erase(node);
        }
    }

    fn end_graph(&mut self, result: &TraceOperand) -> Result<(), Error> {
        let value = self.operand(result, Type::ANY)?;
        self.graph.edit().add_output(value);
        self.drop_conversions();
        // Sizes that nothing uses are recorded, too.
        self.graph = Graph::clone(&*self.session.optimize(&self.graph, "dce")?);
        flambeau_ir::verify::verify_with(&self.graph, &*self.unit)?;
        Ok(())
    }
}

fn unknown(operator: &str) -> Error {
    Error::new(Fault::Unsupported, "X0002", format!("the operator `{operator}` cannot be recorded"))
}

/// Returns the names of the functions that a graph refers to, in nested blocks and subgraphs as well.
fn callees(graph: &Graph) -> Vec<Symbol> {
    let mut found = Vec::new();
    let mut graphs = vec![graph];
    while let Some(graph) = graphs.pop() {
        for node in graph.nodes_deep() {
            for result in graph.results(node) {
                if let TypeKind::Function(name) = graph.ty(result).kind()
                    && !name.is_empty()
                {
                    found.push(*name);
                }
            }
            graphs.extend(graph.attr(node, names::subgraph()).and_then(Attr::as_graph).map(|body| &**body));
        }
    }
    found
}

/// Returns the only result, or a tuple of several.
fn packed(edit: &mut Editor<'_>, results: &[ValueId]) -> ValueId {
    match results {
        [one] => *one,
        several => edit.tuple(several),
    }
}

fn number_of(value: &IValue) -> Option<Scalar> {
    match value {
        IValue::Int(n) => Some(Scalar::Int(*n)),
        IValue::Float(x) => Some(Scalar::Float(*x)),
        IValue::Bool(b) => Some(Scalar::Bool(*b)),
        IValue::Complex(z) => Some(Scalar::Complex(**z)),
        _ => None,
    }
}

/// Returns a default as an operand: lists are made of their elements.
fn operand_of(value: &IValue) -> TraceOperand {
    match value {
        IValue::List(list) => TraceOperand::List(list.to_vec().iter().map(operand_of).collect()),
        other => TraceOperand::Constant(other.clone()),
    }
}
