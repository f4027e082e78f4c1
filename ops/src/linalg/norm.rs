//! Vector and matrix norms.

use super::{numbers, spectrum::singular_values};
use crate::reduce::{check_identity, norm_dtype};
use crate::support::{Computed, op, total};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::reduce::{self, Reducer, dim_mask, fold};
use flambeau_tensor::{Complex, DType, Element, Tensor, dispatch, wrap_dim};

/// Type of norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Order {
    /// The p-norm; infinities are extremes.
    Number(f64),
    /// The 2-norm of all elements as one vector.
    Frobenius,
    /// The sum of singular values.
    Nuclear,
}

impl Order {
    /// Reads argument `i`: a number, a name, or `None`.
    pub(super) fn of(cx: &KernelCx<'_>, i: usize) -> Result<Option<Order>, KernelError> {
        Ok(match cx.arg(i)? {
            IValue::None => None,
            IValue::Str(_) => Some(match cx.str_bytes(i)? {
                b"fro" => Order::Frobenius,
                b"nuc" => Order::Nuclear,
                other => {
                    let name = String::from_utf8_lossy(other);
                    return Err(KernelError::input(format!(
                        "linalg.matrix_norm: Order {name} not supported."
                    )));
                }
            }),
            _ => Some(Order::Number(cx.scalar(i)?.to_f64())),
        })
    }
}

/// Accumulator of a p-norm: a sum of powers, or an extreme.
#[derive(Clone, Copy)]
struct Powers(f64);

impl Powers {
    fn one(self, size: f64) -> f64 {
        match self.0 {
            0.0 => f64::from(u8::from(size != 0.0)),
            1.0 => size,
            2.0 => size * size,
            p if p.is_infinite() => size,
            p => size.powf(p),
        }
    }

    fn root(self, sum: f64) -> f64 {
        match self.0 {
            0.0 | 1.0 => sum,
            2.0 => sum.sqrt(),
            p if p.is_infinite() => sum,
            p => sum.powf(1.0 / p),
        }
    }
}

trait Size: Element {
    fn size(self) -> f64;
}

impl Size for f64 {
    fn size(self) -> f64 {
        self.abs()
    }
}

impl Size for Complex<f64> {
    fn size(self) -> f64 {
        self.re.hypot(self.im)
    }
}

impl<T: Size> Reducer<T> for Powers {
    type Acc = f64;

    fn identity(self) -> f64 {
        if self.0 == f64::NEG_INFINITY { f64::INFINITY } else { 0.0 }
    }
    fn step(self, acc: f64, x: T) -> f64 {
        <Self as Reducer<T>>::merge(self, acc, self.one(x.size()))
    }
    fn merge(self, a: f64, b: f64) -> f64 {
        // Extremes propagate NaN.
        match self.0 {
            f64::INFINITY if a.is_nan() || a > b => a,
            f64::INFINITY => b,
            f64::NEG_INFINITY if a.is_nan() || a < b => a,
            f64::NEG_INFINITY => b,
            _ => a + b,
        }
    }
}

