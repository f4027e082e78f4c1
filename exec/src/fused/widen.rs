//! Steps on whole rows instead of their pieces.
//!
//! A chunk of the last dimension takes pieces of rows that lie one after the other. If a program applies one operation to
//! every piece (the gates of a recurrent cell are sums, each of which is split into four), one step on the whole row
//! computes the same: elements are independent. Later steps read the pieces of its tile. As in superword-level parallelism,
//! such isomorphic steps are a *pack*.

use super::program::{Chunk, Expression, Operation, Piece, TileInput, Value, ValueStep, pieces_of};
use crate::pointwise::{TileOp, TileStep, TileVal};

/// An expression in which each step computes a piece.
pub(super) struct Narrow<'a> {
    pub(super) steps: &'a [TileStep],
    pub(super) outputs: &'a [TileVal],
    pub(super) inputs: &'a [TileInput],
    pub(super) chunks: &'a [Chunk],
    /// Whether an input is a number, the same for all pieces.
    pub(super) is_number: &'a dyn Fn(u32) -> bool,
}

/// An expression in which some steps compute all pieces of a row.
pub(super) struct Widened {
    steps: Vec<ValueStep>,
    outputs: Vec<Value>,
    pub(super) inputs: Vec<TileInput>,
}

impl Widened {
    pub(super) fn expression(&self) -> Expression<'_> {
        Expression { steps: &self.steps, outputs: &self.outputs }
    }
}

/// An operand of the steps of a [`Pack`].
#[derive(Clone, Copy, PartialEq)]
enum Operand {
    /// The same number for all pieces.
    Same(TileVal),
    /// The pieces of an argument, of which this is the first one.
    Whole(u32),
    /// The results of another pack.
    Pack(usize),
}

/// Isomorphic steps: they apply one operation to the pieces of the same operands.
struct Pack {
    op: TileOp,
    operands: [Operand; 3],
    /// The step for each piece.
    members: Vec<Option<usize>>,
    is_complete: bool,
}

/// Returns the expression with one step for each pack of steps; `None` if there is no pack.
pub(super) fn widened(narrow: &Narrow<'_>) -> Option<Widened> {
    if narrow.chunks.is_empty() {
        return None;
    }
    let pieces = pieces_of(narrow.chunks);
    let (mut packs, member_of) = packs(narrow, &pieces);
    for i in 0..packs.len() {
        let of_complete = |operand: &Operand| match operand {
            Operand::Pack(of) => packs[*of].is_complete,
            Operand::Same(_) | Operand::Whole(_) => true,
        };
        // Outputs are rows of their own.
        let is_inner =
            |step: &Option<usize>| step.is_some_and(|s| !narrow.outputs.contains(&TileVal::Step(s as u32)));
        let pack = &packs[i];
        packs[i].is_complete = pack.members.iter().all(is_inner) && pack.operands.iter().all(of_complete);
    }
    packs.iter().any(|pack| pack.is_complete).then(|| rewritten(narrow, &pieces, &packs, &member_of))
}

/// Finds the packs, and for each step its pack and the number of its piece.
fn packs(narrow: &Narrow<'_>, pieces: &[Piece]) -> (Vec<Pack>, Vec<Option<(usize, u32)>>) {
    let mut packs: Vec<Pack> = Vec::new();
    let mut member_of: Vec<Option<(usize, u32)>> = Vec::with_capacity(narrow.steps.len());
    for (i, step) in narrow.steps.iter().enumerate() {
        // The number of the piece that the step computes, and of how many.
        let mut lane: Option<(u32, usize)> = None;
        let mut operand = |value: TileVal| {
            let (operand, found) = match value {
                TileVal::Const(_) => return Some(Operand::Same(value)),
                TileVal::Input(input) if (narrow.is_number)(input) => return Some(Operand::Same(value)),
                TileVal::Input(input) => match narrow.inputs[input as usize] {
                    TileInput::Piece(at) => {
                        let Piece { chunk, number, .. } = pieces[at as usize];
                        let count = narrow.chunks[chunk as usize].chunks as usize;
                        (Operand::Whole(at - number), (number, count))
                    }
                    TileInput::Arg(_) | TileInput::Whole(_) => return None,
                },
                TileVal::Step(step) => {
                    let (pack, number) = member_of[step as usize]?;
                    (Operand::Pack(pack), (number, packs[pack].members.len()))
                }
            };
            (*lane.get_or_insert(found) == found).then_some(operand)
        };
        let [a, b, c] = step.args.map(&mut operand);
        let member = match (a, b, c, lane) {
            (Some(a), Some(b), Some(c), Some((number, count))) => {
                let operands = [a, b, c];
                let is_same =
                    |f: &Pack| f.op == step.op && f.operands == operands && f.members.len() == count;
                let at = packs.iter().position(is_same).unwrap_or_else(|| {
                    let members = vec![None; count];
                    packs.push(Pack { op: step.op, operands, members, is_complete: false });
                    packs.len() - 1
                });
                let slot = &mut packs[at].members[number as usize];
                slot.is_none().then(|| {
                    *slot = Some(i);
                    (at, number)
                })
            }
            _ => None,
        };
        member_of.push(member);
    }
    (packs, member_of)
}

