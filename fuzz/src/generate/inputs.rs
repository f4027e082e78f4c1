//! Arguments of a case: ranks, sizes, element types, special values, and sharing of memory.

use flambeau_exec::Gen;
use flambeau_exec::sample::{self, ElementDistribution};
use flambeau_ir::types::TensorType;
use flambeau_ir::{IValue, Type};
use flambeau_tensor::{DType, Scalar, Tensor};

/// Common properties of the tensors of a case, chosen so that most operators accept most operands.
pub(super) struct CaseProperties {
    /// The sizes of tensors, up to broadcasting.
    pub(super) sizes: Vec<i64>,
    /// The element type of most tensors.
    pub(super) dtype: DType,
    /// Whether NaN, infinities, signed zeros and extremes occur.
    special: bool,
    /// Whether the graph's inputs declare sizes and element types.
    typed: bool,
    /// Whether tensors share memory. Then there are at least two, and operators that write are drawn more often.
    pub(super) shared: bool,
}

/// Sizes of cases other than the usual 3 x 3.
const SIZES: &[&[i64]] =
    &[&[2, 3], &[4], &[], &[1], &[1, 1], &[2, 3, 4], &[1, 3], &[0], &[0, 3], &[3, 0], &[2, 2], &[1, 2, 3, 3]];

/// Element types of cases other than the usual float.
const DTYPES: &[DType] = &[
    DType::F64,
    DType::F64,
    DType::I64,
    DType::I64,
    DType::I32,
    DType::U8,
    DType::I8,
    DType::Bool,
    DType::F16,
    DType::BF16,
    DType::C64,
    DType::C128,
];

impl CaseProperties {
    pub(super) fn draw(g: &mut Gen<'_>) -> CaseProperties {
        let sizes = if g.flag() { vec![super::DIM_SIZE, super::DIM_SIZE] } else { g.pick(SIZES).to_vec() };
        let dtype = if g.below(3) > 0 { DType::F32 } else { *g.pick(DTYPES) };
        CaseProperties { sizes, dtype, special: g.one_in(4), typed: g.flag(), shared: g.one_in(3) }
    }

    /// Returns a tensor argument and its type in the graph; the tensor may share memory with one of `others`.
    pub(super) fn tensor(&self, g: &mut Gen<'_>, others: &[Tensor]) -> (Tensor, Type) {
        // The second tensor always shares memory, so that every such case has two tensors that do.
        let tensor = match self.shared && !others.is_empty() && (others.len() == 1 || g.flag()) {
            true => {
                let other = g.pick(others).clone();
                relative(g, &other)
            }
            false => self.fresh(g),
        };
        let ty = match self.typed && !g.one_in(4) {
            true => Type::tensor(TensorType::of(&tensor)),
            false => Type::TENSOR,
        };
        (tensor, ty)
    }

    fn fresh(&self, g: &mut Gen<'_>) -> Tensor {
        let sizes = if g.one_in(4) { sample::broadcastable(g, &self.sizes) } else { self.sizes.clone() };
        let dtype = if g.one_in(8) { *g.pick(DTYPES) } else { self.dtype };
        let elements = ElementDistribution { special: self.special, ..ElementDistribution::default() };
        if self.special && g.one_in(3) {
            extremes(g, &sizes, dtype)
        } else {
            sample::tensor(g, &sizes, dtype, &elements)
        }
    }

    /// Returns a list, tuple or dictionary of tensors as an input, and its type.
    pub(super) fn container(&self, g: &mut Gen<'_>, others: &[Tensor]) -> (IValue, Type) {
        let items: Vec<Tensor> = (0..1 + g.below(3)).map(|_| self.tensor(g, others).0).collect();
        let values = items.iter().cloned().map(IValue::Tensor);
        match g.below(3) {
            0 => (IValue::list(Type::TENSOR, values.collect()), Type::list(Type::TENSOR)),
            1 => (IValue::tuple(values.collect()), Type::tuple(&vec![Type::TENSOR; items.len()])),
            _ => {
                let dict = flambeau_ir::value::Dict::new(Type::STR, Type::TENSOR);
                for (key, value) in ["a", "b", "c"].into_iter().zip(values) {
                    // Strings are hashable, so no insertion fails.
                    let _ = dict.insert(IValue::str(key), value);
                }
                (IValue::Dict(dict), Type::dict(Type::STR, Type::TENSOR))
            }
        }
    }
}

/// Returns a tensor that shares memory with another: the same object, or a view of its storage.
fn relative(g: &mut Gen<'_>, other: &Tensor) -> Tensor {
    let (rank, sizes) = (other.rank(), other.sizes());
    let view = match g.below(6) {
        0 if rank >= 2 => other.transpose(0, 1),
        1 if rank >= 1 && sizes[0] > 0 => other.select(0, g.int(0, sizes[0] - 1)),
        2 if rank >= 1 && sizes[0] > 1 => other.narrow(0, 1, sizes[0] - 1),
        3 if rank >= 1 => {
            let mut strides = other.strides().to_vec();
            strides[0] = 0;
            other.as_strided(sizes, &strides, None)
        }
        // Rows that overlap.
        4 if other.numel() >= 3 && other.is_contiguous() => other.as_strided(&[2, 2], &[1, 1], None),
        _ => Ok(other.clone()),
    };
    view.unwrap_or_else(|_| other.clone())
}

/// Returns a tensor of extreme values of the element type.
fn extremes(g: &mut Gen<'_>, sizes: &[i64], dtype: DType) -> Tensor {
    const FLOATS: &[f64] = &[0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5];
    const INTS: &[i64] = &[0, 1, -1, 127, -128, 255, 32_767, i32::MAX as i64, i64::MAX, i64::MIN];
    let count: i64 = sizes.iter().product();
    let large = match dtype.to_real() {
        DType::F16 => 65_504.0,
        DType::BF16 | DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    let values = (0..count).map(|_| match dtype.is_integral(true) {
        true => Scalar::Int(*g.pick(INTS)),
        false => Scalar::Float(if g.one_in(6) { large } else { *g.pick(FLOATS) }),
    });
    let values: Vec<Scalar> = values.collect();
    Tensor::from_scalars(&values, sizes, dtype)
        .expect("invariant: as many small values as elements, of a dtype that numbers convert to")
}
