//! The `run:` lines of a test file.

use flambeau::json::read_as;
use flambeau::{Execution, Fault, Program, Session, Type};
use flambeau_rewrite::Checks;
use serde_json::Value;

use super::command::Blame;
use super::file::{Expected, Language, RunLine, TestFile};
use super::subject;
use crate::value::compare::{Tolerance, compare};
use crate::value::literal::{Call, parse, parse_call};

/// What each line came to, in the form it would be written in. A line that does not hold keeps what was got.
///
/// # Errors
/// If a call makes no sense, or the ways to run it disagree.
pub(super) fn results(file: &TestFile) -> Result<Vec<RunLine>, String> {
    file.runs.iter().map(|run| result(file, run)).collect()
}

fn result(file: &TestFile, run: &RunLine) -> Result<RunLine, String> {
    let (call, _) = parse_call(&run.call)?;
    let expected = match call_it(file, &call).map_err(|why| format!("line {}: {why}", run.line))? {
        Err(message) => match &run.expected {
            // An empty text stands for a message still to be blessed.
            Some(Expected::Raises(text)) if !text.is_empty() && message.contains(text.as_str()) => {
                Expected::Raises(text.clone())
            }
            _ => Expected::Raises(message.lines().next().unwrap_or("").to_string()),
        },
        Ok(value) => match &run.expected {
            // Kept as it is written, so that blessing changes only what is wrong.
            Some(Expected::Exactly(text)) if holds(&value, text, Tolerance::EXACT) => {
                Expected::Exactly(text.clone())
            }
            Some(Expected::About(text)) if holds(&value, text, ABOUT) => Expected::About(text.clone()),
            Some(Expected::About(_)) => Expected::About(crate::value::print::print(&value)),
            _ => Expected::Exactly(crate::value::print::print(&value)),
        },
    };
    Ok(RunLine { expected: Some(expected), ..run.clone() })
}

/// The tolerance of `~=`.
const ABOUT: Tolerance = Tolerance { rtol: 1e-4, atol: 1e-5, meta: false };

fn holds(value: &Value, text: &str, tolerance: Tolerance) -> bool {
    parse(text).is_ok_and(|want| compare(value, &want, tolerance).is_ok())
}

/// Lines whose result is not the one that is written.
pub(super) fn differences(file: &TestFile, results: &[RunLine]) -> Vec<String> {
    let pairs = file.runs.iter().zip(results);
    pairs
        .filter(|(want, got)| want.expected != got.expected)
        .map(|(want, got)| {
            let what = match &got.expected {
                Some(Expected::Raises(message)) => format!("raises `{message}`"),
                Some(Expected::Exactly(value) | Expected::About(value)) => format!("is {value}"),
                None => "did not run".to_string(),
            };
            format!("{}:{}: {} {what}", file.name(), want.line, want.call)
        })
        .collect()
}

/// Calls a function of the file in every way of execution. The inner error is the program's, with its message.
///
/// # Errors
/// If the program cannot be read or the call not be made, or two ways come to different results.
fn call_it(file: &TestFile, call: &Call) -> Result<Result<Value, String>, String> {
    let mut first: Option<Result<Value, String>> = None;
    for execution in [Execution::Reference, Execution::Machine, Execution::Optimized] {
        let got = call_by(file, call, execution)?;
        match &first {
            None => first = Some(got),
            Some(reference) => {
                agree(reference, &got).map_err(|why| format!("{execution:?} disagrees: {why}"))?
            }
        }
    }
    let first = first.ok_or_else(|| "there is no way of execution".to_string())?;
    if let Some(got) = call_archived(file, call)? {
        agree(&first, &got).map_err(|why| format!("through an archive it disagrees: {why}"))?;
    }
    for pipeline in file.commands.iter().filter_map(|c| c.strip_prefix("opt ")) {
        let got = call_optimized(file, call, pipeline.trim())?;
        agree(&first, &got).map_err(|why| format!("after `{pipeline}` it disagrees: {why}"))?;
    }
    Ok(first)
}

