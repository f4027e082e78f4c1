//! A graph printed as source compiles to a program that does the same, and prints as the same source from then on.

use super::{Oracle, Outcome};
use crate::case::Case;
use crate::observe::{self, Precision};
use flambeau_frontend::{Limits, print};
use flambeau_ir::module::Function;
use flambeau_ir::schema::resolve_exact;
use flambeau_ir::{CompilationUnit, Graph, IValue, Prim, Symbol, Type};
use std::sync::Arc;

/// Print, compile, print, compile, print.
pub struct SourceRoundTrip;

/// The code of the error for nodes that only passes make, which source cannot say.
const NO_FORM: &str = "F012";

/// The source of a function, and what it compiles to.
fn again(unit: &CompilationUnit, function: &Function) -> Result<(String, Arc<Function>), String> {
    let printed = print::code(unit, function, print::Receiver::Typed).map_err(|e| {
        match e.code.starts_with(NO_FORM) {
            true => NO_FORM.to_owned(),
            false => e.message,
        }
    })?;
    let compiled = printed.compile(unit, function.graph.registry(), &Limits::default());
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
        let checked = again(&case.unit, &function).and_then(|(_, first)| {
            let (text, second) = again(&case.unit, &first)?;
            let (settled, _) = again(&case.unit, &second)?;
            // Values that only tasks capture and no task reads go one round later: such programs settle later.
            let has_tasks = case.graph.nodes_deep().any(|n| case.graph.is_prim(n, Prim::Fork));
            if settled != text && !has_tasks {
                return Err(format!("prints as\n{text}\nand then as\n{settled}"));
            }
            Ok(first)
        });
        let first = match checked {
            Ok(first) => first,
            Err(why) if why == NO_FORM => return Outcome::Rejected("a node has no source form"),
            Err(why) => return Outcome::Failed(why),
        };
        let mut want = observe::by_reference(&case.graph, case);
        let mut got = observe::by_reference(&first.graph, &case.with_graph(first.graph.clone()));
        if want.end.is_err() || got.end.is_err() {
            // Unused operators are dropped, so errors need not be the same.
            return Outcome::Rejected("a run fails");
        }
        (want.end, got.end) = (want.end.map(flat), got.end.map(flat));
        observe::same(&want, &got, Precision::Bits).map_or_else(Outcome::Failed, |()| Outcome::Checked)
    }
}
