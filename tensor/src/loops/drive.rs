//! Walks an iteration space and feeds a kernel contiguous rows or blocks. Shared by all operations and dtypes.
//!
//! Operand 0 is the output. Rows long enough are handed to the kernel where they lie if they can be; everything
//! else is packed into blocks first and unpacked after.
#![allow(unsafe_code, reason = "walks locked memory by pointers")]

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use super::pack::PackFn;
use super::plan::Plan;
use crate::alloc::{allocate, release};
use crate::error::Result;

/// Elements of a block.
pub(super) const BLOCK: usize = 512;
/// Rows shorter than this are gathered into blocks.
const SHORT: usize = 32;

/// One operand of a walk.
pub(super) struct Operand {
    /// Its first element.
    pub(super) start: *mut u8,
    /// Bytes of its elements in memory.
    pub(super) size: usize,
    /// Bytes of its elements in blocks.
    pub(super) block_size: usize,
    /// Memory to block for inputs, block to memory for the output.
    pub(super) pack: PackFn,
    /// Whether a row of unit stride may be handed to the kernel as it lies.
    pub(super) direct: bool,
}

/// What is called with a pointer per operand (the output first) and a number of elements.
pub(super) type BlockKernel<'a> = &'a mut dyn FnMut(&[*mut u8], usize);

/// Operands of a walk over one row at most.
pub(super) const FLAT: usize = 5;

/// Runs the kernel over operands that are each one row (step 1) or one element (step 0); the output is a row.
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
    for (k, operand) in operands.iter().enumerate() {
        direct[k] = operand.direct && (steps[k] == 1 || n == 1);
        all &= direct[k];
    }
    let mut blocks = [const { MaybeUninit::<[u128; BLOCK]>::uninit() }; FLAT];
    let mut ptrs = [std::ptr::null_mut::<u8>(); FLAT];
    for (ptr, block) in ptrs.iter_mut().zip(&mut blocks) {
        *ptr = block.as_mut_ptr().cast();
    }
    let own = ptrs;
    let step = if all { longest } else { BLOCK };
    let mut done = 0;
    while done < n {
        let count = step.min(n - done);
        for (k, operand) in operands.iter().enumerate() {
            let at = operand.start.wrapping_add(done * operand.size * steps[k] as usize);
            if direct[k] {
                ptrs[k] = at;
            } else if k > 0 && (steps[k] == 1 || done == 0) {
                // SAFETY: part of the row of the operand; a block holds `BLOCK` of the largest elements.
                unsafe { (operand.pack)(at, steps[k], own[k], 1, count) };
            }
        }
        kernel(&ptrs[..operands.len()], count);
        if !direct[0] {
            let at = operands[0].start.wrapping_add(done * operands[0].size);
            // SAFETY: as above, from the block to the output.
            unsafe { (operands[0].pack)(own[0], 1, at, 1, count) };
        }
        done += count;
    }
}

struct Walk<'a> {
    plan: &'a Plan,
    operands: &'a [Operand],
    /// One block per operand.
    blocks: SmallVec<[*mut u8; 4]>,
}

/// The position in the outer dimensions: an index and a pointer per operand.
struct Position {
    index: SmallVec<[i64; 5]>,
    at: SmallVec<[*mut u8; 4]>,
}

impl Position {
    /// Steps to the next row; false at the end. Pointers wrap around to the start then.
    fn step(&mut self, walk: &Walk<'_>) -> bool {
        for dim in 1..walk.plan.sizes.len() {
            self.index[dim] += 1;
            let size = walk.plan.sizes[dim];
            let wraps = self.index[dim] == size;
            for (k, at) in self.at.iter_mut().enumerate() {
                let stride = walk.plan.strides[k][dim] * walk.operands[k].size as i64;
                *at = at.wrapping_offset((if wraps { -stride * (size - 1) } else { stride }) as isize);
            }
            if !wraps {
                return true;
            }
            self.index[dim] = 0;
        }
        false
    }
}

