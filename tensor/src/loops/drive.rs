//! Iterates over a plan and calls a kernel on contiguous rows or blocks. Shared by all operations and dtypes.
//!
//! The kernel accesses a row in place if the row is long enough, has unit stride and needs no conversion. All other rows
//! are packed into blocks before the kernel and unpacked after it. Large iteration spaces are split among threads.
//! Kernels compute each element independently, so results do not depend on the split.
//!
//! Operands are bytes that the caller borrows, exclusively for the [`Output`]. Every row is checked against its operand
//! when it is taken. Each iteration visits an index of the output once, so threads write disjoint rows.
#![allow(unsafe_code, reason = "threads write rows of one output")]

use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

use super::block::BlockKernel;
use super::pack::Pack;
use super::plan::LoopPlan;
use crate::access;
use crate::dtype::DType;
use crate::error::Result;
use crate::guard;
use crate::layout::{Dims, Layout};
use crate::lines::{Buffer, Line, LineLayout, SharedTarget};
use crate::scratch::Scratch;
use crate::tensor::Tensor;
use crate::threads::{self, GRAIN};

/// Elements per block.
pub(super) const BLOCK: usize = 512;
/// Rows shorter than this are gathered, several to a block.
pub(super) const SHORT_ROW: usize = 32;

/// The output of an iteration.
pub(super) struct Output<'a> {
    target: SharedTarget<'a>,
    /// Copies blocks of the kernel to the target.
    unpack: Pack,
    /// Whether the kernel may write a row of unit stride in place.
    direct: bool,
    /// Whether the target has been written before, so that inputs may be its elements.
    written: bool,
}

impl<'a> Output<'a> {
    /// Makes an output of fresh memory for elements of `dtype`; kernels write blocks of `block`.
    fn fresh(bytes: &'a mut [MaybeUninit<u8>], block: DType, dtype: DType) -> Result<Output<'a>> {
        let unpack = Pack::new(block, dtype)?;
        Ok(Output { target: SharedTarget::new(bytes), unpack, direct: block == dtype, written: false })
    }

    /// Makes an output of memory that has been written, as [`Output::fresh`].
    pub(super) fn over(bytes: &'a mut [u8], block: DType, dtype: DType) -> Result<Output<'a>> {
        let unpack = Pack::new(block, dtype)?;
        Ok(Output { target: SharedTarget::over(bytes), unpack, direct: block == dtype, written: true })
    }

    /// Computes `n` elements, `step` elements apart, from byte `at` on.
    ///
    /// # Safety
    /// No other thread accesses these elements during the call, and `inputs` have none of their bytes.
    unsafe fn compute(
        &self,
        kernel: BlockKernel<'_>,
        n: usize,
        (at, step): (usize, usize),
        block: &mut Buffer<'_>,
        inputs: &[&[u8]],
    ) {
        if self.direct && step == 1 {
            // SAFETY: aliasing: no other thread accesses the row, and `inputs` have none of its bytes (the caller's contract).
            kernel.run(n, unsafe { self.target.bytes(at, n * self.unpack.target_size()) }, inputs);
            return;
        }
        let size = self.unpack.source_size();
        block.clear();
        block.push(n * size, |own| kernel.run(n, own, inputs));
        let form = LineLayout::new(self.unpack.target_size(), step, n);
        // SAFETY: aliasing: as above.
        let to = unsafe { self.target.line(at, form) };
        self.unpack.copy(Line::new(block.filled(), 0, LineLayout::new(size, 1, n)), to);
    }
}

/// An input of an iteration.
pub(super) struct Input<'a> {
    source: Source<'a>,
    /// Copies elements to blocks for the kernel.
    pack: Pack,
    /// Whether the kernel may read a row of unit stride in place.
    direct: bool,
}

/// The elements of an input.
enum Source<'a> {
    Bytes(&'a [u8]),
    /// The elements of the output, each at its own position. They are copied to a block before any is overwritten.
    Output,
}

impl<'a> Input<'a> {
    /// Makes an input of elements of `dtype`. `bytes` range from the first element to the one with the largest offset;
    /// kernels read blocks of `block`.
    pub(super) fn new(bytes: &'a [u8], dtype: DType, block: DType) -> Result<Input<'a>> {
        Ok(Input { source: Source::Bytes(bytes), pack: Pack::new(dtype, block)?, direct: dtype == block })
    }

    /// Makes the input that is the elements of the output, of `dtype`.
    pub(super) fn in_place(dtype: DType, block: DType) -> Result<Input<'a>> {
        Ok(Input { source: Source::Output, pack: Pack::new(dtype, block)?, direct: false })
    }

