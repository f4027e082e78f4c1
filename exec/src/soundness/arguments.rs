//! Arguments for trial calls: samples of an operator, samples with modified layouts, element types, sizes or options,
//! and arguments restricted by nothing but the schema's types.
//!
//! Many of these calls raise; then there is no result to compare. The others reach the cases in which rules tend to be
//! wrong: tensors without dimensions or elements, negative dimensions, empty lists, absent options, unusual strides.

use crate::kernel::Kernel;
use crate::sample::{Gen, Sample};
use crate::{Host, KernelError, Rets};
use flambeau_ir::schema::{Argument, FunctionSchema};
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::{Dict, EnumValue, IValue, List};
use flambeau_ir::{OpId, Registry, Symbol, Type};
use flambeau_tensor::{Complex, DType, Device, Layout, Scalar, Tensor};

/// Integers, most of which are invalid as sizes or dimensions.
const INTS: &[i64] = &[
    0,
    1,
    -1,
    2,
    3,
    -2,
    4,
    7,
    -5,
    64,
    65,
    1 << 20,
    i32::MAX as i64,
    1 << 40,
    i64::MAX,
    i64::MIN,
    i64::MIN + 1,
];
const FLOATS: &[f64] =
    &[0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 1e-320, 1e30, -1e308, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
const STRINGS: &[&str] =
    &["", "a", "mean", "none", "linear", "i,j->ij", "...", "{}{:d}", "\u{e9}\u{1f525}", "reflect"];
const DTYPES: &[DType] = &[
    DType::F32,
    DType::F32,
    DType::F64,
    DType::I64,
    DType::I64,
    DType::Bool,
    DType::F16,
    DType::BF16,
    DType::I32,
    DType::U8,
    DType::I8,
    DType::C64,
    DType::C128,
];

/// Whether an argument is an `out` argument: a tensor or a list of tensors.
#[must_use]
pub fn is_output(arg: &Argument) -> bool {
    arg.is_out()
}

/// Whether an operator is an in-place or `out=` variant, which borrows the samples of its functional operator.
#[must_use]
pub fn is_variant(registry: &Registry, id: OpId) -> bool {
    registry.schema(id).args.iter().any(is_output) || registry.functional_variant(id).is_some()
}

/// Finds the functional operator of a variant and the positions of the variant's arguments (without `out`) in that
/// operator's schema. Arguments correspond by name and type, or else by position and type. The functional operator may
/// have further arguments with defaults, which describe the result (dtype, layout).
fn functional(registry: &Registry, id: OpId) -> Option<(OpId, Vec<usize>)> {
    let schema = registry.schema(id);
    let out = schema.args.iter().any(is_output);
    let in_place = registry.functional_variant(id).map(|variant| registry.name(variant.into()));
    let names = [out.then_some(schema.name), in_place];
    let parameters: Vec<&Argument> = schema.args.iter().filter(|a| !is_output(a)).collect();
    let positions = |id: OpId| {
        let args = &registry.schema(id).args;
        let named = |a: &&Argument| args.iter().position(|b| (a.name, a.ty) == (b.name, b.ty));
        let first = || {
            let fits =
                parameters.len() <= args.len() && parameters.iter().zip(args).all(|(a, b)| a.ty == b.ty);
            fits.then(|| (0..parameters.len()).collect())
        };
        let positions: Vec<usize> = parameters.iter().map(named).collect::<Option<_>>().or_else(first)?;
        let rest = (0..args.len()).filter(|i| !positions.contains(i)).all(|i| args[i].default.is_some());
        (rest && registry.facet::<Sample>(id).is_some()).then_some((id, positions))
    };
    let fitting = names.iter().flatten().flat_map(|&name| registry.overloads(name));
    // If several fit, take the one with the fewest arguments.
    fitting.filter_map(|id| positions(*id)).min_by_key(|(id, _)| registry.schema(*id).args.len())
}

/// Draws a sample of an operator's arguments. Variants use the samples of their functional operator. Returns `None` if
/// there is no sample or the functional operator cannot be run on it.
#[must_use]
pub fn sample(registry: &Registry, id: OpId, g: &mut Gen<'_>) -> Option<Vec<IValue>> {
    let schema = registry.schema(id);
    if let Some(sample) = registry.facet::<Sample>(id) {
        return Some(sample.make(schema, g));
    }
    let (base, positions) = functional(registry, id)?;
    let base_schema = registry.schema(base);
    let drawn = registry.facet::<Sample>(base)?.make(base_schema, g);
    if drawn.len() != base_schema.args.len() {
        return None;
    }
    let mut args: Vec<IValue> = positions.iter().map(|i| drawn[*i].clone()).collect();
    let copies = || drawn.iter().map(IValue::deep_copied).collect::<Result<Vec<_>, _>>().ok();
    let run = |args: Vec<IValue>| call(registry, base, args);
    if schema.args.iter().any(is_output) {
        args.extend(run(copies()?)?.ok()?);
    } else if let Some(Ok(results)) = run(copies()?)
        && let (Some(IValue::Tensor(own)), [IValue::Tensor(result)]) = (args.first(), &results[..])
        && (own.sizes() != result.sizes() || own.dtype() != result.dtype())
    {
        // The written tensor must have the size of the result.
        args[0] = IValue::Tensor(result.clone_data().ok()?);
    }
    (args.len() == schema.args.len()).then_some(args)
}

/// Runs a kernel; `None` if there is none.
pub(super) fn call(
    registry: &Registry,
    id: OpId,
    mut args: Vec<IValue>,
) -> Option<Result<Rets, KernelError>> {
    let kernel = registry.facet::<Kernel>(id)?;
    Some(kernel.call_on(registry.schema(id), &mut args, &mut Host::quiet()))
}

/// Draws boundary arguments: a sample with modified layouts, element types, sizes or options; a sample with one to
/// three arguments replaced by arbitrary values of their types; or arbitrary values only.
#[must_use]
pub fn border(registry: &Registry, id: OpId, g: &mut Gen<'_>) -> Vec<IValue> {
    let schema = registry.schema(id);
    let strange = g.one_in(6);
    let drawn = if strange { None } else { sample(registry, id, g) };
    match drawn.filter(|args| args.len() == schema.args.len() && !args.is_empty()) {
        Some(args) if g.one_in(3) => replaced(schema, args, g),
        Some(args) => varied(schema, args, g),
        None => any(schema, g),
    }
}

/// Draws hostile arguments: a sample with one to three arguments replaced by arbitrary values or with tensors without
/// elements, or arbitrary values only.
#[must_use]
pub fn hostile(registry: &Registry, id: OpId, g: &mut Gen<'_>) -> Vec<IValue> {
    let schema = registry.schema(id);
    let drawn = if g.one_in(4) { None } else { sample(registry, id, g) };
    match drawn.filter(|args| args.len() == schema.args.len() && !args.is_empty()) {
        Some(args) if g.one_in(4) => without_elements(args, g),
        Some(args) => replaced(schema, args, g),
        None => any(schema, g),
    }
}

fn any(schema: &FunctionSchema, g: &mut Gen<'_>) -> Vec<IValue> {
    let mut args: Vec<IValue> = Vec::with_capacity(schema.args.len());
    for arg in &schema.args {
        let next = value(arg.ty, g, &args);
        args.push(next);
    }
    args
}

fn replaced(schema: &FunctionSchema, mut args: Vec<IValue>, g: &mut Gen<'_>) -> Vec<IValue> {
    for _ in 0..=g.below(3) {
        let i = g.below(args.len());
        args[i] = value(schema.args[i].ty, g, &args);
    }
    args
}

/// Modifies properties of a sample that most rules depend on.
fn varied(schema: &FunctionSchema, mut args: Vec<IValue>, g: &mut Gen<'_>) -> Vec<IValue> {
    if g.one_in(3) {
        let dtype = *g.pick(DTYPES);
        let one = g.one_in(3);
        let all = args.iter().filter(|v| v.is_tensor()).count();
        let chosen = g.below(all.max(1));
        let mut at = 0;
        change_tensors(&mut args, &mut |t| {
            at += 1;
            if one && at - 1 != chosen { Some(t.clone()) } else { t.to_dtype(dtype).ok() }
        });
    }
    if g.one_in(3) {
        resize(&mut args, g);
    }
    for _ in 0..g.below(3) {
        let i = g.below(args.len());
        if let Some(next) = option(&args[i], schema.args[i].ty, g) {
            args[i] = next;
        }
    }
    if g.flag() {
        change_tensors(&mut args, &mut |t| with_other_strides(t, g));
    }
    args
}

/// Replaces tensors by ones without elements, one size of which is large.
fn without_elements(mut args: Vec<IValue>, g: &mut Gen<'_>) -> Vec<IValue> {
    let large_size = *g.pick(&[1 << 16, 1 << 20]);
    let (empty, other) = (g.below(4), g.below(4));
    change_tensors(&mut args, &mut |t| {
        let rank = t.rank();
        if rank < 2 {
            return None;
        }
        let mut sizes = t.sizes().to_vec();
        sizes[empty % rank] = 0;
        sizes[if other % rank == empty % rank { (other + 1) % rank } else { other % rank }] = large_size;
        Tensor::empty(&sizes, t.dtype()).ok()
    });
    args
}

/// Replaces tensors among the arguments and in lists. A tensor for which `change` returns `None` stays.
fn change_tensors(args: &mut [IValue], change: &mut dyn FnMut(&Tensor) -> Option<Tensor>) {
    for arg in args {
        match arg {
            IValue::Tensor(t) => {
                if let Some(next) = change(t) {
                    *arg = IValue::Tensor(next);
                }
            }
            IValue::List(list) if list.elem_type().is_tensor() => {
                let items = list.to_vec().into_iter().map(|item| match &item {
                    IValue::Tensor(t) => change(t).map_or(item.clone(), IValue::Tensor),
                    _ => item,
                });
                let items = items.collect();
                *arg = IValue::List(List::from_values(list.elem_type(), items));
            }
            _ => {}
        }
    }
}

/// Replaces one size by 0 or 1 wherever it occurs, or removes the first dimension of all tensors.
fn resize(args: &mut [IValue], g: &mut Gen<'_>) {
    let mut sizes: Vec<i64> = Vec::new();
    change_tensors(args, &mut |t| {
        sizes.extend_from_slice(t.sizes());
        None
    });
    if sizes.is_empty() {
        return;
    }
    let size = *g.pick(&sizes);
    let becomes = g.int(0, 1).min(size);
    let drop = g.one_in(4);
    change_tensors(args, &mut |t| {
        if drop {
            return t.select(0, 0).ok();
        }
        let mut next = t.clone();
        for d in 0..t.rank() {
            if t.sizes()[d] == size {
                next = next.narrow(d as i64, 0, becomes).ok()?;
            }
        }
        next.clone_data().ok()
    });
}

/// Draws another value of an option: absent, the opposite flag, another dimension, an empty list.
fn option(value: &IValue, ty: Type, g: &mut Gen<'_>) -> Option<IValue> {
    if matches!(ty.kind(), TypeKind::Optional(_)) && g.flag() {
        return Some(IValue::None);
    }
    match (value, ty.unwrap_optional().kind()) {
        (IValue::Bool(b), _) => Some(IValue::Bool(!b)),
        (IValue::Int(_), _) => Some(IValue::Int(g.int(-3, 3))),
        (_, TypeKind::Int) => Some(IValue::Int(g.int(-3, 3))),
        (_, TypeKind::Bool) => Some(IValue::Bool(g.flag())),
        (_, TypeKind::List(e)) if *e == Type::INT => {
            let n = g.below(4);
            Some(IValue::ints((0..n).map(|_| g.int(-3, 3)).collect()))
        }
        (_, TypeKind::List(_)) if !value.is_list() => None,
        _ => None,
    }
}

/// Returns a tensor with the same sizes and other strides: permuted dimensions (including channels last), gaps, or
/// stride 0.
fn with_other_strides(t: &Tensor, g: &mut Gen<'_>) -> Option<Tensor> {
    let rank = t.rank();
    if rank == 0 {
        return None;
    }
    match g.below(4) {
        0 => {
            let d = g.below(rank);
            let n = t.sizes()[d];
            (n > 0).then(|| t.narrow(d as i64, 0, 1).and_then(|one| one.expand(t.sizes())).ok()).flatten()
        }
        1 => {
            let mut wide = t.sizes().to_vec();
            let d = g.below(rank);
            wide[d] = wide[d].checked_mul(2)?;
            // Repeat every element, then take every other one.
            let mut sizes = t.sizes().to_vec();
            sizes.insert(d + 1, 2);
            let twice = t.unsqueeze(d as i64 + 1).and_then(|t| t.expand(&sizes)).ok()?;
            let whole = twice.clone_contiguous().and_then(|t| t.reshape(&wide)).ok()?;
            whole.slice(d as i64, None, None, 2).ok()
        }
        _ => {
            let mut order: Vec<i64> = (0..rank as i64).collect();
            if g.flag() && rank >= 3 {
                // Channels last.
                let channels = order.remove(1);
                order.push(channels);
            } else {
                for i in (1..rank).rev() {
                    order.swap(i, g.below(i + 1));
                }
            }
            let mut back = vec![0; rank];
            order.iter().enumerate().for_each(|(i, &d)| back[d as usize] = i as i64);
            let transposed = t.permute(&order).and_then(|t| t.clone_contiguous()).ok()?;
            transposed.permute(&back).ok()
        }
    }
}

/// Draws a tensor of an unusual shape: rank 0, empty, high rank, unequal sizes; contiguous, or a view with overlapping
/// or permuted dimensions.
fn tensor(g: &mut Gen<'_>) -> Tensor {
    let rank = *g.pick(&[0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6]);
    let sizes: Vec<i64> = (0..rank).map(|_| *g.pick(&[0, 1, 1, 2, 2, 3, 4, 5])).collect();
    let dtype = *g.pick(DTYPES);
    let mut whole = || -> flambeau_tensor::Result<Tensor> {
        let values: Vec<Scalar> = (0..sizes.iter().product::<i64>())
            .map(|_| match g.below(3) {
                0 => Scalar::Int(*g.pick(INTS)),
                1 => Scalar::Float(*g.pick(FLOATS)),
                _ => Scalar::Int(g.int(-1, 4)),
            })
            .collect();
        let made = Tensor::from_scalars(&values, &sizes, dtype)?;
        Ok(match g.below(6) {
            0 if rank > 1 => made.transpose(0, -1)?,
            1 => {
                let strides: Vec<i64> = sizes.iter().map(|_| 0).collect();
                match Layout::new(&sizes, &strides, 0) {
                    Ok(_) if made.numel() > 0 => made.as_strided(&sizes, &strides, None)?,
                    _ => made,
                }
            }
            2 if rank > 0 => made.select(0, 0).unwrap_or(made),
            _ => made,
        })
    };
    whole().expect("invariant: a tensor of at most 5^6 elements can be made")
}

/// Draws a value of a type, including values the operator may reject.
fn value(ty: Type, g: &mut Gen<'_>, known: &[IValue]) -> IValue {
    match ty.kind() {
        TypeKind::Tensor(_) | TypeKind::Any => {
            // Reuse an earlier tensor, so that the written memory may also be read.
            let other = known.iter().find(|v| v.is_tensor()).filter(|_| g.one_in(6));
            other.cloned().unwrap_or_else(|| IValue::Tensor(tensor(g)))
        }
        TypeKind::Int | TypeKind::SymInt => IValue::Int(*g.pick(INTS)),
        TypeKind::Float => IValue::Float(*g.pick(FLOATS)),
        TypeKind::Number => match g.below(4) {
            0 => IValue::Float(*g.pick(FLOATS)),
            1 => IValue::complex(Complex::new(*g.pick(FLOATS), *g.pick(FLOATS))),
            2 => IValue::Bool(g.flag()),
            _ => IValue::Int(*g.pick(INTS)),
        },
        TypeKind::Bool => IValue::Bool(g.flag()),
        TypeKind::Complex => IValue::complex(Complex::new(*g.pick(FLOATS), *g.pick(FLOATS))),
        TypeKind::Str => IValue::str(STRINGS[g.below(STRINGS.len())]),
        TypeKind::Device => IValue::Device(Device::CPU),
        TypeKind::AnyEnum if !g.one_in(4) => {
            let value = value(*g.pick(&[Type::INT, Type::FLOAT, Type::STR]), g, known);
            let ty = Type::enumeration(Symbol::new("__torch__.Color"), 0, value.type_of());
            IValue::Enum(EnumValue::new(ty, Symbol::new(g.pick::<&str>(&["RED", "GREEN"])), value))
        }
        TypeKind::Optional(_) if g.one_in(3) => IValue::None,
        TypeKind::Optional(inner) => value(*inner, g, known),
        TypeKind::List(elem) => {
            let n = *g.pick(&[0, 1, 1, 2, 2, 3, 4, 5, 9]);
            let items = (0..n).map(|_| value(*elem, g, known)).collect();
            IValue::List(List::from_values(*elem, items))
        }
        TypeKind::Tuple(t) => IValue::tuple(t.elems.iter().map(|&e| value(e, g, known)).collect()),
        TypeKind::Dict(k, v) => {
            let dict = Dict::new(*k, *v);
            for _ in 0..g.below(3) {
                let (key, item) = (value(*k, g, known), value(*v, g, known));
                // Unhashable keys leave the dictionary empty.
                let _ = dict.insert(key, item);
            }
            IValue::Dict(dict)
        }
        TypeKind::Var(_) => match g.below(3) {
            0 => IValue::str(STRINGS[g.below(STRINGS.len())]),
            1 => IValue::Tensor(tensor(g)),
            _ => IValue::Int(*g.pick(INTS)),
        },
        _ => IValue::None,
    }
}
