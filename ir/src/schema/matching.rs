//! Matching of a call to schemas by TorchScript's rules.
//!
//! The result is a plan: the argument of each parameter, and the conversions between them. The caller inserts the
//! nodes, so matching does not change the graph and may be tried freely. Several candidates are tried in order, first
//! without conversions and then with conversions. A single candidate is tried with conversions immediately.
//!
//! The caller must leave out operators that matching must not select (PyTorch keeps a short list of them).

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::failure::{CallError, CandidateFailure, SchemaMismatch};
use super::{Argument, FunctionSchema};
use crate::symbol::Symbol;
use crate::types::{ClassEnv, Type, TypeBindings, TypeKind, is_subtype, match_type_variables};

/// The properties of an argument that matching uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArgInfo {
    /// The argument's type.
    pub ty: Type,
    /// Whether the argument is a literal `[]` without declared element type, which matches any list.
    pub empty_list: bool,
    /// Whether the argument is a tensor only because its type was not declared. Affects messages only.
    pub inferred: bool,
}

impl From<Type> for ArgInfo {
    fn from(ty: Type) -> Self {
        Self { ty, empty_list: false, inferred: false }
    }
}

/// A call to match.
#[derive(Clone, Copy, Debug, Default)]
pub struct SchemaCall<'a> {
    /// The receiver of a method call, bound to the parameter named `self`.
    pub receiver: Option<ArgInfo>,
    /// Positional arguments.
    pub args: &'a [ArgInfo],
    /// Keyword arguments.
    pub kwargs: &'a [(Symbol, ArgInfo)],
}

/// The source of a parameter's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// The receiver.
    Receiver,
    /// The positional argument with this index.
    Positional(usize),
    /// The keyword argument with this index.
    Keyword(usize),
    /// The schema's default.
    Default,
    /// A new list of a range of positional arguments, each converted to the element type.
    Varargs {
        /// The indices.
        range: Range<usize>,
        /// The element type of the list.
        elem: Type,
        /// The conversions of each argument.
        conversions: Vec<Conversions>,
    },
}

/// Conversions in order of application.
pub type Conversions = SmallVec<[Conversion; 1]>;

/// A conversion step from an argument to its parameter's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// A number to a sized list: a list that repeats the number.
    Repeat {
        /// The element type.
        elem: Type,
        /// Number of repetitions.
        n: u32,
    },
    /// `[]` to an empty list with this element type.
    EmptyList(Type),
    /// A tuple to a list with this element type.
    TupleToList(Type),
    /// A tuple to a tuple: unpacked, converted element by element, and packed again.
    TupleElements(Vec<Conversions>),
    /// A tensor to a float; raises at run time unless the tensor has one element.
    FloatImplicit,
    /// A tensor to a complex number.
    ComplexImplicit,
    /// A tensor to an integer.
    IntImplicit,
    /// A tensor to a number.
    ScalarImplicit,
    /// A number or bool to a float.
    ToFloat,
    /// A number to a complex number.
    ToComplex,
    /// A number or bool to an integer.
    ToInt,
    /// A string to a device.
    StrToDevice,
}

/// The match of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamMatch {
    /// The source of the value.
    pub binding: Binding,
    /// The conversions of the value.
    pub conversions: Conversions,
    /// The parameter's type with variables bound.
    pub ty: Type,
}

/// A schema that matches a call, with the plan for the call.
#[derive(Clone, Debug)]
pub struct MatchedSchema {
    /// The index of the candidate.
    pub schema: usize,
    /// One match per parameter, in the schema's order.
    pub params: Vec<ParamMatch>,
    /// The indices of positional arguments beyond the parameters, for a vararg schema.
    pub extra: Range<usize>,
    /// The types of the results with variables bound.
    pub returns: Vec<Type>,
    /// The bindings of the schema's type variables.
    pub bound: TypeBindings,
}

