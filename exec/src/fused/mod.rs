//! Fused groups: a pointwise subgraph computed tile by tile in one pass over its inputs.
//!
//! A group is compiled together with the code around it ([`build`]): formulas of the operators form one expression,
//! chunks become views of inputs. At run time the arguments select the path. The tile program ([`tile`]) runs if all
//! tensors are f32, or all f64, and every output has the shape that all inputs broadcast to. Otherwise the subgraph
//! runs as bytecode. Both paths produce identical bits. Masks are numbers in tiles; those that are outputs are converted to bool.

mod build;
mod lanes;
mod pairs;
mod program;
mod rows;
mod tile;
mod widen;

use crate::bytecode::Code;
use crate::error::KernelError;
use crate::kernel::Rets;
use build::Programs;
use flambeau_ir::{Graph, IValue};
use flambeau_tensor::math::Real;
use flambeau_tensor::{DType, Dims, Tensor, broadcast_into, loops, same_sizes};
use program::{TileInput, TileProgram};
use rows::RowPlan;
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};
use tile::TilePool;

/// A compiled fused group.
pub(crate) struct FusedGroup {
    graph: Arc<Graph>,
    code: OnceLock<Arc<Code>>,
    tiled: Tiled,
    /// The program for chunks that are computed row by row, if it computes several pieces of a row at once.
    by_row: Option<Tiled>,
}

/// A program, and the buffers of its runs.
struct Tiled {
    program: TileProgram,
    f32_tiles: TilePool<f32>,
    f64_tiles: TilePool<f64>,
}

impl Tiled {
    fn new(program: TileProgram) -> Tiled {
        Tiled { program, f32_tiles: TilePool::default(), f64_tiles: TilePool::default() }
    }
}

/// Data sources of a group's inputs: tensors, and numbers that are broadcast to all elements.
#[derive(Default)]
struct Lanes<'a> {
    tensors: SmallVec<[&'a Tensor; 8]>,
    /// One entry per input of the program; `Lane::Tensor` indexes `tensors`.
    sources: SmallVec<[Lane; 8]>,
}

#[derive(Clone, Copy)]
enum Lane {
    Tensor(usize),
    Number(f64),
}

fn number_of(value: &IValue) -> Option<f64> {
    match value {
        IValue::Float(x) => Some(*x),
        IValue::Int(x) => Some(*x as f64),
        _ => None,
    }
}

impl FusedGroup {
    /// Compiles a subgraph; returns `None` if it contains an operator without a formula.
    pub(crate) fn compile(graph: &Arc<Graph>) -> Option<FusedGroup> {
        let Programs { program, by_row } = build::build(graph)?;
        Some(FusedGroup {
            tiled: Tiled::new(program),
            by_row: by_row.map(Tiled::new),
            graph: Arc::clone(graph),
            code: OnceLock::new(),
        })
    }

    /// Returns the subgraph.
    pub(crate) fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Returns the cell that caches the subgraph's bytecode.
    pub(crate) fn code(&self) -> &OnceLock<Arc<Code>> {
        &self.code
    }

    /// Computes the group with tiles and returns whether that was possible. If not, `rets` is unchanged.
    pub(crate) fn run(&self, args: &[IValue], rets: &mut Rets) -> Result<bool, KernelError> {
        let first = rets.len();
        if !self.compute(args, rets)? {
            return Ok(false);
        }
        // Both programs have the outputs in the order of the subgraph's.
        for &output in &self.tiled.program.masks {
            if let Some(IValue::Tensor(mask)) = rets.get_mut(first + output as usize) {
                *mask = mask.to_dtype(DType::Bool)?;
            }
        }
        Ok(true)
    }

