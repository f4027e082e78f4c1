//! Robustness against hostile arguments: no operator panics, hangs or allocates without bound. Samples with a few
//! arguments made hostile, and arbitrary arguments, must give a result or an error. Results must agree with the shape
//! and dtype rules for complete and partial facts.
//!
//! The current call is written to the file `hostile.txt` in the target folder's `tmp`, in case it ends the process.
//! `FLAMBEAU_TRIALS` sets the rounds per operator, `FLAMBEAU_OPS` selects operators by a substring of the name,
//! `FLAMBEAU_SEED` is the seed.

use flambeau_exec::soundness::{self, Prediction};
use flambeau_exec::{Gen, Host, Kernel};
use flambeau_ir::schema::{FunctionSchema, accepts_types};
use flambeau_ir::types::NoClasses;
use flambeau_ir::value::IValue;
use flambeau_ir::{Effects, OpId, Registry, Type};
use flambeau_tensor::{Fault, MemoryBudget};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

/// Default number of rounds per operator.
const ROUNDS: u64 = 6;
/// Memory limit of one call, in bytes.
const MEMORY: usize = 64 << 20;
/// Time limit of one call, in an unoptimized build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Describes a violation by a call, if any.
fn offence(registry: &Registry, id: OpId, args: &[IValue], g: &mut Gen<'_>) -> Option<String> {
    let schema: &FunctionSchema = registry.schema(id);
    let kernel = registry.facet::<Kernel>(id)?;
    let forecasts = || [Prediction::of_all(registry, id, args), Prediction::of_part(registry, id, args, g)];
    let Ok(forecasts) = catch_unwind(AssertUnwindSafe(forecasts)) else {
        return Some("its shape rule panics".to_owned());
    };
    let mut given = args.to_vec();
    let budget = MemoryBudget::new(MEMORY);
    let call = || budget.run(|| kernel.call_on(schema, &mut given, &mut Host::quiet()));
    match catch_unwind(AssertUnwindSafe(call)) {
        Err(_) => Some("panics".to_owned()),
        Ok(Err(e)) if matches!(e.fault(), Fault::Internal) => Some(format!("reports an internal error: {e}")),
        Ok(Err(e))
            if matches!(e.fault(), Fault::Input)
                && !registry.effects(id).contains(Effects::RAISES)
                && is_well_typed(schema, args) =>
        {
            Some(format!("is not stated to raise, but: {e}"))
        }
        Ok(Err(_)) => None,
        Ok(Ok(rets)) => forecasts.iter().find_map(|forecast| forecast.wrong(&rets)),
    }
}

/// Whether a verified program can make the call: effects are declared only for such calls.
fn is_well_typed(schema: &FunctionSchema, args: &[IValue]) -> bool {
    let types: Vec<Type> = args.iter().map(IValue::type_of).collect();
    accepts_types(schema, &types, &NoClasses)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn no_arguments_break_an_operator() {
    let rounds = number("FLAMBEAU_TRIALS").unwrap_or(ROUNDS);
    let first = number("FLAMBEAU_SEED").unwrap_or(0);
    let wanted = std::env::var("FLAMBEAU_OPS").unwrap_or_default();
    let (at, now) = mpsc::channel::<Option<String>>();
    let worker = std::thread::spawn(move || {
        let registry = flambeau_ops::registry();
        let mut wrong = Vec::new();
        for (id, _) in registry.column::<Kernel>().iter() {
            let name = registry.schema(id).full_name();
            if !name.contains(&wanted) {
                continue;
            }
            let mut said = 0;
            for round in first..first + rounds {
                let g = &mut Gen::from_seed(round.wrapping_mul(0x1_0001) ^ id.index() as u64);
                let args = soundness::hostile(&registry, id, g);
                let call = format!("{name} on {args:?}");
                std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/hostile.txt"), &call).unwrap();
                if at.send(Some(call)).is_err() {
                    break;
                }
                if let Some(what) = offence(&registry, id, &args, g) {
                    said += 1;
                    eprintln!("{name} {what}");
                    if said <= 2 {
                        wrong.push(format!("{name} {what} on {args:?}"));
                    }
                }
            }
        }
        // The receiver may have stopped already.
        let _ = at.send(None);
        wrong
    });
    let mut doing = String::from("nothing yet");
    loop {
        match now.recv_timeout(PATIENCE) {
            Ok(Some(what)) => doing = what,
            Ok(None) | Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("{doing} takes more than {PATIENCE:?}"),
        }
    }
    let wrong = worker.join().expect("panics are caught");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
