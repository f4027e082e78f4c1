//! Iterates over a plan and calls a kernel on contiguous rows or blocks. Shared by all operations and dtypes.
//!
//! Operand 0 is the output. The kernel accesses a row in place if the row is long enough, has unit stride and needs no
//! conversion. All other rows are packed into blocks before the kernel and unpacked after it. Large iteration spaces
//! are split among threads. Kernels compute each element independently, so results do not depend on the split.
#![allow(unsafe_code, reason = "walks locked memory by pointers")]

use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

use super::pack::PackFn;
use super::plan::Plan;
use crate::alloc::{Block, allocate, allocate_elements, release};
use crate::error::Result;
use crate::guard;
use crate::strided::{SQUARE, Squares};
use crate::threads::{self, GRAIN, SendPtr};

/// Elements per block.
pub(super) const BLOCK: usize = 512;
/// Rows shorter than this are gathered, several to a block.
pub(super) const SHORT: usize = 32;

/// One operand of an iteration.
pub(super) struct Operand {
    /// Pointer to the first element.
    pub(super) start: SendPtr<u8>,
    /// Bytes from `start` that belong to the operand; [`check_reach`] refuses an iteration beyond them.
    pub(super) reach: usize,
    /// Bytes per element in memory.
    pub(super) size: usize,
    /// Bytes per element in blocks.
    pub(super) block_size: usize,
    /// Copies memory to block for inputs, block to memory for the output.
    pub(super) pack: PackFn,
    /// Whether the kernel may access a row of unit stride in place.
    pub(super) direct: bool,
}

impl Operand {
    /// Whether the furthest element of these dimensions is within the operand's reach.
    #[inline]
    fn holds(&self, sizes: &[i64], strides: &[i64]) -> bool {
        let dims = sizes.iter().zip(strides);
        let last = dims.fold(0usize, |at, (size, stride)| {
            at.saturating_add((*size as usize - 1).saturating_mul(*stride as usize))
        });
        last.saturating_add(1).saturating_mul(self.size) <= self.reach
    }
}

/// Panics if an iteration over a non-empty plan would leave the reach of an operand.
fn check_reach(plan: &Plan, operands: &[Operand]) {
    assert!(operands.len() == plan.strides.len(), "invariant: a plan has strides for every operand");
    for (operand, strides) in operands.iter().zip(&plan.strides) {
        assert!(operand.holds(&plan.sizes, strides), "invariant: a walk stays within its operands");
    }
}

/// A kernel call: one pointer per operand (the output first) and the number of elements.
///
/// Contract of callers: the pointers are aligned for the kernel's element types. Inputs are valid for reads of that
/// many elements, the output for writes. The output overlaps no input.
pub(super) type BlockKernel<'a> = &'a (dyn Fn(&[*mut u8], usize) + Sync);

/// Maximum number of operands of an iteration over a single row.
pub(super) const FLAT: usize = 5;

/// Runs the kernel over operands that are rows of `n` contiguous elements, with the element sizes `sizes` in bytes.
///
/// # Safety
/// The rows meet the contract of [`BlockKernel`].
#[inline]
pub(super) unsafe fn drive_straight(n: usize, rows: &[*mut u8], sizes: &[usize; 4], kernel: BlockKernel<'_>) {
    assert!(rows.len() <= sizes.len(), "invariant: every row has an element size");
    if n <= GRAIN { kernel(rows, n) } else { straight_parts(n, rows, sizes, kernel) }
}

#[cold]
fn straight_parts(n: usize, rows: &[*mut u8], sizes: &[usize; 4], kernel: BlockKernel<'_>) {
    let starts: SmallVec<[SendPtr<u8>; 4]> = rows.iter().map(|row| SendPtr(*row)).collect();
    threads::split(n, GRAIN, |part| {
        let mut ptrs = [std::ptr::null_mut::<u8>(); 4];
        for ((ptr, start), size) in ptrs.iter_mut().zip(&starts).zip(sizes) {
            *ptr = start.at(part.start * size);
        }
        kernel(&ptrs[..starts.len()], part.len());
    });
}

