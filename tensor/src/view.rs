//! Views: other sizes, strides and offsets over the same storage. No function here accesses elements.
//!
//! Each function checks its arguments by PyTorch's rules and returns a new tensor that shares the storage. In-place
//! forms (`t_`, `unsqueeze_`, ...) are [`Tensor::set_layout`] with the view's layout.

use smallvec::SmallVec;

use crate::budget::check_budget;
use crate::dtype::DType;
use crate::error::{Result, SizesText, TensorError};
use crate::layout::{
    Dims, Layout, MAX_INLINE, check_rank, contiguous_strides, dims, numel_of, set_contiguous_strides,
    wrap_dim, wrap_dim_insert,
};
use crate::tensor::Tensor;

/// Returns the values of all dimensions but `d`.
fn without(values: &[i64], d: usize) -> Dims {
    values.iter().enumerate().filter(|(i, _)| *i != d).map(|(_, v)| *v).collect()
}

/// Returns the offset of the element `index * stride` elements after a layout's first one. Strides of a tensor without
/// elements may exceed any storage; the offset of its views, which addresses no element, then stays as it is.
#[inline]
fn offset_at(layout: &Layout, index: i64, stride: i64) -> i64 {
    let distance = index.checked_mul(stride);
    distance.and_then(|distance| layout.offset().checked_add(distance)).unwrap_or(layout.offset())
}

impl Tensor {
    /// Returns a tensor over the same storage with a layout derived from this tensor's, which therefore fits.
    fn derived(&self, sizes: Dims, strides: Dims, offset: i64) -> Tensor {
        let meta = self.meta();
        Tensor::from_parts(meta.storage.clone(), self.dtype(), meta.layout.with(sizes, strides, offset))
    }

    /// As [`Tensor::derived`] for sizes and strides that are in memory: they are copied once. Moves of what was just written in parts
    /// stall on store forwarding.
    fn derived_from(&self, sizes: &[i64], strides: &[i64], offset: i64) -> Tensor {
        let meta = self.meta();
        let layout = meta.layout.with(dims(sizes), dims(strides), offset);
        Tensor::constructed(meta.storage.clone(), self.dtype(), layout)
    }

    /// Returns another tensor over the same elements.
    pub fn alias(&self) -> Tensor {
        let meta = self.meta();
        Tensor::from_parts(meta.storage.clone(), self.dtype(), meta.layout.clone())
    }

    /// Returns a view with any sizes and strides; the offset counts from the storage's start (default: this tensor's).
    ///
    /// # Errors
    /// Returns an error if the layout is invalid, and [`TensorError::OutOfBounds`] if it reaches outside the storage.
    pub fn as_strided(&self, sizes: &[i64], strides: &[i64], offset: Option<i64>) -> Result<Tensor> {
        let meta = self.meta();
        let layout = Layout::new(sizes, strides, offset.unwrap_or(meta.layout.offset()))?;
        Tensor::from_storage(meta.storage.clone(), self.dtype(), layout)
    }

    /// Returns the slice at one index of a dimension, without that dimension.
    ///
    /// # Errors
    /// Returns an error if the dimension or the index is out of range.
    pub fn select(&self, dim: i64, index: i64) -> Result<Tensor> {
        let layout = self.layout();
        if layout.rank() == 0 {
            return Err(TensorError::shape("select() cannot be applied to a 0-dim tensor."));
        }
        let d = wrap_dim(dim, layout.rank())?;
        let size = layout.sizes()[d];
        if index < -size || index >= size {
            let sizes = layout.sizes().into();
            return Err(TensorError::IndexRange { op: "select()", index, sizes, dim });
        }
        let index = if index < 0 { index + size } else { index };
        let offset = offset_at(layout, index, layout.strides()[d]);
        let (sizes, strides) = (layout.sizes(), layout.strides());
        // At either end, the common case, the others are a slice.
        if d + 1 == sizes.len() {
            return Ok(self.derived_from(&sizes[..d], &strides[..d], offset));
        }
        if d == 0 {
            return Ok(self.derived_from(&sizes[1..], &strides[1..], offset));
        }
        Ok(self.derived(without(sizes, d), without(strides, d), offset))
    }

