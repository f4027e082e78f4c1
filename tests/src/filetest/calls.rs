//! The `run:` lines of a test file.

use std::sync::{Arc, Mutex};

use flambeau::json::Reader;
use flambeau::{Compilation, Entry, Execution, Fault, IValue, Program, Session, Type};
use flambeau_exec::{Gen, soundness};
use flambeau_ir::Graph;
use flambeau_ir::attr::names;
use flambeau_ir::schema::Argument;
use flambeau_rewrite::{Checks, Exactness, Manager};
use serde_json::Value;

use super::file::{Expected, Language, RunLine, TestFile};
use super::subject;
use crate::value::compare::{Tolerance, compare};
use crate::value::literal::{Call, parse, parse_call};

/// Runs every line and returns the lines with their actual results. An expectation that holds is kept as written.
///
/// # Errors
/// Returns an error if a call is invalid or the execution modes disagree.
pub(super) fn results(file: &TestFile) -> Result<Vec<RunLine>, String> {
    file.runs.iter().map(|run| result(file, run)).collect()
}

fn result(file: &TestFile, run: &RunLine) -> Result<RunLine, String> {
    let (call, _) = parse_call(&run.call)?;
    let expected = match call_and_compare(file, &call).map_err(|why| format!("line {}: {why}", run.line))? {
        Err(message) => match &run.expected {
            // An empty text stands for a message that is not recorded yet.
            Some(Expected::Raises(text)) if !text.is_empty() && message.contains(text.as_str()) => {
                Expected::Raises(text.clone())
            }
            _ => Expected::Raises(message.lines().next().unwrap_or("").to_string()),
        },
        Ok(value) => match &run.expected {
            // Kept as written, so that blessing changes only wrong lines.
            Some(Expected::Exactly(text)) if holds(&value, text, Tolerance::EXACT) => {
                Expected::Exactly(text.clone())
            }
            Some(Expected::About(text)) if holds(&value, text, APPROXIMATE) => Expected::About(text.clone()),
            Some(Expected::About(_)) => Expected::About(crate::value::print::print(&value)),
            _ => Expected::Exactly(crate::value::print::print(&value)),
        },
    };
    Ok(RunLine { expected: Some(expected), ..run.clone() })
}

/// The tolerance of `~=`.
const APPROXIMATE: Tolerance = Tolerance { rtol: 1e-4, atol: 1e-5, ..Tolerance::EXACT };

fn holds(value: &Value, text: &str, tolerance: Tolerance) -> bool {
    parse(text).is_ok_and(|want| compare(value, &want, tolerance).is_ok())
}

/// Describes the lines whose result differs from the expectation.
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

/// Pipelines that must preserve the results of every program with `run:` lines, in addition to the file's own commands.
const PIPELINES: [&str; 2] = ["inline,default", "inline,egraph,dce"];

/// The observable results of a call: the result or the message of the program's error, the arguments after the call,
/// and the printed text.
struct CallObservation {
    end: Result<Value, String>,
    args: Vec<Value>,
    printed: String,
}

/// Calls a function of the file in every execution mode, through an archive, and after pipelines. The inner error is
/// the message of the program's error.
///
/// # Errors
/// Returns an error if the program does not parse, the call is invalid, or two results differ.
fn call_and_compare(file: &TestFile, call: &Call) -> Result<Result<Value, String>, String> {
    let first = call_by(file, call, Execution::Reference)?;
    for execution in [Execution::Machine, Execution::Optimized] {
        let got = call_by(file, call, execution)?;
        agree(&first, &got, Tolerance::BITS).map_err(|why| format!("{execution:?} disagrees: {why}"))?;
    }
    if let Some(got) = call_archived(file, call)? {
        agree(&first, &got, Tolerance::BITS)
            .map_err(|why| format!("the program saved and loaded disagrees: {why}"))?;
    }
    check_facts(file, call)?;
    check_plans(file, call)?;
    let own = file.commands.iter().filter_map(|c| c.strip_prefix("opt ")).map(str::trim);
    for pipeline in own.chain(PIPELINES) {
        let Some((got, tolerance)) = call_optimized(file, call, pipeline)? else { continue };
        agree(&first, &got, tolerance)
            .map_err(|why| format!("the program disagrees after `{pipeline}`: {why}"))?;
    }
    Ok(first.end)
}

