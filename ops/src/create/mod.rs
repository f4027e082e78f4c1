//! Creation operators: tensors from sizes, numbers and lists, and copies in another dtype or layout.

mod parts;
mod sequences;
mod windows;

use crate::autograd::require_grad;
use crate::support::{Computed, OutputLayout, edited, fresh, in_range, op};
use flambeau_analysis::shape::{ShapeCx, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::types::{Dim, TypeKind};
use flambeau_ir::value::ListItems;
use flambeau_ir::{Doc, Effects, IValue, OpDef, Type};
use flambeau_tensor::promote::{DEFAULT_COMPLEX, DEFAULT_FLOAT};
use flambeau_tensor::{Category, DType, DeviceKind, MemoryFormat, Scalar, Tensor};

/// Returns an error for devices other than the CPU.
pub(crate) fn check_device(cx: &KernelCx<'_>, i: usize) -> Result<(), KernelError> {
    match cx.opt_device(i)? {
        None => Ok(()),
        Some(d) if d.kind == DeviceKind::Cpu => Ok(()),
        Some(d) => Err(KernelError::unsupported(format!("tensors on device {d}"))),
    }
}

fn default_dtype(fill: Scalar) -> DType {
    match fill {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) => DEFAULT_FLOAT,
        Scalar::Complex(_) => DEFAULT_COMPLEX,
    }
}

/// Reads `(size, fill, dtype, layout, device, pin_memory)` with the dtype at `dtype_at`.
fn filled(cx: &KernelCx<'_>, fill: Scalar, dtype_at: usize, default: DType) -> Computed {
    check_device(cx, dtype_at + 2)?;
    let dtype = cx.opt_dtype(dtype_at)?.unwrap_or(default);
    Ok(Tensor::full(&cx.ints(0)?, in_range(fill, dtype)?, dtype)?)
}

fn zeros(cx: &KernelCx<'_>) -> Computed {
    filled(cx, Scalar::Int(0), 1, DEFAULT_FLOAT)
}

fn ones(cx: &KernelCx<'_>) -> Computed {
    filled(cx, Scalar::Int(1), 1, DEFAULT_FLOAT)
}

fn full(cx: &KernelCx<'_>) -> Computed {
    let fill = cx.scalar(1)?;
    filled(cx, fill, 2, default_dtype(fill))
}

/// `(self, dtype, layout, device, pin_memory, memory_format)`.
fn like(cx: &KernelCx<'_>, fill: Scalar, dtype_at: usize) -> Computed {
    check_device(cx, dtype_at + 2)?;
    let x = cx.tensor(0)?;
    let dtype = cx.opt_dtype(dtype_at)?.unwrap_or(x.dtype());
    let fill = in_range(fill, dtype)?;
    let made = match cx.opt_int(dtype_at + 4)?.and_then(MemoryFormat::from_number) {
        Some(MemoryFormat::Contiguous) => x.zeros_contiguous_like(dtype)?,
        Some(format @ (MemoryFormat::ChannelsLast | MemoryFormat::ChannelsLast3d)) => {
            x.zeros_contiguous_like(dtype)?.contiguous_format(format)?
        }
        Some(MemoryFormat::Preserve) | None => x.empty_like(dtype)?,
    };
    made.fill_(fill)?;
    Ok(made)
}

fn zeros_like(cx: &KernelCx<'_>) -> Computed {
    like(cx, Scalar::Int(0), 1)
}

fn ones_like(cx: &KernelCx<'_>) -> Computed {
    like(cx, Scalar::Int(1), 1)
}

fn full_like(cx: &KernelCx<'_>) -> Computed {
    like(cx, cx.scalar(1)?, 2)
}

