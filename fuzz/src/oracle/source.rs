//! A graph printed as source compiles to a program that does the same, and prints as the same source from then on.

use super::{Oracle, Outcome, run_reference, same};
use crate::generate::Case;
use flambeau_frontend::{Limits, print};
use flambeau_ir::module::Function;
use flambeau_ir::schema::resolve_exact;
use flambeau_ir::{CompilationUnit, Graph, IValue, Symbol, Type};
use std::sync::Arc;

/// Print, compile, print, compile, print.
pub struct SourceRoundTrip;

/// The source of a function, and what it compiles to.
fn again(function: &Function) -> Result<(String, Arc<Function>), String> {
    let unit = CompilationUnit::new();
    let printed = print::code(&unit, function, print::Receiver::Typed).map_err(|e| e.message)?;
    let compiled = printed.compile(&unit, function.graph.registry(), &Limits::default());
    match compiled {
        Ok(compiled) => Ok((printed.text, compiled)),
        Err(problems) => {
            let why = problems.first().map_or_else(String::new, flambeau_ir::Diagnostic::render);
            Err(format!("does not compile again: {why}\n{}", printed.text))
        }
    }
}

/// Whether source can say every operator: by its name alone, calls with such operands mean the first overload that
/// takes them, and some overloads (`aten::pow.int_to_int`) always stand behind another.
fn sayable(graph: &Graph) -> bool {
    let registry = graph.registry();
    graph.nodes_deep().all(|node| {
        let Some(own) = graph.op(node).row() else { return true };
        let overloads = registry.overloads(registry.schema(own).name);
        let types: Vec<Type> = graph.operands(node).map(|v| graph.ty(v)).collect();
        let meant = resolve_exact(overloads.iter().map(|&id| registry.schema(id)), &types);
        meant.is_some_and(|i| overloads[i] == own)
    })
}

/// Several results come back as a tuple.
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

    fn check(&self, case: &Case) -> Outcome {
        if !sayable(&case.graph) {
            return Outcome::Rejected("an overload has no name of its own");
        }
        let function = Function::of_graph(Symbol::new("f"), Arc::clone(&case.graph));
        let checked = again(&function).and_then(|(_, first)| {
            let (text, second) = again(&first)?;
            let (settled, _) = again(&second)?;
            if settled != text {
                return Err(format!("prints as\n{text}\nand then as\n{settled}"));
            }
            Ok(first)
        });
        let first = match checked {
            Ok(first) => first,
            Err(why) => return Outcome::Failed(why),
        };
        let (Ok(mut want), Ok(mut got)) =
            (run_reference(&case.graph, case), run_reference(&first.graph, case))
        else {
            // What is not read is dropped, so errors need not be the same.
            return Outcome::Rejected("a run fails");
        };
        (want.results, got.results) = (flat(want.results), flat(got.results));
        same(&want, &got, 0.0).map_or_else(Outcome::Failed, |()| Outcome::Checked)
    }
}
