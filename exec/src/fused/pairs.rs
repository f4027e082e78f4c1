//! Pairs of arithmetic operations that are computed in one loop: the result of the first stays in a register.
//!
//! Steps of additions and products are limited by loads and stores of tiles, not by arithmetic. A pair has one store less than its two
//! operations, and constants need no loads. Each operation rounds by itself, so results are those of separate steps.

use super::lanes::GROUP;
use super::program::{Expression, Operation, Value, ValueStep};
use crate::pointwise::TileOp;
use flambeau_tensor::math::Real;
use flambeau_tensor::simd::{self, InstructionSets, Multiversioned};

/// An operation of a pair, on the value so far and an operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arithmetic {
    /// `value + operand`
    Add,
    /// `value - operand`
    Sub,
    /// `operand - value`
    SubFrom,
    /// `value * operand`
    Mul,
}

impl Arithmetic {
    fn of_step(op: Operation) -> Option<Arithmetic> {
        match op {
            Operation::Single(TileOp::Add) => Some(Arithmetic::Add),
            Operation::Single(TileOp::Sub) => Some(Arithmetic::Sub),
            Operation::Single(TileOp::Mul) => Some(Arithmetic::Mul),
            _ => None,
        }
    }

    /// The operation with value and operand exchanged.
    fn exchanged(self) -> Arithmetic {
        match self {
            Arithmetic::Sub => Arithmetic::SubFrom,
            Arithmetic::SubFrom => Arithmetic::Sub,
            Arithmetic::Add | Arithmetic::Mul => self,
        }
    }
}

/// Combines each addition, subtraction or product with the next one, if nothing else uses its result. Returns the steps and the
/// outputs of the expression with pairs.
pub(super) fn paired(expression: &Expression<'_>) -> (Vec<ValueStep>, Vec<Value>) {
    let steps = expression.steps;
    let mut uses = vec![0_usize; steps.len()];
    let operands = steps.iter().flat_map(|step| &step.args[..step.op.arity()]);
    for step in operands.filter_map(|value| value.step()) {
        uses[step] += 1;
    }
    let mut combined: Vec<Option<ValueStep>> = steps.iter().copied().map(Some).collect();
    for (i, step) in steps.iter().enumerate() {
        let Some(second) = Arithmetic::of_step(step.op) else { continue };
        let candidates = [(0, second), (1, second.exchanged())];
        let pair = candidates.into_iter().find_map(|(position, second)| {
            let Value::Step(from) = step.args[position] else { return None };
            let first = combined[from as usize].filter(|first| first.pieces == step.pieces)?;
            // An output is stored too.
            let is_inner = uses[from as usize] == 1 && !expression.outputs.contains(&step.args[position]);
            let op = Arithmetic::of_step(first.op).filter(|_| is_inner)?;
            let [a, b, _] = first.args;
            // The left operand is always read from memory, so a constant goes to the right.
            let (op, a, b) = if a.is_constant() { (op.exchanged(), b, a) } else { (op, a, b) };
            let args = [a, b, step.args[1 - position]];
            Some((from, ValueStep { op: Operation::Pair([op, second]), args, pieces: step.pieces }))
        });
        if let Some((from, pair)) = pair {
            combined[from as usize] = None;
            combined[i] = Some(pair);
        }
    }
    // The numbers of the steps that remain.
    let mut number = Vec::with_capacity(steps.len());
    let mut count = 0;
    for step in &combined {
        number.push(count);
        count += u32::from(step.is_some());
    }
    let renumbered = |value: Value| match value {
        Value::Step(step) => Value::Step(number[step as usize]),
        Value::Piece { step, number: piece } => Value::Piece { step: number[step as usize], number: piece },
        Value::Input(_) | Value::Const(_) => value,
    };
    let outputs = expression.outputs.iter().map(|output| renumbered(*output)).collect();
    let steps = combined.into_iter().flatten();
    let steps = steps.map(|step| {
        // Operands behind the arity repeat the first one: the steps of others may be gone.
        let operand = |i| if i < step.op.arity() { step.args[i] } else { step.args[0] };
        ValueStep { args: [0, 1, 2].map(|i| renumbered(operand(i))), ..step }
    });
    (steps.collect(), outputs)
}

/// An operand of a pair.
#[derive(Clone, Copy)]
pub(super) enum Operand<'a, T> {
    Row(&'a [T]),
    /// The same number for all lanes.
    Number(T),
}

/// [`Arithmetic`] as a type, whose method is inlined into loops.
trait Operator: Copy {
    fn apply<T: Real>(value: T, operand: T) -> T;
}

