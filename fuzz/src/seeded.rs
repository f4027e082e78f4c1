//! An operator of chance that can be checked: what it gives is decided by the run's seed alone, not by when or how often
//! numbers are drawn. A pass may drop, move or double it and the program means the same; whoever runs it once, and for
//! good, is found out by a run with another seed.

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

/// The seed of every run of an oracle: another than the one hosts start with, which passes run operators on.
const SEED: u64 = Host::SEED ^ 0x5EED;

/// Gives a host the oracles' seed.
pub(crate) fn seed(host: &mut Host) {
    host.set_rng(Generator::new(Device::CPU, SEED));
}

/// `fuzz::seeded_random() -> Tensor`: a square of one number.
pub(crate) fn seeded_random() -> OpDef {
    OpDef::new("fuzz::seeded_random() -> Tensor")
        .with(Doc("A square tensor of one number that the run's seed decides."))
        .with(Effects::RANDOM)
        .with(Seeded)
        .with(Kernel::new(|cx| {
            let number = Scalar::Float((cx.host().rng().seed() % 1024) as f64 / 512.0);
            let side = crate::generate::SIDE;
            let all = vec![number; (side * side) as usize];
            cx.ret(Tensor::from_scalars(&all, &[side, side], DType::F32)?);
            Ok(())
        }))
        .with(Sample::args(|_| Vec::new()))
}