/// Returns the first schema that matches the call.
///
/// # Errors
/// Returns the reason of each candidate if none matches.
pub fn match_call(
    schemas: &[&FunctionSchema],
    call: SchemaCall<'_>,
    env: &dyn ClassEnv,
) -> Result<MatchedSchema, CallError> {
    let passes: &[bool] = if schemas.len() == 1 { &[true] } else { &[false, true] };
    let mut failures = Vec::new();
    for &convert in passes {
        failures.clear();
        for (i, schema) in schemas.iter().enumerate() {
            match match_one(schema, call, convert, env) {
                Ok(matched) => return Ok(MatchedSchema { schema: i, ..matched }),
                Err((matched_params, mismatch)) => failures.push((i, matched_params, mismatch)),
            }
        }
    }
    // Format the schemas only if no candidate matches, since most calls fail for some candidates first.
    let failures = failures
        .into_iter()
        .map(|(i, matched_params, mismatch)| CandidateFailure {
            schema: i,
            text: schemas[i].to_string(),
            matched_params,
            mismatch,
        })
        .collect();
    Err(CallError { failures })
}

/// Matches one schema, with or without conversions.
///
/// # Errors
/// Returns the number of parameters matched before the failure, and the reason.
pub fn match_one(
    schema: &FunctionSchema,
    call: SchemaCall<'_>,
    convert: bool,
    env: &dyn ClassEnv,
) -> Result<MatchedSchema, (usize, SchemaMismatch)> {
    let mut matcher = SchemaMatcher {
        schema,
        call,
        convert,
        env,
        bound: TypeBindings::default(),
        used: 0,
        used_kwargs: 0,
        receiver: call.receiver,
    };
    let mut params = Vec::with_capacity(schema.args.len());
    for i in 0..schema.args.len() {
        let param = matcher.param(i).map_err(|e| (i, e))?;
        params.push(param);
    }
    let extra = matcher.finish().map_err(|e| (params.len(), e))?;
    let bound = matcher.bound;
    let mut returns = Vec::with_capacity(schema.returns.len());
    for result in &schema.returns {
        let ty = bound.apply(result.ty);
        returns.push(
            ty.ok_or((params.len(), SchemaMismatch::Unbound { formal: result.ty, actual: Type::NONE }))?,
        );
    }
    Ok(MatchedSchema { schema: 0, params, extra, returns, bound })
}

struct SchemaMatcher<'a> {
    schema: &'a FunctionSchema,
    call: SchemaCall<'a>,
    convert: bool,
    env: &'a dyn ClassEnv,
    bound: TypeBindings,
    /// Number of positional arguments used so far.
    used: usize,
    /// Bit set of keyword arguments used so far. Keyword arguments beyond the first 128 do not match.
    used_kwargs: u128,
    receiver: Option<ArgInfo>,
}

