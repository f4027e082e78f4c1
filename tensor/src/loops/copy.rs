//! Copies of strided tensors, with conversion: row by row, or in square tiles where rows become columns.
#![allow(unsafe_code, reason = "threads write lines of one target")]

use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::smallvec;

use super::drive::{PlanTraversal, Segments};
use super::pack::Pack;
use super::plan::LoopPlan;
use super::pointwise::flat;
use super::small::gather_all;
use crate::access::{self, Locked, ReadGuards, WriteGuards, Writes};
use crate::bytes;
use crate::create::bytes_of;
use crate::dtype::DType;
use crate::error::{Result, SizesText, TensorError};
use crate::layout::Layout;
use crate::lines::{Buffer, Line, LineLayout, LineMut, SharedTarget};
use crate::matmul::Matrix;
use crate::storage::Storage;
use crate::strided::{SQUARE, transpose};
use crate::tensor::Tensor;
use crate::threads::{self, GRAIN};

/// Copies `source` into `out`, broadcast and converted, and increments the version of `out`.
pub(crate) fn copy(out: &Tensor, source: &Tensor) -> Result<()> {
    copy_fresh(out, source)?;
    out.storage().bump_version();
    Ok(())
}

/// As [`copy`], without incrementing the version of `out`.
pub(crate) fn copy_fresh(out: &Tensor, source: &Tensor) -> Result<()> {
    let (target, meta) = (out.meta(), source.meta());
    target.layout.check_writable()?;
    if !crate::broadcast::expandable(meta.layout.sizes(), target.layout.sizes()) {
        crate::broadcast::broadcast_shapes(target.layout.sizes(), meta.layout.sizes())?;
        return Err(TensorError::shape(format!(
            "output with shape {} doesn't match the broadcast shape {}",
            SizesText::from(target.layout.sizes()),
            SizesText::from(meta.layout.sizes())
        )));
    }
    if target.layout.numel() == 0 {
        return Ok(());
    }
    if out.dtype() == DType::C32 || source.dtype() == DType::C32 {
        return copy_complex_f16(out, source);
    }
    if target.storage.ptr_eq(&meta.storage) {
        // The same elements in the same order (other overlaps were copied by the caller): nothing to do.
        return Ok(());
    }
    // A copy of a `bool` makes each byte 0 or 1.
    if target.layout.numel() == 1 && out.dtype() == source.dtype() && out.dtype() != DType::Bool {
        let mut guards = WriteGuards::new(&target.storage, Some(&meta.storage))?;
        let (to, others) = guards.target(target, out.dtype());
        to.copy_from_slice(others.bytes(meta, source.dtype()));
        return Ok(());
    }
    let pack = Pack::new(source.dtype(), out.dtype())?;
    let mut guards = WriteGuards::new(&target.storage, Some(&meta.storage))?;
    let (to, others) = guards.target(target, out.dtype());
    let from = others.bytes(meta, source.dtype());
    let kinds = [source.dtype(), out.dtype()];
    copy_elements(&SharedTarget::over(to), &target.layout, from, &meta.layout, pack, kinds)
}

/// As [`copy_fresh`] if either dtype is complex f16, whose elements have the memory layout of pairs of f16.
fn copy_complex_f16(out: &Tensor, source: &Tensor) -> Result<()> {
    match (out.dtype(), source.dtype()) {
        (DType::C32, DType::C32) => copy_fresh(&out.view_as_real()?, &source.view_as_real()?),
        (DType::C32, _) => copy_fresh(&out.view_as_real()?, &source.to_dtype(DType::C64)?.view_as_real()?),
        _ => {
            let wide = Tensor::zeros(source.sizes(), DType::C64)?;
            copy_fresh(&wide.view_as_real()?, &source.view_as_real()?)?;
            copy_fresh(out, &wide)
        }
    }
}