    /// Checks the invariants of an input that is read in place.
    ///
    /// # Panics
    /// Panics if the input is read in place (`Source::Output`) and its strides or element size differ from the output's, or
    /// the output is uninitialized.
    fn check(&self, output: &Output<'_>, same_strides: bool) {
        if let Source::Output = self.source {
            let same = same_strides && self.pack.source_size() == output.unpack.target_size();
            assert!(same && output.written, "invariant: an input in place is the elements of the output");
        }
    }

    /// Returns the line of elements from byte `at` on.
    ///
    /// # Safety
    /// If the input is the output's elements, nothing writes to them while the line is in use.
    #[inline(always)]
    unsafe fn line<'b>(&'b self, output: &'b Output<'_>, at: usize, form: LineLayout) -> Line<'b> {
        match self.source {
            Source::Bytes(bytes) => Line::new(bytes, at, form),
            // SAFETY: aliasing: the caller's contract. `check` found that the output has been written.
            Source::Output => unsafe { output.target.line_to_read(at, form) },
        }
    }

    /// Returns a row of `n` contiguous elements from byte `at` on: in place, or the first of `block`.
    #[inline(always)]
    fn row<'b>(&'b self, in_place: bool, at: usize, n: usize, block: &'b Buffer<'_>) -> &'b [u8] {
        let bytes = n * self.pack.target_size();
        match self.source {
            Source::Bytes(source) if in_place => &source[at..][..bytes],
            _ => &block.filled()[..bytes],
        }
    }
}

/// Maximum number of inputs of an iteration over a single row.
pub(super) const FLAT: usize = 4;

/// Makes a fresh row-major tensor of the kernel's results, `n` elements, from input rows of `n` elements each, without
/// conversion.
#[inline]
pub(super) fn into_fresh_rows(
    layout: Layout,
    dtype: DType,
    inputs: &[&[u8]],
    kernel: BlockKernel<'_>,
) -> Result<Tensor> {
    let n = layout.numel();
    if n > GRAIN {
        return in_parts(layout, dtype, GRAIN, kernel, |part, rest| rest.fill_from(part, inputs));
    }
    let fill = |_: &Layout, out: &mut [MaybeUninit<u8>]| {
        kernel.run(n, out, inputs);
        Ok(())
    };
    // SAFETY: the kernel writes all elements, of the size of `dtype`: it asserts that the bytes are `n` of them.
    unsafe { access::make_bytes(layout, dtype, fill) }
}

/// The elements of a part of a result that are not written yet.
pub(super) struct Rest<'a> {
    bytes: &'a mut [MaybeUninit<u8>],
    kernel: BlockKernel<'a>,
}

impl Rest<'_> {
    /// Computes the next `n` elements from input rows of `n` elements each.
    pub(super) fn fill(&mut self, n: usize, inputs: &[&[u8]]) {
        let (own, behind) = std::mem::take(&mut self.bytes).split_at_mut(n * self.kernel.size(0));
        self.kernel.run(n, own, inputs);
        self.bytes = behind;
    }

    /// Computes the next elements from a range of the inputs' elements.
    fn fill_from(&mut self, part: Range<usize>, inputs: &[&[u8]]) {
        let kernel = self.kernel;
        let mut rows: SmallVec<[&[u8]; 4]> = SmallVec::new();
        for (k, row) in inputs.iter().enumerate() {
            let size = kernel.size(k + 1);
            rows.push(&row[part.start * size..part.end * size]);
        }
        self.fill(part.len(), &rows);
    }
}

