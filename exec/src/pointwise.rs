//! Pointwise formulas: the computation of an operator per element, as a small expression for fused tiles.
//!
//! The facet is a function that appends an operator's formula to an expression under construction, so that a chain of
//! operators becomes one expression. Constant arguments are passed as numbers, all others as lanes.

use flambeau_ir::Facet;
use flambeau_tensor::Scalar;
use flambeau_tensor::math::Real;
use std::sync::Arc;

/// An operation on lanes. Comparisons return 1 or 0; operands used as booleans are true unless 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the function of its name; `eval` is the definition")]
pub enum TileOp {
    Neg,
    Abs,
    Sign,
    Sqrt,
    Rsqrt,
    Recip,
    Exp,
    Log,
    Tanh,
    Sigmoid,
    Relu,
    Sin,
    Cos,
    Erf,
    Floor,
    Ceil,
    Trunc,
    Round,
    Not,
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Min,
    Max,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    /// `(mask, a, b)`.
    Where,
}

impl TileOp {
    /// Returns the number of operands.
    pub fn arity(self) -> usize {
        match self {
            TileOp::Where => 3,
            op if (op as u8) < TileOp::Add as u8 => 1,
            _ => 2,
        }
    }

    /// Whether the result is a mask (0 or 1).
    pub fn is_mask(self) -> bool {
        use TileOp::*;
        matches!(self, Not | Eq | Ne | Lt | Le | Gt | Ge | And | Or)
    }

    /// Computes the operation for one lane. Operands beyond the arity are ignored.
    #[inline(always)]
    pub fn eval<T: Real>(self, a: T, b: T, c: T) -> T {
        let truth = |t: bool| if t { T::ONE } else { T::ZERO };
        match self {
            TileOp::Neg => -a,
            TileOp::Abs => a.abs(),
            TileOp::Sign => truth(a > T::ZERO) - truth(a < T::ZERO),
            TileOp::Sqrt => a.sqrt(),
            TileOp::Rsqrt => a.rsqrt(),
            TileOp::Recip => T::ONE / a,
            TileOp::Exp => a.exp(),
            TileOp::Log => a.ln(),
            TileOp::Tanh => a.tanh(),
            TileOp::Sigmoid => a.sigmoid(),
            TileOp::Relu => a.relu(),
            TileOp::Sin => a.sin(),
            TileOp::Cos => a.cos(),
            TileOp::Erf => a.erf(),
            TileOp::Floor => a.floor(),
            TileOp::Ceil => a.ceil(),
            TileOp::Trunc => a.trunc(),
            TileOp::Round => a.round_even(),
            TileOp::Not => truth(a == T::ZERO),
            TileOp::Add => a + b,
            TileOp::Sub => a - b,
            TileOp::Mul => a * b,
            TileOp::Div => a / b,
            TileOp::Pow => a.pow(b),
            TileOp::Min => a.min_nan(b),
            TileOp::Max => a.max_nan(b),
            TileOp::Eq => truth(a == b),
            TileOp::Ne => truth(a != b),
            TileOp::Lt => truth(a < b),
            TileOp::Le => truth(a <= b),
            TileOp::Gt => truth(a > b),
            TileOp::Ge => truth(a >= b),
            TileOp::And => truth(a != T::ZERO && b != T::ZERO),
            TileOp::Or => truth(a != T::ZERO || b != T::ZERO),
            TileOp::Where => {
                if a != T::ZERO {
                    b
                } else {
                    c
                }
            }
        }
    }
}

/// A value of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TileVal {
    /// An input: elements of a tensor, or one number for all lanes.
    Input(u32),
    /// A number known when the expression is built.
    Const(f64),
    /// The result of a step.
    Step(u32),
}

/// One step of an expression.
#[derive(Clone, Copy, Debug)]
pub struct TileStep {
    /// The operation.
    pub op: TileOp,
    /// The operands; entries beyond the arity repeat the first.
    pub args: [TileVal; 3],
}

/// An expression under construction.
#[derive(Clone, Debug, Default)]
pub struct TileBuilder {
    steps: Vec<TileStep>,
}

impl TileBuilder {
    /// Creates an empty expression.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the steps, operands before their users.
    pub fn steps(&self) -> &[TileStep] {
        &self.steps
    }

    fn push(&mut self, op: TileOp, args: [TileVal; 3]) -> TileVal {
        self.steps.push(TileStep { op, args });
        TileVal::Step(self.steps.len() as u32 - 1)
    }

    /// Returns a constant.
    pub fn constant(&self, value: f64) -> TileVal {
        TileVal::Const(value)
    }