/// `(self, size, dtype, layout, device, pin_memory)`.
fn new_filled(cx: &KernelCx<'_>, fill: Scalar, dtype_at: usize) -> Computed {
    check_device(cx, dtype_at + 2)?;
    let dtype = cx.opt_dtype(dtype_at)?.unwrap_or(cx.tensor(0)?.dtype());
    Ok(Tensor::full(&cx.ints(1)?, in_range(fill, dtype)?, dtype)?)
}

fn new_zeros(cx: &KernelCx<'_>) -> Computed {
    new_filled(cx, Scalar::Int(0), 2)
}

fn new_ones(cx: &KernelCx<'_>) -> Computed {
    new_filled(cx, Scalar::Int(1), 2)
}

fn new_full(cx: &KernelCx<'_>) -> Computed {
    new_filled(cx, cx.scalar(2)?, 3)
}

/// `torch.tensor(number)`.
fn of_number(cx: &KernelCx<'_>) -> Computed {
    check_device(cx, 2)?;
    let value = cx.scalar(0)?;
    leaf(cx, Tensor::scalar(value, cx.opt_dtype(1)?.unwrap_or(default_dtype(value)))?)
}

/// Applies the option `requires_grad` of `torch.tensor`; `torch.as_tensor` lacks it.
fn leaf(cx: &KernelCx<'_>, made: Tensor) -> Computed {
    if matches!(cx.arg(3), Ok(IValue::Bool(true))) {
        require_grad(&made, true)?;
    }
    Ok(made)
}

/// Converts a number of the program to a tensor of rank 0, in the precision of programs.
fn num_to_tensor(cx: &KernelCx<'_>) -> Computed {
    let value = cx.scalar(0)?;
    let dtype = match value {
        Scalar::Float(_) => DType::F64,
        Scalar::Complex(_) => DType::C128,
        other => default_dtype(other),
    };
    Ok(Tensor::scalar(value, dtype)?)
}

/// `torch.tensor(list)`: nested lists of numbers, or of tensors with one element.
fn of_list(cx: &KernelCx<'_>) -> Computed {
    check_device(cx, 2)?;
    check_numbers(cx.arg(0)?)?;
    let mut sizes = Vec::new();
    let mut values = Vec::new();
    // Depth-first with an explicit stack; the first list of each level determines that level's length.
    let mut stack = vec![(cx.arg(0)?.clone(), 0usize)];
    while let Some((value, depth)) = stack.pop() {
        match &value {
            IValue::List(list) => {
                let items = list.read();
                match sizes.get(depth) {
                    None => sizes.push(items.len() as i64),
                    Some(&n) if n != items.len() as i64 => {
                        return Err(KernelError::input(format!(
                            "Expected sequence of length {n} at dim {depth} (got {})",
                            items.len()
                        )));
                    }
                    Some(_) => {}
                }
                if let ListItems::Ints(v) = &*items {
                    values.extend(v.iter().map(|&i| Scalar::Int(i)));
                    continue;
                }
                stack.extend(items.iter().rev_list().map(|v| (v, depth + 1)));
            }
            other => {
                let scalar = other.as_scalar();
                values.push(scalar.ok_or_else(|| {
                    KernelError::input(format!("a tensor cannot be made of {}", other.tag()))
                })?);
            }
        }
    }
    let guess = values.first().map(|&v| default_dtype(v));
    let dtype = cx.opt_dtype(1)?.or(guess).unwrap_or_else(|| empty_dtype(cx.arg(0)));
    leaf(cx, Tensor::from_scalars(&values, &sizes, dtype)?)
}

/// Returns the innermost element type of nested lists.
fn innermost(list: &IValue) -> Type {
    let mut ty = list.type_of();
    while let TypeKind::List(elem) = ty.kind() {
        ty = *elem;
    }
    ty
}