/// Makes a fresh row-major tensor of the kernel's results, in parts of `grain` elements on several threads. `part` gets
/// the range of a part, and fills all of it.
///
/// # Panics
/// Panics if `part` leaves elements unwritten.
pub(super) fn in_parts(
    layout: Layout,
    dtype: DType,
    grain: usize,
    kernel: BlockKernel<'_>,
    part: impl Fn(Range<usize>, &mut Rest<'_>) + Sync,
) -> Result<Tensor> {
    let size = dtype.size();
    let fill = |_: &Layout, out: &mut [MaybeUninit<u8>]| {
        threads::chunks(out, grain.saturating_mul(size), |first, own| {
            let range = first / size..(first + own.len()) / size;
            let mut rest = Rest { bytes: own, kernel };
            part(range, &mut rest);
            assert!(rest.bytes.is_empty(), "invariant: a part of a result is written completely");
        });
        Ok(())
    };
    // SAFETY: every byte is written: `threads::chunks` passes each to a part, and a part that leaves some panics.
    unsafe { access::make_bytes(layout, dtype, fill) }
}

/// The order in which an iteration visits the elements.
pub(super) enum Traversal<'a> {
    /// By a coalesced plan for the output and the inputs.
    Plan(&'a LoopPlan),
    /// Over one row of the output and of inputs of stride 1, or single elements (stride 0).
    Flat([usize; FLAT]),
}

/// Makes a fresh tensor of the kernel's results; blocks of the kernel are of dtype `block`. The layout is dense. `max_row`
/// is as for [`drive`].
///
/// # Panics
/// Panics if the traversal does not visit every element of the layout.
pub(super) fn fresh(
    layout: Layout,
    [block, dtype]: [DType; 2],
    inputs: &[Input<'_>],
    traversal: &Traversal<'_>,
    max_row: usize,
    kernel: BlockKernel<'_>,
) -> Result<Tensor> {
    let n = layout.numel();
    let whole = match traversal {
        Traversal::Plan(plan) => is_covered(&plan.sizes, &plan.strides[0], n),
        Traversal::Flat(_) => true,
    };
    assert!(whole, "invariant: an iteration visits every element of a fresh output");
    let fill = |_: &Layout, out: &mut [MaybeUninit<u8>]| {
        drive(n, &Output::fresh(out, block, dtype)?, inputs, traversal, max_row, kernel)
    };
    // SAFETY: every byte is written: `make_bytes` checks that the layout is dense, and the traversal visits as many
    // different elements as it has, which the assertion checks. A traversal writes the elements that it visits.
    unsafe { access::make_bytes(layout, dtype, fill) }
}

/// Returns whether these dimensions reach each of `n` adjacent elements.
fn is_covered(sizes: &[i64], strides: &[i64], n: usize) -> bool {
    let mut order: SmallVec<[(i64, i64); 5]> =
        strides.iter().copied().zip(sizes.iter().copied()).filter(|(_, size)| *size != 1).collect();
    order.sort_unstable();
    let mut step = 1;
    let dense = order.iter().all(|&(stride, size)| {
        let next = stride == step;
        step = step.saturating_mul(size);
        next
    });
    n == 0 || dense && step as usize == n
}

/// Runs the kernel over `n` elements. `max_row` is the maximum number of elements of a kernel call on rows in place, at least
/// [`BLOCK`].
///
/// # Panics
/// Panics if an offset of the traversal is out of bounds of its operand.
pub(super) fn drive(
    n: usize,
    output: &Output<'_>,
    inputs: &[Input<'_>],
    traversal: &Traversal<'_>,
    max_row: usize,
    kernel: BlockKernel<'_>,
) -> Result<()> {
    match traversal {
        Traversal::Plan(plan) => drive_plan(plan, output, inputs, max_row, kernel),
        Traversal::Flat(strides) => {
            drive_flat(n, output, inputs, strides, max_row, kernel);
            Ok(())
        }
    }
}

/// Operands that are each one row (stride 1) or one element (stride 0); the output is a row.
struct Flat<'a> {
    output: &'a Output<'a>,
    inputs: &'a [Input<'a>],
    strides: &'a [usize; FLAT],
    direct: [bool; FLAT],
    /// Elements per kernel call.
    chunk: usize,
}

fn drive_flat(
    n: usize,
    output: &Output<'_>,
    inputs: &[Input<'_>],
    strides: &[usize; FLAT],
    max_row: usize,
    kernel: BlockKernel<'_>,
) {
    let mut direct = [true; FLAT];
    let mut all = output.direct;
    assert!(inputs.len() <= FLAT, "invariant: traversals of one row have few operands");
    for (k, input) in inputs.iter().enumerate() {
        input.check(output, strides[k] == 1);
        direct[k] = input.direct && (strides[k] == 1 || n == 1);
        all &= direct[k];
    }
    let flat = Flat { output, inputs, strides, direct, chunk: if all { max_row } else { BLOCK } };
    // SAFETY: parts of a split are disjoint, so no other thread accesses the output's elements of a part.
    threads::split(n, GRAIN, |part| unsafe { flat.part(part, kernel) });
}

impl Flat<'_> {
    /// Runs the kernel over a range of the elements.
    ///
    /// # Safety
    /// No other thread accesses these elements of the output during the call.
    unsafe fn part(&self, part: Range<usize>, kernel: BlockKernel<'_>) {
        let Flat { output, inputs, strides, direct, chunk } = self;
        let mut arrays = [const { [MaybeUninit::<u128>::uninit(); BLOCK] }; FLAT + 1];
        let [out_block, blocks @ ..] = &mut arrays.each_mut().map(Buffer::of);
        let mut done = part.start;
        while done < part.end {
            let count = (*chunk).min(part.end - done);
            for (k, input) in inputs.iter().enumerate() {
                if direct[k] || strides[k] == 0 && done > part.start {
                    continue;
                }
                let (from, to) = (input.pack.source_size(), input.pack.target_size());
                // SAFETY: no thread writes these elements: they are of this part, and written after the row was used.
                let line = unsafe {
                    input.line(output, done * from * strides[k], LineLayout::new(from, strides[k], count))
                };
                blocks[k].clear();
                blocks[k].push(count * to, |own| input.pack.fill(line, own));
            }
            let mut rows = [&[][..]; FLAT];
            for (k, input) in inputs.iter().enumerate() {
                let at = done * input.pack.source_size() * strides[k];
                rows[k] = input.row(direct[k], at, count, &blocks[k]);
            }
            let at = done * output.unpack.target_size();
            // SAFETY: exclusive access: the caller's contract. `rows` are blocks or inputs that are borrowed apart from the target.
            unsafe { output.compute(kernel, count, (at, 1), out_block, &rows[..inputs.len()]) };
            done += count;
        }
    }
}

/// An iteration over the operands of a plan, the output first.
pub(super) struct PlanTraversal<'a> {
    pub(super) plan: &'a LoopPlan,
    /// Bytes per element of each operand.
    sizes: SmallVec<[usize; 4]>,
}