#[derive(Clone, Copy)]
struct Add;
#[derive(Clone, Copy)]
struct Sub;
#[derive(Clone, Copy)]
struct SubFrom;
#[derive(Clone, Copy)]
struct Mul;

impl Operator for Add {
    #[inline(always)]
    fn apply<T: Real>(value: T, operand: T) -> T {
        value + operand
    }
}

impl Operator for Sub {
    #[inline(always)]
    fn apply<T: Real>(value: T, operand: T) -> T {
        value - operand
    }
}

impl Operator for SubFrom {
    #[inline(always)]
    fn apply<T: Real>(value: T, operand: T) -> T {
        operand - value
    }
}

impl Operator for Mul {
    #[inline(always)]
    fn apply<T: Real>(value: T, operand: T) -> T {
        value * operand
    }
}

/// An operation of a pair with its operand.
trait Half<T>: Copy {
    /// Limits the operand to `n` lanes.
    fn cut(self, n: usize) -> Self;
    /// Computes lane `i` from the value so far.
    fn at(self, value: T, i: usize) -> T;
}

#[derive(Clone, Copy)]
struct WithRow<'a, O, T>(O, &'a [T]);

impl<O: Operator, T: Real> Half<T> for WithRow<'_, O, T> {
    #[inline(always)]
    fn cut(self, n: usize) -> Self {
        WithRow(self.0, &self.1[..n])
    }
    #[inline(always)]
    fn at(self, value: T, i: usize) -> T {
        O::apply(value, self.1[i])
    }
}

#[derive(Clone, Copy)]
struct WithNumber<O, T>(O, T);

impl<O: Operator, T: Real> Half<T> for WithNumber<O, T> {
    #[inline(always)]
    fn cut(self, _: usize) -> Self {
        self
    }
    #[inline(always)]
    fn at(self, value: T, _: usize) -> T {
        O::apply(value, self.1)
    }
}

/// A pair applied to a tile.
struct Pair<'a, T, F, S> {
    to: &'a mut [T],
    value: &'a [T],
    first: F,
    second: S,
}

impl<T: Real, F: Half<T>, S: Half<T>> Pair<'_, T, F, S> {
    /// Computes all lanes. The destination is a function parameter, not a field, so that the compiler may assume that it overlaps no
    /// operand.
    #[inline(always)]
    fn vectorized_loop(to: &mut [T], value: &[T], first: F, second: S) {
        let n = to.len() & !(GROUP - 1);
        let (to, value, first, second) = (&mut to[..n], &value[..n], first.cut(n), second.cut(n));
        for i in 0..n {
            to[i] = second.at(first.at(value[i], i), i);
        }
    }
}

impl<T: Real, F: Half<T>, S: Half<T>> Multiversioned for Pair<'_, T, F, S> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::UpToAvx512;

    #[inline(always)]
    fn run(self) {
        Self::vectorized_loop(self.to, self.value, self.first, self.second);
    }
}