/// Runs the kernel over a coalesced plan, on at most `longest` (at least [`BLOCK`]) elements at a time.
///
/// # Safety
/// Each operand's memory is valid for its strides in the plan; the output is writable; no input overlaps the
/// output unless it is the same elements in the same places and not `direct`.
pub(super) unsafe fn drive(
    plan: &Plan,
    operands: &[Operand],
    longest: usize,
    kernel: BlockKernel<'_>,
) -> Result<()> {
    if plan.sizes.contains(&0) {
        return Ok(());
    }
    let total: i64 = plan.sizes.iter().product();
    let block = BLOCK.min(total as usize);
    let offsets: SmallVec<[usize; 4]> = operands
        .iter()
        .scan(0, |sum, operand| {
            let offset = *sum;
            *sum += (operand.block_size * block).next_multiple_of(64);
            Some(offset)
        })
        .collect();
    let scratch = allocate(offsets.len() * 64 + BLOCK.min(block) * 16 * operands.len(), false)?;
    let blocks = offsets.iter().map(|offset| scratch.start.as_ptr().wrapping_add(*offset)).collect();
    let walk = Walk { plan, operands, blocks };
    // SAFETY: the caller's word; `scratch` has room for a block per operand and is given back at the end.
    unsafe {
        if (plan.sizes[0] as usize) < SHORT && total > plan.sizes[0] {
            walk.gathered(block, kernel);
        } else {
            walk.rows(longest, kernel);
        }
        release(scratch);
    }
    Ok(())
}

impl Walk<'_> {
    fn start(&self) -> Position {
        let index = SmallVec::from_elem(0, self.plan.sizes.len());
        Position { index, at: self.operands.iter().map(|operand| operand.start).collect() }
    }

    /// Row by row.
    ///
    /// # Safety
    /// As [`drive`].
    unsafe fn rows(&self, longest: usize, kernel: BlockKernel<'_>) {
        let row = self.plan.sizes[0] as usize;
        let direct: SmallVec<[bool; 4]> =
            self.operands.iter().enumerate().map(|(k, o)| o.direct && self.plan.strides[k][0] == 1).collect();
        let step = if direct.iter().all(|direct| *direct) { row.min(longest) } else { BLOCK };
        let mut position = self.start();
        let mut ptrs: SmallVec<[*mut u8; 4]> = self.blocks.clone();
        loop {
            let mut done = 0;
            while done < row {
                let n = step.min(row - done);
                for (k, operand) in self.operands.iter().enumerate() {
                    let stride = self.plan.strides[k][0] as isize;
                    let at = position.at[k].wrapping_offset(stride * (done * operand.size) as isize);
                    if direct[k] {
                        ptrs[k] = at;
                    } else if k > 0 && !(stride == 0 && done > 0) {
                        // SAFETY: a row of the operand; the block has room for `BLOCK` elements.
                        unsafe { (operand.pack)(at, stride, self.blocks[k], 1, n) };
                    }
                }
                kernel(&ptrs, n);
                if !direct[0] {
                    let stride = self.plan.strides[0][0] as isize;
                    let at = position.at[0].wrapping_offset(stride * (done * self.operands[0].size) as isize);
                    // SAFETY: as above, from the block to the output's row.
                    unsafe { (self.operands[0].pack)(self.blocks[0], 1, at, stride, n) };
                }
                done += n;
            }
            if !position.step(self) {
                return;
            }
        }
    }

    /// Many short rows at a time.
    ///
    /// # Safety
    /// As [`drive`].
    unsafe fn gathered(&self, block: usize, kernel: BlockKernel<'_>) {
        let row = self.plan.sizes[0] as usize;
        let per_block = (block / row).max(1);
        let mut reading = self.start();
        let mut writing = self.start();
        loop {
            let mut rows = 0;
            let mut more = true;
            while rows < per_block && more {
                for (k, operand) in self.operands.iter().enumerate().skip(1) {
                    let to = self.blocks[k].wrapping_add(rows * row * operand.block_size);
                    let stride = self.plan.strides[k][0] as isize;
                    // SAFETY: a row of the operand; `per_block` rows fit a block.
                    unsafe { (operand.pack)(reading.at[k], stride, to, 1, row) };
                }
                rows += 1;
                more = reading.step(self);
            }
            kernel(&self.blocks, rows * row);
            let out = &self.operands[0];
            for i in 0..rows {
                let from = self.blocks[0].wrapping_add(i * row * out.block_size);
                // SAFETY: as above, from the block to the output's row.
                unsafe { (out.pack)(from, 1, writing.at[0], self.plan.strides[0][0] as isize, row) };
                writing.step(self);
            }
            if !more {
                return;
            }
        }
    }
}

