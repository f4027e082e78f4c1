//! Arguments to call an operator with: its samples, samples of which something is changed (layouts, element types,
//! sizes, options), and arguments that nothing but the schema's types restricts.
//!
//! Many of these calls raise; then nothing is claimed about results. Those that do not are where rules are wrong:
//! tensors without dimensions or elements, dimensions counted from the end, empty lists, absent options, strides of
//! every kind.

use crate::kernel::Kernel;
use crate::sample::{Gen, Sample};
use crate::{Host, KernelError, Rets};
use flambeau_ir::schema::{Argument, FunctionSchema};
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::{Dict, EnumValue, IValue, List};
use flambeau_ir::{OpId, Registry, Symbol, Type};
use flambeau_tensor::{Complex, DType, Device, Layout, Scalar, Tensor};

/// Integers of which most are no size or dimension of anything.
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

/// Whether an argument takes a result: a tensor, or a list of them.
#[must_use]
pub fn is_output(arg: &Argument) -> bool {
    arg.is_out()
}

/// The name of the functional operator that an in-place one follows from: `add` of `add_`, `__and__` of `__iand__`.
fn functional_name(name: &str) -> Option<String> {
    match name.split_once("::__i").filter(|(_, rest)| rest.ends_with("__")) {
        Some((namespace, rest)) => Some(format!("{namespace}::__{rest}")),
        None => name.strip_suffix('_').map(str::to_owned),
    }
}

/// Whether an operator is the in-place or `out=` variant of a functional one, whose samples it is tried on.
#[must_use]
pub fn is_variant(schema: &FunctionSchema) -> bool {
    schema.args.iter().any(is_output)
        || (functional_name(schema.name.as_str()).is_some()
            && schema.args.first().is_some_and(Argument::is_write))
}

/// The operator a variant follows from, and where the variant's arguments (those of the output left out) are among its: of
/// the same names and types, or the first ones, of the same types. It may have more, which say what the output is like.
fn functional(registry: &Registry, schema: &FunctionSchema) -> Option<(OpId, Vec<usize>)> {
    let name = schema.name.as_str();
    let out = schema.args.iter().any(is_output);
    let names = [out.then(|| name.to_owned()), functional_name(name)];
    let asked: Vec<&Argument> = schema.args.iter().filter(|a| !is_output(a)).collect();
    let positions = |id: OpId| {
        let args = &registry.schema(id).args;
        let named = |a: &&Argument| args.iter().position(|b| (a.name, a.ty) == (b.name, b.ty));
        let first = || {
            let fits = asked.len() <= args.len() && asked.iter().zip(args).all(|(a, b)| a.ty == b.ty);
            fits.then(|| (0..asked.len()).collect())
        };
        let positions: Vec<usize> = asked.iter().map(named).collect::<Option<_>>().or_else(first)?;
        let rest = (0..args.len()).filter(|i| !positions.contains(i)).all(|i| args[i].default.is_some());
        (rest && registry.facet::<Sample>(id).is_some()).then_some((id, positions))
    };
    let fitting = names.iter().flatten().flat_map(|name| registry.overloads(Symbol::new(name)));
    // Of several that fit, the one with the fewest others.
    fitting.filter_map(|id| positions(*id)).min_by_key(|(id, _)| registry.schema(*id).args.len())
}

/// A sample of an operator's arguments. Variants take those of their functional operator; `None` if there is none, or it
/// cannot be run.
#[must_use]
pub fn sample(registry: &Registry, id: OpId, g: &mut Gen<'_>) -> Option<Vec<IValue>> {
    let schema = registry.schema(id);
    if let Some(sample) = registry.facet::<Sample>(id) {
        return Some(sample.make(schema, g));
    }
    let (base, positions) = functional(registry, schema)?;
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
        // What is written has to be as large as what is computed.
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

/// Arguments at the borders of what an operator takes: a sample with layouts, element types, sizes, or options changed;
/// a sample with one to three arguments replaced by any of their types; or all of them.
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

/// Arguments that are hostile altogether, or a sample with one to three of them made hostile.
#[must_use]
pub fn hostile(registry: &Registry, id: OpId, g: &mut Gen<'_>) -> Vec<IValue> {
    let schema = registry.schema(id);
    let drawn = if g.one_in(4) { None } else { sample(registry, id, g) };
    match drawn.filter(|args| args.len() == schema.args.len() && !args.is_empty()) {
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

/// A sample of which some things are changed that most rules have to know of.
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
        change_tensors(&mut args, &mut |t| relaid(t, g));
    }
    args
}

/// Replaces the tensors among arguments, and in lists of them. A tensor that cannot be changed stays.
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

/// One size becomes 0 or 1 wherever it occurs, or tensors lose their first dimension.
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

/// Another value of an option: absent, the other truth value, another dimension, an empty list.
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

/// A tensor of the same sizes whose elements are elsewhere in memory: dimensions in another order (channels last among
/// them), with gaps, or several at one place.
fn relaid(t: &Tensor, g: &mut Gen<'_>) -> Option<Tensor> {
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
            // Every element twice, then every other one of them.
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
            let turned = t.permute(&order).and_then(|t| t.clone_contiguous()).ok()?;
            turned.permute(&back).ok()
        }
    }
}

/// A tensor of an odd shape: no dimension, none of some, many, unequal ones; contiguous, or a view that overlaps itself
/// or walks backwards through the order of dimensions.
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

/// A value of a type that an operator may not expect.
fn value(ty: Type, g: &mut Gen<'_>, known: &[IValue]) -> IValue {
    match ty.kind() {
        TypeKind::Tensor(_) | TypeKind::Any => {
            // The same tensor twice: what is written may be what is read.
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
            IValue::Enum(EnumValue::new(ty, Symbol::new(*g.pick(&["RED", "GREEN"])), value))
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
                // Keys of a kind that cannot be hashed leave the dictionary empty.
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
