//! Layouts: sizes, strides (in elements) and offset of a tensor's elements in a storage, with queries.
//!
//! Invariants of a [`Layout`]: sizes and strides are non-negative and equal in number, and the number of elements and
//! the reach fit `i64`. Whether a layout fits a storage is checked when a tensor is made.

use smallvec::{SmallVec, smallvec};

use crate::error::{Result, SizesText, TensorError};

/// Maximum number of dimensions that are stored inline.
pub(crate) const MAX_INLINE: usize = 5;

/// Sizes or strides, stored inline up to five dimensions.
pub type Dims = SmallVec<[i64; MAX_INLINE]>;

/// Maximum number of dimensions of a tensor.
pub const MAX_RANK: usize = 64;

/// Sizes, strides and offset of a tensor.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    sizes: Dims,
    strides: Dims,
    offset: i64,
    numel: i64,
    /// Whether the layout is row-major without gaps; strides of dimensions of size 1 are ignored.
    contiguous: bool,
    /// Whether all strides equal those of [`contiguous_strides`].
    row_major_strides: bool,
}

impl Clone for Layout {
    /// Copies slices, because the clone of a `SmallVec` copies element by element.
    #[inline]
    fn clone(&self) -> Layout {
        Layout {
            sizes: dims(&self.sizes),
            strides: dims(&self.strides),
            offset: self.offset,
            numel: self.numel,
            contiguous: self.contiguous,
            row_major_strides: self.row_major_strides,
        }
    }
}

/// Copies dimensions. Up to five are copied one by one, because a call of `memcpy` costs more.
#[inline]
pub(crate) fn dims(of: &[i64]) -> Dims {
    let inline = match *of {
        [] => [0; 5],
        [a] => [a, 0, 0, 0, 0],
        [a, b] => [a, b, 0, 0, 0],
        [a, b, c] => [a, b, c, 0, 0],
        [a, b, c, d] => [a, b, c, d, 0],
        _ => return Dims::from_slice(of),
    };
    Dims::from_buf_and_len(inline, of.len())
}

/// Returns whether sizes are equal. Compared one by one, for the same reason as in [`dims`].
#[inline]
pub fn same_sizes(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// Maximum extent of a tensor without elements: the product of its sizes, of which those of 0 count as 1. Such a tensor
/// takes no memory, so only this limit bounds loops over its other dimensions. (Views of tensors that were expanded
/// have the extent of those.)
pub const MAX_EMPTY_EXTENT: i64 = 1 << 28;

/// Returns the number of elements.
///
/// # Errors
/// Returns an error if a size is negative, [`TensorError::SizeOverflow`] if the product does not fit `i64`, and
/// [`TensorError::EmptyExtent`] if there are no elements and the extent is above [`MAX_EMPTY_EXTENT`].
pub fn numel_of(sizes: &[i64]) -> Result<i64> {
    let mut numel: i64 = 1;
    let mut overflow = false;
    let mut empty = false;
    for &size in sizes {
        if size < 0 {
            return Err(TensorError::shape(format!(
                "Trying to create tensor with negative dimension {size}: {}",
                SizesText::from(sizes)
            )));
        }
        empty |= size == 0;
        let (product, over) = numel.overflowing_mul(size.max(1));
        numel = product;
        overflow |= over;
    }
    match (empty, overflow || numel > i64::MAX / 16) {
        (true, overflow) if overflow || numel > MAX_EMPTY_EXTENT => {
            Err(TensorError::EmptyExtent(sizes.into()))
        }
        (true, _) => Ok(0),
        (false, true) => Err(TensorError::SizeOverflow(sizes.into())),
        (false, false) => Ok(numel),
    }
}

/// Returns row-major strides; dimensions of size 0 count as 1, as in PyTorch.
pub fn contiguous_strides(sizes: &[i64]) -> Dims {
    let mut strides = dims(sizes);
    set_contiguous_strides(&mut strides, sizes);
    strides
}

/// Sets row-major strides, one for each size.
#[inline(always)]
pub(crate) fn set_contiguous_strides(strides: &mut [i64], sizes: &[i64]) {
    let mut step: i64 = 1;
    for (stride, &size) in strides.iter_mut().zip(sizes).rev() {
        *stride = step;
        step = step.saturating_mul(size.max(1));
    }
}

/// Returns strides with the channels innermost (rank 4: `[N, C, H, W]`, rank 5: `[N, C, D, H, W]`).
///
/// # Errors
/// Returns [`TensorError::Shape`] for other ranks.
pub fn channels_last_strides(sizes: &[i64]) -> Result<Dims> {
    if sizes.len() != 4 && sizes.len() != 5 {
        return Err(TensorError::shape(format!("channels_last needs rank 4 or 5, got {}", sizes.len())));
    }
    let mut strides: Dims = smallvec![1; sizes.len()];
    let mut step: i64 = sizes[1].max(1);
    for dim in (2..sizes.len()).rev() {
        strides[dim] = step;
        step = step.saturating_mul(sizes[dim].max(1));
    }
    strides[0] = step;
    Ok(strides)
}

/// Returns whether the strides are row-major for these sizes: first ignoring strides of dimensions of size 1, then
/// comparing all.
#[inline]
fn strides_contiguous(sizes: &[i64], strides: &[i64]) -> (bool, bool) {
    let mut step: i64 = 1;
    let mut all_equal = true;
    for (&size, &stride) in sizes.iter().zip(strides).rev() {
        all_equal &= stride == step;
        if size != 1 && stride != step {
            return (false, false);
        }
        step = step.wrapping_mul(size.max(1));
    }
    (true, all_equal)
}

/// Whether elements of a layout share memory locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// No two elements share a location.
    No,
    /// Some elements share a location.
    Yes,
    /// Undecided (interleaving strides).
    TooHard,
}