/// Returns a fresh copy with its own storage, converted to `dtype`. `layout` is dense and has the source's sizes.
///
/// # Panics
/// Panics if the layout has other sizes, or is not dense.
pub(crate) fn copied(source: &Tensor, layout: Layout, dtype: DType) -> Result<Tensor> {
    let meta = source.meta();
    assert!(layout.sizes() == meta.layout.sizes(), "invariant: a copy has the sizes of its source");
    if dtype == DType::C32 || source.dtype() == DType::C32 {
        let storage = Storage::zeroed(bytes_of(&layout, dtype)?)?;
        let out = Tensor::from_parts(storage, dtype, layout);
        copy_fresh(&out, source)?;
        return Ok(out);
    }
    let pack = Pack::new(source.dtype(), dtype)?;
    let guards = ReadGuards::one(&meta.storage);
    let from = guards.bytes(meta, source.dtype());
    let kinds = [source.dtype(), dtype];
    let fill = |layout: &Layout, to: &mut [MaybeUninit<u8>]| {
        if source.dtype() == dtype && layout.is_contiguous() && copy_few(to, from, &meta.layout, dtype) {
            return Ok(());
        }
        copy_elements(&SharedTarget::new(to), layout, from, &meta.layout, pack, kinds)
    };
    // SAFETY: the layout is dense, which `make_bytes` asserts, and the copy writes every element of it.
    unsafe { access::make_bytes(layout, dtype, fill) }
}

/// Number of elements up to which [`copy_few`] copies them.
pub(super) const FEW: usize = 256;

/// Copies the elements of a strided source in row-major order, and returns whether it did: only few elements of 4 or 8 bytes, for
/// which the preparations of [`copy_elements`] take longer than the copy.
fn copy_few(to: &mut [MaybeUninit<u8>], from: &[u8], source: &Layout, dtype: DType) -> bool {
    if source.is_contiguous() || !(1..=FEW).contains(&source.numel()) {
        return false;
    }
    match dtype.size() {
        4 => copy_words::<u32>(to, from, source),
        8 => copy_words::<u64>(to, from, source),
        _ => false,
    }
}

fn copy_words<W: bytemuck::Pod>(to: &mut [MaybeUninit<u8>], from: &[u8], source: &Layout) -> bool {
    // Elements may have a smaller alignment than words.
    let Ok(from) = bytemuck::try_cast_slice::<u8, W>(from) else { return false };
    let Ok(to) = bytemuck::try_cast_slice_mut::<u8, W>(bytes::zeroed(to)) else { return false };
    gather_all(from, source.sizes(), source.strides(), to);
    true
}

/// Writes every element of a target with this layout from the elements of `from`, which begin with the first of
/// `source`. The source broadcasts to the target. `kinds` are the dtypes of source and target.
fn copy_elements(
    target: &SharedTarget<'_>,
    layout: &Layout,
    from: &[u8],
    source: &Layout,
    pack: Pack,
    kinds: [DType; 2],
) -> Result<()> {
    if layout.numel() == 0 {
        return Ok(());
    }
    let [from_size, to_size] = [pack.source_size(), pack.target_size()];
    if flat(&[layout, source]).is_some() {
        let step = usize::from(source.numel() == layout.numel());
        threads::split(layout.numel(), GRAIN, |part| {
            let n = part.len();
            let line = Line::new(from, part.start * from_size * step, LineLayout::new(from_size, step, n));
            // SAFETY: aliasing: parts of a split are disjoint, and the target is one row.
            let to = unsafe { target.line(part.start * to_size, LineLayout::new(to_size, 1, n)) };
            pack.copy(line, to);
        });
        return Ok(());
    }
    let mut plan = LoopPlan::new(layout.sizes().into(), &[source]);
    plan.insert_first(layout);
    plan.coalesce();
    let traversal = PlanTraversal::new(&plan, smallvec![to_size, from_size]);
    if plan.sizes.len() >= 2
        && traversal.row_step(0) == 1
        && traversal.row_step(1) != 1
        && plan.strides[1][1] == 1
    {
        let tiles = plan.sizes[1..].iter().product::<i64>() as usize / plan.sizes[1] as usize
            * (plan.sizes[1] as usize).div_ceil(TILE);
        let tiled = Tiles {
            traversal,
            target,
            from,
            pack,
            converts: kinds[0] != kinds[1],
            move_only: Pack::new(kinds[1], kinds[1])?,
        };
        // SAFETY: parts of a split are disjoint, and so are the elements of different tiles.
        threads::split(tiles, threads::rows(plan.sizes[0] as usize * TILE), |part| unsafe {
            tiled.copy(part)
        });
        return Ok(());
    }
    let segments = Segments::of(&plan);
    threads::split(segments.count, segments.grain, |part| {
        segments.for_each(&traversal, part, |rows, segment| {
            let [to, from_at] =
                [0, 1].map(|k| rows[k] + traversal.row_step(k) * segment.start * traversal.size(k));
            let line = Line::new(from, from_at, traversal.form(1, segment.len()));
            // SAFETY: aliasing: parts of a split are disjoint, and a part visits each of its rows once.
            pack.copy(line, unsafe { target.line(to, traversal.form(0, segment.len())) });
        });
    });
    Ok(())
}

