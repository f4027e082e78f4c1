//! Executes a tile program on blocks that fit into the L1 cache.
//!
//! A block passes through all steps before the next block begins. Steps process whole groups of lanes: a block whose
//! length is not a multiple of a group is first copied into tiles, so no loop of [`lanes`] has a remainder.

use super::Lane;
use super::lanes::{self, GROUP};
use super::pairs::{self, Operand};
use super::program::{Operation, Slot, Step, TileProgram};
use super::rows::RowPlan;
use flambeau_tensor::loops::{LINE, blockwise_len};
use flambeau_tensor::math::Real;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

/// A buffer of [`blockwise_len`] elements, which begins at a cache line ([`LINE`]).
#[derive(Default)]
struct Tile<T> {
    /// The buffer, and what precedes its first cache line.
    elements: Vec<T>,
    start: usize,
}

impl<T: Real> Tile<T> {
    fn new() -> Self {
        let elements = vec![T::ZERO; blockwise_len::<T>() + LINE / size_of::<T>()];
        // The vector never grows, so its elements keep their addresses.
        let start = elements.as_ptr().align_offset(LINE).min(LINE / size_of::<T>());
        Tile { elements, start }
    }
}

impl<T> Tile<T> {
    /// Returns `len` elements from `first` on.
    #[inline(always)]
    fn part(&self, first: usize, len: usize) -> &[T] {
        let start = self.start + first;
        &self.elements[start..start + len]
    }

    /// Returns the first `len` elements.
    #[inline(always)]
    fn first_mut(&mut self, len: usize) -> &mut [T] {
        &mut self.elements[self.start..self.start + len]
    }
}

/// Buffers of one program: computed tiles, constants, copies of inputs, copies of outputs. Reused between runs.
pub(super) struct Tiles<T> {
    buffers: Vec<Tile<T>>,
    /// The rows of the last run, if the group is computed row by row.
    pub(super) rows: Option<Box<RowPlan>>,
}

/// Number of pooled buffer sets. If more threads run the program at a time, the others allocate their own.
const POOLED: usize = 4;

/// Pool of buffer sets for later runs.
pub(super) struct TilePool<T>([Mutex<Option<Tiles<T>>>; POOLED]);

impl<T> Default for TilePool<T> {
    fn default() -> Self {
        TilePool([const { Mutex::new(None) }; POOLED])
    }
}

/// Buffers for one run, pooled or owned.
pub(super) enum RunBuffers<'a, T> {
    Pooled(MappedMutexGuard<'a, Tiles<T>>),
    Own(Tiles<T>),
}

impl<T: Real> TilePool<T> {
    /// Returns a free buffer set. Its lock is held for the whole run; that cannot deadlock, because a run executes no
    /// program code.
    pub(super) fn acquire(&self, program: &TileProgram) -> RunBuffers<'_, T> {
        match self.0.iter().find_map(Mutex::try_lock) {
            Some(free) => RunBuffers::Pooled(MutexGuard::map(free, |tiles| {
                tiles.get_or_insert_with(|| Tiles::new(program))
            })),
            None => RunBuffers::Own(Tiles::new(program)),
        }
    }
}

impl<T> RunBuffers<'_, T> {
    pub(super) fn get(&mut self) -> &mut Tiles<T> {
        match self {
            RunBuffers::Pooled(tiles) => tiles,
            RunBuffers::Own(tiles) => tiles,
        }
    }
}

impl<T: Real> Tiles<T> {
    fn new(program: &TileProgram) -> Self {
        let n =
            program.tiles as usize + program.constants.len() + program.inputs.len() + program.outputs.len();
        let buffers = std::iter::repeat_with(Tile::new).take(n).collect();
        let mut tiles = Tiles { buffers, rows: None };
        for (i, &x) in program.constants.iter().enumerate() {
            let tile = &mut tiles.buffers[program.tiles as usize + i];
            tile.first_mut(blockwise_len::<T>()).fill(T::from_f64(x));
        }
        tiles
    }

    /// Fills the tiles of broadcast numbers, for blocks of at most `block` elements.
    pub(super) fn begin(&mut self, program: &TileProgram, sources: &[Lane], block: usize) {
        for (i, source) in sources.iter().enumerate() {
            if let Lane::Number(x) = source {
                let tile = &mut self.buffers[buffer_index(program, Slot::Input(i as u32))];
                tile.first_mut(block.next_multiple_of(GROUP)).fill(T::from_f64(*x));
            }
        }
    }

