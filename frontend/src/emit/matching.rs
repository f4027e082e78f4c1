//! Argument binding: selects the overload of a call and emits the nodes for its operands.
//!
//! [`flambeau_ir::schema::match_call`] matches on types alone; this file turns its result into nodes.

use flambeau_ir::attr::names as attr_names;
use flambeau_ir::schema::{
    ArgInfo, CallError, CandidateFailure, FunctionSchema, MatchedSchema, SchemaCall, SchemaMismatch,
    match_call, match_one,
};
use flambeau_ir::types::{is_subtype, is_subtype_why};
use flambeau_ir::{CallValues, Graph, IValue, Op, Operands, Prim, Symbol, Type, ValueId, device_of, nearest};

use super::fun::{Cx, Res};
use super::overloads::{CallShape, Candidate, NoTarget};
use crate::span::Span;

/// Maximum number of candidates listed in the message of a failed match.
const CANDIDATES: usize = 5;

/// An argument of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallArgument {
    pub(crate) value: ValueId,
    pub(crate) ty: Type,
    /// True for a literal `[]` whose element type is not determined yet.
    pub(crate) empty_list: bool,
    /// True for a parameter without an annotation. Affects messages only.
    pub(crate) inferred: bool,
}

impl CallArgument {
    fn arg(self) -> ArgInfo {
        ArgInfo { ty: self.ty, empty_list: self.empty_list, inferred: self.inferred }
    }
}

/// The arguments of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallArgs {
    /// Bound to the parameter `self`, at any position.
    pub(crate) receiver: Option<CallArgument>,
    pub(crate) positional: Vec<CallArgument>,
    pub(crate) keywords: Vec<(Symbol, CallArgument)>,
}

impl CallArgs {
    /// Returns whether an argument is a host object.
    pub(super) fn has_host(&self) -> bool {
        self.all().any(|g| g.ty == Type::PY_OBJECT)
    }

    /// Returns all arguments: the receiver, those without names, those with names.
    pub(super) fn all(&self) -> impl Iterator<Item = &CallArgument> {
        self.receiver.iter().chain(&self.positional).chain(self.keywords.iter().map(|(_, g)| g))
    }

    /// Returns the parts of the call that overload resolution depends on.
    fn shape(&self) -> CallShape {
        CallShape {
            receiver: self.receiver.map(CallArgument::arg),
            args: self.positional.iter().map(|g| g.arg()).collect(),
            kwargs: self.keywords.iter().map(|(n, g)| (*n, g.arg())).collect(),
        }
    }
}

/// Returns the text of a schema that accepts the call as written. The result type is unknown and is given as `Tensor`,
/// which is the most common case.
fn as_called(name: Symbol, args: &CallArgs) -> String {
    let in_order = args.receiver.iter().chain(&args.positional);
    let mut params: Vec<String> =
        in_order.enumerate().map(|(i, given)| format!("{} a{i}", given.ty)).collect();
    params.extend((!args.keywords.is_empty()).then(|| "*".to_owned()));
    params.extend(args.keywords.iter().map(|(name, given)| format!("{} {name}", given.ty)));
    format!("{name}({}) -> Tensor", params.join(", "))
}

