//! Formulas of fused groups compute what the kernels of their operators compute, bit for bit.

use flambeau_exec::{Gen, Host, Kernel, Pointwise, Sample, TileArg, TileBuilder, TileOp, TileVal};
use flambeau_ir::{IValue, OpId, Registry};
use flambeau_tensor::math::Real;
use flambeau_tensor::{DType, Element, Scalar, Tensor};

const VALUES: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    0.25,
    0.1,
    2.0,
    3.0,
    -3.0,
    6.0,
    7.5,
    -7.5,
    1e-40,
    -1e-40,
    1e-3,
    87.0,
    -100.0,
    3e38,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// Numbers that take the place of constant arguments.
const NUMBERS: &[Scalar] = &[
    Scalar::Float(0.0),
    Scalar::Float(-0.25),
    Scalar::Float(0.1),
    Scalar::Float(1.5),
    Scalar::Float(1e300),
    Scalar::Float(f64::INFINITY),
    Scalar::Float(f64::NAN),
    Scalar::Int(-2),
    Scalar::Int(3),
    Scalar::Int((1 << 60) + (1 << 36) + 1),
    Scalar::Bool(true),
];

/// The rows of tensor arguments: all pairs of values, and another order of them for a third argument.
fn row<T: Real>(argument: usize) -> Vec<T> {
    let n = VALUES.len();
    let at = |i: usize| [i % n, i / n, (i * 7 + i / n) % n][argument.min(2)];
    (0..n * n).map(|i| T::from_f64(VALUES[at(i)])).collect()
}

/// An operator with arguments, of which the tensors are rows.
struct Call<'a> {
    registry: &'a Registry,
    id: OpId,
    args: Vec<IValue>,
    /// How many of the tensors are masks, from the first one on: those of where the rows are positive.
    masks: usize,
}

impl Call<'_> {
    /// Compares the formula with the kernel; returns whether there is a formula, or what differs.
    fn try_in<T: Real + Element<Raw = T>>(&self) -> Result<bool, String> {
        let formula = self.registry.facet::<Pointwise>(self.id).expect("operators with formulas");
        let kernel = self.registry.facet::<Kernel>(self.id).expect("fused operators have kernels");
        let (mut builder, mut rows, mut tile, mut args) =
            (TileBuilder::new(), Vec::new(), Vec::new(), self.args.clone());
        for arg in &mut args {
            tile.push(match arg {
                IValue::Tensor(_) => {
                    let input = TileVal::Input(rows.len() as u32);
                    let row = row::<T>(rows.len());
                    let is_mask = rows.len() < self.masks;
                    let made = match is_mask {
                        true => {
                            Tensor::from_vec(row.iter().map(|x| *x > T::ZERO).collect(), &[row.len() as i64])
                        }
                        false => Tensor::from_vec(row.clone(), &[row.len() as i64]),
                    };
                    *arg = IValue::Tensor(made.expect("memory"));
                    rows.push(row);
                    TileArg::Lanes(match is_mask {
                        true => builder.binary(TileOp::Gt, input, TileVal::Const(0.0)),
                        false => input,
                    })
                }
                IValue::None => TileArg::Absent,
                other => other.as_scalar().map_or(TileArg::Other, TileArg::Number),
            });
        }
        let Some(value) = formula.build(&mut builder, &tile).filter(|_| builder.conditions_are_masks())
        else {
            return Ok(false);
        };
        let schema = self.registry.schema(self.id);
        let made = kernel.call_on(schema, &mut args, &mut Host::quiet());
        let made = made.map_err(|error| format!("the kernel refuses what the formula computes: {error}"))?;
        let dtype = if builder.is_mask(value) { DType::Bool } else { T::DTYPE };
        let made = made[0].as_tensor().expect("one tensor").clone();
        if made.dtype() != dtype {
            return Err(format!("{:?} instead of {dtype:?}", made.dtype()));
        }
        let made = made.to_dtype(T::DTYPE).and_then(|made| made.to_vec::<T>()).expect("a row");
        for (i, &found) in made.iter().enumerate() {
            let mut steps: Vec<T> = Vec::new();
            let of = |steps: &[T], value| match value {
                TileVal::Input(input) => rows[input as usize][i],
                TileVal::Const(x) => T::from_f64(x),
                TileVal::Step(step) => steps[step as usize],
            };
            for step in builder.steps() {
                let [a, b, c] = step.args.map(|arg| of(&steps, arg));
                steps.push(step.op.eval(a, b, c));
            }
            let wanted = of(&steps, value);
            let bits = |x: T| (x.to_f64().is_nan(), x.to_f64().to_bits());
            if bits(found) != bits(wanted) && !(bits(found).0 && bits(wanted).0) {
                let inputs: Vec<f64> = rows.iter().map(|row| row[i].to_f64()).collect();
                return Err(format!("of {inputs:?}: kernel {found:?}, formula {wanted:?}"));
            }
        }
        Ok(true)
    }
}

#[test]
fn formulas_compute_what_kernels_compute() {
    let registry = flambeau_ops::registry();
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for id in registry.ids().filter(|&id| registry.facet::<Pointwise>(id).is_some()) {
        let schema = registry.schema(id);
        let name = schema.full_name();
        if schema.is_mutable() {
            continue;
        }
        let sample = registry.facet::<Sample>(id).unwrap_or_else(|| panic!("{name} has no sample"));
        let args = sample.make(schema, &mut Gen::from_seed(1));
        let is_number = |arg: &IValue| !matches!(arg, IValue::Tensor(_)) && arg.as_scalar().is_some();
        let mut all = vec![args.clone()];
        for at in (0..args.len()).filter(|&at| is_number(&args[at]) || args[at].is_none()) {
            for &number in NUMBERS {
                let mut args = args.clone();
                args[at] = IValue::from(number);
                if args[at].fits(schema.args[at].ty) {
                    all.push(args);
                }
            }
        }
        let mut found = 0;
        for args in all {
            for masks in [0, 1, 2] {
                let call = Call { registry: &registry, id, args: args.clone(), masks };
                for result in [call.try_in::<f32>(), call.try_in::<f64>()] {
                    match result {
                        Ok(is_compared) => found += usize::from(is_compared),
                        Err(error) => wrong.push(format!("{name} {:?}: {error}", call.args)),
                    }
                }
            }
        }
        if found == 0 {
            wrong.push(format!("{name}: there is no formula for its samples"));
        }
        compared += found;
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 300, "{compared} compared");
}