impl Layout {
    /// Makes a layout after checking its invariants.
    ///
    /// # Errors
    /// Returns an error if the lengths differ, there are too many dimensions, a value is negative, or the number of
    /// elements or the reach overflows.
    pub fn new(sizes: &[i64], strides: &[i64], offset: i64) -> Result<Layout> {
        if sizes.len() != strides.len() {
            return Err(TensorError::shape("mismatch in length of strides and shape"));
        }
        check_rank(sizes.len())?;
        if strides.iter().any(|stride| *stride < 0) {
            return Err(TensorError::shape(format!(
                "as_strided: Negative strides are not supported at the moment, got strides: {}",
                SizesText::from(strides)
            )));
        }
        if offset < 0 {
            return Err(TensorError::shape(format!("Tensor: invalid storage offset {offset}")));
        }
        let numel = numel_of(sizes)?;
        if numel > 0 {
            let reach = sizes.iter().zip(strides).try_fold(offset, |reach, (size, stride)| {
                (size - 1).checked_mul(*stride).and_then(|step| reach.checked_add(step))
            });
            if reach.is_none_or(|reach| reach > i64::MAX / 16 - 1) {
                return Err(TensorError::SizeOverflow(sizes.into()));
            }
        }
        Ok(Layout::of_parts(dims(sizes), dims(strides), offset, numel))
    }

    /// Makes the row-major layout at offset 0.
    ///
    /// # Errors
    /// Returns an error if there are too many dimensions, a size is negative, or the number of elements overflows.
    #[inline]
    pub fn contiguous(sizes: &[i64]) -> Result<Layout> {
        check_rank(sizes.len())?;
        let numel = numel_of(sizes)?;
        let strides = contiguous_strides(sizes);
        Ok(Layout {
            sizes: dims(sizes),
            strides,
            offset: 0,
            numel,
            contiguous: true,
            row_major_strides: true,
        })
    }

    /// Returns the row-major layout of a matrix with few elements, which needs no check for overflow.
    #[inline]
    pub(crate) fn small_matrix([rows, columns]: [usize; 2]) -> Layout {
        debug_assert!(rows.checked_mul(columns).is_some_and(|n| (1..1 << 32).contains(&n)));
        let [rows, columns] = [rows as i64, columns as i64];
        Layout {
            sizes: dims(&[rows, columns]),
            strides: dims(&[columns, 1]),
            offset: 0,
            numel: rows * columns,
            contiguous: true,
            row_major_strides: true,
        }
    }

