//! Checks that the machine and the reference evaluator agree.

use super::{Oracle, Outcome};
use crate::case::Case;
use crate::observe::{self, Precision};
use flambeau_exec::bytecode::Code;
use flambeau_exec::vm::{Program, Vm};
use std::sync::Arc;

/// Compares bytecode with the graph walk, bit for bit, including errors.
pub struct MachineAgrees;

impl Oracle for MachineAgrees {
    fn name(&self) -> String {
        "machine".into()
    }

    fn check(&self, case: &Case) -> Outcome {
        let want = observe::by_reference(&case.graph, case);
        if want.reached_limit() {
            return Outcome::Rejected("a limit ends the run");
        }
        let code = match Code::compile(&case.graph, &*case.unit) {
            Ok(code) => Arc::new(code),
            Err(e) => return Outcome::Failed(format!("does not compile: {e}")),
        };
        let mut vm = Vm::new(Program::new(case.unit.clone()));
        // Runs twice: a reused machine must not depend on the previous run.
        for _ in 0..2 {
            let got = observe::run(case, |inputs, host| vm.run(&code, inputs, host));
            if let Err(why) = observe::same(&want, &got, Precision::Bits) {
                return Outcome::Failed(why);
            }
        }
        Outcome::Checked
    }
}