/// Operands that are each one row (stride 1) or one element (stride 0); the output is a row.
struct Flat<'a> {
    operands: &'a [Operand],
    steps: &'a [isize; FLAT],
    direct: [bool; FLAT],
    /// Elements per kernel call.
    step: usize,
}

/// Runs the kernel over `n` elements of operands that are each one row (stride 1) or one element (stride 0); the output
/// is a row.
///
/// # Safety
/// As [`drive`], for `n` elements.
pub(super) unsafe fn drive_flat(
    n: usize,
    operands: &[Operand],
    steps: &[isize; FLAT],
    longest: usize,
    kernel: BlockKernel<'_>,
) {
    let mut direct = [true; FLAT];
    let mut all = true;
    assert!(operands.len() <= FLAT, "invariant: walks over one row have few operands");
    for (k, operand) in operands.iter().enumerate() {
        let within = n == 0 || operand.holds(&[n as i64], &[steps[k] as i64]);
        assert!(within, "invariant: a walk stays within its operands");
        direct[k] = operand.direct && (steps[k] == 1 || n == 1);
        all &= direct[k];
    }
    let flat = Flat { operands, steps, direct, step: if all { longest } else { BLOCK } };
    // SAFETY: the caller's contract; parts of a split are disjoint.
    threads::split(n, GRAIN, |part| unsafe { flat.part(part, kernel) });
}

impl Flat<'_> {
    /// # Safety
    /// As [`drive_flat`], for a range of the elements.
    unsafe fn part(&self, part: Range<usize>, kernel: BlockKernel<'_>) {
        let Flat { operands, steps, direct, step } = self;
        let mut blocks = [const { MaybeUninit::<[u128; BLOCK]>::uninit() }; FLAT];
        let mut ptrs = [std::ptr::null_mut::<u8>(); FLAT];
        for (ptr, block) in ptrs.iter_mut().zip(&mut blocks) {
            *ptr = block.as_mut_ptr().cast();
        }
        let own = ptrs;
        let mut done = part.start;
        while done < part.end {
            let count = (*step).min(part.end - done);
            for (k, operand) in operands.iter().enumerate() {
                let at = operand.start.at(done * operand.size * steps[k] as usize);
                if direct[k] {
                    ptrs[k] = at;
                } else if k > 0 && (steps[k] == 1 || done == part.start) {
                    // SAFETY: `count` elements of the operand's row; a block holds `BLOCK` elements of the largest
                    // type.
                    unsafe { (operand.pack)(at, steps[k], own[k], 1, count) };
                }
            }
            kernel(&ptrs[..operands.len()], count);
            if !direct[0] {
                let at = operands[0].start.at(done * operands[0].size);
                // SAFETY: as above, from the block to the output.
                unsafe { (operands[0].pack)(own[0], 1, at, 1, count) };
            }
            done += count;
        }
    }
}

struct Walk<'a> {
    plan: &'a Plan,
    operands: &'a [Operand],
}

/// The position in the outer dimensions: an index, and a pointer per operand.
struct Position {
    index: SmallVec<[i64; 5]>,
    at: SmallVec<[*mut u8; 4]>,
}

impl Position {
    /// Advances to the next row. After the last row the pointers wrap around to the start.
    fn step(&mut self, walk: &Walk<'_>) {
        for dim in 1..walk.plan.sizes.len() {
            self.index[dim] += 1;
            let size = walk.plan.sizes[dim];
            let wraps = self.index[dim] == size;
            for (k, at) in self.at.iter_mut().enumerate() {
                let stride = walk.plan.strides[k][dim] * walk.operands[k].size as i64;
                *at = at.wrapping_offset((if wraps { -stride * (size - 1) } else { stride }) as isize);
            }
            if !wraps {
                return;
            }
            self.index[dim] = 0;
        }
    }
}