impl SchemaMatcher<'_> {
    fn param(&mut self, i: usize) -> Result<ParamMatch, SchemaMismatch> {
        let param = &self.schema.args[i];
        if param.name == "self"
            && let Some(receiver) = self.receiver.take()
        {
            return self.single(param, receiver, Binding::Receiver);
        }
        if !param.kwarg_only && self.used < self.call.args.len() {
            if let Some(elem) = self.takes_rest(i) {
                return self.rest(param, elem);
            }
            let at = self.used;
            self.used += 1;
            return self.single(param, self.call.args[at], Binding::Positional(at));
        }
        if let Some(at) = self.keyword(param.name) {
            if self.used_kwargs & (1 << at) != 0 {
                return Err(SchemaMismatch::SpecifiedTwice(self.call.kwargs[at].0));
            }
            self.used_kwargs |= 1 << at;
            return self.single(param, self.call.kwargs[at].1, Binding::Keyword(at));
        }
        let Some(default) = &param.default else { return Err(SchemaMismatch::NotProvided(param.name)) };
        // A default always matches its parameter; matching it only binds type variables.
        let _ = match_type_variables(param.ty, default.type_of(), &mut self.bound, self.env);
        let ty = self.bound.apply(param.ty).unwrap_or(param.ty);
        Ok(ParamMatch { binding: Binding::Default, conversions: Conversions::new(), ty })
    }

    /// Returns the index of a keyword argument. Operators of the namespace `aten` accept the keyword `input` for
    /// `self`.
    fn keyword(&self, name: Symbol) -> Option<usize> {
        let also_input = name == "self" && self.schema.name.ns() == "aten";
        let at = self.call.kwargs.iter().position(|(n, _)| *n == name || (also_input && *n == "input"));
        at.filter(|&at| at < 128)
    }

    /// Returns the element type if parameter `i` is a list that may collect all remaining positional arguments: the
    /// last positional parameter, no sized list, no list of a type variable, and the next argument is not itself a
    /// list.
    fn takes_rest(&self, i: usize) -> Option<Type> {
        let param = &self.schema.args[i];
        let last = self.schema.args.get(i + 1).is_none_or(|next| next.kwarg_only);
        let elem = param.ty.list_elem()?;
        if !self.convert || !last || param.n.is_some() || matches!(elem.kind(), TypeKind::Var(_)) {
            return None;
        }
        let actual = self.call.args[self.used].ty;
        let is_list =
            actual.list_elem().is_some() || convertible_to_list(actual, param.ty, self.env).is_some();
        (!is_list).then_some(elem)
    }

    fn rest(&mut self, param: &Argument, elem: Type) -> Result<ParamMatch, SchemaMismatch> {
        let range = self.used..self.call.args.len();
        let item = Argument::new(Symbol::new("<varargs>"), elem);
        let mut conversions = Vec::with_capacity(range.len());
        for at in range.clone() {
            conversions.push(self.fit(&item, self.call.args[at])?.0);
        }
        self.used = range.end;
        let binding = Binding::Varargs { range, elem, conversions };
        Ok(ParamMatch { binding, conversions: Conversions::new(), ty: param.ty })
    }

    fn single(
        &mut self,
        param: &Argument,
        arg: ArgInfo,
        binding: Binding,
    ) -> Result<ParamMatch, SchemaMismatch> {
        let (conversions, ty) = self.fit(param, arg)?;
        Ok(ParamMatch { binding, conversions, ty })
    }

    /// Returns the conversions from an argument to a parameter, and the parameter's type with variables bound.
    fn fit(&mut self, param: &Argument, arg: ArgInfo) -> Result<(Conversions, Type), SchemaMismatch> {
        if arg.ty == param.ty && !arg.empty_list {
            return Ok((Conversions::new(), param.ty));
        }
        let mut arg = arg;
        let mut conversions = Conversions::new();
        if let Some(n) = param.n
            && (arg.ty == Type::INT || arg.ty == Type::FLOAT)
            && param.ty.unwrap_optional().list_elem() == Some(arg.ty)
        {
            conversions.push(Conversion::Repeat { elem: arg.ty, n });
            arg = Type::list(arg.ty).into();
        }
        if let Err(why) = match_type_variables(param.ty, arg.ty, &mut self.bound, self.env) {
            return Err(SchemaMismatch::Variables {
                param: param.name,
                formal: param.ty,
                actual: arg.ty,
                why,
            });
        }
        let unbound = SchemaMismatch::Unbound { formal: param.ty, actual: arg.ty };
        let wanted = self.bound.apply(param.ty).ok_or(unbound)?;
        let got = convert(wanted, arg, self.convert, self.env, &mut conversions);
        if is_subtype(got, wanted, self.env) {
            return Ok((conversions, wanted));
        }
        Err(SchemaMismatch::Type {
            param: param.name,
            expected: param.ty,
            wanted,
            found: got,
            inferred: arg.inferred,
            parameter_inferred: param.is_inferred,
        })
    }

    /// Checks that every argument was used; returns the indices of positional arguments beyond the parameters.
    fn finish(&mut self) -> Result<Range<usize>, SchemaMismatch> {
        if self.receiver.is_some() {
            return Err(SchemaMismatch::ReceiverUnused);
        }
        let given = self.call.args.len();
        if !self.schema.vararg && self.used < given {
            return Err(SchemaMismatch::TooMany { used: self.used, given });
        }
        for (i, (name, _)) in self.call.kwargs.iter().enumerate() {
            if i >= 128 || self.used_kwargs & (1 << i) == 0 {
                let known = self.schema.args.iter().any(|a| a.name == *name);
                return Err(if known {
                    SchemaMismatch::KeywordTwice(*name)
                } else {
                    SchemaMismatch::KeywordUnknown(*name)
                });
            }
        }
        Ok(self.used..given)
    }
}

/// Returns the element type if `actual` is a subtype of `list` or a tuple whose elements are subtypes of the element
/// type.
fn convertible_to_list(actual: Type, list: Type, env: &dyn ClassEnv) -> Option<Type> {
    let elem = list.list_elem()?;
    let fits = is_subtype(actual, list, env)
        || actual.as_tuple().is_some_and(|t| t.elems.iter().all(|&e| is_subtype(e, elem, env)));
    fits.then_some(elem)
}