/// Checks that all numbers of a list have one static type, which determines the dtype.
fn check_numbers(list: &IValue) -> Result<(), KernelError> {
    match innermost(list) {
        Type::INT | Type::FLOAT | Type::BOOL | Type::COMPLEX => Ok(()),
        ty if ty.is_tensor() && matches!(list, IValue::List(l) if l.is_empty()) => Err(KernelError::input(
            "Empty lists default to List[Tensor]. Add a variable annotation to the assignment to create an empty list \
             of another type",
        )),
        ty => Err(KernelError::input(format!(
            "Input must be of ints, floats, or bools, got {}",
            ty.annotation_str()
        ))),
    }
}

/// Returns the dtype for an empty list, from its element type.
fn empty_dtype(list: Result<&IValue, KernelError>) -> DType {
    list.ok().and_then(|list| default_of(list.type_of())).unwrap_or(DEFAULT_FLOAT)
}

/// Reverses an iterator that is not double-ended.
trait RevList: Iterator + Sized {
    fn rev_list(self) -> std::iter::Rev<std::vec::IntoIter<Self::Item>> {
        self.collect::<Vec<_>>().into_iter().rev()
    }
}

impl<I: Iterator> RevList for I {}

/// `to`, with the positions of its options.
fn converted(
    cx: &KernelCx<'_>,
    dtype: Option<DType>,
    device: Option<usize>,
    copy: usize,
    format: Option<usize>,
) -> Computed {
    if let Some(i) = device {
        check_device(cx, i)?;
    }
    let x = cx.tensor(0)?;
    let dtype = dtype.unwrap_or(x.dtype());
    let format = match format {
        Some(i) => cx.opt_int(i)?.and_then(MemoryFormat::from_number),
        None => None,
    };
    let reshaped = match format {
        None | Some(MemoryFormat::Preserve) => x.clone(),
        // Nothing is converted if the strides suggest the format, even if the elements are not in its order.
        Some(format) if dtype == x.dtype() && !cx.boolean(copy)? && x.suggested_format() == format => {
            x.clone()
        }
        Some(format) => x.contiguous_format(format)?,
    };
    if cx.boolean(copy)? && reshaped.ptr_eq(x) {
        Ok(x.cast_copy(dtype)?)
    } else {
        Ok(reshaped.to_dtype(dtype)?)
    }
}

fn to_device(cx: &KernelCx<'_>) -> Computed {
    converted(cx, Some(cx.dtype(2)?), Some(1), 4, Some(5))
}

fn to_dtype(cx: &KernelCx<'_>) -> Computed {
    converted(cx, Some(cx.dtype(1)?), None, 3, Some(4))
}

fn to_other(cx: &KernelCx<'_>) -> Computed {
    converted(cx, Some(cx.tensor(1)?.dtype()), None, 3, Some(4))
}

fn to_layout(cx: &KernelCx<'_>) -> Computed {
    converted(cx, cx.opt_dtype(1)?, Some(3), 6, Some(7))
}

fn to_prim_device(cx: &KernelCx<'_>) -> Computed {
    converted(cx, cx.opt_dtype(2)?, Some(1), 4, None)
}

fn to_prim_dtype(cx: &KernelCx<'_>) -> Computed {
    converted(cx, cx.opt_dtype(1)?, None, 3, None)
}

fn to_prim_other(cx: &KernelCx<'_>) -> Computed {
    converted(cx, None, None, 2, None)
}

/// Casts to a dtype; copies even if the dtype stays, since the schemas of the callers declare a new tensor.
fn cast_copy(x: &Tensor, dtype: DType) -> Computed {
    Ok(if x.dtype() == dtype { x.clone_data()? } else { x.to_dtype(dtype)? })
}

fn type_as(cx: &KernelCx<'_>) -> Computed {
    Ok(cx.tensor(0)?.to_dtype(cx.tensor(1)?.dtype())?)
}

fn clone_of(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    match cx.opt_int(1)?.and_then(MemoryFormat::from_number) {
        None | Some(MemoryFormat::Preserve) => Ok(x.clone_data()?),
        Some(format) => Ok(x.clone_format(format)?),
    }
}