/// One block per operand: in a single allocation, or in an allocation per operand in guarded memory.
struct OperandBlocks {
    allocations: SmallVec<[Block; 1]>,
    blocks: SmallVec<[*mut u8; 4]>,
}

impl OperandBlocks {
    /// Allocates blocks of `block` elements.
    fn new(operands: &[Operand], block: usize) -> Result<OperandBlocks> {
        if guard::edge().is_some() {
            let mut scratch = OperandBlocks { allocations: SmallVec::new(), blocks: SmallVec::new() };
            for operand in operands {
                let allocation = allocate_elements(operand.block_size * block, false)?;
                scratch.allocations.push(allocation);
                scratch.blocks.push(allocation.start.as_ptr());
            }
            return Ok(scratch);
        }
        let mut bytes = 0;
        let offsets: SmallVec<[usize; 4]> = operands
            .iter()
            .map(|operand| {
                let offset = bytes;
                bytes += (operand.block_size * block).next_multiple_of(64);
                offset
            })
            .collect();
        let allocation = allocate(bytes, false)?;
        let blocks = offsets.iter().map(|offset| allocation.start.as_ptr().wrapping_add(*offset)).collect();
        Ok(OperandBlocks { allocations: SmallVec::from_buf([allocation]), blocks })
    }
}

impl Drop for OperandBlocks {
    fn drop(&mut self) {
        for allocation in &self.allocations {
            // SAFETY: the allocation was made by `new`, and no pointer to it outlives this value.
            unsafe { release(*allocation) };
        }
    }
}

/// Runs the kernel over a coalesced plan, on at most `longest` (at least [`BLOCK`]) elements at a time.
///
/// # Safety
/// Each operand's memory is valid for its reach and aligned for its elements; the output is writable. An input may
/// overlap the output only if it has the same elements at the same addresses and is not `direct`. That the plan stays
/// within the operands' reach is asserted here.
pub(super) unsafe fn drive(
    plan: &Plan,
    operands: &[Operand],
    longest: usize,
    kernel: BlockKernel<'_>,
) -> Result<()> {
    if plan.sizes.contains(&0) {
        return Ok(());
    }
    check_reach(plan, operands);
    let total = plan.sizes.iter().product::<i64>() as usize;
    let block = BLOCK.min(total);
    let walk = Walk { plan, operands };
    let row = plan.sizes[0] as usize;
    if row < SHORT && total > row {
        let at_once = (block / row).max(1);
        let grain = threads::rows(at_once * row) * at_once;
        return threads::try_split(total / row, grain, |rows| {
            let scratch = OperandBlocks::new(operands, block)?;
            // SAFETY: the caller's contract; `scratch` has a block of `block` elements per operand.
            unsafe { walk.gathered(rows, at_once, &scratch.blocks, kernel) };
            Ok(())
        });
    }
    let segments = Segments::of(plan);
    threads::try_split(segments.count, segments.grain, |part| {
        let scratch = OperandBlocks::new(operands, block)?;
        // SAFETY: as above.
        unsafe { walk.rows(&segments, part, &scratch.blocks, longest, kernel) };
        Ok(())
    })
}

/// Rows, each cut into segments if it is too long for one thread.
struct Segments {
    row: usize,
    /// Elements per segment, and segments per row.
    len: usize,
    per_row: usize,
    /// Total number of segments, and the minimum number per thread.
    count: usize,
    grain: usize,
}

impl Segments {
    fn of(plan: &Plan) -> Segments {
        let row = plan.sizes[0] as usize;
        let rows = plan.sizes[1..].iter().product::<i64>() as usize;
        let len = row.min(GRAIN);
        let per_row = row.div_ceil(len);
        Segments { row, len, per_row, count: rows * per_row, grain: threads::rows(len) }
    }