/// Calls the program after saving it to an archive and loading it again: the treatment *archive round trip*. Skipped
/// for graphs that have no source form, since archives contain source.
///
/// # Errors
/// Returns an error if a program from source cannot be saved and loaded again.
fn call_archived(file: &TestFile, call: &Call) -> Result<Option<CallObservation>, String> {
    let session = subject::session().with_execution(Execution::Reference);
    let program = subject::program(file, &session).map_err(|e| e.to_string())?;
    let graph = entry_of(&program, call)?.graph().clone();
    // Source does not declare sizes, so a program loaded from source does not check them.
    let functions = program.unit().functions().map(|function| &function.graph);
    if std::iter::once(&graph).chain(functions).any(|graph| declares_sizes(graph)) {
        return Ok(None);
    }
    let bytes = match program
        .to_module(&[(entry_name(&program, call), "forward")])
        .and_then(|m| m.to_archive("case"))
    {
        Ok(bytes) => bytes,
        Err(error) if file.language == Language::Ir && error.code.starts_with("F012") => return Ok(None),
        Err(error) => return Err(format!("the program cannot be saved: {error}")),
    };
    let loaded =
        session.load_archive_bytes(&bytes).map_err(|e| format!("the saved program cannot be loaded: {e}"))?;
    let forward = Call { name: "forward".to_string(), ..call.clone() };
    call_program(&session, &loaded, &forward).map(Some)
}

/// Whether inputs of the graph, or of a subgraph in it, have types that state more of a tensor than `Tensor`.
fn declares_sizes(graph: &Graph) -> bool {
    let mut todo = vec![graph];
    while let Some(graph) = todo.pop() {
        if graph.inputs().any(|v| graph.ty(v) != graph.ty(v).erase_shapes()) {
            return true;
        }
        let subgraph = |n| graph.attr(n, names::subgraph())?.as_graph();
        todo.extend(graph.nodes_deep().filter_map(subgraph).map(|graph| &**graph));
    }
    false
}

/// Runs a pipeline on the called function and calls the result in the reference evaluator; returns the required
/// tolerance too. Returns `None` if the pipeline changes the number of inputs or outputs, or if the call rejects its
/// arguments.
fn call_optimized(
    file: &TestFile,
    call: &Call,
    pipeline: &str,
) -> Result<Option<(CallObservation, Tolerance)>, String> {
    let session = subject::session().with_execution(Execution::Reference);
    let program = subject::program(file, &session).map_err(|e| e.to_string())?;
    let entry = entry_of(&program, call)?;
    let pipeline = session.pipeline(pipeline).map_err(|e| e.to_string())?;
    let mut graph = (**entry.graph()).clone();
    let before = (graph.inputs().len(), graph.outputs().len());
    let mut manager = Manager::new().checks(Checks::EveryPass).unit(program.unit());
    manager.run(&mut graph, &pipeline).map_err(|e| e.to_string())?;
    if (graph.inputs().len(), graph.outputs().len()) != before {
        return Ok(None);
    }
    if !positional(&entry, call)?.1 {
        return Ok(None);
    }
    let tolerance = if pipeline.exactness() > Exactness::Exact { APPROXIMATE } else { Tolerance::BITS };
    let program = session.program_with(graph, program.unit().clone()).map_err(|e| e.to_string())?;
    let optimized = program.entry("forward").map_err(|e| e.to_string())?;
    Ok(Some((call_entry(&session, &optimized, entry.params(), call)?, tolerance)))
}

fn call_by(file: &TestFile, call: &Call, execution: Execution) -> Result<CallObservation, String> {
    let session = subject::session().with_execution(execution);
    let program = subject::program(file, &session).map_err(|e| e.to_string())?;
    call_program(&session, &program, call)
}

/// Returns the name of the entry that a test calls. The graph of an IR file is `main` in tests; its entry is `forward`.
fn entry_name<'c>(program: &Program, call: &'c Call) -> &'c str {
    let is_graph = program.entries() == ["forward"] && call.name == "main";
    if is_graph { "forward" } else { &call.name }
}

/// Returns the entry that a test calls.
fn entry_of(program: &Program, call: &Call) -> Result<Entry, String> {
    program.entry(entry_name(program, call)).map_err(|e| e.to_string())
}

