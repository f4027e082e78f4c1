//! Memory order of transform results, visible in their strides. In each step, the dimensions that are not transformed
//! are outermost, sorted by stride, and the transformed ones innermost. Computed in that order, every step reads and
//! writes contiguous rows.

use super::FftTypes;
use crate::support::Computed;
use flambeau_exec::KernelError;
use flambeau_tensor::{Dims, Tensor, channels_last_strides, contiguous_strides};

/// Dimensions transformed in one step. In a step between real and complex numbers the last one stays last.
pub(super) struct Step<'a> {
    pub(super) dims: &'a [i64],
    pub(super) last_stays: bool,
}

impl<'a> Step<'a> {
    pub(super) fn free(dims: &'a [i64]) -> Step<'a> {
        Step { dims, last_stays: false }
    }
}

/// The dimensions of a tensor, outermost first.
pub(super) struct Order(Vec<i64>);

impl Order {
    /// Returns the order after a transform of a tensor with these strides.
    pub(super) fn of(sides: FftTypes, strides: &[i64], dims: &[i64]) -> Order {
        let (others, end) = dims.split_at(dims.len() - 1);
        match sides {
            FftTypes::Complex => Order::after(strides, &[Step::free(dims)]),
            FftTypes::RealIn => Order::after(strides, &[Step { dims, last_stays: true }]),
            FftTypes::RealOut => Order::after(strides, &[Step::free(others), Step::free(end)]),
        }
    }

    /// Returns the order after several steps on a tensor with these strides.
    pub(super) fn after(strides: &[i64], steps: &[Step<'_>]) -> Order {
        let rank = strides.len();
        let mut strides = Dims::from_slice(strides);
        let mut order: Vec<i64> = (0..rank as i64).collect();
        for step in steps.iter().filter(|step| !step.dims.is_empty()) {
            let kept = outside(rank, step.dims);
            let fixed = step.dims.len() - usize::from(step.last_stays);
            let (free, last) = step.dims.split_at(fixed);
            order.clear();
            for part in [&kept[..], free] {
                let from = order.len();
                order.extend(part);
                order[from..].sort_by_key(|&d| std::cmp::Reverse(strides[d as usize]));
            }
            order.extend(last);
            order.iter().zip((0..rank as i64).rev()).for_each(|(&d, stride)| strides[d as usize] = stride);
        }
        Order(order)
    }

    /// Permutes a tensor's dimensions into this order.
    pub(super) fn arrange(&self, x: &Tensor) -> Computed {
        Ok(x.permute(&self.0)?)
    }

    /// Returns the position of a dimension in this order.
    pub(super) fn place(&self, dim: i64) -> i64 {
        self.0.iter().position(|&d| d == dim).map_or(dim, |at| at as i64)
    }

    /// Permutes the dimensions of a result back to their logical order.
    pub(super) fn restore(&self, t: &Tensor) -> Computed {
        let places: Vec<i64> = (0..self.0.len() as i64).map(|d| self.place(d)).collect();
        Ok(t.permute(&places)?)
    }
}

/// Returns the dimensions that are not transformed. Those in front keep their positions; gaps are filled from the back,
/// which determines the order of dimensions with equal strides.
fn outside(rank: usize, transformed: &[i64]) -> Vec<i64> {
    let mut all: Vec<i64> = (0..rank as i64).collect();
    let (mut front, mut back) = (0, rank);
    while front < back {
        if transformed.contains(&all[front]) {
            back -= 1;
            all.swap(front, back);
        } else {
            front += 1;
        }
    }
    all.truncate(front);
    all
}

/// Returns the strides of a transform's input: of `x`, or of a copy that is cut or extended to the lengths. An extended
/// copy is channels last if `x` is, else row-major.
pub(super) fn strides_read(
    x: &Tensor,
    copied: bool,
    lengths: impl Iterator<Item = (i64, i64)>,
) -> Result<Dims, KernelError> {
    let copy;
    let layout = if copied {
        copy = x.preserved()?;
        &copy
    } else {
        x.layout()
    };
    let (mut sizes, mut widened) = (Dims::from_slice(x.sizes()), false);
    for (d, n) in lengths {
        widened |= n > sizes[d as usize];
        sizes[d as usize] = n;
    }
    Ok(match widened {
        false => Dims::from_slice(layout.strides()),
        true if layout.is_channels_last_strides() => channels_last_strides(&sizes)?,
        true => contiguous_strides(&sizes),
    })
}