    /// Calls `f` for each segment in `part`, with the operands' row pointers and the segment's element range within the
    /// row.
    fn walk(&self, walk: &Walk<'_>, part: Range<usize>, mut f: impl FnMut(&[*mut u8], Range<usize>)) {
        let mut position = walk.at(part.start / self.per_row);
        for segment in part {
            let start = segment % self.per_row * self.len;
            f(&position.at, start..self.row.min(start + self.len));
            if start + self.len >= self.row {
                position.step(walk);
            }
        }
    }
}

impl Walk<'_> {
    /// Returns the position of row number `row`.
    fn at(&self, mut row: usize) -> Position {
        let mut index = SmallVec::from_elem(0, self.plan.sizes.len());
        let mut at: SmallVec<[*mut u8; 4]> = self.operands.iter().map(|operand| operand.start.0).collect();
        for dim in 1..index.len() {
            let size = self.plan.sizes[dim] as usize;
            index[dim] = (row % size) as i64;
            row /= size;
            for (k, at) in at.iter_mut().enumerate() {
                let bytes = self.plan.strides[k][dim] * self.operands[k].size as i64;
                *at = at.wrapping_offset((bytes * index[dim]) as isize);
            }
        }
        Position { index, at }
    }

    /// Runs the kernel row by row.
    ///
    /// # Safety
    /// As [`drive`], for the segments in `part`; `blocks` has a block per operand.
    unsafe fn rows(
        &self,
        segments: &Segments,
        part: Range<usize>,
        blocks: &[*mut u8],
        longest: usize,
        kernel: BlockKernel<'_>,
    ) {
        let direct: SmallVec<[bool; 4]> =
            self.operands.iter().enumerate().map(|(k, o)| o.direct && self.plan.strides[k][0] == 1).collect();
        let step = if direct.iter().all(|direct| *direct) { segments.len.min(longest) } else { BLOCK };
        let mut ptrs: SmallVec<[*mut u8; 4]> = SmallVec::from_slice(blocks);
        segments.walk(self, part, |rows, segment| {
            let mut done = segment.start;
            while done < segment.end {
                let n = step.min(segment.end - done);
                for (k, operand) in self.operands.iter().enumerate() {
                    let stride = self.plan.strides[k][0] as isize;
                    let at = rows[k].wrapping_offset(stride * (done * operand.size) as isize);
                    if direct[k] {
                        ptrs[k] = at;
                    } else if k > 0 && !(stride == 0 && done > segment.start) {
                        // SAFETY: `n` elements of the operand's row; a block holds `BLOCK >= n` elements.
                        unsafe { (operand.pack)(at, stride, blocks[k], 1, n) };
                    }
                }
                kernel(&ptrs, n);
                if !direct[0] {
                    let stride = self.plan.strides[0][0] as isize;
                    let at = rows[0].wrapping_offset(stride * (done * self.operands[0].size) as isize);
                    // SAFETY: as above, from the block to the output's row.
                    unsafe { (self.operands[0].pack)(blocks[0], 1, at, stride, n) };
                }
                done += n;
            }
        });
    }

    /// Runs the kernel on blocks into which several short rows are gathered.
    ///
    /// # Safety
    /// As [`drive`], for the rows in `rows`; `blocks` has a block of `at_once` rows per operand.
    unsafe fn gathered(
        &self,
        rows: Range<usize>,
        at_once: usize,
        blocks: &[*mut u8],
        kernel: BlockKernel<'_>,
    ) {
        let row = self.plan.sizes[0] as usize;
        let mut reading = self.at(rows.start);
        let mut writing = self.at(rows.start);
        let mut left = rows.len();
        while left > 0 {
            let rows = at_once.min(left);
            left -= rows;
            for i in 0..rows {
                for (k, operand) in self.operands.iter().enumerate().skip(1) {
                    let to = blocks[k].wrapping_add(i * row * operand.block_size);
                    let stride = self.plan.strides[k][0] as isize;
                    // SAFETY: a row of the operand; `i < at_once`, and a block holds `at_once` rows.
                    unsafe { (operand.pack)(reading.at[k], stride, to, 1, row) };
                }
                reading.step(self);
            }
            kernel(blocks, rows * row);
            let out = &self.operands[0];
            for i in 0..rows {
                let from = blocks[0].wrapping_add(i * row * out.block_size);
                // SAFETY: as above, from the block to the output's row.
                unsafe { (out.pack)(from, 1, writing.at[0], self.plan.strides[0][0] as isize, row) };
                writing.step(self);
            }
        }
    }
}