/// Appends the conversions from `arg` towards `wanted` and returns the resulting type. The recursion is bounded by the
/// depth of types.
fn convert(wanted: Type, arg: ArgInfo, numbers: bool, env: &dyn ClassEnv, steps: &mut Conversions) -> Type {
    if let TypeKind::Optional(inner) = wanted.kind()
        && arg.ty.optional_elem().is_none()
        && arg.ty != Type::NONE
    {
        return convert(*inner, arg, numbers, env, steps);
    }
    let mut ty = arg.ty;
    if arg.empty_list
        && let Some(elem) = wanted.list_elem()
    {
        steps.push(Conversion::EmptyList(elem));
        ty = wanted;
    }
    if let Some(tuple) = ty.as_tuple() {
        let list = wanted.unwrap_optional();
        if let Some(elem) = convertible_to_list(ty, list, env) {
            steps.push(Conversion::TupleToList(elem));
            ty = list;
        }
        if let Some(target) = wanted.as_tuple()
            && target.elems.len() == tuple.elems.len()
            && !is_subtype(ty, wanted, env)
        {
            let mut elements = Vec::with_capacity(target.elems.len());
            let mut types: SmallVec<[Type; 8]> = smallvec![];
            for (&to, &from) in target.elems.iter().zip(&tuple.elems) {
                let mut inner = Conversions::new();
                types.push(convert(to, from.into(), numbers, env, &mut inner));
                elements.push(inner);
            }
            steps.push(Conversion::TupleElements(elements));
            ty = Type::tuple(&types);
        }
    }
    match numbers.then(|| number_conversion(wanted, ty)).flatten() {
        Some((step, to)) => {
            steps.push(step);
            to
        }
        None => ty,
    }
}