/// Side length of the tiles in which matrices are transposed, in elements.
pub(super) const TILE: usize = 32;

/// Largest distance in bytes of cache lines that cannot evict each other while a tile is processed, whatever their
/// alignment to cache sets: 32 such lines fall into at least 8 sets of 8 ways.
const CLOSE: usize = 512;

/// Matrices that are transposed by square tiles: the target's rows are the input's columns.
struct Tiles<'a> {
    /// The traversal of the target and the input.
    traversal: PlanTraversal<'a>,
    target: &'a SharedTarget<'a>,
    from: &'a [u8],
    pack: Pack,
    converts: bool,
    /// Copies elements of the target's dtype.
    move_only: Pack,
}

/// Lines of a tile: `line` elements apart, from byte `at` of `bytes` on.
#[derive(Clone, Copy)]
struct TileLines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl Tiles<'_> {
    /// Copies the rows of tiles in `part`. Lines that are far apart in memory go through a buffer. Each cache line is
    /// thus read and written whole, whatever the matrix's strides are modulo the cache's sets.
    ///
    /// # Safety
    /// No other thread accesses the tiles' elements of the target during the call.
    unsafe fn copy(&self, part: Range<usize>) {
        /// One more than a tile's side, so that columns of the buffer do not fall into one cache set either.
        const LINE: usize = TILE + 1;
        let Tiles { traversal, pack, .. } = self;
        let (width, height) = (traversal.plan.sizes[0] as usize, traversal.plan.sizes[1] as usize);
        let per_matrix = height.div_ceil(TILE);
        let size = pack.target_size();
        let mut array = [const { MaybeUninit::<u128>::uninit() }; TILE * LINE];
        // Elements that need no conversion, from lines that are close together, need no buffer.
        let apart = traversal.row_step(1);
        let direct = !self.converts && apart.saturating_mul(pack.source_size()) <= CLOSE;
        let buffered = if direct { 0 } else { width.min(TILE) * LINE * size };
        let buffer = Buffer::of(&mut array).into_zeroed(buffered);
        let mut position = traversal.at(part.start / per_matrix * height);
        for tile in part.clone() {
            let j = tile % per_matrix * TILE;
            if j == 0 && tile > part.start {
                position = traversal.at(tile / per_matrix * height);
            }
            let lines = TILE.min(height - j);
            for i in (0..width).step_by(TILE) {
                let n = TILE.min(width - i);
                let [to, at] = [0, 1].map(|k| {
                    let stride = traversal.plan.strides[k][1] as usize;
                    position.at[k] + (i * traversal.row_step(k) + j * stride) * traversal.size(k)
                });
                let from = if direct {
                    TileLines { bytes: self.from, at, line: apart }
                } else {
                    let form = LineLayout::new(pack.source_size(), 1, lines);
                    for r in 0..n {
                        let line = Line::new(self.from, at + r * apart * pack.source_size(), form);
                        pack.copy(
                            line,
                            LineMut::over(buffer, r * LINE * size, LineLayout::new(size, 1, lines)),
                        );
                    }
                    TileLines { bytes: buffer, at: 0, line: LINE }
                };
                // SAFETY: the caller's contract.
                unsafe { self.transpose(from, n, to, lines) };
            }
        }
    }

    /// Writes `n` lines of a tile to the target from byte `to` on, as columns of `lines` rows.
    ///
    /// # Safety
    /// No other thread accesses the tile's elements of the target during the call.
    unsafe fn transpose(&self, from: TileLines<'_>, n: usize, to: usize, lines: usize) {
        let TileLines { bytes, at, line } = from;
        let (size, row) = (self.pack.target_size(), self.traversal.plan.strides[0][1] as usize);
        // Each line is written to all rows of the result at once.
        let by_lines = size == size_of::<f32>() && row.saturating_mul(size) <= CLOSE;
        if by_lines && lines.is_multiple_of(SQUARE) && n.is_multiple_of(SQUARE) {
            let from = Matrix::new(&bytemuck::cast_slice(bytes)[at / size..], [n, lines], [line, 1]);
            // SAFETY: aliasing: the caller's contract.
            transpose::<f32, SQUARE>(from, unsafe { self.target.matrix(to, [lines, n], [row, 1]) });
            return;
        }
        // SAFETY: aliasing: the caller's contract; rows of a tile are disjoint.
        let row_of = |c: usize| unsafe { self.target.line(to + c * row * size, LineLayout::new(size, 1, n)) };
        let paired = if size == size_of::<u32>() { lines & !1 } else { 0 };
        for c in (0..paired).step_by(2) {
            let from = &bytemuck::cast_slice(bytes)[at / size + c..];
            transpose_pair(from, line, [row_of(c), row_of(c + 1)]);
        }
        for c in paired..lines {
            let column = Line::new(bytes, at + c * size, LineLayout::new(size, line, n));
            self.move_only.copy(column, row_of(c));
        }
    }
}

