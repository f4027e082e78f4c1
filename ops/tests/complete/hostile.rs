//! No argument makes an operator panic, hang or ask for memory without bound: samples with a few arguments made
//! hostile, and arguments that are hostile altogether, are answered with a result or an error. A result is as the rules
//! for shapes and dtypes predict, whatever they were told of the arguments.
//!
//! The call that is being tried stands in the file `hostile.txt` of the target folder's `tmp`, for those that end the
//! process. `FLAMBEAU_TRIALS` sets the rounds per operator, `FLAMBEAU_OPS` a part of the names of those to try, `FLAMBEAU_SEED`
//! where draws start.

use flambeau_exec::soundness::{self, Forecast};
use flambeau_exec::{Gen, Host, Kernel};
use flambeau_ir::schema::{FunctionSchema, accepts_types};
use flambeau_ir::types::NoClasses;
use flambeau_ir::value::IValue;
use flambeau_ir::{Effects, OpId, Registry, Type};
use flambeau_tensor::{Budget, Fault};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

/// Rounds per operator where nothing else is asked for.
const ROUNDS: u64 = 6;
/// What tensors of one call may hold.
const MEMORY: usize = 64 << 20;
/// How long one call may take, in a program that is not optimized and on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a call did that none may.
fn offence(registry: &Registry, id: OpId, args: &[IValue], g: &mut Gen<'_>) -> Option<String> {
    let schema: &FunctionSchema = registry.schema(id);
    let kernel = registry.facet::<Kernel>(id)?;
    let forecasts = || [Forecast::of_all(registry, id, args), Forecast::of_part(registry, id, args, g)];
    let Ok(forecasts) = catch_unwind(AssertUnwindSafe(forecasts)) else {
        return Some("its shape rule panics".to_owned());
    };
    let mut given = args.to_vec();
    let budget = Budget::new(MEMORY);
    let call = || budget.run(|| kernel.call_on(schema, &mut given, &mut Host::quiet()));
    match catch_unwind(AssertUnwindSafe(call)) {
        Err(_) => Some("panics".to_owned()),
        Ok(Err(e)) if matches!(e.fault(), Fault::Internal) => Some(format!("blames itself: {e}")),
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

/// Whether a call is one that a verified program can make: effects are stated of no other.
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
        // Whoever listens has what it needs.
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