    /// Runs one block: `ins` has a slice per tensor input, `outs` a slice per output.
    pub(super) fn run(
        &mut self,
        program: &TileProgram,
        sources: &[Lane],
        ins: &[&[T]],
        outs: &mut [&mut [T]],
    ) {
        let n = outs.first().map_or(0, |o| o.len());
        let direct = n.is_multiple_of(GROUP);
        for (i, source) in sources.iter().enumerate() {
            if let Lane::Tensor(t) = *source
                && let len = ins[t].len()
                && !len.is_multiple_of(GROUP)
            {
                // Padding lanes repeat a real element, so no step computes on invented values.
                let tile = &mut self.buffers[buffer_index(program, Slot::Input(i as u32))];
                let (row, padding) = tile.first_mut(len.next_multiple_of(GROUP)).split_at_mut(len);
                row.copy_from_slice(ins[t]);
                padding.fill(ins[t][0]);
            }
        }
        let mut block = Block { program, sources, buffers: &mut self.buffers, ins, outs, n, direct };
        for step in &program.steps {
            block.step(step);
        }
        for (k, &from) in program.outputs.iter().enumerate() {
            if !direct {
                outs[k].copy_from_slice(self.buffers[buffer_index(program, Slot::Output(from))].part(0, n));
            } else if from as usize != k {
                let (low, high) = outs.split_at_mut(k);
                high[0].copy_from_slice(low[from as usize]);
            }
        }
    }
}

/// Returns the largest number of elements of rows of so many pieces: of several, the last one is read in whole groups of lanes, which
/// may end behind the row.
pub(super) fn longest<T>(pieces: usize) -> usize {
    if pieces > 1 { blockwise_len::<T>() - GROUP } else { blockwise_len::<T>() }
}

/// Returns the index of a slot's buffer.
#[inline(always)]
fn buffer_index(program: &TileProgram, slot: Slot) -> usize {
    let (tiles, constants, inputs) = (program.tiles as usize, program.constants.len(), program.inputs.len());
    match slot {
        Slot::Tile(i) | Slot::Piece { tile: i, .. } => i as usize,
        Slot::Const(i) => tiles + i as usize,
        Slot::Input(i) => tiles + constants + i as usize,
        Slot::Output(i) => tiles + constants + inputs + i as usize,
    }
}

/// The state of a block while its steps run.
struct Block<'b, 'i, 'o, T: Real> {
    program: &'b TileProgram,
    sources: &'b [Lane],
    buffers: &'b mut [Tile<T>],
    ins: &'b [&'i [T]],
    outs: &'b mut [&'o mut [T]],
    /// The number of elements of an output.
    n: usize,
    /// Whether steps access output slices in place, without tiles.
    direct: bool,
}

impl<T: Real> Block<'_, '_, '_, T> {
    #[inline(always)]
    fn read(&self, slot: Slot, len: usize) -> &[T] {
        let start = match slot {
            Slot::Input(i) => match self.sources[i as usize] {
                // Whole groups of lanes are read in place.
                Lane::Tensor(t) if self.ins[t].len() == len => return self.ins[t],
                Lane::Tensor(_) | Lane::Number(_) => 0,
            },
            Slot::Output(k) if self.direct => return self.outs[k as usize],
            // Lanes behind the piece are those of the next one, or of the tile's end.
            Slot::Piece { number, .. } => number as usize * self.n,
            Slot::Const(_) | Slot::Tile(_) | Slot::Output(_) => 0,
        };
        self.buffers[buffer_index(self.program, slot)].part(start, len)
    }

    /// Returns what [`Block::read`] returns, or the number that all its elements are equal to.
    #[inline(always)]
    fn operand(&self, slot: Slot, len: usize) -> Operand<'_, T> {
        match slot {
            Slot::Const(i) => Operand::Number(T::from_f64(self.program.constants[i as usize])),
            Slot::Input(i) => match self.sources[i as usize] {
                Lane::Number(x) => Operand::Number(T::from_f64(x)),
                Lane::Tensor(_) => Operand::Row(self.read(slot, len)),
            },
            _ => Operand::Row(self.read(slot, len)),
        }
    }

    #[inline(always)]
    fn step(&mut self, step: &Step) {
        // The destination buffer is moved out, so that `self.read` can borrow the others.
        let len = (step.pieces as usize * self.n).next_multiple_of(GROUP);
        let at = buffer_index(self.program, step.to);
        let own = match step.to {
            Slot::Output(k) if self.direct => Some(k as usize),
            _ => None,
        };
        let mut out = own.map(|k| std::mem::take(&mut self.outs[k]));
        let mut tile = if own.is_none() { std::mem::take(&mut self.buffers[at]) } else { Tile::default() };
        let target = match &mut out {
            Some(out) => &mut **out,
            None => tile.first_mut(len),
        };
        let [a, b, c] = step.args;
        match step.op {
            Operation::Single(op) => {
                lanes::apply(op, target, [self.read(a, len), self.read(b, len), self.read(c, len)]);
            }
            Operation::Pair(pair) => {
                pairs::apply(pair, target, self.read(a, len), [self.operand(b, len), self.operand(c, len)]);
            }
        }
        match (own, out) {
            (Some(k), Some(out)) => self.outs[k] = out,
            _ => self.buffers[at] = tile,
        }
    }
}