    /// Returns `start..end` of a dimension with a positive step, clamped as in Python.
    ///
    /// # Errors
    /// Returns an error if the dimension is out of range or the step is not positive.
    pub fn slice(&self, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<Tensor> {
        let layout = self.layout();
        if layout.rank() == 0 {
            return Err(TensorError::shape("slice() cannot be applied to a 0-dim tensor."));
        }
        let d = wrap_dim(dim, layout.rank())?;
        if step <= 0 {
            return Err(TensorError::value("slice step must be positive"));
        }
        let size = layout.sizes()[d];
        let clamp = |at: i64| if at < 0 { at.saturating_add(size).max(0) } else { at.min(size) };
        let start = clamp(start.unwrap_or(0));
        let end = clamp(end.unwrap_or(i64::MAX)).max(start);
        let (mut sizes, mut strides) = (dims(layout.sizes()), dims(layout.strides()));
        let count = end - start;
        sizes[d] = if step == 1 { count } else { count / step + i64::from(count % step != 0) };
        let offset = offset_at(layout, start, strides[d]);
        // A stride matters only for a dimension with more than one element; with a huge step there is at most one.
        strides[d] = strides[d].saturating_mul(step);
        Ok(self.derived(sizes, strides, offset))
    }

    /// Returns `length` elements of a dimension from `start` on.
    ///
    /// # Errors
    /// Returns an error if the dimension or the range is out of bounds.
    pub fn narrow(&self, dim: i64, start: i64, length: i64) -> Result<Tensor> {
        let layout = self.layout();
        if layout.rank() == 0 {
            return Err(TensorError::shape("narrow() cannot be applied to a 0-dim tensor."));
        }
        if length < 0 {
            return Err(TensorError::value("narrow(): length must be non-negative."));
        }
        let size = layout.sizes()[wrap_dim(dim, layout.rank())?];
        if start < -size || start > size {
            return Err(TensorError::value(format!(
                "start out of range (expected to be in range of [-{size}, {size}], but got {start})"
            )));
        }
        let start = if start < 0 { start + size } else { start };
        if start > size - length {
            return Err(TensorError::value(format!(
                "start ({start}) + length ({length}) exceeds dimension size ({size})."
            )));
        }
        self.slice(dim, Some(start), Some(start + length), 1)
    }

    /// Exchanges two dimensions.
    ///
    /// # Errors
    /// Returns [`TensorError::DimRange`] if a dimension is out of range.
    pub fn transpose(&self, a: i64, b: i64) -> Result<Tensor> {
        let layout = self.layout();
        let (a, b) = (wrap_dim(a, layout.rank())?, wrap_dim(b, layout.rank())?);
        let (mut sizes, mut strides) = (dims(layout.sizes()), dims(layout.strides()));
        if a != b {
            sizes.swap(a, b);
            strides.swap(a, b);
        }
        Ok(self.derived(sizes, strides, layout.offset()))
    }

    /// Transposes a matrix; vectors and scalars are returned unchanged.
    ///
    /// # Errors
    /// Returns [`TensorError::Shape`] for higher ranks.
    pub fn t(&self) -> Result<Tensor> {
        match self.rank() {
            0 | 1 => Ok(self.alias()),
            2 => self.transpose(0, 1),
            rank => Err(TensorError::shape(format!(
                "t() expects a tensor with <= 2 dimensions, but self is {rank}D"
            ))),
        }
    }

    /// Reorders the dimensions.
    ///
    /// # Errors
    /// Returns an error if `dims` is not a permutation of the dimensions.
    pub fn permute(&self, dims: &[i64]) -> Result<Tensor> {
        let layout = self.layout();
        if dims.len() != layout.rank() {
            return Err(TensorError::shape(format!(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the \
                 desired ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
                layout.rank(),
                dims.len()
            )));
        }
        let mut seen = 0u64;
        let (mut sizes, mut strides) = (Dims::new(), Dims::new());
        for &dim in dims {
            let d = wrap_dim(dim, layout.rank())?;
            if seen >> d & 1 == 1 {
                return Err(TensorError::shape("permute(): duplicate dims are not allowed."));
            }
            seen |= 1 << d;
            sizes.push(layout.sizes()[d]);
            strides.push(layout.strides()[d]);
        }
        Ok(self.derived(sizes, strides, layout.offset()))
    }

    /// Moves dimensions to given positions; the others keep their order.
    ///
    /// # Errors
    /// Returns an error if a dimension is out of range or repeated, or the lengths differ.
    pub fn movedim(&self, source: &[i64], destination: &[i64]) -> Result<Tensor> {
        let rank = self.rank();
        if source.len() != destination.len() {
            return Err(TensorError::shape(format!(
                "movedim: Invalid source or destination dims: source ({} dims) should contain the same number of \
                 dims as destination ({} dims)",
                SizesText::from(source),
                SizesText::from(destination)
            )));
        }
        let mut order: SmallVec<[i64; 8]> = SmallVec::from_elem(-1, rank);
        let (mut used, mut taken) = (0u64, 0u64);
        for (&from, &to) in source.iter().zip(destination) {
            let (from, to) = (wrap_dim(from, rank)?, wrap_dim(to, rank)?);
            for (seen, dim, name, all) in
                [(&mut used, from, "source", source), (&mut taken, to, "destination", destination)]
            {
                if *seen >> dim & 1 == 1 {
                    return Err(TensorError::shape(format!(
                        "movedim: repeated dim in `{name}` ({})",
                        SizesText::from(all)
                    )));
                }
                *seen |= 1 << dim;
            }
            if rank > 0 {
                order[to] = from as i64;
            }
        }
        if rank == 0 {
            return Ok(self.alias());
        }
        // As many dimensions remain as positions.
        let rest = (0..rank as i64).filter(|d| used >> d & 1 == 0);
        for (place, dim) in order.iter_mut().filter(|place| **place == -1).zip(rest) {
            *place = dim;
        }
        self.permute(&order)
    }

    /// Repeats dimensions of size 1 without copying; -1 keeps a size.
    ///
    /// # Errors
    /// Returns [`TensorError::Expand`] if a size other than 1 would change, and an error if there are too few sizes.
    pub fn expand(&self, sizes: &[i64]) -> Result<Tensor> {
        let layout = self.layout();
        if sizes.len() < layout.rank() {
            return Err(TensorError::shape(format!(
                "expand({}{{{}}}, size={}): the number of sizes provided ({}) must be greater or equal to the number of \
                 dimensions in the tensor ({})",
                self.dtype().tensor_type_name(),
                SizesText::from(layout.sizes()),
                SizesText::from(sizes),
                sizes.len(),
                layout.rank()
            )));
        }
        check_rank(sizes.len())?;
        let lead = sizes.len() - layout.rank();
        let (mut to, mut strides) = (Dims::from_slice(sizes), Dims::from_elem(0, sizes.len()));
        // From the right, so that new leading dimensions get PyTorch's strides.
        for dim in (0..sizes.len()).rev() {
            if dim < lead {
                if sizes[dim] < 0 {
                    return Err(TensorError::shape(format!(
                        "The expanded size of the tensor ({}) isn't allowed in a leading, non-existing dimension {dim}",
                        sizes[dim]
                    )));
                }
                let inner = dim + 1;
                strides[dim] = match sizes[dim] {
                    1 if inner < sizes.len() => to[inner].saturating_mul(strides[inner]),
                    1 => 1,
                    _ => 0,
                };
                continue;
            }
            let existing = layout.sizes()[dim - lead];
            if sizes[dim] == -1 {
                to[dim] = existing;
            }
            if to[dim] == existing {
                strides[dim] = layout.strides()[dim - lead];
            } else if existing != 1 || to[dim] < 0 {
                return Err(TensorError::Expand {
                    wanted: sizes[dim],
                    existing,
                    dim,
                    target: sizes.into(),
                    sizes: layout.sizes().into(),
                });
            }
        }
        numel_of(&to)?;
        Ok(self.derived(to, strides, layout.offset()))
    }

    /// Removes the dimensions of size 1.
    pub fn squeeze_all(&self) -> Tensor {
        let layout = self.layout();
        let kept = (0..layout.rank()).filter(|d| layout.sizes()[*d] != 1);
        let (sizes, strides) = kept.map(|d| (layout.sizes()[d], layout.strides()[d])).unzip();
        self.derived(sizes, strides, layout.offset())
    }

    /// Removes those of the given dimensions that have size 1.
    ///
    /// # Errors
    /// Returns an error if a dimension is out of range or repeated.
    pub fn squeeze(&self, dims: &[i64]) -> Result<Tensor> {
        let layout = self.layout();
        let mut drop = 0u64;
        for &dim in dims {
            let d = wrap_dim(dim, layout.rank())?;
            if drop >> d & 1 == 1 {
                return Err(TensorError::shape(format!(
                    "dim {d} appears multiple times in the list of dims"
                )));
            }
            drop |= 1 << d;
        }
        let kept = (0..layout.rank()).filter(|d| drop >> d & 1 == 0 || layout.sizes()[*d] != 1);
        let (sizes, strides) = kept.map(|d| (layout.sizes()[d], layout.strides()[d])).unzip();
        Ok(self.derived(sizes, strides, layout.offset()))
    }

    /// Inserts a new dimension of size 1.
    ///
    /// # Errors
    /// Returns an error if the position is out of range or the rank would exceed the maximum.
    pub fn unsqueeze(&self, dim: i64) -> Result<Tensor> {
        let layout = self.layout();
        let d = wrap_dim_insert(dim, layout.rank())?;
        check_rank(layout.rank() + 1)?;
        let (mut sizes, mut strides) = (dims(layout.sizes()), dims(layout.strides()));
        let stride = if d < sizes.len() { sizes[d].saturating_mul(strides[d]) } else { 1 };
        sizes.insert(d, 1);
        strides.insert(d, stride);
        Ok(self.derived(sizes, strides, layout.offset()))
    }

    /// Returns a view of the elements, in row-major order, with other sizes; one -1 is inferred.
    ///
    /// # Errors
    /// Returns [`TensorError::ViewStride`] if strides cannot express the view, and an error if the sizes do not match.
    pub fn view(&self, sizes: &[i64]) -> Result<Tensor> {
        self.viewed(sizes)?.ok_or(TensorError::ViewStride)
    }

    /// As [`Tensor::view`]; `None` if strides cannot express the view.
    fn viewed(&self, sizes: &[i64]) -> Result<Option<Tensor>> {
        let layout = self.layout();
        let inferred = inferred_size(sizes, layout.numel() as i64)?;
        if inferred.is_none() && layout.has_row_major_strides() && sizes.len() <= MAX_INLINE {
            let mut strides = [1; MAX_INLINE];
            let strides = &mut strides[..sizes.len()];
            set_contiguous_strides(strides, sizes);
            return Ok(Some(self.derived_from(sizes, strides, layout.offset())));
        }
        let mut to = dims(sizes);
        if let Some((dim, size)) = inferred {
            to[dim] = size;
        }
        Ok(view_strides(layout, &to).map(|strides| self.derived(to, strides, layout.offset())))
    }

    /// As [`Tensor::view`] if that is possible, else a row-major copy.
    ///
    /// # Errors
    /// Returns an error if the sizes do not match, or memory for a copy is exhausted.
    pub fn reshape(&self, sizes: &[i64]) -> Result<Tensor> {
        match self.viewed(sizes)? {
            Some(view) => Ok(view),
            None => self.clone_contiguous()?.view(sizes),
        }
    }

    /// Merges dimensions `start..=end` into one.
    ///
    /// # Errors
    /// Returns an error if a dimension is out of range, `start` is after `end`, or memory for a copy is exhausted.
    pub fn flatten(&self, start: i64, end: i64) -> Result<Tensor> {
        let layout = self.layout();
        let (s, e) = (wrap_dim(start, layout.rank())?, wrap_dim(end, layout.rank())?);
        if s > e {
            return Err(TensorError::shape(
                "flatten() has invalid args: start_dim cannot come after end_dim",
            ));
        }
        if layout.rank() == 0 {
            return self.reshape(&[1]);
        }
        if s == e {
            return Ok(self.clone());
        }
        let sizes = layout.sizes();
        let merged = numel_of(&sizes[s..=e])?;
        let mut to = Dims::from_slice(&sizes[..s]);
        to.push(merged);
        to.extend_from_slice(&sizes[e + 1..]);
        self.reshape(&to)
    }

    /// Splits one dimension into several; one -1 is inferred.
    ///
    /// # Errors
    /// Returns an error if the dimension is out of range or the sizes do not match.
    pub fn unflatten(&self, dim: i64, sizes: &[i64]) -> Result<Tensor> {
        let layout = self.layout();
        let d = wrap_dim(dim, layout.rank())?;
        if sizes.is_empty() || layout.rank() == 0 {
            return Err(TensorError::shape("unflatten: sizes must be non-empty"));
        }
        let size = layout.sizes()[d];
        let inner = infer_sizes(sizes, size).map_err(|_| {
            TensorError::shape(format!(
                "unflatten: Provided sizes {} don't multiply up to the size of dim {d} ({size}) in the input tensor",
                SizesText::from(sizes)
            ))
        })?;
        let mut to = Dims::from_slice(&layout.sizes()[..d]);
        to.extend_from_slice(&inner);
        to.extend_from_slice(&layout.sizes()[d + 1..]);
        self.view(&to)
    }

    /// Splits a dimension into pieces of given sizes, whose sum must be the dimension's size.
    ///
    /// # Errors
    /// Returns an error if the dimension is out of range or the sizes do not match.
    pub fn split_sizes(&self, pieces: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        let layout = self.layout();
        if layout.rank() == 0 {
            return Err(TensorError::shape("split expects at least a 1-dimensional tensor"));
        }
        let size = layout.sizes()[wrap_dim(dim, layout.rank())?];
        let mut start = 0i64;
        let mut out = Vec::with_capacity(pieces.len());
        if pieces.iter().any(|piece| *piece < 0) {
            return Err(TensorError::value(format!(
                "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={}",
                SizesText::from(pieces)
            )));
        }
        for &piece in pieces {
            let end = start.saturating_add(piece);
            if end > size {
                break;
            }
            out.push(self.slice(dim, Some(start), Some(end), 1)?);
            start = end;
        }
        if start != size || out.len() != pieces.len() {
            return Err(TensorError::value(format!(
                "split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension \
                 {dim}), but got split_sizes={}",
                SizesText::from(pieces)
            )));
        }
        Ok(out)
    }

    /// Splits a dimension into pieces of one size; the last may be smaller.
    ///
    /// # Errors
    /// Returns an error if the dimension is out of range, the size is invalid, or the pieces exceed the budget.
    pub fn split(&self, piece: i64, dim: i64) -> Result<Vec<Tensor>> {
        let layout = self.layout();
        if layout.rank() == 0 {
            return Err(TensorError::shape("split expects at least a 1-dimensional tensor"));
        }
        if piece < 0 {
            return Err(TensorError::value(format!(
                "split expects split_size be non-negative, but got split_size={piece}"
            )));
        }
        let size = layout.sizes()[wrap_dim(dim, layout.rank())?];
        if piece == 0 && size != 0 {
            return Err(TensorError::value(format!(
                "split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
            )));
        }
        let count = if piece == 0 { 1 } else { (size / piece + i64::from(size % piece != 0)).max(1) };
        check_views(count)?;
        Ok(self.pieces(wrap_dim(dim, layout.rank())?, piece, count))
    }

    /// Returns `count` views of `piece` indices each of dimension `d`, in order; the last may have fewer.
    fn pieces(&self, d: usize, piece: i64, count: i64) -> Vec<Tensor> {
        let layout = self.layout();
        let (size, stride) = (layout.sizes()[d], layout.strides()[d]);
        let mut views = Vec::with_capacity(count as usize);
        let mut start = 0;
        for _ in 0..count {
            let mut sizes = dims(layout.sizes());
            let length = piece.min(size - start);
            sizes[d] = length;
            views.push(self.derived(sizes, dims(layout.strides()), offset_at(layout, start, stride)));
            start += length;
        }
        views
    }

    /// Splits a dimension into at most `chunks` pieces of equal size; the last may be smaller.
    ///
    /// # Errors
    /// Returns an error if the dimension is out of range or `chunks` is not positive.
    pub fn chunk(&self, chunks: i64, dim: i64) -> Result<Vec<Tensor>> {
        let layout = self.layout();
        if layout.rank() == 0 {
            return Err(TensorError::shape("chunk expects at least a 1-dimensional tensor"));
        }
        if chunks <= 0 {
            return Err(TensorError::value(format!(
                "chunk expects `chunks` to be greater than 0, got: {chunks}"
            )));
        }
        let size = layout.sizes()[wrap_dim(dim, layout.rank())?];
        let piece = size / chunks + i64::from(size % chunks != 0);
        if piece == 0 {
            check_views(chunks)?;
            return Ok(self.pieces(wrap_dim(dim, layout.rank())?, 0, chunks));
        }
        self.split(piece, dim)
    }

    /// Splits a dimension into exactly `sections` pieces; the first ones are larger by one if necessary.
    ///
    /// # Errors
    /// Returns an error if the dimension is out of range, `sections` is not positive, or the pieces exceed the budget.
    pub fn tensor_split(&self, sections: i64, dim: i64) -> Result<Vec<Tensor>> {
        let layout = self.layout();
        if layout.rank() == 0 {
            return Err(TensorError::shape(
                "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims",
            ));
        }
        if sections <= 0 {
            return Err(TensorError::value(format!(
                "number of sections must be larger than 0, got {sections}"
            )));
        }
        let size = layout.sizes()[wrap_dim(dim, layout.rank())?];
        check_views(sections)?;
        let (least, larger) = (size / sections, size % sections);
        let mut start = 0;
        (0..sections)
            .map(|i| {
                let end = start + least + i64::from(i < larger);
                let piece = self.slice(dim, Some(start), Some(end), 1);
                start = end;
                piece
            })
            .collect()
    }

    /// Splits a dimension at the given indices.
    ///
    /// # Errors
    /// Returns an error if the dimension is out of range.
    pub fn tensor_split_at(&self, indices: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        if self.rank() == 0 {
            return Err(TensorError::shape(
                "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims",
            ));
        }
        let mut start = 0;
        let mut out = Vec::with_capacity(indices.len() + 1);
        for &end in indices {
            out.push(self.slice(dim, Some(start), Some(end), 1)?);
            start = end;
        }
        out.push(self.slice(dim, Some(start), None, 1)?);
        Ok(out)
    }

    /// Returns the slices at all indices of a dimension.
    ///
    /// # Errors
    /// Returns an error if the dimension is out of range.
    pub fn unbind(&self, dim: i64) -> Result<Vec<Tensor>> {
        if self.rank() == 0 {
            return Err(TensorError::shape("Dimension specified as 0 but tensor has no dimensions"));
        }
        let size = self.size(dim)?;
        check_views(size)?;
        (0..size).map(|i| self.select(dim, i)).collect()
    }

    /// Returns the elements whose indices in two dimensions differ by `offset`, as a new last dimension.
    ///
    /// # Errors
    /// Returns an error if a dimension is out of range, or both are the same.
    pub fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        let layout = self.layout();
        let (a, b) = (wrap_dim(dim1, layout.rank())?, wrap_dim(dim2, layout.rank())?);
        if a == b {
            return Err(TensorError::shape(format!(
                "diagonal dimensions cannot be identical {dim1}, {dim2}"
            )));
        }
        let (mut sizes, mut strides) = (dims(layout.sizes()), dims(layout.strides()));
        let (rows, columns) = (sizes[a], sizes[b]);
        let skipped = offset.saturating_abs();
        let count = if offset >= 0 {
            rows.min(columns.saturating_sub(skipped)).max(0)
        } else {
            rows.saturating_sub(skipped).min(columns).max(0)
        };
        let start = match count {
            0 => layout.offset(),
            _ if offset >= 0 => offset_at(layout, skipped, strides[b]),
            _ => offset_at(layout, skipped, strides[a]),
        };
        // The stride of a dimension with at most one element does not matter.
        let stride = strides[a].saturating_add(strides[b]);
        for d in [a.max(b), a.min(b)] {
            sizes.remove(d);
            strides.remove(d);
        }
        sizes.push(count);
        strides.push(stride);
        Ok(self.derived(sizes, strides, start))
    }