/// Returns the implicit conversion of a call between these types.
fn number_conversion(wanted: Type, ty: Type) -> Option<(Conversion, Type)> {
    let step = match (ty.kind(), wanted.kind()) {
        (TypeKind::Tensor(_), TypeKind::Float) => Conversion::FloatImplicit,
        (TypeKind::Tensor(_), TypeKind::Complex) => Conversion::ComplexImplicit,
        (TypeKind::Tensor(_), TypeKind::Int) => Conversion::IntImplicit,
        (TypeKind::Tensor(_), TypeKind::Number) => Conversion::ScalarImplicit,
        (TypeKind::Number | TypeKind::Bool, TypeKind::Float) => Conversion::ToFloat,
        (TypeKind::Number, TypeKind::Complex) => Conversion::ToComplex,
        (TypeKind::Number | TypeKind::Bool, TypeKind::Int) => Conversion::ToInt,
        (TypeKind::Bool, TypeKind::Number) => return Some((Conversion::ToInt, Type::INT)),
        (TypeKind::Str, TypeKind::Device) => Conversion::StrToDevice,
        _ => return None,
    };
    Some((step, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::NoClasses;
    use Conversion::{FloatImplicit, IntImplicit, Repeat, ToInt, TupleToList};

    fn schemas(texts: &[&str]) -> Vec<FunctionSchema> {
        texts.iter().map(|t| FunctionSchema::parse(t).unwrap()).collect()
    }

    fn call(texts: &[&str], args: &[Type], kwargs: &[(&str, Type)]) -> Result<MatchedSchema, CallError> {
        let schemas = schemas(texts);
        let refs: Vec<&FunctionSchema> = schemas.iter().collect();
        let args: Vec<ArgInfo> = args.iter().map(|&t| t.into()).collect();
        let kwargs: Vec<(Symbol, ArgInfo)> =
            kwargs.iter().map(|&(n, t)| (Symbol::new(n), t.into())).collect();
        match_call(&refs, SchemaCall { receiver: None, args: &args, kwargs: &kwargs }, &NoClasses)
    }

    fn steps(m: &MatchedSchema) -> Vec<Conversion> {
        m.params.iter().flat_map(|p| p.conversions.iter().cloned()).collect()
    }

    const ADD: [&str; 3] = [
        "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
        "aten::add.int(int a, int b) -> int",
    ];

    #[test]
    fn matches_without_conversions_come_first() {
        assert_eq!(call(&ADD, &[Type::TENSOR, Type::TENSOR], &[]).unwrap().schema, 0);
        assert_eq!(call(&ADD, &[Type::TENSOR, Type::INT], &[]).unwrap().schema, 1);
        assert_eq!(call(&ADD, &[Type::INT, Type::INT], &[]).unwrap().schema, 2);
        let m = call(&ADD, &[Type::BOOL, Type::INT], &[]).unwrap();
        assert_eq!((m.schema, steps(&m)), (2, vec![ToInt]));
        let m = call(&ADD, &[Type::TENSOR, Type::TENSOR], &[("alpha", Type::FLOAT)]).unwrap();
        assert_eq!(m.params[2].binding, Binding::Keyword(0));
        let m = call(&ADD, &[Type::TENSOR], &[("other", Type::BOOL)]).unwrap();
        assert_eq!((m.schema, steps(&m)), (1, vec![ToInt]));
        assert_eq!(call(&ADD, &[], &[("input", Type::TENSOR), ("other", Type::TENSOR)]).unwrap().schema, 0);
    }

    #[test]
    fn lists_from_numbers_tuples_and_the_rest() {
        let zeros = ["aten::zeros(int[] size, *, int? dtype=None) -> Tensor"];
        let m = call(&zeros, &[Type::INT, Type::INT], &[]).unwrap();
        assert!(matches!(&m.params[0].binding, Binding::Varargs { range, .. } if *range == (0..2)));
        let m = call(&zeros, &[Type::tuple(&[Type::INT, Type::INT])], &[]).unwrap();
        assert_eq!(steps(&m), [TupleToList(Type::INT)]);
        let conv = ["aten::c(Tensor x, int[2] stride=1, float p=0.5) -> Tensor"];
        let m = call(&conv, &[Type::TENSOR, Type::INT, Type::TENSOR], &[]).unwrap();
        assert_eq!(steps(&m), [Repeat { elem: Type::INT, n: 2 }, FloatImplicit]);
        let m = call(&zeros, &[Type::TENSOR], &[]).unwrap();
        assert!(
            matches!(&m.params[0].binding, Binding::Varargs { conversions, .. } if conversions[0][..] == [IntImplicit])
        );
        let empty = ArgInfo { empty_list: true, ..Type::LIST_TENSOR.into() };
        let schema = &schemas(&zeros)[0];
        let m = match_one(schema, SchemaCall { args: &[empty], ..SchemaCall::default() }, false, &NoClasses)
            .unwrap();
        assert_eq!(m.params[0].conversions[..], [Conversion::EmptyList(Type::INT)]);
    }

    #[test]
    fn variables_are_bound_into_results() {
        let get = ["aten::get(Dict(str, t) self, str key, t(*) default_value) -> t(*)"];
        let dict = Type::dict(Type::STR, Type::LIST_INT);
        assert_eq!(call(&get, &[dict, Type::STR, Type::LIST_INT], &[]).unwrap().returns, [Type::LIST_INT]);
        let error = call(&get, &[dict, Type::STR, Type::INT], &[]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("Type variable 't' previously matched to type List[int] is matched to type int"),
            "{error}"
        );
        let unwrap = ["aten::u(t? x) -> t"];
        assert_eq!(call(&unwrap, &[Type::OPTIONAL_INT], &[]).unwrap().returns, [Type::INT]);
        assert!(call(&unwrap, &[Type::NONE], &[]).is_err());
    }

    #[test]
    fn messages() {
        let error = call(&ADD, &[Type::STR, Type::INT], &[]).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("Arguments for call are not valid.\nThe following variants are available:\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "Expected a value of type 'Tensor' for argument 'self' but instead found type 'str'."
            ),
            "{text}"
        );
        let one = &ADD[2..];
        for (args, kwargs, want) in [
            (vec![Type::INT], vec![], "Argument b not provided."),
            (vec![Type::INT; 3], vec![], "Expected at most 2 arguments but found 3 positional arguments."),
            (vec![Type::INT; 2], vec![("c", Type::INT)], "Keyword argument c unknown."),
            (vec![Type::INT; 2], vec![("b", Type::INT)], "Keyword argument b specified twice."),
            (
                vec![Type::FLOAT, Type::INT],
                vec![],
                "Expected a value of type 'int' for argument 'a' but instead found type 'float'.",
            ),
        ] {
            let text = call(one, &args, &kwargs).unwrap_err().to_string();
            assert!(text.contains(want), "{text}");
        }
        assert_eq!(error.ranked().len(), 3);
    }
}
