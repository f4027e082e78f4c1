//! Matching a call to schemas by TorchScript's rules.
//!
//! The answer is a plan: which argument feeds which parameter, and which conversions stand between. Whoever emits the
//! call inserts the nodes, so matching touches no graph and can be tried freely. Several candidates are tried in order,
//! first without conversions and then with; one candidate alone is tried with conversions at once.
//!
//! Operators that must not be chosen by matching (PyTorch keeps a short list) are for the caller to leave out.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::failure::{CallError, Failure, Mismatch};
use super::{Argument, FunctionSchema};
use crate::symbol::Symbol;
use crate::types::{ClassEnv, Type, TypeBindings, TypeKind, is_subtype, match_type_variables};

/// An argument of a call, as far as matching looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arg {
    /// Its type.
    pub ty: Type,
    /// Whether it is a literal `[]` whose element type nobody stated: it fits any list.
    pub empty_list: bool,
    /// Whether it is a tensor only because nobody stated its type; changes messages, nothing else.
    pub inferred: bool,
}

impl From<Type> for Arg {
    fn from(ty: Type) -> Self {
        Self { ty, empty_list: false, inferred: false }
    }
}

/// A call to be matched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'a> {
    /// The receiver, if it is a method call; feeds the parameter named `self`.
    pub receiver: Option<Arg>,
    /// Arguments by position.
    pub args: &'a [Arg],
    /// Arguments by name.
    pub kwargs: &'a [(Symbol, Arg)],
}

/// Where a parameter's value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// The receiver.
    Receiver,
    /// The argument at this position.
    Positional(usize),
    /// The named argument at this place among those.
    Keyword(usize),
    /// The schema's default.
    Default,
    /// A new list of the arguments at these positions, each converted to the element type by its own conversions.
    Varargs {
        /// The positions.
        range: Range<usize>,
        /// The element type of the list.
        elem: Type,
        /// The conversions of each.
        conversions: Vec<Conversions>,
    },
}

/// Conversions in the order they apply.
pub type Conversions = SmallVec<[Conversion; 1]>;

/// One step of turning an argument into what its parameter takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// A number for a sized list: a list of so many of it.
    Repeat {
        /// The element type.
        elem: Type,
        /// How many.
        n: u32,
    },
    /// `[]` becomes an empty list of this element type.
    EmptyList(Type),
    /// A tuple becomes a list of this element type.
    TupleToList(Type),
    /// A tuple is taken apart, each element converted by its own conversions, and put together again.
    TupleElements(Vec<Conversions>),
    /// A tensor becomes a float; fails at run time unless it has one element.
    FloatImplicit,
    /// A tensor becomes a complex number.
    ComplexImplicit,
    /// A tensor becomes an integer.
    IntImplicit,
    /// A tensor becomes a number.
    ScalarImplicit,
    /// A number or truth value becomes a float.
    ToFloat,
    /// A number becomes complex.
    ToComplex,
    /// A number or truth value becomes an integer.
    ToInt,
    /// A string becomes a device.
    StrToDevice,
}

/// How one parameter is fed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamMatch {
    /// From where.
    pub binding: Binding,
    /// Through which conversions.
    pub conversions: Conversions,
    /// The parameter's type with variables bound.
    pub ty: Type,
}

/// A schema that takes a call, and how.
#[derive(Clone, Debug)]
pub struct MatchedSchema {
    /// Which of the candidates.
    pub schema: usize,
    /// One per parameter, in the schema's order.
    pub params: Vec<ParamMatch>,
    /// Positions of arguments beyond the parameters, for a schema that takes any number.
    pub extra: Range<usize>,
    /// The types of the results, variables bound.
    pub returns: Vec<Type>,
    /// What the schema's type variables stand for.
    pub bound: TypeBindings,
}

/// The first schema that takes the call.
///
/// # Errors
/// Why each candidate does not.
pub fn match_call(
    schemas: &[&FunctionSchema],
    call: Call<'_>,
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
    // Schemas are only written out when nobody took the call: most calls fail a few candidates first.
    let failures = failures
        .into_iter()
        .map(|(i, matched_params, mismatch)| Failure {
            schema: i,
            text: schemas[i].to_string(),
            matched_params,
            mismatch,
        })
        .collect();
    Err(CallError { failures })
}

/// Whether one schema takes the call; with or without conversions.
///
/// # Errors
/// Why not, and how many parameters were matched before.
pub fn match_one(
    schema: &FunctionSchema,
    call: Call<'_>,
    convert: bool,
    env: &dyn ClassEnv,
) -> Result<MatchedSchema, (usize, Mismatch)> {
    let mut matcher = Matcher {
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
        returns.push(ty.ok_or((params.len(), Mismatch::Unbound { formal: result.ty, actual: Type::NONE }))?);
    }
    Ok(MatchedSchema { schema: 0, params, extra, returns, bound })
}