/// The position in the outer dimensions: an index, and the offset of each operand in bytes.
pub(super) struct Position {
    index: Dims,
    pub(super) at: SmallVec<[usize; 4]>,
}

impl Position {
    /// Advances to the next row. After the last row the offsets wrap around to the start.
    fn step(&mut self, traversal: &PlanTraversal<'_>) {
        for dim in 1..traversal.plan.sizes.len() {
            self.index[dim] += 1;
            let size = traversal.plan.sizes[dim];
            let wraps = self.index[dim] == size;
            for (k, at) in self.at.iter_mut().enumerate() {
                let stride = traversal.plan.strides[k][dim] as usize * traversal.sizes[k];
                *at = if wraps { *at - stride * (size as usize - 1) } else { *at + stride };
            }
            if !wraps {
                return;
            }
            self.index[dim] = 0;
        }
    }
}

impl<'a> PlanTraversal<'a> {
    pub(super) fn new(plan: &'a LoopPlan, sizes: SmallVec<[usize; 4]>) -> PlanTraversal<'a> {
        assert!(sizes.len() == plan.strides.len(), "invariant: a plan has strides for every operand");
        PlanTraversal { plan, sizes }
    }

    /// Returns the position of row number `row`.
    pub(super) fn at(&self, mut row: usize) -> Position {
        let mut index = Dims::from_elem(0, self.plan.sizes.len());
        let mut at = SmallVec::from_elem(0, self.sizes.len());
        for dim in 1..index.len() {
            let size = self.plan.sizes[dim] as usize;
            index[dim] = (row % size) as i64;
            row /= size;
            for (k, at) in at.iter_mut().enumerate() {
                *at += (self.plan.strides[k][dim] * index[dim]) as usize * self.sizes[k];
            }
        }
        Position { index, at }
    }

    /// Returns the bytes per element of an operand.
    #[inline(always)]
    pub(super) fn size(&self, k: usize) -> usize {
        self.sizes[k]
    }

    /// Returns the step within a row of an operand, in elements.
    #[inline(always)]
    pub(super) fn row_step(&self, k: usize) -> usize {
        self.plan.strides[k][0] as usize
    }

    /// Returns the form of rows of `n` elements of an operand.
    #[inline(always)]
    pub(super) fn form(&self, k: usize, n: usize) -> LineLayout {
        LineLayout::new(self.sizes[k], self.row_step(k), n)
    }
}

/// One block per operand: in a single allocation, or in an allocation per operand in guarded memory.
struct OperandBlocks {
    allocations: SmallVec<[Scratch<MaybeUninit<u8>>; 1]>,
    /// Bytes of each block.
    sizes: SmallVec<[usize; 4]>,
}

impl OperandBlocks {
    /// Allocates blocks of `block` elements of these sizes.
    fn new(sizes: impl Iterator<Item = usize>, block: usize) -> Result<OperandBlocks> {
        let mut sizes: SmallVec<[usize; 4]> = sizes.map(|size| size * block).collect();
        let mut allocations = SmallVec::new();
        if guard::edge().is_some() {
            for bytes in &sizes {
                allocations.push(Scratch::try_new(*bytes)?);
            }
        } else {
            sizes.iter_mut().for_each(|bytes| *bytes = bytes.next_multiple_of(64));
            allocations.push(Scratch::try_new(sizes.iter().sum())?);
        }
        Ok(OperandBlocks { allocations, sizes })
    }