    /// Makes a layout of parts that are valid because another layout is (views).
    #[inline]
    pub(crate) fn of_parts(sizes: Dims, strides: Dims, offset: i64, numel: i64) -> Layout {
        let (contiguous, row_major_strides) = strides_contiguous(&sizes, &strides);
        Layout { sizes, strides, offset, numel, contiguous: contiguous || numel == 0, row_major_strides }
    }

    /// Returns whether all strides are those of [`contiguous_strides`].
    #[inline]
    pub(crate) fn has_row_major_strides(&self) -> bool {
        self.row_major_strides
    }

    /// Returns the row-major layout at offset 0 with the sizes of `self`, which are already checked.
    #[inline(always)]
    pub(crate) fn to_contiguous(&self) -> Layout {
        Layout {
            sizes: dims(&self.sizes),
            strides: if self.row_major_strides {
                dims(&self.strides)
            } else {
                contiguous_strides(&self.sizes)
            },
            offset: 0,
            numel: self.numel,
            contiguous: true,
            row_major_strides: true,
        }
    }

    /// Returns the layout with no dimensions.
    pub fn scalar() -> Layout {
        let (sizes, strides) = (Dims::new(), Dims::new());
        Layout { sizes, strides, offset: 0, numel: 1, contiguous: true, row_major_strides: true }
    }

    /// Returns the sizes.
    #[inline]
    pub fn sizes(&self) -> &[i64] {
        &self.sizes
    }

    /// Returns the strides, in elements.
    #[inline]
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// Returns the offset of the first element, in elements.
    #[inline]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// Returns the number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// Returns the number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.numel as usize
    }

    /// Returns whether the layout is row-major without gaps.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.contiguous
    }

    /// Returns the end of the furthest element, in elements from the storage's start; 0 if empty.
    #[inline]
    pub fn storage_end(&self) -> usize {
        if self.numel == 0 {
            return 0;
        }
        (self.offset + self.last_step() + 1) as usize
    }

    /// Returns the distance from the first to the furthest element, in elements.
    #[inline]
    fn last_step(&self) -> i64 {
        if self.contiguous {
            return self.numel - 1;
        }
        self.sizes.iter().zip(&self.strides).map(|(size, stride)| (size - 1) * stride).sum()
    }

    /// Returns whether the channels are innermost and the layout has no gaps (rank 4 or 5).
    pub fn is_channels_last(&self) -> bool {
        let order: &[usize] = match self.rank() {
            4 => &[1, 3, 2, 0],
            5 => &[1, 4, 3, 2, 0],
            _ => return false,
        };
        let mut step = 1;
        order.iter().all(|&dim| {
            let fits = self.sizes[dim] == 1 || self.strides[dim] == step;
            step *= self.sizes[dim].max(1);
            fits
        })
    }

    /// Returns whether the strides *prefer* channels innermost, by PyTorch's looser rule (which considers sizes of 1).
    pub fn is_channels_last_strides(&self) -> bool {
        let order: &[usize] = match self.rank() {
            4 => &[1, 3, 2, 0],
            5 => &[1, 4, 3, 2, 0],
            _ => return false,
        };
        if self.strides[1] == 0 {
            return false;
        }
        let mut least = 0;
        for &dim in order {
            if self.sizes[dim] == 0 || self.strides[dim] < least {
                return false;
            }
            if dim == 0 && least == self.strides[1] {
                return false;
            }
            least = self.strides[dim] * if self.sizes[dim] > 1 { self.sizes[dim] } else { 1 };
        }
        true
    }

    /// Returns whether the elements fill a gapless region, each location once, in any order of dimensions.
    pub fn is_non_overlapping_and_dense(&self) -> bool {
        if self.contiguous {
            return true;
        }
        let mut order: SmallVec<[usize; 5]> = (0..self.rank()).filter(|d| self.sizes[*d] != 1).collect();
        order.sort_by_key(|d| self.strides[*d]);
        let mut step = 1;
        order.into_iter().all(|d| {
            let fits = self.strides[d] == step;
            step *= self.sizes[d];
            fits
        })
    }

    /// Returns whether elements share memory locations.
    pub fn internal_overlap(&self) -> Overlap {
        if self.is_non_overlapping_and_dense() {
            return Overlap::No;
        }
        if self.sizes.iter().zip(&self.strides).any(|(size, stride)| *size > 1 && *stride == 0) {
            return Overlap::Yes;
        }
        Overlap::TooHard
    }

    /// Checks that the layout may be written through.
    ///
    /// # Errors
    /// Returns [`TensorError::InternalOverlap`] if elements are known to share a location.
    pub fn check_writable(&self) -> Result<()> {
        if self.contiguous {
            return Ok(());
        }
        match self.internal_overlap() {
            Overlap::Yes => Err(TensorError::InternalOverlap),
            _ => Ok(()),
        }
    }

    /// Returns a layout with these sizes and strides at another offset (already validated).
    #[inline]
    pub(crate) fn with(&self, sizes: Dims, strides: Dims, offset: i64) -> Layout {
        let numel = sizes.iter().product();
        Layout::of_parts(sizes, strides, offset, numel)
    }
}