/// Replaces the complete packs by steps on whole rows, which come first: they depend on nothing else.
fn rewritten(
    narrow: &Narrow<'_>,
    pieces: &[Piece],
    packs: &[Pack],
    member_of: &[Option<(usize, u32)>],
) -> Widened {
    let mut inputs: Vec<TileInput> = Vec::new();
    let whole: Vec<u32> = packs
        .iter()
        .filter(|pack| pack.is_complete)
        .flat_map(|pack| pack.operands)
        .filter_map(|operand| match operand {
            Operand::Whole(first) => Some(first),
            Operand::Same(_) | Operand::Pack(_) => None,
        })
        .collect();
    // Pieces that only packs read are no longer inputs.
    let is_read = |input: u32| {
        let reads = |(step, member): (&TileStep, &Option<(usize, u32)>)| {
            !member.is_some_and(|(pack, _)| packs[pack].is_complete)
                && step.args.contains(&TileVal::Input(input))
        };
        narrow.steps.iter().zip(member_of).any(reads)
    };
    let mut input_at: Vec<u32> = Vec::with_capacity(narrow.inputs.len());
    for (i, input) in narrow.inputs.iter().enumerate() {
        input_at.push(inputs.len() as u32);
        let is_replaced = match *input {
            TileInput::Piece(at) => whole.contains(&(at - pieces[at as usize].number)) && !is_read(i as u32),
            TileInput::Arg(_) | TileInput::Whole(_) => false,
        };
        if !is_replaced {
            inputs.push(*input);
        }
    }
    let mut steps: Vec<ValueStep> = Vec::new();
    let mut step_of: Vec<u32> = vec![0; packs.len()];
    for (i, pack) in packs.iter().enumerate().filter(|(_, pack)| pack.is_complete) {
        let args = pack.operands.map(|operand| match operand {
            Operand::Same(TileVal::Input(input)) => Value::Input(input_at[input as usize]),
            Operand::Same(value) => Value::from(value),
            Operand::Whole(first) => {
                let known = inputs.iter().position(|input| *input == TileInput::Whole(first));
                Value::Input(known.unwrap_or_else(|| {
                    inputs.push(TileInput::Whole(first));
                    inputs.len() - 1
                }) as u32)
            }
            Operand::Pack(of) => Value::Step(step_of[of]),
        });
        step_of[i] = steps.len() as u32;
        steps.push(ValueStep { op: Operation::Single(pack.op), args, pieces: pack.members.len() as u32 });
    }
    let mut values: Vec<Value> = Vec::with_capacity(narrow.steps.len());
    for (step, member) in narrow.steps.iter().zip(member_of) {
        if let Some((pack, number)) = *member
            && packs[pack].is_complete
        {
            values.push(Value::Piece { step: step_of[pack], number });
            continue;
        }
        let args = step.args.map(|arg| match arg {
            TileVal::Input(input) => Value::Input(input_at[input as usize]),
            TileVal::Const(x) => Value::Const(x),
            TileVal::Step(s) => values[s as usize],
        });
        values.push(Value::Step(steps.len() as u32));
        steps.push(ValueStep { op: Operation::Single(step.op), args, pieces: 1 });
    }
    let outputs = narrow.outputs.iter().map(|output| match *output {
        TileVal::Step(s) => values[s as usize],
        other => Value::from(other),
    });
    Widened { outputs: outputs.collect(), steps, inputs }
}
