//! Calls: which overload is meant, and the nodes that make its arguments.
//!
//! Matching itself is [`flambeau_ir::schema::match_call`], which decides on types alone; here its plan
//! becomes nodes.

use flambeau_ir::module::Function;
use flambeau_ir::schema::{
    Arg, Binding, Call, CallError, Conversion, Failure, FunctionSchema, MatchedSchema, match_call, match_one,
};
use flambeau_ir::types::is_subtype;
use flambeau_ir::{IValue, OpId, Prim, Registry, Symbol, Type, ValueId};

use super::fun::{Cx, Res};
use super::session::Overload;
use crate::span::Span;
use crate::ssa::operator;

/// How many variants are shown when none fits.
const CANDIDATES: usize = 5;

/// An argument of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    pub(crate) value: ValueId,
    pub(crate) ty: Type,
    /// `[]` without an element type yet.
    pub(crate) empty_list: bool,
}

impl Given {
    fn arg(self) -> Arg {
        Arg { ty: self.ty, empty_list: self.empty_list, inferred: false }
    }
}

/// The arguments of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Args {
    /// Bound to the parameter `self`, wherever that stands.
    pub(crate) receiver: Option<Given>,
    pub(crate) positional: Vec<Given>,
    pub(crate) keywords: Vec<(Symbol, Given)>,
}

impl Args {
    /// Calls `f` with the arguments as matching wants them.
    fn as_call<T>(&self, f: impl FnOnce(Call<'_>) -> T) -> T {
        let args: Vec<Arg> = self.positional.iter().map(|g| g.arg()).collect();
        let kwargs: Vec<(Symbol, Arg)> = self.keywords.iter().map(|(n, g)| (*n, g.arg())).collect();
        f(Call { receiver: self.receiver.map(Given::arg), args: &args, kwargs: &kwargs })
    }
}

/// Overloads that PyTorch never picks in programs.
fn is_blocked(schema: &FunctionSchema) -> bool {
    let name = (schema.name.as_str(), schema.overload.as_str());
    matches!(name, ("aten::view", "dtype") | ("aten::max" | "aten::min", "unary_out"))
}

/// The type a default is a constant of: its own, but a list takes the parameter's element type.
fn constant_type(default: &IValue, formal: Type) -> Type {
    match default {
        IValue::List(_) if !formal.has_vars() => formal.unwrap_optional(),
        _ => default.type_of(),
    }
}

/// The overload of `target` that takes and gives what this schema does.
fn same_overload(registry: &Registry, target: Symbol, schema: &FunctionSchema) -> Option<OpId> {
    let id = registry.find(target, schema.overload)?;
    let other = registry.schema(id);
    let types = |s: &FunctionSchema| s.args.iter().map(|a| a.ty).collect::<Vec<_>>();
    (types(other) == types(schema) && other.returns.len() == schema.returns.len()).then_some(id)
}

/// What a call of an operator may come to.
#[derive(Clone, Copy)]
enum Target<'a> {
    Row(OpId),
    Written(&'a Function),
    Structural(Prim),
}

/// All that a call of the operator `name` is held against, in order: what is registered, or stands for it, then what is
/// written in TorchScript besides.
fn candidates<'a>(
    registry: &'a Registry,
    name: Symbol,
    written: &'a [Overload],
    structural: Option<&'a (Prim, FunctionSchema)>,
) -> Vec<(Target<'a>, &'a FunctionSchema)> {
    let function = |o: &'a Overload| (Target::Written(&o.function), &*o.function.schema);
    let row = |&id: &OpId| {
        let schema = registry.schema(id);
        let instead = written.iter().find(|o| o.replaces == Some(schema.overload));
        instead.map_or((Target::Row(id), schema), function)
    };
    let rows = registry.overloads(name).iter().filter(|&&id| !is_blocked(registry.schema(id)));
    let mut all: Vec<_> = rows.map(row).collect();
    all.extend(written.iter().filter(|o| o.replaces.is_none()).map(function));
    all.extend(structural.map(|(prim, schema)| (Target::Structural(*prim), schema)));
    all
}

