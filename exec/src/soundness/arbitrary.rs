//! Arbitrary facts as operands, for totality tests of rules: wrong kinds, wrong ranks, absent operands, sizes and
//! numbers at the limits of their range, long lists.

use crate::sample::Gen;
use flambeau_analysis::shape::{Dims, Fact, OperandFact, Range, Strides, Symbols, TensorFact};
use flambeau_ir::types::{Dim, TypeKind};
use flambeau_ir::value::IValue;
use flambeau_ir::{FunctionSchema, Type};
use flambeau_tensor::{DType, Device};
use std::borrow::Cow;

const NUMBERS: &[i64] = &[
    0,
    0,
    1,
    1,
    2,
    3,
    -1,
    -2,
    -3,
    5,
    64,
    1 << 31,
    1 << 40,
    i64::MAX / 2,
    i64::MAX - 1,
    i64::MAX,
    i64::MIN,
    i64::MIN + 1,
    -(1 << 40),
];
const DTYPES: &[DType] =
    &[DType::F32, DType::I64, DType::Bool, DType::C64, DType::F16, DType::U8, DType::F64];
const STRINGS: &[&str] =
    &["", "mean", "sum", "none", "ij,jk->ik", "i->", "...i,i...", ",,,->->", "reflect", "full"];

/// Draws operands with arbitrary facts; occasionally fewer or more than the schema has.
pub(super) fn operands(
    schema: &FunctionSchema,
    symbols: &mut Symbols,
    g: &mut Gen<'_>,
) -> Vec<OperandFact<'static>> {
    let n = match g.below(12) {
        0 => g.below(schema.args.len() + 1),
        1 => schema.args.len() + 1,
        _ => schema.args.len(),
    };
    let ty = |i: usize| schema.args.get(i).map_or(Type::ANY, |a| a.ty);
    (0..n).map(|i| operand(ty(i), symbols, g)).collect()
}

fn operand(ty: Type, symbols: &mut Symbols, g: &mut Gen<'_>) -> OperandFact<'static> {
    let fact = if g.one_in(8) { any(symbols, g, 2) } else { of_type(ty, symbols, g) };
    let constant = match ty.unwrap_optional().kind() {
        TypeKind::Str => Some(IValue::str(g.pick::<&str>(STRINGS))),
        TypeKind::Number | TypeKind::Float => {
            Some(IValue::Float(*g.pick(&[0.0, -1.5, f64::NAN, 1e308, 2.0])))
        }
        _ => None,
    };
    let constant = constant.filter(|_| g.flag());
    // The dynamic type of the value, which may be narrower than the declared one.
    let actual = match (&fact, ty.kind()) {
        (Fact::Int(_), _) => Type::INT,
        (_, TypeKind::Number) => *g.pick(&[Type::INT, Type::FLOAT, Type::BOOL, Type::COMPLEX, Type::NUMBER]),
        _ => ty,
    };
    OperandFact { fact: Cow::Owned(fact), ty: if g.one_in(10) { Type::ANY } else { actual }, constant }
}

fn of_type(ty: Type, symbols: &mut Symbols, g: &mut Gen<'_>) -> Fact {
    if g.one_in(10) {
        return Fact::Unknown;
    }
    match ty.kind() {
        TypeKind::Tensor(_) => Fact::Tensor(tensor(symbols, g)),
        TypeKind::Int | TypeKind::SymInt | TypeKind::Number => Fact::Int(number(symbols, g)),
        TypeKind::Bool => Fact::Bool(g.flag()),
        TypeKind::Optional(_) if g.one_in(3) => Fact::None,
        TypeKind::Optional(inner) => of_type(*inner, symbols, g),
        TypeKind::List(elem) => {
            let n = *g.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 65, 300]);
            if g.one_in(8) {
                return Fact::ListOf(Box::new(of_type(*elem, symbols, g)));
            }
            Fact::List((0..n).map(|_| of_type(*elem, symbols, g)).collect())
        }
        TypeKind::Tuple(t) => Fact::Tuple(t.elems.iter().map(|&e| of_type(e, symbols, g)).collect()),
        _ => any(symbols, g, 1),
    }
}

fn any(symbols: &mut Symbols, g: &mut Gen<'_>, depth: usize) -> Fact {
    match g.below(if depth == 0 { 5 } else { 8 }) {
        0 => Fact::Unknown,
        1 => Fact::None,
        2 => Fact::Bool(g.flag()),
        3 => Fact::Int(number(symbols, g)),
        4 => Fact::Tensor(tensor(symbols, g)),
        5 => Fact::List((0..g.below(5)).map(|_| any(symbols, g, depth - 1)).collect()),
        6 => Fact::ListOf(Box::new(any(symbols, g, depth - 1))),
        _ => Fact::Tuple((0..g.below(5)).map(|_| any(symbols, g, depth - 1)).collect()),
    }
}

fn tensor(symbols: &mut Symbols, g: &mut Gen<'_>) -> TensorFact {
    let rank = *g.pick(&[0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 64, 200]);
    let dims: Dims = (0..rank)
        .map(|_| match g.below(4) {
            0 | 1 => Dim::Known(g.int(0, 4)),
            _ => number(symbols, g),
        })
        .collect();
    TensorFact {
        dtype: (!g.one_in(4)).then(|| *g.pick(DTYPES)),
        device: g.flag().then_some(Device::CPU),
        dims: (!g.one_in(8)).then_some(dims),
        strides: if g.flag() { Strides::Contiguous } else { Strides::Unknown },
        requires_grad: None,
        undefined: g.one_in(20),
    }
}

fn number(symbols: &mut Symbols, g: &mut Gen<'_>) -> Dim {
    match g.below(6) {
        0 => Dim::Unknown,
        1 => symbols.fresh(Range::SIZE),
        2 => {
            let (a, b) = (*g.pick(NUMBERS), *g.pick(NUMBERS));
            symbols.fresh(Range { min: a.min(b), max: a.max(b) })
        }
        3 => Dim::Known(g.int(-4, 4)),
        _ => Dim::Known(*g.pick(NUMBERS)),
    }
}