    /// Returns all slices of `length` elements along a dimension, `step` apart, as a new last dimension.
    ///
    /// # Errors
    /// Returns an error if the dimension, the length or the step is out of range.
    pub fn unfold(&self, dim: i64, length: i64, step: i64) -> Result<Tensor> {
        let layout = self.layout();
        let d = wrap_dim(dim, layout.rank())?;
        let most = if layout.rank() == 0 { 1 } else { layout.sizes()[d] };
        if length < 0 || length > most {
            return Err(TensorError::value(format!(
                "maximum size for tensor at dimension {d} is {most} but size is {length}"
            )));
        }
        if step <= 0 {
            return Err(TensorError::value(format!("step is {step} but must be > 0")));
        }
        check_rank(layout.rank() + 1)?;
        let (mut sizes, mut strides) = (dims(layout.sizes()), dims(layout.strides()));
        let stride = if layout.rank() == 0 { 1 } else { strides[d] };
        if layout.rank() > 0 {
            sizes[d] = (sizes[d] - length) / step + 1;
            strides[d] = strides[d].saturating_mul(step);
        }
        sizes.push(length);
        strides.push(stride);
        numel_of(&sizes)?;
        Ok(self.derived(sizes, strides, layout.offset()))
    }

    /// Returns the real and imaginary parts of a complex tensor, in a new last dimension of size 2.
    ///
    /// # Errors
    /// Returns [`TensorError::Value`] if the tensor is not complex.
    pub fn view_as_real(&self) -> Result<Tensor> {
        if !self.dtype().is_complex() {
            return Err(TensorError::value("view_as_real is only supported for complex tensors"));
        }
        let meta = self.meta();
        let mut sizes = Dims::from_slice(meta.layout.sizes());
        let mut strides: Dims = meta.layout.strides().iter().map(|stride| stride.saturating_mul(2)).collect();
        check_rank(sizes.len() + 1)?;
        sizes.push(2);
        strides.push(1);
        let layout = Layout::new(&sizes, &strides, meta.layout.offset().saturating_mul(2))?;
        Tensor::from_storage(meta.storage.clone(), self.dtype().to_real(), layout)
    }

