//! A random operator whose results can be compared: the seed of the run determines its result, not the time or number
//! of draws. A pass may remove, move or duplicate it without a change of the program's meaning. A pass that evaluates
//! it once at compile time is detected by a run with another seed.

use flambeau_exec::{Host, Kernel, Sample};
use flambeau_ir::value::Generator;
use flambeau_ir::{Doc, Effects, Facet, OpDef};
use flambeau_tensor::{DType, Device, Scalar, Tensor};

/// States that a nondeterministic operator depends on the run's seed alone, so that generated programs may use it.
#[derive(Clone, Copy, Debug)]
pub struct Seeded;

impl Facet for Seeded {
    const NAME: &'static str = "seeded";
}

/// The seed of every run of an oracle. It differs from the default seed of hosts, with which passes evaluate operators.
const SEED: u64 = Host::SEED ^ 0x5EED;

/// Sets the oracles' seed on a host.
pub(crate) fn seed(host: &mut Host) {
    host.set_rng(Generator::new(Device::CPU, SEED));
}

/// `fuzz::seeded_random() -> Tensor`: a square matrix with one number.
pub(crate) fn seeded_random() -> OpDef {
    OpDef::new("fuzz::seeded_random() -> Tensor")
        .with(Doc("A square tensor of one number that the run's seed decides."))
        .with(Effects::RANDOM)
        .with(Seeded)
        .with(Kernel::new(|cx| {
            let number = Scalar::Float((cx.host().rng().seed() % 1024) as f64 / 512.0);
            let side = crate::generate::DIM_SIZE;
            let all = vec![number; (side * side) as usize];
            cx.ret(Tensor::from_scalars(&all, &[side, side], DType::F32)?);
            Ok(())
        }))
        .with(Sample::args(|_| Vec::new()))
}
