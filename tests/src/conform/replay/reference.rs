//! Graphs run by the reference evaluator.

use std::sync::Arc;

use flambeau_exec::{ExecError, Fault, Host, reference};
use flambeau_ir::module::CompilationUnit;
use flambeau_ir::{IValue, Registry};

use super::super::case::{Case, Verdict};
use crate::value::compare::compare;

pub(super) fn run(case: &Case, registry: &Arc<Registry>) -> Verdict {
    try_run(case, registry).err().unwrap_or_else(Verdict::passed)
}

fn failed(error: &ExecError) -> Verdict {
    match error.fault {
        Fault::Unsupported => Verdict::unsupported(error.message.clone()),
        _ => Verdict::failed(error.message.clone()),
    }
}

fn try_run(case: &Case, registry: &Arc<Registry>) -> Result<(), Verdict> {
    let graph = Arc::new(super::text::read(case.text("ir"), registry)?);
    let types: Vec<_> = graph.inputs().map(|v| graph.ty(v)).collect();
    let mut args = Vec::new();
    for (input, ty) in case.inputs().iter().zip(types) {
        args.push(flambeau::json::read_as(input, ty).map_err(|e| Verdict::failed(e.to_string()))?);
    }
    let callees = CompilationUnit::new();
    let mut host = Host::quiet();
    let mut results = reference::run(&graph, args.clone(), &callees, &mut host).map_err(|e| failed(&e))?;
    let result = if results.len() == 1 { results.remove(0) } else { IValue::tuple(results) };
    let json = |v: &IValue| flambeau::json::write(v).map_err(|e| Verdict::failed(e.to_string()));
    let tolerance = case.tolerance();
    if let Some(want) = case.get("expected") {
        let types: Vec<_> = graph.outputs().map(|v| graph.ty(v)).collect();
        let ty = if let [ty] = types.as_slice() { *ty } else { flambeau_ir::Type::tuple(&types) };
        let want = super::declared::as_declared(want, ty);
        compare(&json(&result)?, &want, tolerance)
            .map_err(|why| Verdict::failed(format!("wrong result: {why}")))?;
    }
    for (i, want) in case.get("inputs_after").and_then(|v| v.as_array()).into_iter().flatten().enumerate() {
        compare(&json(&args[i])?, want, tolerance)
            .map_err(|why| Verdict::failed(format!("input {i} after the call: {why}")))?;
    }
    Ok(())
}