impl Cx<'_> {
    /// A value as an argument.
    pub(crate) fn given(&self, value: ValueId) -> Given {
        self.read(|g| Given {
            value,
            ty: g.ty(value),
            empty_list: g.is_prim(g.def(value), Prim::EmptyListLiteral),
        })
    }

    /// Puts the nodes of a call's conversions and defaults into the graph; the operands result.
    fn apply(&self, schema: &FunctionSchema, matched: &MatchedSchema, args: &Args) -> Vec<ValueId> {
        let mut operands = Vec::with_capacity(matched.params.len());
        let receiver = args.receiver.map(|g| g.value);
        for (param, formal) in matched.params.iter().zip(&schema.args) {
            let source = match &param.binding {
                Binding::Receiver => receiver,
                Binding::Positional(i) => args.positional.get(*i).map(|g| g.value),
                Binding::Keyword(i) => args.keywords.get(*i).map(|(_, g)| g.value),
                Binding::Default => {
                    let default = formal.default.clone().unwrap_or_default();
                    let ty = constant_type(&default, formal.ty);
                    Some(self.edit(|e| e.constant_of(default, ty)))
                }
                Binding::Varargs { range, elem, conversions } => {
                    let items = args.positional[range.clone()].iter().zip(conversions);
                    let items: Vec<ValueId> = items.map(|(g, steps)| self.convert(g.value, steps)).collect();
                    Some(self.value(Prim::ListConstruct, &items, Type::list(*elem)))
                }
            };
            let source = source.expect("invariant: matching binds parameters to arguments that are there");
            operands.push(self.convert(source, &param.conversions));
        }
        operands.extend(args.positional[matched.extra.clone()].iter().map(|g| g.value));
        operands
    }

    fn convert(&self, value: ValueId, steps: &[Conversion]) -> ValueId {
        let mut value = value;
        for step in steps {
            let call = |op: &str, ty| self.value(operator(self.session.registry(), op), &[value], ty);
            let from = self.ty(value);
            let kind = if from == Type::BOOL { "bool" } else { "Scalar" };
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
                    // Types nest no deeper than `Type::MAX_DEPTH`.
                    let items: Vec<ValueId> =
                        items.iter().zip(parts).map(|(&v, steps)| self.convert(v, steps)).collect();
                    self.tuple(&items)
                }
                Conversion::FloatImplicit => call("aten::FloatImplicit", Type::FLOAT),
                Conversion::ComplexImplicit => call("aten::ComplexImplicit", Type::COMPLEX),
                Conversion::IntImplicit => call("aten::IntImplicit", Type::INT),
                Conversion::ScalarImplicit => call("aten::ScalarImplicit", Type::NUMBER),
                Conversion::ToFloat => call(&format!("aten::Float.{kind}"), Type::FLOAT),
                Conversion::ToComplex => call("aten::Complex.Scalar", Type::COMPLEX),
                Conversion::ToInt => call(&format!("aten::Int.{kind}"), Type::INT),
                Conversion::StrToDevice => match self.known_device(value) {
                    Some(device) => self.constant(device),
                    None => call("aten::device", Type::DEVICE),
                },
            };
        }
        value
    }

    /// The device that a constant string names.
    pub(crate) fn known_device(&self, value: ValueId) -> Option<IValue> {
        let text = self.known(value)?;
        let device = flambeau_tensor::Device::parse(text.as_str()?.to_str()?).ok()?;
        Some(IValue::Device(device))
    }

    /// Makes a value fit a type if an implicit conversion can; else answers it as it is.
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
        let call = Call { args: &[given.arg()], ..Call::default() };
        match match_one(&schema, call, true, self.session) {
            Ok(matched) => self.convert(value, &matched.params[0].conversions),
            Err(_) => value,
        }
    }

    pub(crate) fn is_subtype(&self, a: Type, b: Type) -> bool {
        is_subtype(a, b, self.session)
    }

    /// Calls the operator of this name that fits the arguments.
    pub(crate) fn builtin(&self, span: Span, name: &str, args: &[ValueId]) -> Res<ValueId> {
        let args = Args { positional: args.iter().map(|&v| self.given(v)).collect(), ..Args::default() };
        self.call_builtin(span, Symbol::new(name), &args)
    }

    /// The operands and result type of a call of a function of the program.
    pub(crate) fn match_function(
        &self,
        span: Span,
        schema: &FunctionSchema,
        args: &Args,
    ) -> Res<(Vec<ValueId>, Type)> {
        match args.as_call(|call| match_call(&[schema], call, self.session)) {
            Ok(matched) => {
                self.at(span);
                let operands = self.apply(schema, &matched, args);
                Ok((operands, schema.pack(&matched.returns)))
            }
            Err(why) => Err(self.no_match(span, schema.name, &why)),
        }
    }

    /// Calls the overload of operator `name` that fits; several results come as a tuple.
    pub(crate) fn call_builtin(&self, span: Span, name: Symbol, args: &Args) -> Res<ValueId> {
        let registry = self.session.registry();
        let alias = super::names::alias_of(name);
        // A second name that the registry does not have is as good as the first.
        let name = alias.filter(|_| registry.overloads(name).is_empty()).unwrap_or(name);
        let written = self.session.script_builtins(name)?;
        let structural = super::names::structural(name);
        let candidates = candidates(registry, name, &written, structural.as_ref());
        if candidates.is_empty() {
            return Err(self.unknown_operator(span, name));
        }
        let schemas: Vec<&FunctionSchema> = candidates.iter().map(|(_, schema)| *schema).collect();
        let matched = match args.as_call(|call| match_call(&schemas, call, self.session)) {
            Ok(matched) => matched,
            Err(why) => return Err(self.no_match(span, name, &why)),
        };
        self.at(span);
        let (target, schema) = &candidates[matched.schema];
        let operands = self.apply(schema, &matched, args);
        match *target {
            Target::Row(id) => {
                let id = alias.and_then(|target| same_overload(registry, target, schema)).unwrap_or(id);
                let node = self.node(id, &operands, &matched.returns);
                Ok(self.pack(node, schema, &matched.returns))
            }
            Target::Structural(prim) => {
                let node = self.node(prim, &operands, &matched.returns);
                Ok(self.pack(node, schema, &matched.returns))
            }
            Target::Written(function) => {
                let results = self.edit(|e| e.inline_graph(&function.graph, &operands, None));
                match results.map(|r| r.first().copied()) {
                    Ok(Some(value)) => Ok(value),
                    _ => self.fail(span, format!("`{name}` cannot be put in place")),
                }
            }
        }
    }

    /// What is wrong with a call: of one candidate the reason, of several those that came furthest, each with its own.
    fn no_match(&self, span: Span, name: Symbol, why: &CallError) -> Box<flambeau_ir::Diagnostic> {
        let ranked = why.ranked();
        let told = |failure: &Failure| {
            let reason = failure.mismatch.to_string();
            reason.trim().replace('\n', " ")
        };
        if let [only] = ranked.as_slice() {
            let mut problem = self.error(span, told(only));
            problem.notes.push(format!("the call is of {}", only.text));
            return problem;
        }
        let mut problem = self.error(span, format!("Arguments for call of `{name}` are not valid"));
        for failure in ranked.iter().take(CANDIDATES) {
            problem.notes.push(format!("{}: {}", failure.text, told(failure)));
        }
        if ranked.len() > CANDIDATES {
            problem.notes.push(format!("and {} other variants", ranked.len() - CANDIDATES));
        }
        problem
    }

    /// Of PyTorch's own operators all are known, so a name among them that is not is a mistake.
    fn unknown_operator(&self, span: Span, name: Symbol) -> Box<flambeau_ir::Diagnostic> {
        let Some(base) = name.as_str().strip_prefix("aten::") else {
            let range = self.fun.file.range(span);
            let help = format!(
                "give the session the operator: `Session::builder().standard().ops([OpDef::new(\"{name}(…) -> …\")\
                 .with(Kernel::new(…))])`"
            );
            let message = format!("operator `{name}` is not registered");
            let problem = flambeau_ir::Diagnostic::new(flambeau_ir::Fault::Unsupported, "F0108", message);
            return Box::new(problem.at(range).help(help));
        };
        let mut problem = self.error(span, format!("Unknown builtin op: {name}"));
        let registry = self.session.registry();
        let known = registry.ids().map(|id| registry.schema(id).name.as_str());
        let near = super::names::nearest(base, known.filter_map(|n| n.strip_prefix("aten::")));
        if let Some(near) = near {
            problem.help = Some(format!("did you mean `{near}`?"));
        }
        problem
    }

    /// The results of a node as one value.
    fn pack(&self, node: flambeau_ir::NodeId, schema: &FunctionSchema, types: &[Type]) -> ValueId {
        let results: Vec<ValueId> = self.read(|g| g.results(node).collect());
        match results.as_slice() {
            [one] => *one,
            many => self.value(Prim::TupleConstruct, many, schema.pack(types)),
        }
    }
}
