//! The iteration space of an element-wise operation: common shape, strides per operand, order of dimensions.

use smallvec::SmallVec;

use crate::broadcast::broadcast_into;
use crate::error::Result;
use crate::layout::{Dims, Layout, contiguous_strides};

/// The common shape of operands and their strides in it.
///
/// Dimensions are in the order of the shape until [`LoopPlan::coalesce`] puts the fastest first and merges them.
pub(crate) struct LoopPlan {
    pub(crate) sizes: Dims,
    /// Per operand, one stride per dimension; 0 where the operand is broadcast.
    pub(crate) strides: SmallVec<[Dims; 4]>,
}

impl LoopPlan {
    /// Returns the shape that the layouts broadcast to.
    pub(crate) fn shape(layouts: &[&Layout]) -> Result<Dims> {
        let mut shape = Dims::new();
        for layout in layouts {
            broadcast_into(&mut shape, layout.sizes())?;
        }
        Ok(shape)
    }

    /// Makes the plan for a shape that all layouts broadcast to.
    pub(crate) fn new(shape: Dims, layouts: &[&Layout]) -> LoopPlan {
        let strides = layouts.iter().map(|layout| strides_in(&shape, layout)).collect();
        LoopPlan { sizes: shape, strides }
    }

    /// Returns the dimensions ordered by the operands' strides, fastest first. The first operand whose strides differ
    /// decides. The rule is PyTorch's, because the order is visible in the strides of results.
    fn order(&self, operands: &[Dims]) -> SmallVec<[usize; 5]> {
        let mut order: SmallVec<[usize; 5]> = (0..self.sizes.len()).rev().collect();
        for i in 1..order.len() {
            let mut moving = i;
            for below in (0..i).rev() {
                match self.compare(operands, order[below], order[moving]) {
                    std::cmp::Ordering::Greater => {
                        order.swap(below, moving);
                        moving = below;
                    }
                    std::cmp::Ordering::Less => break,
                    std::cmp::Ordering::Equal => {}
                }
            }
        }
        order
    }

    /// `Greater`: `inner` must be outside `outer`. `Equal`: the strides do not decide.
    fn compare(&self, operands: &[Dims], inner: usize, outer: usize) -> std::cmp::Ordering {
        for strides in operands {
            let (a, b) = (strides[inner], strides[outer]);
            if a == 0 || b == 0 {
                continue;
            }
            match a.cmp(&b) {
                std::cmp::Ordering::Equal if self.sizes[inner] > self.sizes[outer] => {
                    return std::cmp::Ordering::Greater;
                }
                std::cmp::Ordering::Equal => {}
                decided => return decided,
            }
        }
        std::cmp::Ordering::Equal
    }

    /// Returns the layout of a fresh output for these inputs.
    pub(crate) fn output_layout(&self, inputs: &[&Layout]) -> Result<Layout> {
        let same = |layout: &&Layout| layout.sizes() == &self.sizes[..];
        if inputs.iter().all(same) {
            if inputs.iter().all(|layout| layout.is_contiguous()) {
                return Layout::contiguous(&self.sizes);
            }
            let first = inputs[0];
            if first.is_non_overlapping_and_dense() && inputs.iter().all(|l| l.strides() == first.strides()) {
                return Layout::new(&self.sizes, first.strides(), 0);
            }
        }
        Layout::new(&self.sizes, &self.dense(), 0)
    }

    /// Returns dense strides in the dimension order of the operands.
    fn dense(&self) -> Dims {
        let order = self.order(&self.strides);
        let mut strides = contiguous_strides(&self.sizes);
        if !order.iter().rev().copied().eq(0..self.sizes.len()) {
            let mut step = 1i64;
            for dim in order {
                strides[dim] = step;
                step = step.saturating_mul(self.sizes[dim].max(1));
            }
        }
        strides
    }

    /// Inserts an operand as the first one, where the output belongs.
    pub(crate) fn insert_first(&mut self, layout: &Layout) {
        let strides = strides_in(&self.sizes, layout);
        self.strides.insert(0, strides);
    }

    /// Puts the fastest dimension first, drops dimensions of size 1, and merges neighbouring dimensions that are one
    /// row in every operand. At least one dimension remains.
    pub(crate) fn coalesce(&mut self) {
        let order = self.order(&self.strides);
        let kept: SmallVec<[usize; 5]> = order.into_iter().filter(|d| self.sizes[*d] != 1).collect();
        let mut sizes = Dims::new();
        let mut strides: SmallVec<[Dims; 4]> = self.strides.iter().map(|_| Dims::new()).collect();
        for dim in kept {
            let merges = sizes.last().is_some_and(|last: &i64| {
                (0..strides.len()).all(|k| {
                    let below = strides[k][sizes.len() - 1];
                    below * last == self.strides[k][dim]
                })
            });
            if merges {
                let last = sizes.len() - 1;
                sizes[last] *= self.sizes[dim];
            } else {
                sizes.push(self.sizes[dim]);
                for (to, from) in strides.iter_mut().zip(&self.strides) {
                    to.push(from[dim]);
                }
            }
        }
        if sizes.is_empty() {
            sizes.push(1);
            strides.iter_mut().for_each(|strides| strides.push(1));
        }
        self.sizes = sizes;
        self.strides = strides;
    }
}

/// Returns the layout of a fresh result of operands with these layouts.
///
/// # Errors
/// Returns an error if the shapes do not broadcast.
pub fn layout_after(operands: &[&Layout]) -> Result<Layout> {
    LoopPlan::new(LoopPlan::shape(operands)?, operands).output_layout(operands)
}

/// Returns the strides of a fresh result whose operands have these strides (0 in dimensions that are broadcast or
/// indexed).
#[must_use]
pub fn strides_after(sizes: &[i64], operands: &[Dims]) -> Dims {
    LoopPlan { sizes: Dims::from_slice(sizes), strides: operands.iter().cloned().collect() }.dense()
}

/// Returns the strides of a layout in a shape that it broadcasts to; 0 where it is broadcast.
pub(super) fn strides_in(shape: &[i64], layout: &Layout) -> Dims {
    let lead = shape.len() - layout.rank();
    let mut strides = Dims::from_elem(0, shape.len());
    for dim in 0..layout.rank() {
        let broadcast = layout.sizes()[dim] == 1 && shape[lead + dim] != 1;
        strides[lead + dim] = if broadcast { 0 } else { layout.strides()[dim] };
    }
    strides
}

/// Whether an operand with these strides ([`strides_in`]) leaves the dimensions of a fresh result in row-major order, whatever other such
/// operands there are: the strides get no larger from one dimension to the next, and where they are equal, the sizes do not.
pub(super) fn is_row_major(shape: &[i64], strides: &[i64]) -> bool {
    let mut outer: Option<(i64, i64)> = None;
    shape.iter().zip(strides).filter(|(_, stride)| **stride != 0).all(|(&size, &stride)| {
        let (step, length) = outer.replace((stride, size)).unwrap_or((i64::MAX, i64::MAX));
        stride < step || stride == step && size <= length
    })
}
