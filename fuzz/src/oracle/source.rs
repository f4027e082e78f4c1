//! Checks that a graph printed as source compiles to a program with the same meaning, and that repeated printing and
//! compiling reaches a fixpoint.

use super::{CheckOutcome, Oracle};
use crate::case::Case;
use crate::dead_errors::allowed_observations;
use crate::observe::{self, Observation, Precision};
use flambeau_frontend::{FrontendLimits, print};
use flambeau_ir::module::Function;
use flambeau_ir::{CompilationUnit, IValue, Symbol};
use std::sync::Arc;

/// Prints and compiles a program repeatedly and compares the runs and sources.
pub struct SourceRoundTrip;

/// Prefix of the error codes for nodes without a source form: those that only passes create, and calls of overloads
/// whose arguments an earlier overload of the operator accepts too.
const NO_FORM: &str = "F012";

/// Returns the source of a function, and the function compiled from it.
fn round_trip(unit: &CompilationUnit, function: &Function) -> Result<(String, Arc<Function>), String> {
    let printed = print::code(unit, function, print::ReceiverForm::Typed).map_err(|e| {
        match e.code.starts_with(NO_FORM) {
            true => NO_FORM.to_owned(),
            false => e.message,
        }
    })?;
    let compiled = printed.compile(unit, function.graph.registry(), &FrontendLimits::default());
    match compiled {
        Ok(compiled) => Ok((printed.text, compiled)),
        Err(problems) => {
            let why = problems.first().map_or_else(String::new, flambeau_ir::Diagnostic::render);
            Err(format!("does not compile again: {why}\n{}", printed.text))
        }
    }
}

/// Prints and compiles a function until its source does not change. A round may only make the source shorter. PyTorch's
/// compiler and ours keep a write to a list that a dead list contains, so code that only this dead code used is removed
/// one round later. There is one exception: both fold branches on constants after they remove unreachable code, so a
/// `raise` in such a branch makes the code after it unreachable one round later, and its values `uninitialized`.
fn check_convergence(unit: &CompilationUnit, first: &Function) -> Result<(), String> {
    let (mut text, mut function) = round_trip(unit, first)?;
    loop {
        let (next, compiled) = round_trip(unit, &function)?;
        if next == text {
            return Ok(());
        }
        let placeholders = |text: &str| text.matches("uninitialized(").count();
        if next.len() >= text.len() && placeholders(&next) <= placeholders(&text) {
            return Err(format!("prints as\n{text}\nand then as\n{next}"));
        }
        (text, function) = (next, compiled);
    }
}

/// Expands a tuple of several results.
fn flat(results: Vec<IValue>) -> Vec<IValue> {
    match results.as_slice() {
        [IValue::Tuple(all)] => all.items().to_vec(),
        _ => results,
    }
}

impl Oracle for SourceRoundTrip {
    fn name(&self) -> String {
        "source".into()
    }