    /// Returns a float tensor whose last dimension has size 2 as a complex tensor.
    ///
    /// # Errors
    /// Returns an error if the dtype, the last dimension, a stride or the offset does not permit it.
    pub fn view_as_complex(&self) -> Result<Tensor> {
        let meta = self.meta();
        let dtype = match self.dtype() {
            DType::F16 | DType::F32 | DType::F64 => self.dtype().to_complex(),
            other => {
                return Err(TensorError::value(format!(
                    "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {}",
                    other.ir_name()
                )));
            }
        };
        let layout = &meta.layout;
        let strided = |what: &str| TensorError::shape(format!("Tensor must have a {what}"));
        match layout.sizes().last() {
            Some(2) => {}
            Some(_) => return Err(strided("last dimension of size 2")),
            None => return Err(TensorError::shape("Input tensor must have one or more dimensions")),
        }
        let last = layout.rank() - 1;
        if layout.strides()[last] != 1 {
            return Err(strided("last dimension with stride 1"));
        }
        if layout.offset() % 2 != 0 {
            return Err(strided("storage_offset divisible by 2"));
        }
        let outer = layout.sizes()[..last].iter().zip(&layout.strides()[..last]);
        if outer.clone().any(|(size, stride)| *size != 1 && stride % 2 != 0) {
            return Err(strided("stride divisible by 2 for all but last dimension"));
        }
        let (sizes, strides): (Dims, Dims) = outer.map(|(size, stride)| (*size, stride / 2)).unzip();
        let layout = Layout::new(&sizes, &strides, layout.offset() / 2)?;
        Tensor::from_storage(meta.storage.clone(), dtype, layout)
    }