/// Copies operand 1 to operand 0 row by row, with conversion. Transposed matrices are copied in square tiles,
/// transposed by `transpose`, a copy function of the output's dtype.
///
/// `starts` has each operand's first element and its reach in bytes. The plan has at least one element.
///
/// # Safety
/// As [`drive`], and the memory of the two operands is disjoint.
pub(super) unsafe fn walk_copy(
    plan: &Plan,
    starts: [(*mut u8, usize); 2],
    bytes: [usize; 2],
    pack: PackFn,
    transpose: PackFn,
) {
    let operands = [0, 1].map(|k| Operand {
        start: SendPtr(starts[k].0),
        reach: starts[k].1,
        size: bytes[k],
        block_size: 0,
        pack,
        direct: true,
    });
    check_reach(plan, &operands);
    let walk = Walk { plan, operands: &operands };
    let steps = [0, 1].map(|k| plan.strides[k][0] as isize);
    if plan.sizes.len() >= 2 && steps[0] == 1 && steps[1] != 1 && plan.strides[1][1] == 1 {
        let tiles = plan.sizes[1..].iter().product::<i64>() as usize / plan.sizes[1] as usize
            * (plan.sizes[1] as usize).div_ceil(TILE);
        // SAFETY: the caller's contract: every row is within its operand's reach, which is asserted above. Tiles are
        // disjoint.
        threads::split(tiles, threads::rows(plan.sizes[0] as usize * TILE), |part| unsafe {
            walk.tiles(part, pack, transpose);
        });
        return;
    }
    let segments = Segments::of(plan);
    threads::split(segments.count, segments.grain, |part| {
        segments.walk(&walk, part, |rows, segment| {
            let [to, from] = [0, 1].map(|k| {
                rows[k].wrapping_offset(steps[k] * (segment.start * walk.operands[k].size) as isize)
            });
            // SAFETY: as above.
            unsafe { pack(from, steps[1], to, steps[0], segment.len()) };
        });
    });
}

/// Side length of the tiles in which matrices are transposed, in elements.
pub(super) const TILE: usize = 32;

/// Largest distance in bytes of cache lines that cannot evict each other while a tile is processed, whatever their
/// alignment to cache sets: 32 such lines fall into at least 8 sets of 8 ways.
const CLOSE: i64 = 512;

/// Copies two adjacent columns of `n` elements, `line` elements apart, to two rows. Two lines are combined at a time,
/// as halves of 64-bit numbers.
///
/// # Safety
/// `from` is valid for reads of two elements in each of `n` lines; both pointers of `to` are valid for writes of `n`
/// elements. Source and targets do not overlap.
unsafe fn transpose_pair(from: *const u32, line: usize, to: [*mut u32; 2], n: usize) {
    // SAFETY: the caller's contract; `r < n`, and accesses of pairs are unaligned ones.
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
            to[0].add(n - 1).write(a);
            to[1].add(n - 1).write(b);
        }
    }
}