/// Runs the treatment *facts*: every value of a run must agree with the result of shape analysis. The analysis gets the
/// declared types of the inputs, or random parts of the arguments' actual properties.
fn check_facts(file: &TestFile, call: &Call) -> Result<(), String> {
    let session = subject::session().with_execution(Execution::Reference);
    let program = subject::program(file, &session).map_err(|e| e.to_string())?;
    let entry = entry_of(&program, call)?;
    for seed in 0..4 {
        let (args, fits) = positional(&entry, call)?;
        // The analysis states no facts for arguments that the call rejects.
        if args.len() != entry.graph().inputs().len() || !fits {
            return Ok(());
        }
        let (graph, unit, mut host) = (entry.graph(), &**program.unit(), session.host());
        host.set_stdout(std::io::sink());
        let watched = match seed {
            // Round 0 states the declared types, the others random parts of the actual properties.
            0 => soundness::watch(graph, args, unit, &mut host),
            seed => soundness::watch_partial(graph, args, unit, &mut host, &mut Gen::from_seed(seed)),
        };
        if let Some(why) = watched.wrong {
            return Err(format!("a fact of the shape analysis is wrong: {why}"));
        }
    }
    Ok(())
}

/// Calls under [`Execution::Profiling`] before the plan of the entry runs.
const CALLS: usize = 3;

/// Runs the treatment *plans*: several calls under [`Execution::Profiling`], then one for each guard of the plans with
/// the guard made to fail, agree with as many calls in the reference evaluator.
///
/// # Errors
/// Returns an error if a call is invalid or two results differ.
fn check_plans(file: &TestFile, call: &Call) -> Result<(), String> {
    let [reference, profiling] = [Execution::Reference, Execution::Profiling].map(|execution| {
        let session = subject::session().with_execution(execution);
        let program = subject::program(file, &session).map_err(|e| e.to_string())?;
        Ok::<_, String>((entry_of(&program, call)?, session))
    });
    let (reference, profiling) = (reference?, profiling?);
    let both = |when: &str| {
        let [first, got] =
            [&reference, &profiling].map(|(entry, session)| call_entry(session, entry, entry.params(), call));
        agree(&first?, &got?, Tolerance::BITS)
            .map_err(|why| format!("{when} of an executor disagrees: {why}"))
    };
    for number in 1..=CALLS {
        both(&format!("call {number}"))?;
    }
    for plan in profiling.0.plans() {
        for position in 0..plan.code().bailouts().len() {
            plan.code().force_bailout(position, 1);
            both(&format!("a call with guard {position} failing"))?;
            plan.code().force_bailout(position, 0);
        }
    }
    Ok(())
}

/// A loaded program whose entry is called several times.
pub(super) struct Instance {
    session: Session,
    entry: Entry,
}

impl Instance {
    /// Loads the program of a file for calls of the entry that `call` names.
    ///
    /// # Errors
    /// Returns an error if the program or the call does not parse.
    pub(super) fn new(
        file: &TestFile,
        call: &str,
        execution: Execution,
        compilation: Compilation,
    ) -> Result<Instance, String> {
        let session = subject::session().with_execution(execution).with_compilation(compilation);
        let program = subject::program(file, &session).map_err(|e| e.to_string())?;
        let entry = entry_of(&program, &parse_call(call)?.0)?;
        Ok(Instance { session, entry })
    }

    /// Returns the entry.
    pub(super) fn entry(&self) -> &Entry {
        &self.entry
    }

    fn call(&self, call: &Call) -> Result<CallObservation, String> {
        call_entry(&self.session, &self.entry, self.entry.params(), call)
    }
}

/// Calls two instances of a program alike.
///
/// # Errors
/// Returns an error if the call is invalid or the results differ.
pub(super) fn same(reference: &Instance, other: &Instance, call: &str) -> Result<(), String> {
    let (call, _) = parse_call(call)?;
    agree(&reference.call(&call)?, &other.call(&call)?, Tolerance::BITS)
}

/// Returns the positional arguments, and whether they match the types of their parameters.
fn positional(entry: &Entry, call: &Call) -> Result<(Vec<IValue>, bool), String> {
    let mut reader = Reader::default();
    let ty = |i: usize| entry.params().get(i).map_or(Type::ANY, |p: &Argument| p.ty);
    let given = call.args.iter().enumerate();
    let args: Result<Vec<IValue>, String> =
        given.map(|(i, arg)| reader.read_as(arg, ty(i)).map_err(|e| e.to_string())).collect();
    let args = args?;
    let fits = args.iter().enumerate().all(|(i, arg)| arg.fits(ty(i)));
    Ok((args, fits))
}