    fn check(&self, case: &Case) -> CheckOutcome {
        let function = Function::of_graph(Symbol::new("f"), Arc::clone(&case.graph));
        let checked = round_trip(&case.unit, &function).and_then(|(_, first)| {
            check_convergence(&case.unit, &first)?;
            Ok(first)
        });
        let first = match checked {
            Ok(first) => first,
            Err(why) if why == NO_FORM => return CheckOutcome::Rejected("a node has no source form"),
            Err(why) => return CheckOutcome::Failed(why),
        };
        let mut want = observe::by_reference(&case.graph, case);
        let mut got = observe::by_reference(&first.graph, &case.with_graph(first.graph.clone()));
        if want.end.is_err() || got.end.is_err() {
            // Compilation drops unused operators, so errors may differ.
            return CheckOutcome::Rejected("a run fails");
        }
        (want.end, got.end) = (want.end.map(flat), got.end.map(flat));
        let Err(why) = observe::same(&want, &got, Precision::Bits) else { return CheckOutcome::Checked };
        // The run of a program with tasks does not fail where a task does, so its errors are compared here.
        let is_admitted = |mut seen: Observation| {
            seen.end = seen.end.map(flat);
            observe::same(&seen, &got, Precision::Bits).is_ok()
        };
        let allowed = allowed_observations(case);
        if allowed.has_unsupported {
            return CheckOutcome::Rejected("an operator is not supported");
        }
        match allowed.observations.into_iter().any(is_admitted) {
            true => CheckOutcome::Checked,
            false => CheckOutcome::Failed(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::session;
    use flambeau_ir::Source;
    use flambeau_ir::text::parse_graph;
    use flambeau_tensor::Tensor;

    fn outcome(text: &str) -> CheckOutcome {
        let session = session();
        let graph = parse_graph(&Source::new("case.ir", text), session.registry()).unwrap();
        let input = IValue::Tensor(Tensor::from_slice(&[1_f32, 2.0], &[2]).unwrap());
        SourceRoundTrip.check(&Case::new(graph, vec![input]))
    }

    #[test]
    fn loops_of_tasks_keep_their_limits() {
        let text = "graph(%x : Tensor):
  %f : Future(Tensor) = prim::fork_0(%x)
  return (%f)
with prim::fork_0 = graph(%a : Tensor):
  %go : bool = prim::is_xpu(%a)
  %n : int = prim::Constant[value=-1]()
  %yes : bool = prim::Constant[value=1]()
  %r : Tensor = prim::Loop(%n, %yes, %a)
    block0(%i : int, %c : Tensor):
      %d : Tensor = aten::neg(%c)
      -> (%go, %d)
  return (%r)
";
        assert_eq!(outcome(text), CheckOutcome::Checked);
    }

    #[test]
    fn conditional_loops_keep_their_trip_numbers() {
        let text = "graph(%x : Tensor):
  %n : int = prim::Constant[value=9223372036854775807]()
  %yes : bool = prim::Constant[value=1]()
  %r : Tensor = prim::Loop(%n, %yes, %x)
    block0(%i : int, %c : Tensor):
      %d : Tensor = aten::mul(%c, %i)
      %go : bool = prim::is_xpu(%c)
      -> (%go, %d)
  return (%r)
";
        assert_eq!(outcome(text), CheckOutcome::Checked);
    }

    #[test]
    fn statements_without_effect_do_not_order_captures() {
        let text = "graph(%x : Tensor):
  %n : int = prim::Constant[value=3]()
  %yes : bool = prim::Constant[value=1]()
  %y : Tensor = aten::neg(%x)
  %a : Tensor, %b : Tensor = prim::Loop(%n, %yes, %x, %y)
    block0(%i : int, %c : Tensor, %d : Tensor):
      -> (%yes, %d, %c)
  %f : Future(Tensor) = prim::fork_0(%a, %b)
  return (%f)
with prim::fork_0 = graph(%a : Tensor, %b : Tensor):
  %unused : (Tensor, Tensor) = prim::TupleConstruct(%a, %b)
  %one : int = prim::Constant[value=1]()
  %r : Tensor = aten::sub(%b, %a, %one)
  return (%r)
";
        assert_eq!(outcome(text), CheckOutcome::Checked);
    }

    #[test]
    fn code_after_a_folded_raise_becomes_unreachable() {
        let text = "graph(%x : Tensor):
  %yes : bool = aten::is_scripting()
   = prim::If(%yes)
    block0():
      %s : str = prim::Constant[value=\"raised\"]()
      %none : NoneType = prim::Constant()
       = prim::RaiseException(%s, %none)
      -> ()
    block1():
      -> ()
  return (%x)
";
        assert_eq!(outcome(text), CheckOutcome::Rejected("a run fails"));
    }

    #[test]
    fn writes_stay_before_the_start_of_a_task() {
        let text = "graph(%x : Tensor):
  %c : Tensor = aten::neg_(%x)
  %f : Future(Tensor) = prim::fork_0(%x)
  %r : Tensor = aten::wait(%f)
  return (%c, %r)
with prim::fork_0 = graph(%a : Tensor):
  %one : int = prim::Constant[value=1]()
  %r : Tensor = aten::add(%a, %a, %one)
  return (%r)
";
        assert_eq!(outcome(text), CheckOutcome::Checked);
    }

    /// A write to memory that a lazy conjugate also views is not supported. Without the unneeded conjugate it is.
    #[test]
    fn unsupported_writes_of_tasks_are_skipped() {
        let text = "graph(%x : Tensor):
  %c64 : int = prim::Constant[value=9]()
  %no : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::to(%x, %c64, %no, %no, %none)
  %v : Tensor = aten::conj(%y)
  %f : Future(Tensor) = prim::fork_0(%y)
  return (%y)
with prim::fork_0 = graph(%a : Tensor):
  %r : Tensor = aten::zero_(%a)
  return (%r)
";
        assert_eq!(outcome(text), CheckOutcome::Rejected("an operator is not supported"));
    }

    #[test]
    fn missing_values_keep_their_types() {
        let text = "graph(%x : Tensor):
  %n : int = prim::Constant[value=0]()
  %yes : bool = prim::Constant[value=1]()
   = prim::Loop(%n, %yes)
    block0(%i : int):
      %none : str? = prim::Constant()
      %s : str = aten::_unwrap_optional(%none)
       = prim::Print(%s)
      -> (%yes)
  return (%x)
";
        assert_eq!(outcome(text), CheckOutcome::Checked);
    }

    #[test]
    fn tasks_whose_calls_resolve_to_another_overload_are_skipped() {
        let text = "graph(%x : Tensor):
  %f : Future(int) = prim::fork_0()
  return (%f)
with prim::fork_0 = graph():
  %two : int = prim::Constant[value=2]()
  %r : int = aten::pow(%two, %two)
  return (%r)
";
        assert!(matches!(outcome(text), CheckOutcome::Rejected(_)), "{:?}", outcome(text));
    }
}
