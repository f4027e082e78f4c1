//! Groups with chunks that are computed row by row: where each input has its rows.
//!
//! A [`RowPlan`] depends only on the sizes of the arguments. The buffers of a group keep the last one, so a call with the same
//! sizes compares sizes instead of finding the rows again.

use super::program::{Chunk, TileInput, TileProgram};
use super::{Lane, number_of};
use flambeau_ir::IValue;
use flambeau_tensor::loops::RowPart;
use flambeau_tensor::{Dims, Tensor, same_sizes, wrap_dim};
use smallvec::SmallVec;

/// The inputs of a group that is computed row by row. A row has the elements that differ in the last index only.
pub(super) struct RowPlan {
    /// The arguments that are tensors, in the order of the inputs, with their sizes.
    shapes: SmallVec<[(u32, Dims); 8]>,
    /// The inputs that are numbers: positions in `sources`, and arguments.
    numbers: SmallVec<[(usize, u32); 4]>,
    /// The rows of each tensor input and of each piece.
    pub(super) parts: SmallVec<[RowPart; 16]>,
    /// One entry per input of the program; `Lane::Tensor` indexes `parts`.
    pub(super) sources: SmallVec<[Lane; 16]>,
    /// The sizes of the outputs.
    pub(super) sizes: Dims,
    /// The largest number of pieces that a step computes.
    pub(super) widest: usize,
}

impl RowPlan {
    /// Whether the arguments have the sizes that the plan was made for. Which arguments are numbers follows from the types
    /// of the group's inputs, up to those that [`RowPlan::read_numbers`] refuses.
    pub(super) fn holds_for(&self, args: &[IValue]) -> bool {
        self.shapes.iter().all(|(arg, sizes)| match args.get(*arg as usize) {
            Some(IValue::Tensor(tensor)) => same_sizes(tensor.sizes(), sizes),
            _ => false,
        })
    }

    /// Reads the arguments that are numbers; returns whether all of them are.
    pub(super) fn read_numbers(&mut self, args: &[IValue]) -> bool {
        self.numbers.iter().all(|&(source, arg)| match args.get(arg as usize).and_then(number_of) {
            Some(number) => {
                self.sources[source] = Lane::Number(number);
                true
            }
            None => false,
        })
    }

    /// Returns the arguments that are tensors.
    pub(super) fn tensors<'a>(&self, args: &'a [IValue]) -> SmallVec<[&'a Tensor; 8]> {
        self.shapes.iter().filter_map(|(arg, _)| args.get(*arg as usize)?.as_tensor()).collect()
    }

    /// Finds the rows. Returns `None` if an input has rows of another length than the others, or neither as many rows as the
    /// outputs nor one, or if an output would have another shape than the others.
    pub(super) fn of(program: &TileProgram, args: &[IValue]) -> Option<RowPlan> {
        let (mut numbers, mut parts, mut sources) = (SmallVec::new(), SmallVec::new(), SmallVec::new());
        let mut known: SmallVec<[(u32, Dims); 8]> = SmallVec::new();
        // For each source: its rank, and the sizes before the last one.
        let mut shapes: SmallVec<[(usize, &[i64]); 16]> = SmallVec::new();
        let mut length = None;
        for input in &program.inputs {
            let piece_at = |i: u32| program.pieces[i as usize];
            let (arg, piece) = match *input {
                TileInput::Arg(arg) => (arg, None),
                TileInput::Piece(i) | TileInput::Whole(i) => (piece_at(i).arg, Some(piece_at(i))),
            };
            let tensor = match args.get(arg as usize)? {
                IValue::Tensor(tensor) => tensor,
                number if piece.is_none() => {
                    numbers.push((sources.len(), arg));
                    sources.push(Lane::Number(number_of(number)?));
                    shapes.push((0, &[]));
                    continue;
                }
                _ => return None,
            };
            let (&whole, leading) = tensor.sizes().split_last()?;
            let (n, start, rank) = match piece {
                None => (whole, 0, tensor.rank()),
                Some(piece) => {
                    let chunk = &program.chunks[piece.chunk as usize];
                    let rank = chunked_rank(chunk, args)?;
                    if wrap_dim(chunk.dim, rank).ok()? + 1 != rank || whole % chunk.chunks != 0 {
                        return None;
                    }
                    let n = whole / chunk.chunks;
                    (n, usize::try_from(n).ok()? * piece.number as usize, rank)
                }
            };
            if *length.get_or_insert(n) != n {
                return None;
            }
            let at = known.iter().position(|known| known.0 == arg).unwrap_or_else(|| {
                known.push((arg, tensor.sizes().into()));
                known.len() - 1
            });
            sources.push(Lane::Tensor(parts.len()));
            shapes.push((rank, leading));
            let stride =
                if leading.iter().all(|&size| size == 1) { 0 } else { usize::try_from(whole).ok()? };
            let row = if matches!(input, TileInput::Whole(_)) { whole } else { n };
            parts.push(RowPart { tensor: at, start, stride, len: usize::try_from(row).ok()? });
        }
        let rank = shapes.iter().map(|shape| shape.0).max()?;
        let all = shapes.iter().map(|shape| shape.1).find(|leading| leading.iter().any(|&size| size != 1));
        let all = all.unwrap_or(&[]);
        let ends_with = |longer: &[i64], shorter: &[i64]| {
            let (front, back) = longer.split_at(longer.len() - shorter.len());
            same_sizes(back, shorter) && front.iter().all(|&size| size == 1)
        };
        let is_whole = |leading: &[i64]| match leading.len() >= all.len() {
            true => ends_with(leading, all),
            false => ends_with(all, leading),
        };
        let is_one = |leading: &[i64]| leading.iter().all(|&size| size == 1);
        if !shapes.iter().all(|&(rank, leading)| rank == 0 || is_one(leading) || is_whole(leading)) {
            return None;
        }
        let is_full = |output: &Vec<u32>| {
            let own = || output.iter().map(|&input| shapes[input as usize]);
            own().any(|shape| shape.0 == rank) && own().any(|shape| all.is_empty() || is_whole(shape.1))
        };
        if !program.reads.iter().all(is_full) {
            return None;
        }
        let mut sizes = Dims::from_elem(1, rank);
        let (last, front) = sizes.split_last_mut()?;
        *last = length?;
        let gap = front.len().checked_sub(all.len())?;
        front[gap..].copy_from_slice(all);
        Some(RowPlan { shapes: known, numbers, parts, sources, sizes, widest: program.widest() })
    }
}

/// The rank of the shape that the arguments of a chunk broadcast to.
fn chunked_rank(chunk: &Chunk, args: &[IValue]) -> Option<usize> {
    chunk
        .args
        .iter()
        .map(|&arg| Some(args.get(arg as usize)?.as_tensor()?.rank()))
        .try_fold(0, |most, rank| rank.map(|rank| most.max(rank)))
}