impl Cx<'_> {
    /// Wraps a value as an argument.
    pub(crate) fn given(&self, value: ValueId) -> CallArgument {
        self.read(|g| CallArgument {
            value,
            ty: g.ty(value),
            empty_list: g.is_prim(g.def(value), Prim::EmptyListLiteral),
            inferred: self.is_unannotated(g, value),
        })
    }

    /// Returns whether a value is a parameter whose type was not declared.
    fn is_unannotated(&self, graph: &Graph, value: ValueId) -> bool {
        let unannotated = self.fun.unannotated.borrow();
        let def = graph.def(value);
        if unannotated.is_empty() || !graph.is_prim(def, Prim::Load) {
            return false;
        }
        let name = graph.attr(def, attr_names::name()).and_then(|name| name.as_str()).map(Symbol::new);
        name.is_some_and(|name| unannotated.contains(&name))
    }

    /// Inserts the conversions and defaults of a matched call; returns its operands.
    fn apply(&self, schema: &FunctionSchema, matched: &MatchedSchema, args: &CallArgs) -> Operands {
        let positional: Operands = args.positional.iter().map(|g| g.value).collect();
        let keywords: Operands = args.keywords.iter().map(|(_, g)| g.value).collect();
        let receiver = args.receiver.map(|g| g.value);
        let values = CallValues { receiver, positional: &positional, keywords: &keywords };
        self.edit(|e| e.bind_call(schema, matched, values))
    }

    /// Returns the device that a constant string names.
    pub(crate) fn known_device(&self, value: ValueId) -> Option<IValue> {
        device_of(self.known(value))
    }

    /// Converts a value to type `to` if an implicit conversion exists; else returns it unchanged.
    pub(crate) fn try_convert(&self, value: ValueId, to: Type) -> ValueId {
        let given = self.given(value);
        if given.ty == to && !given.empty_list {
            return value;
        }
        if given.ty == Type::PY_OBJECT && to != Type::ANY {
            return self.cast_host(value, to);
        }
        let schema = FunctionSchema {
            name: Symbol::EMPTY,
            overload: Symbol::EMPTY,
            args: vec![flambeau_ir::schema::Argument::new(Symbol::EMPTY, to)],
            returns: Vec::new(),
            vararg: false,
            varret: false,
        };
        let call = SchemaCall { args: &[given.arg()], ..SchemaCall::default() };
        match match_one(&schema, call, true, self.session) {
            Ok(matched) => self.edit(|e| e.convert(value, &matched.params[0].conversions)),
            Err(_) => value,
        }
    }

    pub(crate) fn is_subtype(&self, a: Type, b: Type) -> bool {
        is_subtype(a, b, self.session)
    }

    /// Adds to a problem the reason why type `a` is not a subtype of `b`, such as a method of an interface that a class does not
    /// have.
    pub(crate) fn explained(
        &self,
        mut problem: Box<flambeau_ir::Diagnostic>,
        a: Type,
        b: Type,
    ) -> Box<flambeau_ir::Diagnostic> {
        let (_, why) = is_subtype_why(a, b, self.session);
        if !why.is_empty() {
            problem.notes.push(why.trim_end().to_owned());
        }
        problem
    }

    /// Calls the overload of operator `name` that matches the arguments.
    pub(crate) fn builtin(&self, span: Span, name: &str, args: &[ValueId]) -> Res<ValueId> {
        let args =
            CallArgs { positional: args.iter().map(|&v| self.given(v)).collect(), ..CallArgs::default() };
        self.call_builtin(span, Symbol::new(name), &args)
    }

    /// Binds the arguments of a call of a program function; returns the operands and the result type.
    pub(crate) fn match_function(
        &self,
        span: Span,
        schema: &FunctionSchema,
        args: &CallArgs,
    ) -> Res<(Operands, Type)> {
        let cast = args.has_host().then(|| self.cast_arguments(span, schema, args));
        let args = cast.as_ref().unwrap_or(args);
        match match_call(&[schema], args.shape().call(), self.session) {
            Ok(matched) => {
                self.at(span);
                let operands = self.apply(schema, &matched, args);
                Ok((operands, schema.pack(&matched.returns)))
            }
            Err(why) => Err(self.no_match(span, schema.name, args, &why)),
        }
    }

    /// Returns the position of the first schema that the arguments fit.
    pub(crate) fn match_functions(
        &self,
        span: Span,
        name: Symbol,
        schemas: &[&FunctionSchema],
        args: &CallArgs,
    ) -> Res<usize> {
        match match_call(schemas, args.shape().call(), self.session) {
            Ok(matched) => Ok(matched.schema),
            Err(why) => Err(self.no_match(span, name, args, &why)),
        }
    }

    /// Calls the overload of operator `name` that matches; packs several results into a tuple.
    pub(crate) fn call_builtin(&self, span: Span, name: Symbol, args: &CallArgs) -> Res<ValueId> {
        if let Some(result) = self.builtin_on_host(span, name, args)? {
            return Ok(result);
        }
        if let Some(function) = self.over_objects(span, name, args)? {
            let compiled = self.session.compile(function)?;
            return self.call_compiled(span, function, &compiled.schema, args);
        }
        let chosen = match self.session.choose(name, args.shape()) {
            Ok(chosen) => chosen,
            Err(NoTarget::Lost(problem)) => return Err(problem),
            Err(NoTarget::Unknown) => return Err(self.unknown_operator(span, name, args)),
            Err(NoTarget::Mismatch(why)) => return Err(self.no_match(span, name, args, &why)),
        };
        self.at(span);
        let schema = chosen.target.schema(self.session.registry());
        let returns = &chosen.matched.returns;
        let operands = self.apply(schema, &chosen.matched, args);
        match (&chosen.target, chosen.row) {
            (Candidate::Structural(prim, _), _) => Ok(self.packed(*prim, &operands, schema, returns)),
            (Candidate::Row(id), row) => Ok(self.packed(row.unwrap_or(*id), &operands, schema, returns)),
            (Candidate::Written(function), _) => {
                let results = self.edit(|e| {
                    let call = (e.current_loc(), Symbol::new(name.base()));
                    e.inline_graph(&function.graph, &operands, Some(call))
                });
                match results.map(|r| r.first().copied()) {
                    Ok(Some(value)) => Ok(value),
                    _ => self.fail(span, format!("`{name}` cannot be inlined")),
                }
            }
        }
    }

    /// Describes why a call does not match: the mismatch of a single candidate, or the mismatches of the closest
    /// candidates.
    fn no_match(
        &self,
        span: Span,
        name: Symbol,
        args: &CallArgs,
        why: &CallError,
    ) -> Box<flambeau_ir::Diagnostic> {
        let mut problem = self.mismatch(span, name, why);
        if let Some(open) = args.all().find(|g| g.ty.optional_elem().is_some()) {
            let ty = open.ty.annotation();
            problem.help = Some(format!("a value of type {ty} may be None; compare it with None first"));
        }
        problem
    }

    fn mismatch(&self, span: Span, name: Symbol, why: &CallError) -> Box<flambeau_ir::Diagnostic> {
        let ranked = why.ranked();
        let describe = |failure: &CandidateFailure| {
            let reason = failure.mismatch.to_string();
            reason.trim().replace('\n', " ")
        };
        if let [only] = ranked.as_slice() {
            let mut problem = self.error(span, describe(only));
            if let SchemaMismatch::Type { wanted, found, .. } = only.mismatch {
                problem = self.explained(problem, found, wanted);
            }
            problem.notes.push(format!("the candidate is {}", only.text));
            return problem;
        }
        let mut problem =
            self.error(span, format!("Arguments for call are not valid: no variant of `{name}` takes them"));
        for failure in ranked.iter().take(CANDIDATES) {
            problem.notes.push(format!("{}: {}", failure.text, describe(failure)));
        }
        if ranked.len() > CANDIDATES {
            problem.notes.push(format!("and {} other variants", ranked.len() - CANDIDATES));
        }
        problem
    }

    /// Describes an unknown operator. All `aten` operators are registered, so an unknown one is a mistake of the
    /// source.
    pub(crate) fn unknown_operator(
        &self,
        span: Span,
        name: Symbol,
        args: &CallArgs,
    ) -> Box<flambeau_ir::Diagnostic> {
        let Some(base) = name.as_str().strip_prefix("aten::") else {
            let range = self.fun.file.range(span);
            let help = format!(
                "register the operator with the session, with the schema that its library declares: \
                 `Session::builder().standard().ops([OpDef::new(\"{}\").with(Kernel::new(|cx| …))])` \
                 with `flambeau::ir::OpDef` and `flambeau::exec::Kernel`",
                as_called(name, args)
            );
            let message = format!("operator `{name}` is not registered");
            let problem = flambeau_ir::Diagnostic::new(flambeau_ir::Fault::Unsupported, "F0108", message);
            return Box::new(problem.at(range).help(help));
        };
        let mut problem = self.error(span, format!("Unknown builtin op: {name}"));
        let registry = self.session.registry();
        let known = registry.ids().map(|id| registry.schema(id).name.as_str());
        let near = nearest(base, known.filter_map(|n| n.strip_prefix("aten::")));
        problem.help = Some(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "no operator has a similar name. This op may not exist or may not be currently supported in TorchScript"
                .to_owned(),
        });
        problem
    }

    /// Returns the library function that implements an operator over a list of objects.
    fn over_objects(&self, span: Span, name: Symbol, args: &CallArgs) -> Res<Option<Symbol>> {
        let list = args.receiver.as_ref().or(args.positional.first());
        let Some(elem) = list.and_then(|list| list.ty.list_elem()) else { return Ok(None) };
        super::sorting::over_objects(self.session, name, elem)
            .or_else(|error| self.unsupported(span, &format!("sorting of {error} is")))
    }

    /// Appends a node and returns its results as one value.
    fn packed(
        &self,
        op: impl Into<Op>,
        operands: &[ValueId],
        schema: &FunctionSchema,
        types: &[Type],
    ) -> ValueId {
        let node = self.node(op, operands, types);
        if types.len() == 1 {
            return self.read(|g| g.result(node, 0));
        }
        let results: Vec<ValueId> = self.read(|g| g.results(node).collect());
        self.value(Prim::TupleConstruct, &results, schema.pack(types))
    }
}
