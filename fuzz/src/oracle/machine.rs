//! Checks that the machine and the reference evaluator agree: on one thread, and if the program forks tasks, under forced
//! interleavings of its tasks and on several threads.

use super::{CheckOutcome, Oracle};
use crate::case::Case;
use crate::observe::{self, Observation, Precision};
use flambeau_exec::bytecode::Code;
use flambeau_exec::vm::{CompiledProgram, Vm};
use flambeau_ir::Prim;
use flambeau_tensor::threads;
use std::sync::Arc;

/// Number of forced interleavings of a program with tasks.
const INTERLEAVINGS: u64 = 4;

/// Compares bytecode with the graph walk, bit for bit, including errors.
pub struct MachineAgrees;

impl Oracle for MachineAgrees {
    fn name(&self) -> String {
        "machine".into()
    }

    fn check(&self, case: &Case) -> CheckOutcome {
        let want = observe::by_reference(&case.graph, case);
        if want.reached_limit() {
            return CheckOutcome::Rejected("a limit ends the run");
        }
        let code = match Code::compile(&case.graph, &*case.unit) {
            Ok(code) => Arc::new(code),
            Err(e) => return CheckOutcome::Failed(format!("does not compile: {e}")),
        };
        let mut vm = Vm::new(CompiledProgram::new(case.unit.clone()));
        // Runs twice: a reused machine must not depend on the previous run.
        for _ in 0..2 {
            let got = observe::run(case, |inputs, host| vm.run(&code, inputs, host));
            if let Err(why) = observe::same(&want, &got, Precision::Bits) {
                return CheckOutcome::Failed(why);
            }
        }
        match case.graph.nodes_deep().any(|n| case.graph.is_prim(n, Prim::Fork)) {
            true => tasks_agree(case, &code, &mut vm, &want),
            false => CheckOutcome::Checked,
        }
    }
}

/// Runs the program with its tasks in other orders.
fn tasks_agree(case: &Case, code: &Arc<Code>, vm: &mut Vm, want: &Observation) -> CheckOutcome {
    for seed in 0..INTERLEAVINGS {
        vm.force_interleaving(Some(seed));
        let got = observe::run(case, |inputs, host| vm.run(code, inputs, host));
        if let Err(why) = observe::same(want, &got, Precision::Bits) {
            return CheckOutcome::Failed(format!("interleaving {seed}: {why}"));
        }
    }
    vm.force_interleaving(None);
    for count in [2, 4] {
        let got = threads::with(count, || observe::run(case, |inputs, host| vm.run(code, inputs, host)));
        if let Err(why) = observe::same(want, &got, Precision::Bits) {
            return CheckOutcome::Failed(format!("{count} threads: {why}"));
        }
    }
    CheckOutcome::Checked
}
