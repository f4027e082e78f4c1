//! The vocabulary of rules: conditions after `where`, and functions that compute constants.
//!
//! Both read only facts: the type of a value, refined by shape analysis, and its constant if it has one. A condition
//! returns `None` if the facts do not decide it; the rule then does not apply, negated or not.

use super::rule::same_constant;
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, Type};
use flambeau_tensor::{DType, Device, Scalar};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::cmp::Ordering;

/// The facts about a value, or a literal of a rule.
#[derive(Clone, Copy)]
pub enum TermFact<'a> {
    /// A value of the program.
    Value {
        /// Its type.
        ty: Type,
        /// The constant, if the value is one.
        constant: Option<&'a IValue>,
    },
    /// A literal.
    Literal(&'a IValue),
}

impl<'a> TermFact<'a> {
    /// Returns the constant, if there is one.
    pub fn constant(self) -> Option<&'a IValue> {
        match self {
            TermFact::Value { constant, .. } => constant,
            TermFact::Literal(v) => Some(v),
        }
    }

    /// Returns the type.
    pub fn ty(self) -> Type {
        match self {
            TermFact::Value { ty, .. } => ty,
            TermFact::Literal(v) => v.type_of(),
        }
    }

    /// Returns the value of a constant integer.
    pub fn int(self) -> Option<i64> {
        self.constant()?.as_int()
    }

    /// Returns the value of a constant integer or float.
    pub fn number(self) -> Option<f64> {
        match self.constant()?.as_scalar()? {
            Scalar::Int(i) => Some(i as f64),
            Scalar::Float(x) => Some(x),
            Scalar::Bool(_) | Scalar::Complex(_) => None,
        }
    }

    /// Returns the elements of a constant list of integers.
    pub fn ints(self) -> Option<Vec<i64>> {
        self.constant()?.as_list()?.to_ints()
    }

    /// Returns the element type of a tensor, if known.
    pub fn dtype(self) -> Option<DType> {
        self.ty().as_tensor()?.dtype
    }

    /// Returns the dimensions of a tensor, if its rank is known.
    pub fn dims(self) -> Option<&'static [Dim]> {
        self.ty().as_tensor()?.sizes.as_deref()
    }

    /// Returns the rank of a tensor, if known.
    pub fn rank(self) -> Option<i64> {
        Some(self.dims()?.len() as i64)
    }
}