    /// Returns the same bytes as another dtype (`view(dtype)`). Element sizes may differ if the last dimension permits
    /// it.
    ///
    /// # Errors
    /// Returns an error if the element sizes differ and the last dimension, a stride or the offset does not permit it.
    pub fn view_dtype(&self, dtype: DType) -> Result<Tensor> {
        let meta = self.meta();
        let (from, to) = (self.dtype().size() as i64, dtype.size() as i64);
        let layout = &meta.layout;
        if from == to {
            return Tensor::from_storage(meta.storage.clone(), dtype, layout.clone());
        }
        let bad = |why: &str| TensorError::shape(format!("self.{why} to view {} as {dtype}", self.dtype()));
        let Some(last) = layout.rank().checked_sub(1) else {
            return Err(bad("dim() cannot be 0"));
        };
        if layout.strides()[last] != 1 {
            return Err(bad("stride(-1) must be 1"));
        }
        let scale = |value: i64, what: &str| {
            let bytes = value.saturating_mul(from);
            if bytes % to == 0 {
                Ok(bytes / to)
            } else {
                Err(bad(&format!("{what} must be divisible by {}", to / from)))
            }
        };
        let mut sizes = dims(layout.sizes());
        let mut strides = dims(layout.strides());
        sizes[last] = scale(sizes[last], "size(-1)")?;
        for stride in &mut strides[..last] {
            *stride = scale(*stride, "strides")?;
        }
        let layout = Layout::new(&sizes, &strides, scale(layout.offset(), "storage_offset()")?)?;
        Tensor::from_storage(meta.storage.clone(), dtype, layout)
    }
}