/// Moves row by row from operand 1 to operand 0, converting; matrices turned on their side go by square tiles, which
/// `turn`, a mover of the output's dtype, turns.
///
/// # Safety
/// As [`drive`], with the memory of the two operands apart.
pub(super) unsafe fn walk_copy(
    plan: &Plan,
    starts: [*mut u8; 2],
    bytes: [usize; 2],
    pack: PackFn,
    turn: PackFn,
) {
    let operands =
        [0, 1].map(|k| Operand { start: starts[k], size: bytes[k], block_size: 0, pack, direct: true });
    let walk = Walk { plan, operands: &operands, blocks: SmallVec::new() };
    let row = plan.sizes[0] as usize;
    let steps = [0, 1].map(|k| plan.strides[k][0] as isize);
    let mut position = walk.start();
    // SAFETY: the caller's word: each row lies in its operand's memory.
    unsafe {
        if plan.sizes.len() >= 2 && steps[0] == 1 && steps[1] != 1 && plan.strides[1][1] == 1 {
            return walk.tiles(pack, turn);
        }
        loop {
            pack(position.at[1], steps[1], position.at[0], steps[0], row);
            if !position.step(&walk) {
                return;
            }
        }
    }
}

impl Walk<'_> {
    /// The output's rows are the input's columns: square tiles pass through a buffer, so that each line of memory
    /// is read and written whole, however the sides of the matrix relate to the cache's sets.
    ///
    /// # Safety
    /// As [`walk_copy`].
    unsafe fn tiles(&self, pack: PackFn, turn: PackFn) {
        const TILE: usize = 32;
        /// One more than a tile, so that columns of the buffer do not fall into one set either.
        const LINE: usize = TILE + 1;
        let mut buffer = [const { MaybeUninit::<u128>::uninit() }; TILE * LINE];
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        let (sizes, strides) = (&self.plan.sizes, &self.plan.strides);
        let bytes = [0, 1].map(|k| self.operands[k].size);
        let mut position = self.start();
        let element = |at: *mut u8, k: usize, i: usize, j: usize| {
            let elements = i as i64 * strides[k][0] + j as i64 * strides[k][1];
            at.wrapping_offset(elements as isize * bytes[k] as isize)
        };
        loop {
            for j in (0..sizes[1] as usize).step_by(TILE) {
                let lines = TILE.min(sizes[1] as usize - j);
                for i in (0..sizes[0] as usize).step_by(TILE) {
                    let n = TILE.min(sizes[0] as usize - i);
                    // SAFETY: parts of rows of the input, of the buffer, and of rows of the output.
                    unsafe {
                        for r in 0..n {
                            let to = buffer.add(r * LINE * bytes[0]);
                            pack(element(position.at[1], 1, i + r, j), 1, to, 1, lines);
                        }
                        for c in 0..lines {
                            let from = buffer.add(c * bytes[0]);
                            turn(from, LINE as isize, element(position.at[0], 0, i, j + c), 1, n);
                        }
                    }
                }
            }
            // Stand on the last row of dimension 1, so that stepping moves the dimensions outside it.
            position.index[1] = sizes[1] - 1;
            for (k, at) in position.at.iter_mut().enumerate() {
                *at = at.wrapping_offset(((sizes[1] - 1) * strides[k][1]) as isize * bytes[k] as isize);
            }
            if !position.step(self) {
                return;
            }
        }
    }
}