/// Checks the number of dimensions.
pub(crate) fn check_rank(rank: usize) -> Result<()> {
    if rank <= MAX_RANK {
        return Ok(());
    }
    Err(TensorError::shape(format!("tensor has too many (>{MAX_RANK}) dims: {rank}")))
}

/// Converts a dimension number (negative: from the end) to an index below `rank`; rank 0 accepts 0 and -1.
///
/// # Errors
/// Returns [`TensorError::DimRange`] if the number is out of range.
#[inline]
pub fn wrap_dim(dim: i64, rank: usize) -> Result<usize> {
    let bound = (rank as i64).max(1);
    if dim < -bound || dim >= bound {
        return Err(TensorError::DimRange { dim, lo: -bound, hi: bound - 1 });
    }
    Ok(if dim < 0 { dim + bound } else { dim } as usize)
}

/// As [`wrap_dim`] for the position of a new dimension: `rank` itself is accepted.
///
/// # Errors
/// As for [`wrap_dim`].
#[inline]
pub fn wrap_dim_insert(dim: i64, rank: usize) -> Result<usize> {
    wrap_dim(dim, rank + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguity_ignores_sizes_of_one() {
        assert!(Layout::new(&[2, 1, 3], &[3, 77, 1], 0).unwrap().is_contiguous());
        assert!(!Layout::new(&[2, 3], &[1, 2], 0).unwrap().is_contiguous());
        assert!(Layout::new(&[2, 3], &[1, 2], 0).unwrap().is_non_overlapping_and_dense());
        assert!(Layout::new(&[0, 3], &[1, 2], 0).unwrap().is_contiguous());
        assert_eq!(Layout::new(&[2, 3], &[0, 1], 0).unwrap().internal_overlap(), Overlap::Yes);
        assert_eq!(contiguous_strides(&[2, 0, 3])[..], [3, 3, 1]);
    }

    #[test]
    fn sizes_are_checked() {
        assert!(matches!(Layout::contiguous(&[1 << 40, 1 << 40]), Err(TensorError::SizeOverflow(_))));
        assert_eq!(Layout::contiguous(&[1 << 14, 1 << 14, 0]).unwrap().numel(), 0);
        for sizes in [[1 << 14, (1 << 14) + 1, 0], [0, 1 << 40, 1 << 40]] {
            assert!(matches!(Layout::contiguous(&sizes), Err(TensorError::EmptyExtent(_))));
        }
        assert!(Layout::contiguous(&[-1]).is_err());
        assert!(Layout::new(&[2, 2], &[i64::MAX, 1], 0).is_err());
        assert_eq!(
            wrap_dim(3, 1).unwrap_err().to_string(),
            "Dimension out of range (expected to be in range of [-1, 0], but got 3)"
        );
    }

    #[test]
    fn channels_last() {
        let strides = channels_last_strides(&[2, 3, 4, 5]).unwrap();
        assert_eq!(strides[..], [60, 1, 15, 3]);
        let layout = Layout::new(&[2, 3, 4, 5], &strides, 0).unwrap();
        assert!(layout.is_channels_last() && layout.is_channels_last_strides() && !layout.is_contiguous());
    }
}
