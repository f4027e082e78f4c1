//! The command with a custom operator, rule, pass and pipeline, which are available in every command.
//!
//! Run: `cargo run --release -p flambeau-cli --example own_command -- ops mine::twice`. Other commands take the same names:
//! `opt FILE -p mine`, `explain FILE --value %y -p peephole`, `fuzz --favour mine::twice`.

use flambeau::analysis::{Dtype, ResultShapes};
use flambeau::exec::{Kernel, Sample};
use flambeau::ir::{Doc, NodeId, OpDef, Prim};
use flambeau::rewrite::{Cost, Pass, PassCx, PassEntry, PassError};
use flambeau::tensor::dispatch;
use flambeau::tensor::loops::unary;
use flambeau::tensor::math::Float;
use flambeau::{Session, SessionBuilder};
use std::process::ExitCode;

fn main() -> ExitCode {
    flambeau_cli::run(session())
}

/// Returns a builder with the standard operators and the extension.
pub(crate) fn session() -> SessionBuilder {
    Session::builder()
        .standard()
        .ops([twice()])
        .rules("mine.rules", RULES)
        .pass(PassEntry::of::<DropPrints>())
        .pipeline("mine", "drop_prints,default")
}

/// The operator: `x + x` in one loop.
fn twice() -> OpDef {
    OpDef::new("mine::twice(Tensor self) -> Tensor")
        .with(Doc("`self + self`."))
        .with(ResultShapes::same_as("self"))
        .with(Dtype::same_as("self"))
        .with(Kernel::new(|cx| {
            let x = cx.tensor(0)?;
            let y = dispatch!(floats, x.dtype(), "twice", T => {
                unary::<T, T>(x, |v: T| T::from_acc(v.acc() + v.acc()))
            })?;
            cx.ret(y);
            Ok(())
        }))
        .with(Cost(4))
        .with(Sample::tensors(1).floats())
}

/// The rule: introduces the operator where a tensor of floats is added to itself.
const RULES: &str = "ruleset mine
use aten

rule double [exact]: add.Tensor(%x, %x) => mine::twice(%x) where wide_float(%x)
";

/// The pass: removes prints.
#[derive(Clone, Copy, Debug, Default)]
struct DropPrints;

impl Pass for DropPrints {
    const NAME: &'static str = "drop_prints";
    const DOC: &'static str = "removes prints";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        let prints: Vec<NodeId> = graph.nodes_deep().filter(|&n| graph.is_prim(n, Prim::Print)).collect();
        for print in prints {
            if !cx.fuel("drop", print) {
                break;
            }
            cx.edit().erase(print);
        }
        Ok(())
    }
}