    /// As [`FusedGroup::run`]; masks have the dtype of the tiles.
    #[inline(always)]
    fn compute(&self, args: &[IValue], rets: &mut Rets) -> Result<bool, KernelError> {
        let Some(dtype) = common_dtype(args) else { return Ok(false) };
        if let Some(Tiled { program, f32_tiles, f64_tiles }) = &self.by_row
            && match dtype {
                DType::F32 => run_rows(program, f32_tiles, args, rets)?,
                _ => run_rows(program, f64_tiles, args, rets)?,
            }
        {
            return Ok(true);
        }
        let small = match dtype {
            DType::F32 => self.run_small(&self.tiled.f32_tiles, args, rets)?,
            _ => self.run_small(&self.tiled.f64_tiles, args, rets)?,
        };
        if small {
            return Ok(true);
        }
        let Some(pieces) = self.pieces(args) else { return Ok(false) };
        let mut lanes = Lanes::default();
        if !self.collect(args, &pieces, &mut lanes) || !self.outputs_have_common_shape(&lanes) {
            return Ok(false);
        }
        match dtype {
            DType::F32 => self.sweep(&self.tiled.f32_tiles, &lanes, rets),
            _ => self.sweep(&self.tiled.f64_tiles, &lanes, rets),
        }
    }

    /// Computes a group of one block, if its tensors are rows of one shape; returns whether they are. This takes a
    /// fraction of the time of [`FusedGroup::sweep`], which divides larger groups into blocks.
    fn run_small<T: Real>(
        &self,
        pool: &TilePool<T>,
        args: &[IValue],
        rets: &mut Rets,
    ) -> Result<bool, KernelError> {
        let program = &self.tiled.program;
        if !program.chunks.is_empty() {
            return run_rows(program, pool, args, rets);
        }
        let mut lanes = Lanes::default();
        if !self.collect(args, &[], &mut lanes) || !self.outputs_have_full_rank(&lanes) {
            return Ok(false);
        }
        let sources = &lanes.sources[..];
        let block = |ins: &[&[T]], outs: &mut [&mut [T]]| run_block(program, pool, sources, ins, outs);
        let outputs = program.outputs.len();
        Ok(loops::one_block::<T>(&lanes.tensors, outputs, block, |made| rets.push(IValue::Tensor(made)))?)
    }

    /// Splits the arguments of all chunks; returns `None` if that is an error, which the bytecode reports.
    fn pieces(&self, args: &[IValue]) -> Option<SmallVec<[Tensor; 16]>> {
        let mut pieces: SmallVec<[Tensor; 16]> = SmallVec::new();
        for chunk in &self.tiled.program.chunks {
            let tensor = |&arg: &u32| args.get(arg as usize)?.as_tensor();
            let mut shape = Dims::new();
            for arg in &chunk.args {
                broadcast_into(&mut shape, tensor(arg)?.sizes()).ok()?;
            }
            for arg in &chunk.args {
                let parts = tensor(arg)?.expand(&shape).ok()?.chunk(chunk.chunks, chunk.dim).ok()?;
                if parts.len() as i64 != chunk.chunks {
                    return None;
                }
                pieces.extend(parts);
            }
        }
        Some(pieces)
    }

    /// Whether every output reads an input with the largest rank. If all inputs have as many elements, in shapes that
    /// differ in leading dimensions of size 1 only, every output then has the shape that all inputs broadcast to.
    fn outputs_have_full_rank(&self, lanes: &Lanes<'_>) -> bool {
        let rank = lanes.tensors[0].rank();
        if lanes.tensors.iter().all(|t| t.rank() == rank) {
            return true;
        }
        let full = lanes.tensors.iter().map(|t| t.rank()).max();
        let is_full = |&input: &u32| match lanes.sources[input as usize] {
            Lane::Tensor(t) => Some(lanes.tensors[t].rank()) == full,
            Lane::Number(_) => false,
        };
        self.tiled.program.reads.iter().all(|output| output.iter().any(is_full))
    }