    /// Appends a unary operation.
    pub fn unary(&mut self, op: TileOp, a: TileVal) -> TileVal {
        debug_assert_eq!(op.arity(), 1);
        self.push(op, [a; 3])
    }

    /// Appends a binary operation.
    pub fn binary(&mut self, op: TileOp, a: TileVal, b: TileVal) -> TileVal {
        debug_assert_eq!(op.arity(), 2);
        self.push(op, [a, b, a])
    }

    /// Appends a selection: `a` where the mask is true, `b` elsewhere.
    pub fn select(&mut self, mask: TileVal, a: TileVal, b: TileVal) -> TileVal {
        self.push(TileOp::Where, [mask, a, b])
    }

    /// Whether masks are used as conditions only, and conditions are masks: as a number a mask would have another dtype.
    pub fn conditions_are_masks(&self) -> bool {
        use TileOp::{And, Not, Or, Where};
        self.steps.iter().all(|step| {
            let is_condition = |i| matches!(step.op, And | Or | Not) || step.op == Where && i == 0;
            step.args[..step.op.arity()]
                .iter()
                .enumerate()
                .all(|(i, arg)| self.is_mask(*arg) == is_condition(i))
        })
    }

    /// Whether a value is a mask.
    pub fn is_mask(&self, value: TileVal) -> bool {
        matches!(value, TileVal::Step(i) if self.steps[i as usize].op.is_mask())
    }
}

/// An argument of a fused operator.
#[derive(Clone, Copy, Debug)]
pub enum TileArg {
    /// A value computed per lane.
    Lanes(TileVal),
    /// A constant number.
    Number(Scalar),
    /// `None`.
    Absent,
    /// A constant of another kind, which most formulas reject.
    Other,
}

impl TileArg {
    /// Converts the argument to a value of the expression; `None` for complex and non-numeric constants, and for integers that are
    /// rounded differently by way of f64.
    pub fn value(self) -> Option<TileVal> {
        match self {
            TileArg::Lanes(v) => Some(v),
            TileArg::Number(Scalar::Complex(_)) => None,
            TileArg::Number(Scalar::Int(i)) if i as f32 != i as f64 as f32 => None,
            TileArg::Number(n) => Some(TileVal::Const(n.to_f64())),
            TileArg::Absent | TileArg::Other => None,
        }
    }

    /// Returns the constant number, if it is one.
    pub fn number(self) -> Option<Scalar> {
        match self {
            TileArg::Number(n) => Some(n),
            _ => None,
        }
    }
}

type Build = dyn Fn(&mut TileBuilder, &[TileArg]) -> Option<TileVal> + Send + Sync;

/// The formula of a pointwise operator with one result. It returns `None` if it does not support the arguments.
#[derive(Clone)]
pub struct Pointwise(Arc<Build>);

impl Facet for Pointwise {
    const NAME: &'static str = "pointwise";
}

impl Pointwise {
    /// Creates a formula from a function that appends it to an expression. Arguments are in schema order.
    pub fn new(
        build: impl Fn(&mut TileBuilder, &[TileArg]) -> Option<TileVal> + Send + Sync + 'static,
    ) -> Self {
        Pointwise(Arc::new(build))
    }

    /// `op(arg 0)`.
    pub fn unary(op: TileOp) -> Self {
        Pointwise::new(move |b, args| {
            let a = args.first()?.value()?;
            Some(b.unary(op, a))
        })
    }

    /// `op(arg 0, arg 1)`.
    pub fn binary(op: TileOp) -> Self {
        Pointwise::new(move |b, args| {
            let (x, y) = (args.first()?.value()?, args.get(1)?.value()?);
            Some(b.binary(op, x, y))
        })
    }

    /// `op(arg 0, arg 2 * arg 1)`, without the product if argument 2 is the number 1; for addition and subtraction.
    pub fn scaled(op: TileOp) -> Self {
        Pointwise::new(move |b, args| {
            let (x, mut y) = (args.first()?.value()?, args.get(1)?.value()?);
            let one = args.get(2).is_none_or(|a| a.number().is_some_and(|n| n == Scalar::Int(1)));
            if !one {
                // Kernels refuse a number that f32 cannot represent, if the tensors are f32.
                let alpha = args.get(2)?.value().filter(|alpha| match alpha {
                    TileVal::Const(alpha) => !alpha.is_finite() || alpha.abs() <= f64::from(f32::MAX),
                    _ => true,
                })?;
                y = b.binary(TileOp::Mul, y, alpha);
            }
            Some(b.binary(op, x, y))
        })
    }

    /// Appends the formula.
    pub fn build(&self, builder: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
        (self.0)(builder, args)
    }
}