fn call_program(session: &Session, program: &Program, call: &Call) -> Result<CallObservation, String> {
    let entry = entry_of(program, call)?;
    call_entry(session, &entry, entry.params(), call)
}

/// Calls an entry whose arguments have the names of `params`.
fn call_entry(
    session: &Session,
    entry: &Entry,
    params: &[Argument],
    call: &Call,
) -> Result<CallObservation, String> {
    let mut reader = Reader::default();
    let mut read = |arg: &Value, ty| reader.read_as(arg, ty).map_err(|e| e.to_string());
    let mut args = Vec::new();
    for (i, arg) in call.args.iter().enumerate() {
        args.push(read(arg, params.get(i).map_or(Type::ANY, |p| p.ty))?);
    }
    let mut kwargs = Vec::new();
    for (name, arg) in &call.kwargs {
        let place = params.iter().position(|p| p.name.as_str() == name);
        let ty = place.map_or(Type::ANY, |i| params[i].ty);
        // A graph after passes has the same parameters in the same order, but other names.
        let own = place.and_then(|i| entry.params().get(i)).map_or(name.clone(), |p| p.name.to_string());
        kwargs.push((own, read(arg, ty)?));
    }
    // Such a graph has no defaults either.
    for (p, own) in params.iter().zip(entry.params()).skip(args.len()) {
        let is_given = call.kwargs.iter().any(|(name, _)| p.name.as_str() == name);
        if let (false, None, Some(default)) = (is_given, &own.default, &p.default) {
            kwargs.push((own.name.to_string(), default.clone()));
        }
    }
    let kwargs: Vec<(&str, IValue)> = kwargs.iter().map(|(name, v)| (name.as_str(), v.clone())).collect();
    let printed = OutputBuffer::default();
    let mut host = session.host();
    host.set_stdout(printed.clone());
    let end = match entry.call_on(&args, &kwargs, &mut host) {
        Ok(value) => Ok(flambeau::json::write(&value).map_err(|e| e.to_string())?),
        // An unsupported feature is not a result.
        Err(error) if matches!(error.fault, Fault::Internal | Fault::Unsupported) => {
            return Err(error.to_string());
        }
        Err(error) => Err(error.message),
    };
    // Arguments of kinds without a JSON tag are not compared.
    let after = args.iter().chain(kwargs.iter().map(|(_, v)| v));
    let args = after.map(|v| flambeau::json::write(v).unwrap_or(Value::Null)).collect();
    Ok(CallObservation { end, args, printed: printed.text() })
}

/// An output sink whose text can be read afterwards.
#[derive(Clone, Default)]
struct OutputBuffer(Arc<Mutex<Vec<u8>>>);

impl OutputBuffer {
    fn text(&self) -> String {
        self.0.lock().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

impl std::io::Write for OutputBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().map_err(|_| std::io::Error::other("poisoned"))?.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Checks that both calls have the same result or error, the same arguments after the call, and the same printed text.
fn agree(reference: &CallObservation, other: &CallObservation, tolerance: Tolerance) -> Result<(), String> {
    match (&reference.end, &other.end) {
        (Ok(a), Ok(b)) => compare(b, a, tolerance)?,
        (Err(a), Err(b)) if a == b => {}
        (Err(a), Err(b)) => return Err(format!("`{b}` instead of the error `{a}` of the reference")),
        (Ok(_), Err(b)) => return Err(format!("`{b}` instead of the result of the reference")),
        (Err(a), Ok(_)) => return Err(format!("a result instead of the error `{a}` of the reference")),
    }
    for (i, (a, b)) in reference.args.iter().zip(&other.args).enumerate() {
        if !a.is_null() {
            compare(b, a, tolerance).map_err(|why| format!("argument {i} afterwards: {why}"))?;
        }
    }
    match reference.printed == other.printed {
        true => Ok(()),
        false => {
            Err(format!("the output is {:?}; the reference prints {:?}", other.printed, reference.printed))
        }
    }
}
