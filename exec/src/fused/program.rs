//! Tile programs: an expression with a tile assigned to each of its steps.

use super::pairs::{self, Arithmetic};
use crate::pointwise::{TileOp, TileStep, TileVal};

/// The source of an input's elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TileInput {
    /// An argument of the group.
    Arg(u32),
    /// A piece of a chunk, by its position in [`TileProgram::pieces`].
    Piece(u32),
    /// An argument of a chunk that is not split: a row of it has the pieces one after the other. The piece is its first one.
    Whole(u32),
}

/// Tensor arguments that are broadcast to one shape and split into views before the computation.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) args: Vec<u32>,
    pub(super) chunks: i64,
    pub(super) dim: i64,
}

/// A piece of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) chunk: u32,
    /// The argument that is split.
    pub(super) arg: u32,
    /// The position among the pieces of the argument.
    pub(super) number: u32,
}

/// An operand or destination of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Slot {
    /// An input of the program, by number.
    Input(u32),
    /// A constant.
    Const(u32),
    /// A tile.
    Tile(u32),
    /// An output.
    Output(u32),
    /// A piece of a tile that has several.
    Piece { tile: u32, number: u32 },
}

/// What a step computes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Single(TileOp),
    /// The first operation on the first two operands, the second one on its result and the third operand.
    Pair([Arithmetic; 2]),
}

impl Operation {
    pub(super) fn arity(self) -> usize {
        match self {
            Operation::Single(op) => op.arity(),
            Operation::Pair(_) => 3,
        }
    }
}

/// One step: `to = op(args)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) op: Operation,
    pub(super) args: [Slot; 3],
    pub(super) to: Slot,
    /// How many rows of an output the operands and the result have the length of.
    pub(super) pieces: u32,
}

/// A value of an expression some steps of which compute several pieces at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Input(u32),
    Const(f64),
    Step(u32),
    /// A piece of the result of a step.
    Piece {
        step: u32,
        number: u32,
    },
}

impl Value {
    pub(super) fn is_constant(self) -> bool {
        matches!(self, Value::Const(_))
    }

    /// The step that computes the value.
    pub(super) fn step(self) -> Option<usize> {
        match self {
            Value::Step(step) | Value::Piece { step, .. } => Some(step as usize),
            Value::Input(_) | Value::Const(_) => None,
        }
    }
}

impl From<TileVal> for Value {
    fn from(value: TileVal) -> Value {
        match value {
            TileVal::Input(i) => Value::Input(i),
            TileVal::Const(x) => Value::Const(x),
            TileVal::Step(s) => Value::Step(s),
        }
    }
}

/// A step of an expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueStep {
    pub(super) op: Operation,
    pub(super) args: [Value; 3],
    /// The number of pieces that it computes: 1, or those of a chunk.
    pub(super) pieces: u32,
}

impl From<&TileStep> for ValueStep {
    fn from(step: &TileStep) -> ValueStep {
        ValueStep { op: Operation::Single(step.op), args: step.args.map(Value::from), pieces: 1 }
    }
}

/// A tile program.
#[derive(Debug)]
pub(super) struct TileProgram {
    pub(super) chunks: Vec<Chunk>,
    /// The pieces of all chunks, of one chunk after the other, of one argument after the other.
    pub(super) pieces: Vec<Piece>,
    pub(super) inputs: Vec<TileInput>,
    pub(super) constants: Vec<f64>,
    pub(super) steps: Vec<Step>,
    /// Per output, the number of the output that holds its value: its own, or an earlier one that is the same value.
    pub(super) outputs: Vec<u32>,
    /// The outputs that are masks: their elements are 0 and 1.
    pub(super) masks: Vec<u32>,
    pub(super) tiles: u32,
    /// Per output, the inputs it depends on.
    pub(super) reads: Vec<Vec<u32>>,
}

/// The steps of an expression and its output values.
pub(super) struct Expression<'a> {
    pub(super) steps: &'a [ValueStep],
    pub(super) outputs: &'a [Value],
}

/// Returns the pieces of chunks, in the order of [`TileProgram::pieces`].
pub(super) fn pieces_of(chunks: &[Chunk]) -> Vec<Piece> {
    let pieces = chunks.iter().zip(0..).flat_map(|(chunk, at)| {
        let piece = move |arg| (0..chunk.chunks as u32).map(move |number| Piece { chunk: at, arg, number });
        chunk.args.iter().copied().flat_map(piece)
    });
    pieces.collect()
}