/// Returns the sizes with -1 replaced.
///
/// # Errors
/// Returns an error if the sizes do not have `numel` elements, or the -1 is ambiguous.
pub fn infer_sizes(sizes: &[i64], numel: i64) -> Result<Dims> {
    let mut inferred = dims(sizes);
    if let Some((dim, size)) = inferred_size(sizes, numel)? {
        inferred[dim] = size;
    }
    Ok(inferred)
}

/// Returns the dimension whose size is given as -1, if there is one, and its size. Errors are those of [`infer_sizes`].
fn inferred_size(sizes: &[i64], numel: i64) -> Result<Option<(usize, i64)>> {
    check_rank(sizes.len())?;
    let mut inferred = None;
    let mut known: i64 = 1;
    let mut fits = true;
    for (dim, &size) in sizes.iter().enumerate() {
        if size == -1 {
            if inferred.replace(dim).is_some() {
                return Err(TensorError::shape("only one dimension can be inferred"));
            }
        } else if size < 0 {
            return Err(TensorError::shape(format!("invalid shape dimension {size}")));
        } else {
            match known.checked_mul(size) {
                Some(product) => known = product,
                None => fits = sizes.contains(&0),
            }
        }
    }
    if sizes.contains(&0) {
        known = 0;
    }
    let wrong = || TensorError::ShapeInvalid { shape: sizes.into(), numel };
    match inferred {
        Some(_) if known == 0 && numel == 0 => Err(TensorError::shape(format!(
            "cannot reshape tensor of 0 elements into shape {} because the unspecified dimension size -1 can \
                 be any value and is ambiguous",
            SizesText::from(sizes)
        ))),
        Some(dim) if fits && known > 0 && numel % known == 0 => Ok(Some((dim, numel / known))),
        None if fits && known == numel => Ok(None),
        _ => Err(wrong()),
    }
}