    /// Finds the sources of the inputs; returns whether all of them can be. `lanes` is empty before. It is constructed
    /// by the caller, because moving it takes as long as filling it.
    #[inline(always)]
    fn collect<'a>(&self, args: &'a [IValue], pieces: &'a [Tensor], lanes: &mut Lanes<'a>) -> bool {
        for input in &self.tiled.program.inputs {
            let tensor = match *input {
                TileInput::Piece(i) => &pieces[i as usize],
                // Only programs of rows have such inputs.
                TileInput::Whole(_) => return false,
                TileInput::Arg(i) => match args.get(i as usize) {
                    Some(IValue::Tensor(t)) => t,
                    Some(number) => {
                        let Some(x) = number_of(number) else { return false };
                        lanes.sources.push(Lane::Number(x));
                        continue;
                    }
                    None => return false,
                },
            };
            lanes.sources.push(Lane::Tensor(lanes.tensors.len()));
            lanes.tensors.push(tensor);
        }
        !lanes.tensors.is_empty()
    }

    /// Whether every output, computed separately, has the shape that all inputs broadcast to.
    fn outputs_have_common_shape(&self, lanes: &Lanes<'_>) -> bool {
        let sizes = lanes.tensors[0].sizes();
        if lanes.tensors.iter().all(|t| same_sizes(t.sizes(), sizes)) {
            return true;
        }
        let shape_of = |inputs: &mut dyn Iterator<Item = usize>| {
            let mut shape = Dims::new();
            for input in inputs {
                if let Lane::Tensor(t) = lanes.sources[input] {
                    broadcast_into(&mut shape, lanes.tensors[t].sizes()).ok()?;
                }
            }
            Some(shape)
        };
        let Some(all) = shape_of(&mut (0..lanes.sources.len())) else { return false };
        let reads = |output: &Vec<u32>| shape_of(&mut output.iter().map(|&i| i as usize));
        self.tiled.program.reads.iter().all(|output| reads(output).as_ref() == Some(&all))
    }

    /// Computes a group of any size whose outputs have a common shape; returns whether they are row-major or have the layout of the
    /// inputs.
    fn sweep<T: Real>(
        &self,
        pool: &TilePool<T>,
        lanes: &Lanes<'_>,
        rets: &mut Rets,
    ) -> Result<bool, KernelError> {
        let (program, sources) = (&self.tiled.program, &lanes.sources[..]);
        let outputs = program.outputs.len();
        let block = |ins: &[&[T]], outs: &mut [&mut [T]]| run_block(program, pool, sources, ins, outs);
        let to = |made| rets.push(IValue::Tensor(made));
        if loops::one_strided_block::<T>(&lanes.tensors, outputs, block, to)? {
            return Ok(true);
        }
        let made = loops::blockwise::<T, _>(&lanes.tensors, outputs, |block| {
            let mut tiles = pool.acquire(program);
            tiles.get().begin(program, sources, block);
            move |ins: &[&[T]], outs: &mut [&mut [T]]| tiles.get().run(program, sources, ins, outs)
        })?;
        let is_made = made.is_some();
        rets.extend(made.into_iter().flatten().map(IValue::Tensor));
        Ok(is_made)
    }
}

/// Computes a group of a single block.
#[inline(always)]
fn run_block<T: Real>(
    program: &TileProgram,
    pool: &TilePool<T>,
    sources: &[Lane],
    ins: &[&[T]],
    outs: &mut [&mut [T]],
) {
    let mut tiles = pool.acquire(program);
    let tiles = tiles.get();
    tiles.begin(program, sources, outs.first().map_or(0, |out| out.len()));
    tiles.run(program, sources, ins, outs);
}

/// Computes a group with chunks of the last dimension row by row, so that each piece is a part of a row; returns whether
/// that is possible. No view is created.
fn run_rows<T: Real>(
    program: &TileProgram,
    pool: &TilePool<T>,
    args: &[IValue],
    rets: &mut Rets,
) -> Result<bool, KernelError> {
    let mut tiles = pool.acquire(program);
    let tiles = tiles.get();
    // Shapes seldom change from run to run, and finding the rows takes as long as computing some.
    let known = tiles.rows.take().filter(|plan| plan.holds_for(args));
    let Some(mut plan) = known.or_else(|| RowPlan::of(program, args).map(Box::new)) else {
        return Ok(false);
    };
    let length = plan.sizes.last().map_or(0, |&n| n as usize);
    let row_length = length.saturating_mul(plan.widest);
    let is_done = row_length <= tile::longest::<T>(plan.widest) && plan.read_numbers(args) && {
        tiles.begin(program, &plan.sources, row_length);
        let row = |ins: &[&[T]], outs: &mut [&mut [T]]| tiles.run(program, &plan.sources, ins, outs);
        let (outputs, to) = (program.outputs.len(), |made| rets.push(IValue::Tensor(made)));
        loops::each_row::<T>(&plan.tensors(args), &plan.parts, &plan.sizes, outputs, row, to)?
    };
    tiles.rows = Some(plan);
    Ok(is_done)
}