impl TileProgram {
    /// Combines pairs of steps and assigns tiles to steps, reusing a tile after the last use of its value. Returns `None` if an
    /// output is not the result of a step.
    pub(super) fn of(
        expression: &Expression<'_>,
        inputs: Vec<TileInput>,
        chunks: Vec<Chunk>,
    ) -> Option<TileProgram> {
        let (steps, outputs) = pairs::paired(expression);
        let expression = &Expression { steps: &steps, outputs: &outputs };
        let mut last = vec![0usize; steps.len()];
        for (i, step) in steps.iter().enumerate() {
            for arg in &step.args[..step.op.arity()] {
                if let Some(s) = arg.step() {
                    last[s] = i + 1;
                }
            }
        }
        let mut place: Vec<Option<Slot>> = vec![None; steps.len()];
        let mut outputs = Vec::new();
        for (k, output) in expression.outputs.iter().enumerate() {
            let Value::Step(s) = output else { return None };
            let slot = place[*s as usize].get_or_insert(Slot::Output(k as u32));
            let Slot::Output(at) = *slot else { return None };
            outputs.push(at);
        }
        let is_mask = |output: &Value| {
            output.step().is_some_and(|step| matches!(steps[step].op, Operation::Single(op) if op.is_mask()))
        };
        let masks =
            (0..).zip(expression.outputs).filter(|(_, output)| is_mask(output)).map(|(k, _)| k).collect();
        let mut program = TileProgram {
            pieces: pieces_of(&chunks),
            chunks,
            inputs,
            constants: Vec::new(),
            steps: Vec::new(),
            outputs,
            masks,
            tiles: 0,
            reads: Vec::new(),
        };
        let mut free: Vec<u32> = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            let arity = step.op.arity();
            let mut args = [Slot::Tile(0); 3];
            for (slot, arg) in args.iter_mut().zip(step.args) {
                *slot = match arg {
                    Value::Input(i) => Slot::Input(i),
                    Value::Const(x) => Slot::Const(program.constant(x)),
                    Value::Step(s) => place[s as usize]?,
                    Value::Piece { step, number } => match place[step as usize]? {
                        Slot::Tile(tile) => Slot::Piece { tile, number },
                        _ => return None,
                    },
                };
            }
            // The destination is allocated before dead operands are freed, so it differs from all operands.
            let to = *place[i].get_or_insert_with(|| {
                Slot::Tile(free.pop().unwrap_or_else(|| {
                    program.tiles += 1;
                    program.tiles - 1
                }))
            });
            let mut released: Vec<u32> = Vec::new();
            for arg in &step.args[..arity] {
                if let Some(s) = arg.step()
                    && last[s] == i + 1
                    && let Some(Slot::Tile(t)) = place[s]
                    && !released.contains(&t)
                {
                    released.push(t);
                }
            }
            free.append(&mut released);
            program.steps.push(Step { op: step.op, args, to, pieces: step.pieces });
        }
        program.find_reads(expression);
        Some(program)
    }

    /// The largest number of pieces that a step computes.
    pub(super) fn widest(&self) -> usize {
        self.steps.iter().map(|step| step.pieces).max().unwrap_or(1) as usize
    }

    fn constant(&mut self, x: f64) -> u32 {
        let known = self.constants.iter().position(|c| c.to_bits() == x.to_bits());
        known.unwrap_or_else(|| {
            self.constants.push(x);
            self.constants.len() - 1
        }) as u32
    }

    /// Computes `reads`: the inputs of each output, found by walking the steps backwards.
    fn find_reads(&mut self, expression: &Expression<'_>) {
        for output in expression.outputs {
            let Value::Step(root) = output else { continue };
            let mut wanted = vec![false; expression.steps.len()];
            wanted[*root as usize] = true;
            let mut reads = vec![false; self.inputs.len()];
            for i in (0..=*root as usize).rev() {
                if !wanted[i] {
                    continue;
                }
                for arg in &expression.steps[i].args[..expression.steps[i].op.arity()] {
                    match arg {
                        Value::Step(step) | Value::Piece { step, .. } => wanted[*step as usize] = true,
                        Value::Input(k) => reads[*k as usize] = true,
                        Value::Const(_) => {}
                    }
                }
            }
            self.reads.push(reads.iter().enumerate().filter(|r| *r.1).map(|r| r.0 as u32).collect());
        }
    }
}