/// A condition: returns whether it holds, or `None` if the facts do not decide it.
pub type ConditionFn = fn(&[TermFact<'_>]) -> Option<bool>;
/// A function that computes a constant, or `None` if it is not defined for the arguments.
pub type ComputeFn = fn(&[TermFact<'_>]) -> Option<IValue>;

/// The conditions and functions that rules may use.
#[derive(Clone)]
pub struct Vocabulary {
    conditions: IndexMap<&'static str, (usize, ConditionFn, &'static str), FxBuildHasher>,
    functions: IndexMap<&'static str, (usize, ComputeFn, &'static str), FxBuildHasher>,
}

impl Default for Vocabulary {
    fn default() -> Self {
        Self::standard()
    }
}

impl Vocabulary {
    /// Returns the standard vocabulary.
    pub fn standard() -> Self {
        let mut v = Vocabulary { conditions: IndexMap::default(), functions: IndexMap::default() };
        v.standard_conditions();
        v.standard_functions();
        v
    }

    /// Adds a condition with `arity` arguments; `doc` states in one sentence when it holds.
    pub fn condition(
        &mut self,
        name: &'static str,
        arity: usize,
        f: ConditionFn,
        doc: &'static str,
    ) -> &mut Self {
        self.conditions.insert(name, (arity, f, doc));
        self
    }

    /// Adds a function with `arity` arguments; `doc` describes its result in one sentence.
    pub fn function(
        &mut self,
        name: &'static str,
        arity: usize,
        f: ComputeFn,
        doc: &'static str,
    ) -> &mut Self {
        self.functions.insert(name, (arity, f, doc));
        self
    }

    pub(crate) fn find_condition(&self, name: &str) -> Option<(usize, ConditionFn)> {
        self.conditions.get(name).map(|&(n, f, _)| (n, f))
    }

    pub(crate) fn find_function(&self, name: &str) -> Option<(usize, ComputeFn)> {
        self.functions.get(name).map(|&(n, f, _)| (n, f))
    }

    /// Returns all names with arities and documentation; functions are written `@name`.
    pub fn words(&self) -> impl Iterator<Item = (String, usize, &'static str)> + '_ {
        let conditions = self.conditions.iter().map(|(n, c)| ((*n).to_owned(), c.0, c.2));
        conditions.chain(self.functions.iter().map(|(n, f)| (format!("@{n}"), f.0, f.2)))
    }

    fn standard_conditions(&mut self) {
        self.type_conditions();
        self.constant_conditions();
        self.size_conditions();
    }

    /// Conditions on element types, ranks and types.
    fn type_conditions(&mut self) {
        self.condition(
            "same_dtype",
            2,
            |a| Some(a[0].dtype()? == a[1].dtype()?),
            "both are tensors of one element type",
        );
        self.condition("same_shape", 2, |a| same_shape(a[0], a[1]), "both are tensors of the same sizes");
        self.condition(
            "same_type",
            2,
            |a| Some(a[0].dtype()? == a[1].dtype()? && same_shape(a[0], a[1])?),
            "both are tensors of one element type and the same sizes",
        );
        self.condition(
            "same_rank",
            2,
            |a| Some(a[0].rank()? == a[1].rank()?),
            "both are tensors of one rank",
        );
        self.condition(
            "rank",
            2,
            |a| Some(a[0].rank()? == a[1].int()?),
            "the tensor has this many dimensions",
        );
        self.condition(
            "min_rank",
            2,
            |a| Some(a[0].rank()? >= a[1].int()?),
            "the tensor has at least so many dimensions",
        );
        self.condition(
            "floating",
            1,
            |a| Some(a[0].dtype()?.is_floating()),
            "the tensor's elements are real floats",
        );
        self.condition(
            "integral",
            1,
            |a| Some(a[0].dtype()?.is_integral(false)),
            "the tensor's elements are integers, not bools",
        );
        self.condition(
            "complex",
            1,
            |a| Some(a[0].dtype()?.is_complex()),
            "the tensor's elements are complex",
        );
        self.condition(
            "boolean",
            1,
            |a| Some(a[0].dtype()? == DType::Bool),
            "the tensor's elements are bools",
        );
        self.condition(
            "wide_float",
            1,
            |a| Some(matches!(a[0].dtype()?, DType::F32 | DType::F64)),
            "the tensor's elements are f32 or f64",
        );
        self.condition(
            "never_none",
            1,
            // A tensor without a known dtype may be one that a mask leaves out of the results of an operator.
            |a| match a[0].ty() {
                ty if ty.is_tensor() && a[0].dtype().is_none() => None,
                ty => Some(!ty.may_be_none() && !ty.has_vars()),
            },
            "by its type, the value is not None",
        );
        self.condition("none", 1, |a| Some(a[0].ty() == Type::NONE), "by its type, the value is None");
        self.condition(
            "dtype_is",
            2,
            |a| Some(a[0].dtype()?.scalar_type() == a[1].int()?),
            "the tensor has the element type of this number",
        );
    }

    /// Conditions on constants and numbers.
    fn constant_conditions(&mut self) {
        self.condition(
            "real",
            1,
            |a| a[0].constant().map(|v| v.as_int().is_some() || v.as_float().is_some()),
            "the constant is an int or a float",
        );
        self.condition("whole", 1, |a| Some(a[0].constant()?.as_int().is_some()), "the constant is an int");
        self.condition("const", 1, |a| Some(a[0].constant().is_some()), "the value is a known constant");
        self.condition("nonneg", 1, |a| Some(a[0].number()? >= 0.0), "the number is 0 or more");
        self.condition("positive", 1, |a| Some(a[0].number()? > 0.0), "the number is more than 0");
        self.condition(
            "power_of_two",
            1,
            |a| Some(is_power_of_two(a[0].number()?)),
            "the number and its reciprocal are exact in any float type",
        );
        self.condition(
            "equal",
            2,
            |a| Some(same_constant(a[0].constant()?, a[1].constant()?) || numbers_equal(a[0], a[1])),
            "the constants are equal",
        );
        self.condition(
            "less",
            2,
            |a| Some(a[0].number()? < a[1].number()?),
            "the first number is less than the second",
        );
    }

    /// Conditions on sizes and strides.
    fn size_conditions(&mut self) {
        self.condition(
            "size_is",
            3,
            |a| Some(dim(a[0], a[1])?.known()? == a[2].int()?),
            "the tensor's dimension has this size",
        );
        self.condition(
            "same_dim",
            3,
            |a| Some(wrap(a[0], a[1])? == wrap(a[0], a[2])?),
            "both numbers mean the same dimension of the tensor",
        );
        self.condition(
            "identity_permutation",
            2,
            |a| {
                let order = a[1].ints()?;
                Some(
                    order.len() as i64 == a[0].rank()?
                        && order.iter().enumerate().all(|(i, &d)| d == i as i64),
                )
            },
            "the list names all dimensions of the tensor in order",
        );
        self.condition(
            "sizes_are",
            2,
            |a| sizes_are(a[0], a[1]),
            "the tensor's sizes are those listed, -1 standing for any one that fits",
        );
        self.condition(
            "expands_to",
            2,
            |a| expands_to(a[0], a[1]),
            "the first tensor can be expanded to the sizes of the second",
        );
        self.condition(
            "can_have_sizes",
            2,
            |a| can_have_sizes(a[0], a[1]),
            "the sizes listed, -1 standing for any one that fits, are those of as many elements as the tensor has",
        );
        self.condition(
            "contiguous",
            1,
            |a| is_contiguous(a[0]),
            "the tensor's strides are known to be contiguous",
        );
        self.condition(
            "matrix_shape",
            3,
            |a| is_matrix_shape(a[0], a[1], a[2]),
            "the first is a matrix of the sizes that the product of the others has",
        );
    }

    #[allow(clippy::too_many_lines, reason = "a table: one entry per word")]
    fn standard_functions(&mut self) {
        self.function(
            "compose",
            2,
            |a| compose(&a[0].ints()?, &a[1].ints()?),
            "the permutation that is the first, then the second",
        );
        self.function(
            "add",
            2,
            |a| int_op(a, i64::checked_add),
            "the sum of two ints, if it does not overflow",
        );
        self.function(
            "sub",
            2,
            |a| int_op(a, i64::checked_sub),
            "the difference of two ints, if it does not overflow",
        );
        self.function(
            "mul",
            2,
            |a| int_op(a, i64::checked_mul),
            "the product of two ints, if it does not overflow",
        );
        self.function("times", 2, |a| number_op(a, |x, y| x * y), "the product of two numbers, a float");
        self.function("plus", 2, |a| number_op(a, |x, y| x + y), "the sum of two numbers, a float");
        self.function("neg", 1, |a| negate(a[0]), "the negative of a number");
        self.function(
            "reciprocal",
            1,
            |a| Some(IValue::Float(1.0 / a[0].number()?)),
            "one over the number, as a float",
        );
        self.function("max", 2, |a| pick(a, Ordering::is_ge), "the greater of two numbers of one type");
        self.function("min", 2, |a| pick(a, Ordering::is_le), "the lesser of two numbers of one type");
        self.function("rank", 1, |a| Some(IValue::Int(a[0].rank()?)), "the rank of a tensor");
        self.function(
            "size",
            2,
            |a| Some(IValue::Int(dim(a[0], a[1])?.known()?)),
            "the size of a dimension of a tensor",
        );
        self.function(
            "dtype",
            1,
            |a| Some(IValue::Int(a[0].dtype()?.scalar_type())),
            "the number of a tensor's element type",
        );
        self.function(
            "is_float",
            1,
            |a| Some(IValue::Bool(a[0].dtype()?.is_floating())),
            "whether a tensor's elements are real floats",
        );
        self.function(
            "is_complex",
            1,
            |a| Some(IValue::Bool(a[0].dtype()?.is_complex())),
            "whether a tensor's elements are complex",
        );
        self.function(
            "numel",
            1,
            |a| Some(IValue::Int(a[0].ty().as_tensor()?.concrete_sizes()?.iter().product())),
            "the number of a tensor's elements",
        );
        self.function(
            "sizes",
            1,
            |a| Some(IValue::ints(a[0].ty().as_tensor()?.concrete_sizes()?)),
            "the sizes of a tensor",
        );
        self.function("device", 1, |a| Some(IValue::Device(device(a[0])?)), "the device of a tensor");
        self.function(
            "is_cpu",
            1,
            |a| Some(IValue::Bool(device(a[0])?.is_cpu())),
            "whether a tensor is on the CPU",
        );
        self.function(
            "is_cuda",
            1,
            |a| device(a[0])?.is_cpu().then_some(IValue::Bool(false)),
            "false for a tensor that is on the CPU",
        );
        self.function(
            "requires_grad",
            1,
            |a| Some(IValue::Bool(a[0].ty().as_tensor()?.requires_grad?)),
            "whether a tensor requires a gradient",
        );
        self.function(
            "is_contiguous",
            1,
            |a| Some(IValue::Bool(is_contiguous(a[0])?)),
            "whether a tensor's strides are contiguous",
        );
        self.function(
            "itemsize",
            1,
            |a| Some(IValue::Int(a[0].dtype()?.size() as i64)),
            "the bytes of a tensor's element",
        );
    }
}

fn same_shape(a: TermFact<'_>, b: TermFact<'_>) -> Option<bool> {
    let (a, b) = (a.dims()?, b.dims()?);
    if a.len() != b.len() {
        return Some(false);
    }
    let mut all = Some(true);
    for (x, y) in a.iter().zip(b) {
        match (x, y) {
            (Dim::Known(m), Dim::Known(n)) if m != n => return Some(false),
            (Dim::Known(_), Dim::Known(_)) => {}
            (Dim::Sym(m), Dim::Sym(n)) if m == n => {}
            _ => all = None,
        }
    }
    all
}

fn wrap(tensor: TermFact<'_>, dim: TermFact<'_>) -> Option<usize> {
    let (rank, dim) = (tensor.rank()?, dim.int()?);
    let wrapped = if dim < 0 { dim.checked_add(rank)? } else { dim };
    usize::try_from(wrapped).ok().filter(|&d| (d as i64) < rank)
}

fn dim(tensor: TermFact<'_>, dim: TermFact<'_>) -> Option<Dim> {
    tensor.dims()?.get(wrap(tensor, dim)?).copied()
}

fn sizes_are(tensor: TermFact<'_>, sizes: TermFact<'_>) -> Option<bool> {
    let (dims, sizes) = (tensor.dims()?, sizes.ints()?);
    if dims.len() != sizes.len() || sizes.iter().filter(|&&n| n == -1).count() > 1 {
        return Some(false);
    }
    let mut all = Some(true);
    for (d, &n) in dims.iter().zip(&sizes) {
        match d {
            // A size of -1 is inferred: if the others match, it is this tensor's size. If another size is 0, it cannot
            // be inferred.
            Dim::Known(0) if sizes.contains(&-1) => return Some(false),
            Dim::Known(m) if n != -1 && *m != n => return Some(false),
            Dim::Known(_) => {}
            Dim::Sym(_) | Dim::Unknown => all = None,
        }
    }
    all
}

fn expands_to(tensor: TermFact<'_>, other: TermFact<'_>) -> Option<bool> {
    let (from, to) = (tensor.dims()?, other.dims()?);
    let Some(added) = to.len().checked_sub(from.len()) else { return Some(false) };
    let mut all = Some(true);
    for (x, y) in from.iter().zip(&to[added..]) {
        match (x, y) {
            (Dim::Known(1), _) => {}
            (Dim::Known(m), Dim::Known(n)) if m != n => return Some(false),
            (Dim::Known(_), Dim::Known(_)) => {}
            (Dim::Sym(m), Dim::Sym(n)) if m == n => {}
            _ => all = None,
        }
    }
    all
}

fn can_have_sizes(tensor: TermFact<'_>, sizes: TermFact<'_>) -> Option<bool> {
    let product = |sizes: &[i64]| sizes.iter().try_fold(1_i64, |n, &size| n.checked_mul(size));
    let (count, sizes) = (product(&tensor.ty().as_tensor()?.concrete_sizes()?)?, sizes.ints()?);
    let known: Vec<i64> = sizes.iter().copied().filter(|&n| n != -1).collect();
    if known.iter().any(|&n| n < 0) {
        return Some(false);
    }
    let known_count = product(&known)?;
    match sizes.len() - known.len() {
        0 => Some(known_count == count),
        1 => Some(known_count > 0 && count % known_count == 0),
        _ => Some(false),
    }
}

fn device(tensor: TermFact<'_>) -> Option<Device> {
    tensor.ty().as_tensor()?.device
}

fn is_contiguous(tensor: TermFact<'_>) -> Option<bool> {
    let facts = tensor.ty().as_tensor()?;
    let (sizes, strides) = (facts.concrete_sizes()?, facts.concrete_strides()?);
    let mut step = 1;
    for (&n, &s) in sizes.iter().zip(&strides).rev() {
        if n != 1 && s != step {
            return Some(false);
        }
        step *= n.max(1);
    }
    Some(true)
}

fn is_power_of_two(x: f64) -> bool {
    // Exponents small enough for half precision.
    x != 0.0
        && x.is_finite()
        && x.to_bits() & ((1 << 52) - 1) == 0
        && (-12.0..=12.0).contains(&x.abs().log2())
}

fn numbers_equal(a: TermFact<'_>, b: TermFact<'_>) -> bool {
    matches!((a.number(), b.number()), (Some(x), Some(y)) if x == y)
}

/// The composition of two permutations; `None` if one of the lists is not a permutation, which `permute` rejects.
fn compose(first: &[i64], second: &[i64]) -> Option<IValue> {
    let rank = first.len() as i64;
    let wrapped = |dims: &[i64]| -> Option<Vec<usize>> {
        let all: Option<Vec<usize>> = dims
            .iter()
            .map(|&d| usize::try_from(if d < 0 { d.checked_add(rank)? } else { d }).ok())
            .collect();
        let all = all.filter(|all| all.len() == first.len())?;
        let mut sorted = all.clone();
        sorted.sort_unstable();
        sorted.iter().enumerate().all(|(i, &d)| i == d).then_some(all)
    };
    let (first, second) = (wrapped(first)?, wrapped(second)?);
    Some(IValue::ints(second.iter().map(|&d| first[d] as i64).collect::<Vec<_>>()))
}

fn int_op(args: &[TermFact<'_>], f: fn(i64, i64) -> Option<i64>) -> Option<IValue> {
    Some(IValue::Int(f(args[0].int()?, args[1].int()?)?))
}

fn number_op(args: &[TermFact<'_>], f: fn(f64, f64) -> f64) -> Option<IValue> {
    Some(IValue::Float(f(args[0].number()?, args[1].number()?)))
}

/// Whether a tensor has the sizes of the product of two matrices.
fn is_matrix_shape(of: TermFact<'_>, a: TermFact<'_>, b: TermFact<'_>) -> Option<bool> {
    let (of, a, b) = (of.dims()?, a.dims()?, b.dims()?);
    let ([rows, columns], [m, _], [_, n]) = (of, a, b) else { return Some(false) };
    let same = |x: &Dim, y: &Dim| match (x, y) {
        (Dim::Known(p), Dim::Known(q)) => Some(p == q),
        (Dim::Sym(p), Dim::Sym(q)) if p == q => Some(true),
        _ => None,
    };
    Some(same(rows, m)? && same(columns, n)?)
}

fn negate(x: TermFact<'_>) -> Option<IValue> {
    match x.constant()? {
        IValue::Int(i) => Some(IValue::Int(i.checked_neg()?)),
        IValue::Float(v) => Some(IValue::Float(-v)),
        _ => None,
    }
}

/// The first of two numbers of the same type if `wanted` accepts their ordering, else the second.
fn pick(args: &[TermFact<'_>], wanted: fn(Ordering) -> bool) -> Option<IValue> {
    let (a, b) = (args[0].constant()?, args[1].constant()?);
    let order = match (a, b) {
        (IValue::Int(x), IValue::Int(y)) => x.cmp(y),
        (IValue::Float(x), IValue::Float(y)) => x.partial_cmp(y)?,
        _ => return None,
    };
    Some(if wanted(order) { a.clone() } else { b.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_ir::types::TensorType;

    fn tensor(dtype: DType, sizes: &[i64]) -> TermFact<'static> {
        TermFact::Value { ty: Type::tensor(TensorType::contiguous(dtype, sizes)), constant: None }
    }

    #[test]
    fn words_answer_or_say_they_cannot() {
        let v = Vocabulary::standard();
        let evaluate = |name: &str, args: &[TermFact<'_>]| (v.find_condition(name).unwrap().1)(args);
        let unknown = TermFact::Value { ty: Type::TENSOR, constant: None };
        let a = tensor(DType::F32, &[2, 3]);
        assert_eq!(evaluate("same_type", &[a, a]), Some(true));
        assert_eq!(evaluate("same_type", &[a, unknown]), None);
        assert_eq!(evaluate("same_shape", &[a, tensor(DType::F32, &[3, 2])]), Some(false));
        let sizes = IValue::ints(vec![-1, 3]);
        assert_eq!(evaluate("sizes_are", &[a, TermFact::Literal(&sizes)]), Some(true));
        let minus = IValue::Int(-1);
        assert_eq!(
            evaluate("same_dim", &[a, TermFact::Literal(&minus), TermFact::Literal(&IValue::Int(1))]),
            Some(true)
        );
        let call = |name: &str, args: &[TermFact<'_>]| (v.find_function(name).unwrap().1)(args);
        let (p, q) = (IValue::ints(vec![1, 2, 0]), IValue::ints(vec![2, 0, -2]));
        assert_eq!(
            call("compose", &[TermFact::Literal(&p), TermFact::Literal(&q)])
                .unwrap()
                .as_list()
                .unwrap()
                .to_ints(),
            Some(vec![0, 1, 2])
        );
        let twice = IValue::ints(vec![0, 0, 1]);
        assert!(call("compose", &[TermFact::Literal(&p), TermFact::Literal(&twice)]).is_none());
        let fits = |sizes: &[i64]| {
            evaluate("can_have_sizes", &[a, TermFact::Literal(&IValue::ints(sizes.to_vec()))])
        };
        assert_eq!(
            [&[3, 2][..], &[-1, 6], &[-1, 4], &[-1, 0], &[-6, -1]].map(fits),
            [Some(true), Some(true), Some(false), Some(false), Some(false)]
        );
        let max = call(
            "max",
            &[TermFact::Literal(&IValue::Int(i64::MAX)), TermFact::Literal(&IValue::Int(i64::MAX - 1))],
        );
        assert_eq!(max.unwrap().as_int(), Some(i64::MAX));
        assert!(
            call("max", &[TermFact::Literal(&IValue::Int(1)), TermFact::Literal(&IValue::Float(2.0))])
                .is_none()
        );
    }
}