impl Walk<'_> {
    /// Transposes by square tiles: the output's rows are the input's columns. Lines that are far apart in memory go
    /// through a buffer. Each cache line is thus read and written whole, whatever the matrix's strides are modulo the
    /// cache's sets. Processes the rows of tiles in `part`.
    ///
    /// # Safety
    /// As [`walk_copy`].
    unsafe fn tiles(&self, part: Range<usize>, pack: PackFn, transpose: PackFn) {
        /// One more than a tile's side, so that columns of the buffer do not fall into one cache set either.
        const LINE: usize = TILE + 1;
        let mut buffer = [const { MaybeUninit::<u128>::uninit() }; TILE * LINE];
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        let (sizes, strides) = (&self.plan.sizes, &self.plan.strides);
        let (width, height) = (sizes[0] as usize, sizes[1] as usize);
        let per_matrix = height.div_ceil(TILE);
        let bytes = [0, 1].map(|k| self.operands[k].size);
        let mut position = self.at(part.start / per_matrix * height);
        // Elements that need no conversion, from lines that are close together, need no buffer.
        let apart = usize::try_from(strides[1][0]).unwrap_or(usize::MAX);
        let is_close = |k: usize, stride: i64| (0..=CLOSE).contains(&stride.saturating_mul(bytes[k] as i64));
        let direct = std::ptr::fn_addr_eq(pack, transpose) && is_close(1, strides[1][0]);
        // Each line is written to all rows of the result at once.
        let by_lines = bytes[0] == size_of::<f32>() && is_close(0, strides[0][1]);
        let line = if direct { apart } else { LINE };
        let element = |at: *mut u8, k: usize, i: usize, j: usize| {
            let elements = i as i64 * strides[k][0] + j as i64 * strides[k][1];
            at.wrapping_offset(elements as isize * bytes[k] as isize)
        };
        for tile in part.clone() {
            let j = tile % per_matrix * TILE;
            if j == 0 && tile > part.start {
                position = self.at(tile / per_matrix * height);
            }
            let lines = TILE.min(height - j);
            for i in (0..width).step_by(TILE) {
                let n = TILE.min(width - i);
                // SAFETY: tile elements are clipped to `width` and `height`, so they are parts of rows of the input and
                // of the output. The buffer holds `TILE` lines of `LINE` elements of the largest type.
                unsafe {
                    let mut from = element(position.at[1], 1, i, j);
                    if !direct {
                        for r in 0..n {
                            let to = buffer.add(r * LINE * bytes[0]);
                            pack(element(position.at[1], 1, i + r, j), 1, to, 1, lines);
                        }
                        from = buffer;
                    }
                    if by_lines && lines.is_multiple_of(SQUARE) && n.is_multiple_of(SQUARE) {
                        let to = element(position.at[0], 0, i, j).cast();
                        let row = strides[0][1] as isize;
                        let (from, line) = (from.cast_const().cast(), line as isize);
                        Squares { from, line, to, row, lines: n, length: lines }.transpose();
                        continue;
                    }
                    let paired = if bytes[0] == size_of::<u32>() { lines & !1 } else { 0 };
                    for c in (0..paired).step_by(2) {
                        let to = [c, c + 1].map(|c| element(position.at[0], 0, i, j + c).cast::<u32>());
                        transpose_pair(from.cast::<u32>().add(c), line, to, n);
                    }
                    for c in paired..lines {
                        let from = from.add(c * bytes[0]);
                        transpose(from, line as isize, element(position.at[0], 0, i, j + c), 1, n);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pack::pack_fn;
    use super::*;
    use crate::dtype::DType;
    use crate::layout::Layout;

    /// Checks an operand of `reach` elements that is iterated by a layout.
    fn walk(reach: usize, sizes: &[i64], strides: &[i64]) {
        let layout = Layout::new(sizes, strides, 0).unwrap();
        let plan = Plan::new(sizes.into(), &[&layout]);
        let operand = Operand {
            start: SendPtr(std::ptr::dangling_mut()),
            reach: reach * 4,
            size: 4,
            block_size: 4,
            pack: pack_fn(DType::F32, DType::F32).unwrap(),
            direct: true,
        };
        check_reach(&plan, &[operand]);
    }

    #[test]
    fn walks_end_with_their_operands() {
        walk(12, &[3, 4], &[4, 1]);
        walk(12, &[4, 3], &[1, 4]);
        walk(4, &[3, 4], &[0, 1]);
    }

    #[test]
    #[should_panic(expected = "a walk stays within its operands")]
    fn a_walk_that_is_one_element_too_long_is_refused() {
        walk(11, &[3, 4], &[4, 1]);
    }
}
