//! `quantile` and `nanquantile`, with five interpolation modes.

use super::{is_nan, sample};
use crate::support::{Computed, op};
use flambeau_analysis::shape::Dims;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::math::Real;
use flambeau_tensor::rows::map_rows;
use flambeau_tensor::{DType, Tensor, wrap_dim};

/// Interpolation between two elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    Linear,
    Lower,
    Higher,
    Midpoint,
    Nearest,
}

impl Between {
    fn named(name: &[u8]) -> Result<Between, KernelError> {
        Ok(match name {
            b"linear" => Between::Linear,
            b"lower" => Between::Lower,
            b"higher" => Between::Higher,
            b"midpoint" => Between::Midpoint,
            b"nearest" => Between::Nearest,
            _ => {
                return Err(KernelError::input(format!(
                    "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {}",
                    String::from_utf8_lossy(name)
                )));
            }
        })
    }
}

/// Returns quantile `q` of a sorted row of which the first `n` elements count.
fn at<T: Real>(row: &[T], n: usize, q: T, between: Between) -> T {
    let place = q * T::from_f64((n - 1) as f64);
    let place = match between {
        Between::Lower => place.floor(),
        Between::Higher => place.ceil(),
        Between::Nearest => place.round_even(),
        Between::Linear | Between::Midpoint => place,
    };
    let below = place.floor();
    if matches!(between, Between::Lower | Between::Higher | Between::Nearest) {
        // No interpolation: infinite neighbours with weight 0 would give NaN.
        return row[below.to_i64() as usize];
    }
    let weight = if between == Between::Midpoint { T::from_f64(0.5) } else { place - below };
    let (a, b) = (row[below.to_i64() as usize], row[place.ceil().to_i64() as usize]);
    // Interpolate from the nearer end.
    if weight < T::from_f64(0.5) { a + weight * (b - a) } else { b - (b - a) * (T::ONE - weight) }
}

fn rows<T: Real + PartialOrd>(
    x: &Tensor,
    dim: i64,
    q: &Tensor,
    between: Between,
    ignore_nan: bool,
) -> Computed {
    let parts = q.to_vec::<T>()?;
    if !parts.iter().all(|q| *q >= T::ZERO && *q <= T::ONE) {
        return Err(KernelError::input("quantile() q values must be in the range [0, 1]"));
    }
    Ok(map_rows::<T, T>(x, dim, Some(parts.len()), |row, out| {
        let mut elements = super::keyed::<T>(row, false);
        super::sort_keyed(&mut elements);
        let row: Vec<T> = elements.iter().map(|e| T::from_raw(row[e.at as usize])).collect();
        let n = row.iter().take_while(|x| !is_nan(**x)).count();
        for (out, q) in out.iter_mut().zip(&parts) {
            let nothing = n == 0 || (n < row.len() && !ignore_nan);
            *out = if nothing { T::NAN } else { at(&row, n, *q, between) };
        }
    })?)
}

/// `(self, q, dim, keepdim, interpolation)`: if `q` has a dimension, it becomes the first one.
fn quantile(cx: &KernelCx<'_>, ignore_nan: bool) -> Computed {
    let (x, dim, keep) = (cx.tensor(0)?, cx.opt_int(2)?, cx.boolean(3)?);
    let between = Between::named(cx.str_bytes(4)?)?;
    if x.numel() == 0 {
        return Err(KernelError::input("quantile() input tensor must be non-empty"));
    }
    if !matches!(x.dtype(), DType::F32 | DType::F64) {
        return Err(KernelError::input("quantile() input tensor must be either float or double dtype"));
    }
    let q = match cx.arg(1)?.as_tensor() {
        Some(q) => q.clone(),
        None => {
            let q = cx.float(1)?;
            if !(0.0..=1.0).contains(&q) {
                return Err(KernelError::input(format!(
                    "quantile() q must be in the range [0, 1] but got {q}"
                )));
            }
            Tensor::scalar(q.into(), x.dtype())?
        }
    };
    if q.rank() > 1 {
        return Err(KernelError::input("quantile() q must be a scalar or 1D tensor"));
    }
    if q.dtype() != x.dtype() {
        return Err(KernelError::input("quantile() q tensor must be same dtype as the input tensor"));
    }
    let flat = if dim.is_none() { x.reshape(&[-1])? } else { x.clone() };
    let flat = if flat.rank() == 0 { flat.reshape(&[1])? } else { flat };
    let d = wrap_dim(dim.unwrap_or(0), flat.rank())? as i64;
    let last = flat.movedim(&[d], &[-1])?;
    let found = match x.dtype() {
        DType::F32 => rows::<f32>(&last, -1, &q, between, ignore_nan)?,
        _ => rows::<f64>(&last, -1, &q, between, ignore_nan)?,
    };
    let mut sizes: Vec<i64> = match (dim, keep) {
        (None, true) => vec![1; x.rank()],
        (None, false) => Vec::new(),
        (Some(_), _) if x.rank() == 0 => Vec::new(),
        (Some(_), keep) => {
            let mut sizes = last.sizes()[..last.rank() - 1].to_vec();
            if keep {
                sizes.insert(d as usize, 1);
            }
            sizes
        }
    };
    if q.rank() == 0 {
        return Ok(found.view(&sizes)?);
    }
    // The quantiles of each row are in the last dimension.
    sizes.push(q.numel() as i64);
    Ok(found.view(&sizes)?.movedim(&[-1], &[0])?)
}

/// Shape of a reduction, with the dimension of argument 1 (if any) in front.
fn parts_first() -> ResultShapes {
    let reduced = ResultShapes::reduce(2, 3);
    ResultShapes::dims(move |cx| {
        let parts = if cx.is_number(1) { Dims::new() } else { cx.dims_or_fresh(1)? };
        let kept = reduced.result(0, cx)?.as_tensor()?.dims.clone()?;
        Some(parts.into_iter().chain(kept).collect::<Vec<Dim>>())
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    for (name, ignore_nan) in [("quantile", false), ("nanquantile", true)] {
        for overload in ["", "scalar"] {
            let q = || match overload {
                "" => IValue::Tensor(
                    Tensor::from_slice(&[0.25f32, 0.5], &[2]).expect("invariant: a vector can be made"),
                ),
                _ => IValue::Float(0.3),
            };
            let doc = match ignore_nan {
                true => "The quantiles, ignoring NaN.",
                false => "The quantiles.",
            };
            let facts = |d: OpDef| {
                d.with(parts_first())
                    .with(Dtype::same_as(0))
                    .with(sample(vec![q(), IValue::Int(0)]).dtypes(&[DType::F32]))
            };
            defs.extend(op(name, overload, doc).facts(facts).one(move |cx| quantile(cx, ignore_nan)));
        }
    }
    defs
}
