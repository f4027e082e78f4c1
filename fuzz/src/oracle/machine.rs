//! The machine comes to what the reference evaluator comes to.

use super::{Oracle, Outcome, Ran, host, run_reference, same};
use crate::generate::{Case, deep_copy};
use flambeau_exec::bytecode::Code;
use flambeau_exec::vm::{Program, Vm};
use flambeau_ir::CompilationUnit;
use std::sync::Arc;

/// Bytecode against the graph walk.
pub struct MachineAgrees;

impl Oracle for MachineAgrees {
    fn name(&self) -> String {
        "machine".into()
    }

    fn check(&self, case: &Case) -> Outcome {
        let want = run_reference(&case.graph, case);
        let unit = Arc::new(CompilationUnit::new());
        let code = match Code::compile(&case.graph, &*unit) {
            Ok(code) => Arc::new(code),
            Err(e) => return Outcome::Failed(format!("does not compile: {e}")),
        };
        let mut vm = Vm::new(Program::new(unit));
        // Twice: a warm machine must not remember the run before.
        for _ in 0..2 {
            let inputs = case.fresh_inputs();
            let got = vm.run(&code, inputs.clone(), &mut host());
            match (&want, got) {
                (Ok(want), Ok(results)) => {
                    let got = Ran { results: results.iter().map(deep_copy).collect(), inputs };
                    if let Err(why) = same(want, &got, 0.0) {
                        return Outcome::Failed(why);
                    }
                }
                (Err(a), Err(b)) if a.message == b.message => return Outcome::Checked,
                (Err(a), Err(b)) => return Outcome::Failed(format!("errors differ: {a} and {b}")),
                (Ok(_), Err(e)) => return Outcome::Failed(format!("only the machine fails: {e}")),
                (Err(e), Ok(_)) => return Outcome::Failed(format!("only the reference fails: {e}")),
            }
        }
        Outcome::Checked
    }
}