/// Returns the dtype of all tensors if they have one dtype and tiles support it.
fn common_dtype(args: &[IValue]) -> Option<DType> {
    let mut found = None;
    for arg in args {
        if let IValue::Tensor(t) = arg {
            if found.is_some_and(|d| d != t.dtype()) {
                return None;
            }
            found = Some(t.dtype());
        }
    }
    found.filter(|d| matches!(d, DType::F32 | DType::F64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pointwise::{Pointwise, TileOp};
    use flambeau_ir::text::parse_graph;
    use flambeau_ir::{OpDef, Registry, RegistryBuilder, Source};

    /// A recurrent cell: the halves of a sum of three tensors are combined with a fourth one.
    const CELL: &str = "graph(%c : Tensor, %x : Tensor, %h : Tensor, %b : Tensor):
  %x0 : Tensor, %x1 : Tensor, %h0 : Tensor, %h1 : Tensor, %b0 : Tensor, %b1 : Tensor = prim::BroadcastingChunk[chunks=2, dim=1](%x, %h, %b)
  %s0 : Tensor = toy::add(%x0, %h0)
  %s1 : Tensor = toy::add(%x1, %h1)
  %p : Tensor = toy::add(%s0, %b0)
  %q : Tensor = toy::add(%s1, %b1)
  %pq : Tensor = toy::mul(%p, %q)
  %r : Tensor = toy::add(%pq, %c)
  return (%r)
";

    fn sums_and_products() -> Arc<Registry> {
        let mut builder = RegistryBuilder::new();
        builder.add([
            OpDef::new("toy::add(Tensor a, Tensor b) -> Tensor").with(Pointwise::binary(TileOp::Add)),
            OpDef::new("toy::mul(Tensor a, Tensor b) -> Tensor").with(Pointwise::binary(TileOp::Mul)),
        ]);
        builder.build().expect("the schemas are right")
    }

    fn cell() -> FusedGroup {
        let registry = sums_and_products();
        let graph = parse_graph(&Source::new("cell.ir", CELL), &registry).expect("the cell reads");
        FusedGroup::compile(&Arc::new(graph)).expect("all operators have formulas")
    }

    fn numbers(sizes: &[i64]) -> IValue {
        let n: i64 = sizes.iter().product();
        IValue::Tensor(Tensor::from_vec((0..n).map(|i| i as f32).collect(), sizes).expect("memory"))
    }

    /// Returns the result of the tiles, if they can compute the group.
    fn run(group: &FusedGroup, args: &[IValue]) -> Option<Tensor> {
        let mut rets = Rets::new();
        group.run(args, &mut rets).expect("no error").then(|| rets[0].as_tensor().expect("a tensor").clone())
    }

    #[test]
    fn arguments_that_are_split_need_not_have_the_shape_of_the_outputs() {
        let group = cell();
        let row = [numbers(&[1, 3]), numbers(&[1, 6]), numbers(&[1, 6]), numbers(&[6])];
        let found = run(&group, &row).expect("one row");
        // Three times i, times three times (i + 3), plus i.
        assert_eq!(found.to_vec::<f32>().expect("f32"), [0.0, 37.0, 92.0]);
        assert_eq!(found.sizes(), [1, 3]);
        let rows = [numbers(&[2, 3]), numbers(&[2, 6]), numbers(&[1, 6]), numbers(&[6])];
        let found = run(&group, &rows).expect("two rows");
        assert_eq!(found.to_vec::<f32>().expect("f32"), [0.0, 37.0, 92.0, 93.0, 166.0, 257.0]);
        // Rows that are not adjacent are split by views.
        let IValue::Tensor(wide) = numbers(&[2, 8]) else { unreachable!() };
        let part = IValue::Tensor(wide.narrow(1, 1, 6).expect("columns"));
        assert!(run(&group, &[numbers(&[2, 3]), part, numbers(&[1, 6]), numbers(&[6])]).is_some());
        // The sum of columns and the final sum, of which they are the first operand, are columns.
        let IValue::Tensor(turned) = numbers(&[6, 2]) else { unreachable!() };
        let turned = IValue::Tensor(turned.t().expect("a matrix"));
        let columns = [numbers(&[2, 3]), turned, numbers(&[1, 6]), numbers(&[6])];
        assert!(run(&group, &columns).is_none());
        let other = [numbers(&[2, 3]), numbers(&[2, 6]), numbers(&[1, 5]), numbers(&[6])];
        assert!(run(&group, &other).is_none(), "the bytecode reports the error");
    }

    /// Returns a program of random steps on the pieces of two tensors and on one that is not split.
    fn random_program(chunks: usize, random: &mut impl FnMut(usize) -> usize) -> String {
        let pieces = |name: &str| (0..chunks).map(|i| format!("%{name}{i}")).collect::<Vec<_>>();
        let all = [pieces("x"), pieces("h")].concat();
        let typed: Vec<String> = all.iter().map(|name| format!("{name} : Tensor")).collect();
        let mut text = format!(
            "graph(%c : Tensor, %x : Tensor, %h : Tensor):\n  {} = prim::BroadcastingChunk[chunks={chunks}, dim=1](%x, %h)\n",
            typed.join(", ")
        );
        let mut rows: Vec<Vec<String>> = vec![pieces("x"), pieces("h")];
        let step = |text: &mut String, name: String, a: &str, b: &str, product: bool| {
            let op = if product { "mul" } else { "add" };
            text.push_str(&format!("  {name} : Tensor = toy::{op}({a}, {b})\n"));
            name
        };
        for k in 0..3 + random(3) {
            let (a, b, product) = (random(rows.len()), random(rows.len()), random(2) == 0);
            // Sometimes one piece is computed in another way, so that the steps are no pack.
            let other = random(3 * chunks);
            let made = (0..chunks).map(|i| {
                let right = if i == other { "%c".to_owned() } else { rows[b][i].clone() };
                step(&mut text, format!("%s{k}_{i}"), &rows[a][i], &right, product)
            });
            let made: Vec<String> = made.collect();
            rows.push(made);
        }
        let last = rows.last().expect("steps").clone();
        let mut sum = "%c".to_owned();
        for (i, piece) in last.iter().enumerate() {
            sum = step(&mut text, format!("%t{i}"), &sum, piece, i % 2 == 1);
        }
        let more = if random(2) == 0 { format!(", {}", last[random(chunks)]) } else { String::new() };
        text.push_str(&format!("  return ({sum}{more})\n"));
        text
    }

    #[test]
    fn whole_rows_have_the_results_of_their_pieces() {
        let registry = sums_and_products();
        let mut state = 7_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        let mut by_row = 0;
        for _ in 0..200 {
            let chunks = 2 + random(3);
            let text = random_program(chunks, &mut random);
            let graph = parse_graph(&Source::new("rows.ir", &text), &registry).expect("the program reads");
            let graph = Arc::new(graph);
            let group = FusedGroup::compile(&graph).expect("all operators have formulas");
            let narrow = FusedGroup { by_row: None, ..FusedGroup::compile(&graph).expect("as before") };
            by_row += usize::from(group.by_row.is_some());
            for width in [1, 3, 8, 16, 21, 400, 1021] {
                let (rows, all) = (1 + random(3) as i64, (chunks * width) as i64);
                let one = [1, all];
                let args = [
                    numbers(&[rows, width as i64]),
                    numbers(&[rows, all]),
                    numbers(if random(2) == 0 { &one } else { &one[1..] }),
                ];
                let results = [&group, &narrow].map(|group| {
                    let mut rets = Rets::new();
                    let is_done = group.run(&args, &mut rets).expect("no error");
                    let bits =
                        |value: &IValue| value.as_tensor().expect("a tensor").to_bytes().expect("memory");
                    is_done.then(|| rets.iter().map(bits).collect::<Vec<_>>())
                });
                assert!(results[0].is_some(), "{text}");
                assert_eq!(results[0], results[1], "width {width}: {text}");
            }
        }
        assert!(by_row > 50, "{by_row} programs compute whole rows");
    }
}