struct Matcher<'a> {
    schema: &'a FunctionSchema,
    call: Call<'a>,
    convert: bool,
    env: &'a dyn ClassEnv,
    bound: TypeBindings,
    /// How many positional arguments are used.
    used: usize,
    /// Which named arguments are used, as bits; calls with more than 128 names do not match.
    used_kwargs: u128,
    receiver: Option<Arg>,
}

impl Matcher<'_> {
    fn param(&mut self, i: usize) -> Result<ParamMatch, Mismatch> {
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
                return Err(Mismatch::SpecifiedTwice(self.call.kwargs[at].0));
            }
            self.used_kwargs |= 1 << at;
            return self.single(param, self.call.kwargs[at].1, Binding::Keyword(at));
        }
        let Some(default) = &param.default else { return Err(Mismatch::NotProvided(param.name)) };
        // A default fits its parameter; all it can say is what a type variable is.
        let _ = match_type_variables(param.ty, default.type_of(), &mut self.bound, self.env);
        let ty = self.bound.apply(param.ty).unwrap_or(param.ty);
        Ok(ParamMatch { binding: Binding::Default, conversions: Conversions::new(), ty })
    }

    /// The place of a named argument. Functions of the standard namespace call `self` also `input`.
    fn keyword(&self, name: Symbol) -> Option<usize> {
        let also_input = name == "self" && self.schema.name.ns() == "aten";
        let at = self.call.kwargs.iter().position(|(n, _)| *n == name || (also_input && *n == "input"));
        at.filter(|&at| at < 128)
    }

    /// The element type, if parameter `i` is a list that may take all remaining positional arguments: the last that can
    /// be given by position, not a sized list, of no type variable; and the next argument is not a list by itself.
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

    fn rest(&mut self, param: &Argument, elem: Type) -> Result<ParamMatch, Mismatch> {
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

    fn single(&mut self, param: &Argument, arg: Arg, binding: Binding) -> Result<ParamMatch, Mismatch> {
        let (conversions, ty) = self.fit(param, arg)?;
        Ok(ParamMatch { binding, conversions, ty })
    }

    /// The conversions that make an argument fit a parameter, and the parameter's type with variables bound.
    fn fit(&mut self, param: &Argument, arg: Arg) -> Result<(Conversions, Type), Mismatch> {
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
            return Err(Mismatch::Variables { param: param.name, formal: param.ty, actual: arg.ty, why });
        }
        let unbound = Mismatch::Unbound { formal: param.ty, actual: arg.ty };
        let wanted = self.bound.apply(param.ty).ok_or(unbound)?;
        let got = convert(wanted, arg, self.convert, self.env, &mut conversions);
        if is_subtype(got, wanted, self.env) {
            return Ok((conversions, wanted));
        }
        Err(Mismatch::Type {
            param: param.name,
            expected: param.ty,
            wanted,
            found: got,
            inferred: arg.inferred,
        })
    }

    /// Checks that every argument was used; gives the positions of those beyond the parameters.
    fn finish(&mut self) -> Result<Range<usize>, Mismatch> {
        if self.receiver.is_some() {
            return Err(Mismatch::ReceiverUnused);
        }
        let given = self.call.args.len();
        if !self.schema.vararg && self.used < given {
            return Err(Mismatch::TooMany { used: self.used, given });
        }
        for (i, (name, _)) in self.call.kwargs.iter().enumerate() {
            if i >= 128 || self.used_kwargs & (1 << i) == 0 {
                let known = self.schema.args.iter().any(|a| a.name == *name);
                return Err(if known {
                    Mismatch::KeywordTwice(*name)
                } else {
                    Mismatch::KeywordUnknown(*name)
                });
            }
        }
        Ok(self.used..given)
    }
}

/// The element type, if a value of this type is a list of the wanted type already or a tuple of elements that fit it.
fn convertible_to_list(actual: Type, list: Type, env: &dyn ClassEnv) -> Option<Type> {
    let elem = list.list_elem()?;
    let fits = is_subtype(actual, list, env)
        || actual.as_tuple().is_some_and(|t| t.elems.iter().all(|&e| is_subtype(e, elem, env)));
    fits.then_some(elem)
}

/// Appends the conversions from `arg` towards `wanted`, and gives the type they lead to. Recursion is bounded by the
/// depth of types.
fn convert(wanted: Type, arg: Arg, numbers: bool, env: &dyn ClassEnv, steps: &mut Conversions) -> Type {
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

/// The conversion between these types that a call makes by itself.
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
        let args: Vec<Arg> = args.iter().map(|&t| t.into()).collect();
        let kwargs: Vec<(Symbol, Arg)> = kwargs.iter().map(|&(n, t)| (Symbol::new(n), t.into())).collect();
        match_call(&refs, Call { receiver: None, args: &args, kwargs: &kwargs }, &NoClasses)
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
    fn without_conversions_first() {
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
        let empty = Arg { empty_list: true, ..Type::LIST_TENSOR.into() };
        let schema = &schemas(&zeros)[0];
        let m = match_one(schema, Call { args: &[empty], ..Call::default() }, false, &NoClasses).unwrap();
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