/// Memory of a view in bytes: its handle, its layout and their headers, measured as the growth of a process with millions.
const VIEW_BYTES: usize = 288;

/// Checks the memory of `count` new views against the budget.
fn check_views(count: i64) -> Result<()> {
    check_budget((count as usize).saturating_mul(VIEW_BYTES))
}

/// Returns strides for a layout's elements, in row-major order, with other sizes of as many elements; `None` if there
/// are none.
fn view_strides(layout: &Layout, sizes: &[i64]) -> Option<Dims> {
    if layout.numel() == 0 {
        if layout.sizes() == sizes {
            return Some(dims(layout.strides()));
        }
        return Some(contiguous_strides(sizes));
    }
    if layout.rank() == 0 {
        return Some(Dims::from_elem(1, sizes.len()));
    }
    let mut strides = Dims::from_elem(0, sizes.len());
    let mut to = sizes.len();
    let (old, steps) = (layout.sizes(), layout.strides());
    // Groups of old dimensions that are contiguous in memory are distributed to the new dimensions from the right.
    let mut base = steps[old.len() - 1];
    let mut run: i64 = 1;
    for dim in (0..old.len()).rev() {
        run *= old[dim];
        let ends = dim == 0 || (old[dim - 1] != 1 && steps[dim - 1] != run * base);
        if !ends {
            continue;
        }
        let mut given: i64 = 1;
        while to > 0 && (given < run || sizes[to - 1] == 1) {
            strides[to - 1] = given * base;
            given *= sizes[to - 1];
            to -= 1;
        }
        if given != run {
            return None;
        }
        if dim > 0 {
            base = steps[dim - 1];
            run = 1;
        }
    }
    (to == 0).then_some(strides)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, MemoryBudget};

    #[test]
    fn views_of_tensors_without_elements_have_any_stride() {
        const MAX_PIECES: i64 = crate::MAX_EMPTY_EXTENT / 2;
        let x = Tensor::zeros(&[0, MAX_PIECES], DType::C64).unwrap();
        let diagonal = x.diagonal(0, 0, 1).unwrap();
        assert_eq!((diagonal.sizes(), diagonal.offset()), (&[0][..], 0));
        assert_eq!(x.view_as_real().unwrap().sizes(), [0, MAX_PIECES, 2]);
        let turned = x.transpose(0, 1).unwrap();
        assert_eq!(turned.diagonal(-MAX_PIECES, 0, 1).unwrap().sizes(), [0]);
        let deep = Tensor::zeros(&[0, MAX_PIECES, 2], DType::F32).unwrap();
        assert_eq!(deep.select(1, MAX_PIECES - 1).unwrap().sizes(), [0, 2]);
        assert_eq!(deep.slice(1, Some(MAX_PIECES - 3), None, 2).unwrap().sizes(), [0, 2, 2]);
    }

    #[test]
    fn too_many_views_are_a_memory_error() {
        let x = Tensor::zeros(&[0, 3], DType::F32).unwrap();
        for dim in [0, 1] {
            let pieces = MemoryBudget::new(1 << 20).run(|| x.tensor_split(i64::MAX, dim));
            assert!(matches!(pieces, Err(TensorError::OutOfMemory { .. })));
        }
        let chunks = MemoryBudget::new(1 << 20).run(|| x.chunk(i64::MAX, 0));
        assert!(matches!(chunks, Err(TensorError::OutOfMemory { .. })));
        assert_eq!(x.tensor_split(4, 1).unwrap().len(), 4);
        let wide = Tensor::zeros(&[1], DType::F32).unwrap().expand(&[1 << 40]).unwrap();
        for pieces in [Tensor::unbind, |t: &Tensor, dim| t.split(1, dim)] {
            let pieces = MemoryBudget::new(1 << 20).run(|| pieces(&wide, 0));
            assert!(matches!(pieces, Err(TensorError::OutOfMemory { .. })));
        }
    }
}