    /// Returns the blocks.
    fn buffers(&mut self) -> SmallVec<[Buffer<'_>; 4]> {
        let mut rests = self.allocations.iter_mut().map(Scratch::elements_mut);
        let mut rest: &mut [MaybeUninit<u8>] = &mut [];
        let mut block = |bytes: &usize| {
            if rest.is_empty() {
                rest = rests.next().unwrap_or_default();
            }
            let (own, behind) = std::mem::take(&mut rest).split_at_mut(*bytes);
            rest = behind;
            Buffer::new(own)
        };
        self.sizes.iter().map(&mut block).collect()
    }
}

/// A traversal of a plan with the kernel that it runs.
struct Run<'a> {
    traversal: PlanTraversal<'a>,
    output: &'a Output<'a>,
    inputs: &'a [Input<'a>],
    kernel: BlockKernel<'a>,
}

fn drive_plan(
    plan: &LoopPlan,
    output: &Output<'_>,
    inputs: &[Input<'_>],
    max_row: usize,
    kernel: BlockKernel<'_>,
) -> Result<()> {
    if plan.sizes.contains(&0) {
        return Ok(());
    }
    let mut sizes: SmallVec<[usize; 4]> = SmallVec::from_slice(&[output.unpack.target_size()]);
    sizes.extend(inputs.iter().map(|input| input.pack.source_size()));
    let run = Run { traversal: PlanTraversal::new(plan, sizes), output, inputs, kernel };
    for (k, input) in inputs.iter().enumerate() {
        input.check(output, plan.strides[k + 1] == plan.strides[0]);
    }
    let total = plan.sizes.iter().product::<i64>() as usize;
    let block = BLOCK.min(total);
    let row = plan.sizes[0] as usize;
    let blocks = || {
        let sizes = inputs.iter().map(|input| input.pack.target_size());
        OperandBlocks::new(std::iter::once(output.unpack.source_size()).chain(sizes), block)
    };
    if row < SHORT_ROW && total > row {
        let at_once = (block / row).max(1);
        let grain = threads::rows(at_once * row) * at_once;
        return threads::try_split(total / row, grain, |rows| {
            let mut blocks = blocks()?;
            // SAFETY: parts of a split are disjoint, so no other thread accesses the output's rows of a part.
            unsafe { run.gathered(rows, at_once, &mut blocks.buffers()) };
            Ok(())
        });
    }
    let segments = Segments::of(plan);
    threads::try_split(segments.count, segments.grain, |part| {
        let mut blocks = blocks()?;
        // SAFETY: as above.
        unsafe { run.rows(&segments, part, &mut blocks.buffers(), max_row) };
        Ok(())
    })
}

/// Rows, each cut into segments if it is too long for one thread.
pub(super) struct Segments {
    row: usize,
    /// Elements per segment, and segments per row.
    len: usize,
    per_row: usize,
    /// Total number of segments, and the minimum number per thread.
    pub(super) count: usize,
    pub(super) grain: usize,
}

impl Segments {
    pub(super) fn of(plan: &LoopPlan) -> Segments {
        let row = plan.sizes[0] as usize;
        let rows = plan.sizes[1..].iter().product::<i64>() as usize;
        let len = row.min(GRAIN);
        let per_row = row.div_ceil(len);
        Segments { row, len, per_row, count: rows * per_row, grain: threads::rows(len) }
    }

    /// Calls `f` for each segment in `part`, with the offsets of the operands' rows in bytes and the segment's element
    /// range within the row.
    pub(super) fn for_each(
        &self,
        traversal: &PlanTraversal<'_>,
        part: Range<usize>,
        mut f: impl FnMut(&[usize], Range<usize>),
    ) {
        let mut position = traversal.at(part.start / self.per_row);
        for segment in part {
            let start = segment % self.per_row * self.len;
            f(&position.at, start..self.row.min(start + self.len));
            if start + self.len >= self.row {
                position.step(traversal);
            }
        }
    }
}

impl Run<'_> {
    /// Runs the kernel row by row.
    ///
    /// # Safety
    /// No other thread accesses the output's elements in the segments of `part` during the call.
    unsafe fn rows(
        &self,
        segments: &Segments,
        part: Range<usize>,
        blocks: &mut [Buffer<'_>],
        max_row: usize,
    ) {
        let Run { traversal, output, inputs, kernel } = self;
        let direct: SmallVec<[bool; 4]> = inputs
            .iter()
            .enumerate()
            .map(|(k, input)| input.direct && traversal.row_step(k + 1) == 1)
            .collect();
        let all = output.direct && traversal.row_step(0) == 1 && direct.iter().all(|direct| *direct);
        let chunk = if all { segments.len.min(max_row) } else { BLOCK };
        let Some((out_block, blocks)) = blocks.split_first_mut() else { return };
        segments.for_each(traversal, part, |rows, segment| {
            let mut done = segment.start;
            while done < segment.end {
                let n = chunk.min(segment.end - done);
                let offset = |k: usize| rows[k] + traversal.row_step(k) * done * traversal.sizes[k];
                for (k, input) in inputs.iter().enumerate() {
                    if direct[k] || traversal.row_step(k + 1) == 0 && done > segment.start {
                        continue;
                    }
                    // SAFETY: no thread writes these elements: they are of this part, and written after the row was
                    // used.
                    let line = unsafe { input.line(output, offset(k + 1), traversal.form(k + 1, n)) };
                    blocks[k].clear();
                    blocks[k].push(n * input.pack.target_size(), |own| input.pack.fill(line, own));
                }
                let ready: SmallVec<[&[u8]; 4]> = inputs
                    .iter()
                    .enumerate()
                    .map(|(k, input)| input.row(direct[k], offset(k + 1), n, &blocks[k]))
                    .collect();
                let to = (offset(0), traversal.row_step(0));
                // SAFETY: exclusive access: the caller's contract. `ready` are blocks or inputs that are borrowed apart from the
                // target.
                unsafe { output.compute(*kernel, n, to, out_block, &ready) };
                done += n;
            }
        });
    }

    /// Runs the kernel on blocks into which several short rows are gathered; a block has at least `at_once` rows.
    ///
    /// # Safety
    /// No other thread accesses the output's rows in `rows` during the call.
    unsafe fn gathered(&self, rows: Range<usize>, at_once: usize, blocks: &mut [Buffer<'_>]) {
        let Run { traversal, output, inputs, kernel } = self;
        let row = traversal.plan.sizes[0] as usize;
        let forms: SmallVec<[LineLayout; 4]> =
            (0..traversal.sizes.len()).map(|k| traversal.form(k, row)).collect();
        let (mut reading, mut writing) = (traversal.at(rows.start), traversal.at(rows.start));
        let Some((out_block, blocks)) = blocks.split_first_mut() else { return };
        let size = output.unpack.source_size();
        let mut left = rows.len();
        while left > 0 {
            let rows = at_once.min(left);
            left -= rows;
            blocks.iter_mut().for_each(Buffer::clear);
            for _ in 0..rows {
                for (k, input) in inputs.iter().enumerate() {
                    // SAFETY: no thread writes these elements: they are of this part, and written after they were
                    // copied.
                    let line = unsafe { input.line(output, reading.at[k + 1], forms[k + 1]) };
                    blocks[k].push(row * input.pack.target_size(), |own| input.pack.fill(line, own));
                }
                reading.step(traversal);
            }
            let ready: SmallVec<[&[u8]; 4]> = blocks.iter().map(Buffer::filled).collect();
            out_block.clear();
            out_block.push(rows * row * size, |own| kernel.run(rows * row, own, &ready));
            for i in 0..rows {
                let from = Line::new(out_block.filled(), i * row * size, LineLayout::new(size, 1, row));
                // SAFETY: the caller's contract.
                output.unpack.copy(from, unsafe { output.target.line(writing.at[0], forms[0]) });
                writing.step(traversal);
            }
        }
    }
}