fn write_number(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    Ok(target.fill_(in_range(cx.scalar(1)?, target.dtype())?)?)
}

fn write_tensor(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    Ok(target.copy_(cx.tensor(1)?)?)
}

fn write_item(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    let value = cx.tensor(1)?;
    if value.rank() != 0 {
        return Err(KernelError::input(format!(
            "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
            value.rank()
        )));
    }
    Ok(target.fill_(value.item()?)?)
}

/// `(self, dtype, layout, device, pin_memory, non_blocking, memory_format)`: a copy.
fn to_copy(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    let dtype = cx.opt_dtype(1)?.unwrap_or(x.dtype());
    match cx.opt_int(6)?.and_then(MemoryFormat::from_number) {
        None | Some(MemoryFormat::Preserve) => cast_copy(x, dtype),
        Some(format) if x.dtype() == dtype => Ok(x.clone_format(format)?),
        Some(format) => Ok(x.to_dtype(dtype)?.contiguous_format(format)?),
    }
}

type Run = fn(&KernelCx<'_>) -> Computed;

fn size(n: &[i64]) -> IValue {
    IValue::ints(n.to_vec())
}

fn fixed_args(args: impl Fn() -> Vec<IValue> + Send + Sync + 'static) -> Sample {
    Sample::args(move |_| args()).exact().not_differentiable()
}

fn by_size() -> Vec<OpDef> {
    let rows: [(&str, &'static str, Run, Effects); 4] = [
        ("aten::zeros", "All elements 0.", zeros, Effects::PURE),
        ("aten::ones", "All elements 1.", ones, Effects::PURE),
        ("aten::empty.memory_format", "Unspecified elements (here 0).", zeros, Effects::RANDOM),
        ("aten::full", "All elements equal to a number.", full, Effects::PURE),
    ];
    rows.into_iter()
        .flat_map(|(name, doc, f, effects)| {
            let full = name == "aten::full";
            let sample: fn() -> Vec<IValue> =
                if full { || vec![size(&[2, 3]), IValue::Float(1.5)] } else { || vec![size(&[2, 3])] };
            let dtype = || match full {
                true => Dtype::named_or(2, Dtype::of_number(1)),
                false => Dtype::named_or(1, Dtype::fixed(DEFAULT_FLOAT)),
            };
            let (name, overload) = name.split_once('.').unwrap_or((name, ""));
            let facts = |d: OpDef| {
                d.with(effects).with(ResultShapes::of_size(0)).with(dtype()).with(fixed_args(sample))
            };
            op(name, overload, doc).out("out").options_at(1 + usize::from(full)).facts(facts).one(f)
        })
        .collect()
}

fn by_example() -> Vec<OpDef> {
    let rows: [(&str, &'static str, Run, usize, bool); 8] = [
        (
            "aten::zeros_like",
            "A tensor with the size and dtype of another and all elements 0.",
            zeros_like,
            1,
            true,
        ),
        (
            "aten::ones_like",
            "A tensor with the size and dtype of another and all elements 1.",
            ones_like,
            1,
            true,
        ),
        (
            "aten::empty_like",
            "A tensor with the size and dtype of another and unspecified elements (here 0).",
            zeros_like,
            1,
            true,
        ),
        (
            "aten::full_like",
            "A tensor with the size and dtype of another and all elements equal to a number.",
            full_like,
            2,
            true,
        ),
        ("aten::new_zeros", "A tensor with the dtype of another and all elements 0.", new_zeros, 2, false),
        ("aten::new_ones", "A tensor with the dtype of another and all elements 1.", new_ones, 2, false),
        (
            "aten::new_empty",
            "A tensor with the dtype of another and unspecified elements (here 0).",
            new_zeros,
            2,
            false,
        ),
        (
            "aten::new_full",
            "A tensor with the dtype of another and all elements equal to a number.",
            new_full,
            3,
            false,
        ),
    ];
    rows.into_iter()
        .flat_map(|(name, doc, f, dtype_at, like)| {
            let full = name.contains("full");
            let mut args = if like { Vec::new() } else { vec![size(&[2, 3])] };
            args.extend(full.then_some(IValue::Float(1.5)));
            let facts = |d: OpDef| {
                d.with(if name.contains("empty") { Effects::RANDOM } else { Effects::PURE })
                    .with(if like { ResultShapes::same_as(0) } else { ResultShapes::of_size(1) })
                    .with(Dtype::named_or(dtype_at, Dtype::same_as(0)))
                    .with(Sample::tensors(1).floats().then(args.clone()).exact().not_differentiable())
            };
            op(name, "", doc).options_at(dtype_at).facts(facts).one(f)
        })
        .collect()
}

/// Shape for a list of numbers: a vector. The rank of nested lists depends on whether they are empty.
fn nested(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    let list = cx.ty(0)?;
    let TypeKind::List(element) = list.kind() else { return None };
    if matches!(element.kind(), TypeKind::List(_)) {
        return None;
    }
    default_of(*element)?;
    let length = cx.elements(0).map(|e| Dim::Known(e.len() as i64)).unwrap_or_else(|| cx.fresh_size());
    Some(TensorFact::contiguous([length]))
}

/// Returns the dtype of a tensor created from numbers, possibly in lists.
fn default_of(ty: Type) -> Option<DType> {
    let mut ty = ty;
    while let TypeKind::List(inner) = ty.kind() {
        ty = *inner;
    }
    match ty.kind() {
        TypeKind::Bool => Some(DType::Bool),
        TypeKind::Int => Some(DType::I64),
        TypeKind::Float => Some(DEFAULT_FLOAT),
        TypeKind::Complex => Some(DEFAULT_COMPLEX),
        _ => None,
    }
}

fn from_values() -> Vec<OpDef> {
    let mut defs: Vec<OpDef> = ["bool", "float", "int", "complex"]
        .into_iter()
        .flat_map(|o| [("aten::tensor", o), ("aten::as_tensor", o)])
        .map(|(name, o)| {
            let sample: fn() -> Vec<IValue> = match o {
                "bool" => || vec![IValue::Bool(true)],
                "float" => || vec![IValue::Float(1.5)],
                "int" => || vec![IValue::Int(3)],
                _ => || vec![IValue::complex(flambeau_tensor::Complex::new(1.0, 2.0))],
            };
            OpDef::overload(name, o)
                .with(Doc("A tensor of rank 0."))
                .with(ResultShapes::scalar())
                .with(Dtype::named_or(1, Dtype::of_number(0)))
                .with(fixed_args(sample))
                .with(fresh(of_number))
        })
        .collect();
    defs.extend(["aten::tensor", "aten::as_tensor.list"].into_iter().map(|name| {
        OpDef::named(name)
            .with(Doc("A tensor from nested lists of numbers."))
            .with(Effects::RAISES)
            .with(ResultShapes::from(nested))
            .with(Dtype::named_or(1, Dtype::from(|cx| default_of(cx.ty(0)?))))
            .with(fixed_args(|| vec![size(&[1, 2, 3])]))
            .with(fresh(of_list))
    }));
    defs.push(
        OpDef::named("aten::as_tensor")
            .with(Doc("The tensor itself, or a copy in another dtype."))
            .with(ResultShapes::same_as(0))
            .with(Dtype::named_or(1, Dtype::same_as(0)))
            .with(Sample::tensors(1).floats().exact())
            .with(fresh(|cx| {
                Ok(cx.tensor(0)?.to_dtype(cx.opt_dtype(1)?.unwrap_or(cx.tensor(0)?.dtype()))?)
            })),
    );
    defs.extend(["Scalar", "bool"].into_iter().map(|o| {
        OpDef::overload("prim::NumToTensor", o)
            .with(Doc("A number as a tensor of rank 0."))
            .with(ResultShapes::scalar())
            .with(Dtype::holding(0))
            .with(Sample::by_schema().exact().not_differentiable())
            .with(fresh(num_to_tensor))
    }));
    defs
}

fn conversions() -> Vec<OpDef> {
    let number = |d: DType| IValue::Int(d.scalar_type());
    let rows: Vec<(&str, Run, Option<usize>, Vec<IValue>)> = vec![
        (
            "aten::to.device",
            to_device,
            Some(2),
            vec![IValue::Device(flambeau_tensor::Device::CPU), number(DType::F64)],
        ),
        ("aten::to.dtype", to_dtype, Some(1), vec![number(DType::F64)]),
        ("aten::to.dtype_layout", to_layout, Some(1), vec![number(DType::F64)]),
        ("aten::to.prim_Device", to_prim_device, Some(2), vec![IValue::None, number(DType::F64)]),
        ("aten::to.prim_dtype", to_prim_dtype, Some(1), vec![number(DType::F64)]),
        ("aten::to.prim_other", to_prim_other, None, vec![]),
    ];
    let mut defs: Vec<OpDef> = rows
        .into_iter()
        .map(|(name, f, dtype_at, args)| {
            let dtype = match dtype_at {
                Some(i) => Dtype::named_or(i, Dtype::same_as(0)),
                None => Dtype::same_as(0),
            };
            OpDef::named(name)
                .with(Doc("The tensor itself, or a copy in another dtype or layout."))
                .with(ResultShapes::same_as(0))
                .with(dtype)
                .with(Sample::tensors(1).floats().then(args).exact())
                .with(fresh(f))
        })
        .collect();
    for (name, f) in [("aten::to.other", to_other as Run), ("aten::type_as", type_as)] {
        defs.push(
            OpDef::named(name)
                .with(Doc("The tensor in the dtype of another."))
                .with(ResultShapes::same_as(0))
                .with(Dtype::same_as(1))
                .with(Sample::tensors(2).floats().mixed_dtypes())
                .with(fresh(f)),
        );
    }
    defs.push(
        OpDef::named("aten::cpu")
            .with(Doc("The tensor itself: all tensors are on the CPU."))
            .with(ResultShapes::same_as(0))
            .with(Dtype::same_as(0))
            .with(Sample::tensors(1).floats().exact())
            .with(fresh(|cx| Ok(cx.tensor(0)?.clone()))),
    );
    defs.push(
        OpDef::named("aten::clone")
            .with(Doc("A copy."))
            .with(ResultShapes::same_as(0))
            .with(Dtype::same_as(0))
            .with(Sample::tensors(1).floats().exact())
            .with(fresh(clone_of)),
    );
    defs.push(
        OpDef::named("aten::_to_copy")
            .with(Doc("A copy, perhaps in another dtype or memory format."))
            .with(ResultShapes::same_as(0))
            .with(Dtype::named_or(1, Dtype::same_as(0)))
            .with(Sample::tensors(1).floats().then([number(DType::F64)]).exact())
            .with(fresh(to_copy)),
    );
    defs.extend(casts());
    defs
}

/// `aten::_cast_Float` and its variants.
fn casts() -> Vec<OpDef> {
    let rows = [
        ("Byte", DType::U8),
        ("Char", DType::I8),
        ("Short", DType::I16),
        ("Int", DType::I32),
        ("Long", DType::I64),
        ("Half", DType::F16),
        ("Float", DType::F32),
        ("Double", DType::F64),
    ];
    rows.into_iter()
        .map(|(name, dtype)| {
            debug_assert!(dtype.category() != Category::Complex);
            OpDef::overload(&format!("aten::_cast_{name}"), "")
                .with(Doc("The tensor in a fixed dtype."))
                .with(ResultShapes::same_as(0))
                .with(Dtype::fixed(dtype))
                .with(Sample::tensors(1).floats().range(0.0, 5.0).exact())
                .with(fresh(move |cx| cast_copy(cx.tensor(0)?, dtype)))
        })
        .collect()
}

/// `(self, memory_format)`: converts to complex numbers of f16.
fn chalf(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    let format = cx.opt_int(1)?.and_then(MemoryFormat::from_number).unwrap_or(MemoryFormat::Preserve);
    Ok(x.to_dtype(DType::C32)?.contiguous_format(format)?)
}

fn writes() -> Vec<OpDef> {
    let rows: [(&str, &'static str, fn(&KernelCx<'_>, &Tensor) -> Result<(), KernelError>); 5] = [
        (
            "aten::copy_.Tensor",
            "Replaces all elements by those of another tensor, broadcast and converted.",
            write_tensor,
        ),
        ("aten::copy_.int", "Sets all elements to a number.", write_number),
        ("aten::copy_.float", "Sets all elements to a number.", write_number),
        (
            "aten::_no_grad_fill_",
            "Sets all elements to a number; the write is not recorded for differentiation.",
            write_number,
        ),
        (
            "aten::_no_grad_zero_",
            "Sets all elements to 0; the write is not recorded for differentiation.",
            |_, target| Ok(target.fill_(Scalar::Int(0))?),
        ),
    ];
    rows.into_iter()
        .map(|(name, doc, f)| {
            let sample = Sample::tensors(if name.ends_with("Tensor") { 2 } else { 1 });
            let def =
                OpDef::named(name).with(Doc(doc)).with(ResultShapes::same_as(0)).with(Dtype::same_as(0));
            def.with(sample.floats().exact().not_differentiable()).with(edited(f))
        })
        .collect()
}

/// `zero`, `fill` and `copy`: functional variants of the in-place writes.
fn written() -> Vec<OpDef> {
    let same = |d: OpDef| d.with(ResultShapes::same_as(0)).with(Dtype::same_as(0));
    let one = || Sample::tensors(1).floats().exact().not_differentiable();
    let doc = "A tensor with the size and dtype of another and all elements 0.";
    let mut defs = op("zero", "", doc)
        .facts(|d| same(d).with(one()))
        .overlapping()
        .editing(|_, t| Ok(t.fill_(Scalar::Int(0))?));
    let doc = "A tensor with the size and dtype of another and all elements equal to a number.";
    let facts = |d: OpDef| same(d).with(one().then([IValue::Float(1.5)]));
    defs.extend(op("fill", "Scalar", doc).facts(facts).overlapping().editing(write_number));
    let number =
        || Tensor::scalar(Scalar::Float(1.5), DType::F32).expect("invariant: one element can be made");
    let facts = |d: OpDef| same(d).with(one().then([IValue::Tensor(number())]));
    defs.extend(op("fill", "Tensor", doc).out("Tensor_out").facts(facts).editing(write_item));
    let doc = "The elements of another tensor, broadcast and converted.";
    let two = || Sample::tensors(2).floats().exact().not_differentiable();
    defs.extend(
        op("copy", "", doc)
            .output_layout(OutputLayout::PreserveStrides)
            .facts(|d| same(d).with(two()))
            .editing(write_tensor),
    );
    defs
}

pub(crate) fn family() -> Vec<OpDef> {
    let mut defs = by_size();
    defs.extend(by_example());
    defs.extend(sequences::family());
    defs.extend(windows::family());
    let facts = |d: OpDef| {
        let sample = Sample::tensors(1).floats().exact().not_differentiable();
        d.with(ResultShapes::same_as(0)).with(Dtype::fixed(DType::C32)).with(sample)
    };
    defs.extend(op("chalf", "", "The tensor as complex numbers of f16.").facts(facts).one(chalf));
    defs.extend(parts::family());
    defs.extend(from_values());
    defs.extend(conversions());
    defs.extend(writes());
    defs.extend(written());
    defs
}