/// The norm of the elements of some dimensions (`None`: all) as one vector.
pub(super) fn vector(
    x: &Tensor,
    order: f64,
    dims: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Computed {
    let to = norm_dtype(x, dtype, "linalg.vector_norm")?;
    let mask = dim_mask(dims, x.rank())?;
    check_identity(x, mask, order)?;
    let powers = Powers(order);
    dispatch!(floats, to, "linalg_vector_norm_cpu", R => {
        let finish = |sum: f64| R::from_f64(powers.root(sum));
        Ok(if x.dtype().is_complex() {
            fold::<Complex<f64>, Powers, R>(x, mask, keepdim, powers, finish)?
        } else {
            fold::<f64, Powers, R>(x, mask, keepdim, powers, finish)?
        })
    })
}

/// The norm of matrices in two dimensions.
pub(super) fn matrix(
    x: &Tensor,
    order: Order,
    dims: &[i64],
    keepdim: bool,
    dtype: Option<DType>,
) -> Computed {
    let op = "linalg.matrix_norm";
    if x.rank() < 2 {
        return Err(KernelError::input(format!("{op}: The input tensor A must have at least 2 dimensions.")));
    }
    let &[a, b] = dims else {
        return Err(KernelError::input(format!("{op}: dim must be a 2-tuple. Got {dims:?}")));
    };
    let (row, column) = (wrap_dim(a, x.rank())? as i64, wrap_dim(b, x.rank())? as i64);
    if row == column {
        return Err(KernelError::input(format!("{op}: dims must be different. Got ({a}, {b})")));
    }
    norm_dtype(x, dtype, op)?;
    match order {
        Order::Frobenius => vector(x, 2.0, Some(&[row, column]), keepdim, dtype),
        Order::Nuclear | Order::Number(2.0 | -2.0) => {
            by_singular_values(x, order, (row, column), keepdim, dtype)
        }
        Order::Number(p) if p.abs() == 1.0 || p.is_infinite() => {
            // A sum along one dimension, an extreme along the other.
            let (sum, other) = if p.abs() == 1.0 { (row, column) } else { (column, row) };
            let sums = vector(x, 1.0, Some(&[sum]), true, dtype)?;
            let extreme = if p > 0.0 {
                reduce::amax(&sums, Some(&[other]), true)?
            } else {
                reduce::amin(&sums, Some(&[other]), true)?
            };
            if keepdim { Ok(extreme) } else { Ok(extreme.squeeze(&[row, column])?) }
        }
        Order::Number(p) => Err(KernelError::input(format!("{op}: Order {p} not supported."))),
    }
}

fn by_singular_values(
    x: &Tensor,
    order: Order,
    (row, column): (i64, i64),
    keepdim: bool,
    dtype: Option<DType>,
) -> Computed {
    let x = match dtype {
        Some(dtype) => x.to_dtype(dtype)?,
        None => x.clone(),
    };
    // PyTorch checks the dtype before it returns the norm of a matrix without elements.
    if matches!(x.dtype(), DType::F16 | DType::BF16) {
        return Err(super::refuse("linalg.matrix_norm", x.dtype()));
    }
    let values = singular_values(&x.movedim(&[row, column], &[-2, -1])?, "linalg.matrix_norm")?;
    let (k, all) = (values.size(-1)? as usize, values.to_vec::<f64>()?);
    let lead = &values.sizes()[..values.rank() - 1];
    let count: i64 = lead.iter().product();
    if k == 0 && order != Order::Nuclear && count > 0 {
        return Err(KernelError::input(
            "linalg.matrix_norm: Expected the matrix to have no dimension of size 0",
        ));
    }
    let of = |i: usize| {
        let own = &all[i * k..(i + 1) * k];
        match order {
            Order::Nuclear => total(own.iter().copied()),
            Order::Number(p) if p < 0.0 => own.last().copied().unwrap_or(0.0),
            _ => own.first().copied().unwrap_or(0.0),
        }
    };
    let norms: Vec<f64> = (0..count as usize).map(of).collect();
    let mut result = numbers(lead, None, &norms, x.dtype().to_real())?;
    if keepdim {
        result = result.unsqueeze(row.min(column))?.unsqueeze(row.max(column))?;
    }
    Ok(result)
}

/// `(self, ord, dim, keepdim, dtype)`.
fn vector_norm(cx: &KernelCx<'_>) -> Computed {
    let dims = cx.opt_ints(2)?;
    vector(cx.tensor(0)?, cx.scalar(1)?.to_f64(), dims.as_deref(), cx.boolean(3)?, cx.opt_dtype(4)?)
}

/// `(self, ord, dim, keepdim, dtype)`.
fn matrix_norm(cx: &KernelCx<'_>) -> Computed {
    let order = Order::of(cx, 1)?.unwrap_or(Order::Frobenius);
    matrix(cx.tensor(0)?, order, &cx.ints(2)?, cx.boolean(3)?, cx.opt_dtype(4)?)
}

/// `(self, ord, dim, keepdim, dtype)`: a vector or matrix norm, depending on the number of dimensions.
fn linalg_norm(cx: &KernelCx<'_>) -> Computed {
    let (x, order, dims) = (cx.tensor(0)?, Order::of(cx, 1)?, cx.opt_ints(2)?);
    let (keepdim, dtype) = (cx.boolean(3)?, cx.opt_dtype(4)?);
    let Some(order) = order else {
        return vector(x, 2.0, dims.as_deref(), keepdim, dtype);
    };
    let count = match &dims {
        Some(dims) => dims.len(),
        None => x.rank(),
    };
    match (count, order) {
        (1, Order::Number(p)) => vector(x, p, dims.as_deref(), keepdim, dtype),
        (2, order) => matrix(x, order, dims.as_deref().unwrap_or(&[-2, -1]), keepdim, dtype),
        _ => Err(KernelError::input(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got a tensor of other rank.",
        )),
    }
}

fn nuclear(cx: &KernelCx<'_>) -> Computed {
    matrix(cx.tensor(0)?, Order::Nuclear, &[-2, -1], cx.boolean(1)?, None)
}

fn nuclear_dim(cx: &KernelCx<'_>) -> Computed {
    matrix(cx.tensor(0)?, Order::Nuclear, &cx.ints(1)?, cx.boolean(2)?, None)
}

pub(super) fn family() -> Vec<OpDef> {
    let x = || Sample::tensors(1).floats().rank(2, 3);
    let order = IValue::Int(1);
    let dims = || IValue::ints(vec![0, 1]);
    let doc = "The norm of elements as one vector.";
    let reduced = |d: OpDef| {
        d.with(ResultShapes::reduce(2, 3)).with(Dtype::named_or(4, Dtype::same_as(0)).then(DType::to_real))
    };
    let plain = |d: OpDef| reduced(d).with(x());
    let mut defs = op("linalg_vector_norm", "", doc).facts(plain).one(vector_norm);
    let doc = "The norm of matrices.";
    defs.extend(
        op("linalg_matrix_norm", "", doc)
            .facts(|d| reduced(d).with(x().then([order.clone()])))
            .one(matrix_norm),
    );
    defs.extend(op("linalg_matrix_norm", "str_ord", doc).facts(plain).one(matrix_norm));
    let doc = "The norm of a vector or a matrix.";
    defs.extend(op("linalg_norm", "", doc).facts(plain).one(linalg_norm));
    let matrix = || Sample::tensors(1).floats().rank(2, 2);
    defs.extend(
        op("linalg_norm", "ord_str", doc)
            .facts(|d| reduced(d).with(matrix().then([IValue::str("fro")])))
            .one(linalg_norm),
    );
    let doc = "The sum of singular values.";
    let last_two = || {
        ResultShapes::dims(|cx| {
            let kept = if cx.bool(1)? { 2 } else { 0 };
            Some(cx.lead(0, 2)?.into_iter().chain(std::iter::repeat_n(Dim::Known(1), kept)))
        })
    };
    let real = |d: OpDef, shape: ResultShapes| d.with(shape).with(Dtype::real_of(0));
    let of_matrix = |d: OpDef| real(d, last_two()).with(matrix());
    defs.extend(op("nuclear_norm", "", doc).facts(of_matrix).one(nuclear));
    let of_dims = |d: OpDef| real(d, ResultShapes::reduce(1, 2)).with(x().then([dims()]));
    defs.extend(op("nuclear_norm", "dim", doc).facts(of_dims).one(nuclear_dim));
    defs
}