/// Calls the program that is read back from the archive it was written to: the treatment *archive round trip*. What
/// passes made, and text may hold, has no source form; archives cannot hold it.
///
/// # Errors
/// If source cannot be saved and loaded again.
fn call_archived(file: &TestFile, call: &Call) -> Result<Option<Result<Value, String>>, String> {
    let session = subject::session().with_execution(Execution::Reference);
    let program = subject::program(file, &session).map_err(|e| e.to_string())?;
    let bytes = match program.to_module(&[(&call.name, "forward")]).and_then(|m| m.to_archive("case")) {
        Ok(bytes) => bytes,
        Err(error) if file.language == Language::Ir && error.code.starts_with("F012") => return Ok(None),
        Err(error) => return Err(format!("it cannot be saved: {error}")),
    };
    let loaded =
        session.load_archive_bytes(&bytes).map_err(|e| format!("what was saved cannot be loaded: {e}"))?;
    let forward = Call { name: "forward".to_string(), ..call.clone() };
    call_program(&session, &loaded, &forward).map(Some)
}

/// Calls the graph that the pipeline leaves, by the reference. Only for IR text: functions of a source may call each
/// other, a graph alone may not.
fn call_optimized(file: &TestFile, call: &Call, pipeline: &str) -> Result<Result<Value, String>, String> {
    let session = subject::session().with_execution(Execution::Reference);
    if file.language == Language::Source {
        return call_by(file, call, Execution::Reference);
    }
    let told = |blames: Vec<Blame>| blames.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let graph = subject::read(&file.program).map_err(told)?;
    let graph = subject::optimized(&graph, pipeline, Checks::EveryPass).map_err(told)?;
    let program = session.program_of(graph).map_err(|e| e.to_string())?;
    call_program(&session, &program, call)
}

fn call_by(file: &TestFile, call: &Call, execution: Execution) -> Result<Result<Value, String>, String> {
    let session = subject::session().with_execution(execution);
    let program = subject::program(file, &session).map_err(|e| e.to_string())?;
    call_program(&session, &program, call)
}

fn call_program(session: &Session, program: &Program, call: &Call) -> Result<Result<Value, String>, String> {
    let entry = program.entry(&call.name).map_err(|e| e.to_string())?;
    let params = entry.params();
    let mut args = Vec::new();
    for (i, arg) in call.args.iter().enumerate() {
        let ty = params.get(i).map_or(Type::ANY, |p| p.ty);
        args.push(read_as(arg, ty).map_err(|e| e.to_string())?);
    }
    let mut kwargs = Vec::new();
    for (name, arg) in &call.kwargs {
        let ty = params.iter().find(|p| p.name.as_str() == name).map_or(Type::ANY, |p| p.ty);
        kwargs.push((name.as_str(), read_as(arg, ty).map_err(|e| e.to_string())?));
    }
    let mut host = session.host();
    host.set_stdout(std::io::sink());
    match entry.call_on(&args, &kwargs, &mut host) {
        Ok(value) => Ok(Ok(flambeau::json::write(&value).map_err(|e| e.to_string())?)),
        // What is not supported is no result to write down.
        Err(error) if matches!(error.fault, Fault::Internal | Fault::Unsupported) => Err(error.to_string()),
        Err(error) => Ok(Err(error.message)),
    }
}

/// Both results are the same bit for bit, or both errors.
fn agree(reference: &Result<Value, String>, other: &Result<Value, String>) -> Result<(), String> {
    match (reference, other) {
        (Ok(a), Ok(b)) => compare(b, a, Tolerance::EXACT),
        (Err(a), Err(b)) if a == b => Ok(()),
        (Err(a), Err(b)) => Err(format!("`{b}`, where the reference says `{a}`")),
        (Ok(_), Err(b)) => Err(format!("`{b}`, where the reference has a result")),
        (Err(a), Ok(_)) => Err(format!("a result, where the reference says `{a}`")),
    }
}