/// Copies two adjacent columns, the first two elements of lines that are `line` elements apart, to two rows. Two lines
/// are combined at a time, as halves of 64-bit numbers.
///
/// # Panics
/// Panics if the rows differ in length, are not contiguous elements of four bytes, or are longer than the columns.
fn transpose_pair(from: &[u32], line: usize, to: [LineMut<'_>; 2]) {
    let (size, step, n) = to[0].form();
    assert!(
        size == size_of::<u32>() && step == 1 && to[1].form() == to[0].form(),
        "invariant: two equal rows"
    );
    let last = n.saturating_sub(1).saturating_mul(line);
    assert!(n == 0 || last.saturating_add(2) <= from.len(), "invariant: columns lie within their lines");
    let (from, to) = (from.as_ptr(), to.map(|row| row.start().cast::<u32>()));
    // SAFETY: pointers and lengths: the assertions above check that there are two elements in each of `n` lines, and
    // lines to write have `n` elements. Alignment: accesses are unaligned ones. Lifetime: all are borrowed by
    // this function. Aliasing: lines to write are exclusive.
    unsafe {
        let pair = |r: usize| {
            let [low, high] = from.add(r * line).cast::<[u32; 2]>().read_unaligned().map(u64::from);
            low | high << 32
        };
        for r in (0..n & !1).step_by(2) {
            let (a, b) = (pair(r), pair(r + 1));
            let rows = [a & 0xffff_ffff | b << 32, a >> 32 | b >> 32 << 32];
            for (to, row) in to.iter().zip(rows) {
                to.add(r).cast::<[u32; 2]>().write_unaligned([row as u32, (row >> 32) as u32]);
            }
        }
        if n % 2 == 1 {
            let [a, b] = from.add((n - 1) * line).cast::<[u32; 2]>().read_unaligned();
            to[0].add(n - 1).write_unaligned(a);
            to[1].add(n - 1).write_unaligned(b);
        }
    }
}