/// Applies a pair to the whole groups of a tile; rows must be at least as long as the destination.
pub(super) fn apply<T: Real>(
    [first, second]: [Arithmetic; 2],
    to: &mut [T],
    value: &[T],
    [b, c]: [Operand<'_, T>; 2],
) {
    use Operand::{Number, Row};
    match (first, b) {
        (Arithmetic::Add, Row(b)) => apply_after(WithRow(Add, b), second, to, value, c),
        (Arithmetic::Sub, Row(b)) => apply_after(WithRow(Sub, b), second, to, value, c),
        (Arithmetic::SubFrom, Row(b)) => apply_after(WithRow(SubFrom, b), second, to, value, c),
        (Arithmetic::Mul, Row(b)) => apply_after(WithRow(Mul, b), second, to, value, c),
        (Arithmetic::Add, Number(b)) => apply_after(WithNumber(Add, b), second, to, value, c),
        // Equal to the difference, except for the sign of NaN.
        (Arithmetic::Sub, Number(b)) => apply_after(WithNumber(Add, -b), second, to, value, c),
        (Arithmetic::SubFrom, Number(b)) => apply_after(WithNumber(SubFrom, b), second, to, value, c),
        (Arithmetic::Mul, Number(b)) => apply_after(WithNumber(Mul, b), second, to, value, c),
    }
}

fn apply_after<T: Real>(
    first: impl Half<T>,
    second: Arithmetic,
    to: &mut [T],
    value: &[T],
    operand: Operand<'_, T>,
) {
    use Operand::{Number, Row};
    match (second, operand) {
        (Arithmetic::Add, Row(c)) => simd::run(Pair { to, value, first, second: WithRow(Add, c) }),
        (Arithmetic::Sub, Row(c)) => simd::run(Pair { to, value, first, second: WithRow(Sub, c) }),
        (Arithmetic::SubFrom, Row(c)) => simd::run(Pair { to, value, first, second: WithRow(SubFrom, c) }),
        (Arithmetic::Mul, Row(c)) => simd::run(Pair { to, value, first, second: WithRow(Mul, c) }),
        (Arithmetic::Add, Number(c)) => simd::run(Pair { to, value, first, second: WithNumber(Add, c) }),
        (Arithmetic::Sub, Number(c)) => simd::run(Pair { to, value, first, second: WithNumber(Add, -c) }),
        (Arithmetic::SubFrom, Number(c)) => {
            simd::run(Pair { to, value, first, second: WithNumber(SubFrom, c) });
        }
        (Arithmetic::Mul, Number(c)) => simd::run(Pair { to, value, first, second: WithNumber(Mul, c) }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Lane;
    use super::super::program::{TileInput, TileProgram};
    use super::super::tile::TilePool;
    use super::*;

    /// Returns random numbers below a bound.
    fn numbers(mut state: u64) -> impl FnMut(usize) -> usize {
        move |below| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        }
    }

    /// Returns random steps on two rows and a number.
    fn random_steps(random: &mut impl FnMut(usize) -> usize) -> Vec<ValueStep> {
        let ops = [TileOp::Add, TileOp::Sub, TileOp::Mul, TileOp::Add, TileOp::Mul, TileOp::Neg, TileOp::Div];
        (0..2 + random(9))
            .map(|i| {
                let op = ops[random(ops.len())];
                let args = [0; 3].map(|_| match random(8) {
                    0 => Value::Const(0.1),
                    1 => Value::Const(-3.0),
                    2..=4 => Value::Input(random(3) as u32),
                    _ if i == 0 => Value::Input(0),
                    _ => Value::Step(random(2).min(i - 1) as u32 + (i as u32 - 1).saturating_sub(1)),
                });
                ValueStep { op: Operation::Single(op), args, pieces: 1 }
            })
            .collect()
    }

    #[test]
    fn pairs_have_the_results_of_their_steps() {
        let mut random = numbers(3);
        let mut pairs = 0;
        for case in 0..400 {
            let steps = random_steps(&mut random);
            let last = steps.len() as u32 - 1;
            let outputs = [Value::Step(last), Value::Step(random(steps.len()) as u32)];
            let expression = Expression { steps: &steps, outputs: &outputs };
            let inputs = vec![TileInput::Arg(0), TileInput::Arg(1), TileInput::Arg(2)];
            let program = TileProgram::of(&expression, inputs, Vec::new()).expect("outputs are steps");
            pairs += program.steps.iter().filter(|step| matches!(step.op, Operation::Pair(_))).count();

            let n = [5, GROUP, 7 * GROUP, 100][case % 4];
            let mut row = || (0..n).map(|_| random(2000) as f32 / 256.0 - 4.0).collect::<Vec<f32>>();
            let (x, y) = (row(), row());
            let number = 0.7;
            let sources = [Lane::Tensor(0), Lane::Number(number), Lane::Tensor(1)];
            let (mut first, mut second) = (vec![0.0; n], vec![0.0; n]);
            let pool = TilePool::<f32>::default();
            let mut tiles = pool.acquire(&program);
            tiles.get().begin(&program, &sources, n);
            tiles.get().run(&program, &sources, &[&x, &y], &mut [&mut first, &mut second]);

            for i in 0..n {
                let mut values: Vec<f32> = Vec::new();
                for step in &steps {
                    let Operation::Single(op) = step.op else { unreachable!() };
                    let [a, b, c] = step.args.map(|arg| match arg {
                        Value::Input(0) => x[i],
                        Value::Input(1) => number as f32,
                        Value::Input(_) => y[i],
                        Value::Const(value) => value as f32,
                        Value::Step(step) => values[step as usize],
                        Value::Piece { .. } => unreachable!(),
                    });
                    values.push(op.eval(a, b, c));
                }
                let wanted = outputs.map(|output| values[output.step().expect("a step")]);
                // NaN have no defined sign.
                let is_same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                assert!(is_same(first[i], wanted[0]), "case {case}: {steps:?}");
                assert!(is_same(second[i], wanted[1]), "case {case}: {steps:?}");
            }
        }
        assert!(pairs > 300, "{pairs} pairs");
    }
}
