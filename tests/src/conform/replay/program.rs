//! Replay of programs: loading or compiling, calling, and comparing with the recorded results of each call.
//!
//! All calls of a case run on one loaded program, and calls with one name on one entry. Effects of a call (changed
//! attributes, compiled code, profiling data) therefore persist to the next call, as in an embedding program.

use std::collections::BTreeMap;

use flambeau::exec::InstructionCounts;
use flambeau::export::FileVersion;
use flambeau::json::{JsonError, read_as};
use flambeau::{Entry, Error, Execution, ExportedProgram, Fault, IValue, Program, Session, Type};
use serde_json::Value;

use super::super::call::Call;
use super::super::case::{Case, Outcome, Verdict};
use super::super::tally::{EXTENDED, GRAPH, TAPE};
use super::declared::as_declared;
use super::gradients::Run;
use super::training;
use super::{Replay, verdict_of};
use crate::value::compare::{Tolerance, compare};

/// The result of running a program.
pub(super) enum End {
    /// The program was rejected.
    Refused(Error),
    /// The call failed; with the arguments after the call.
    Failed(Error, Vec<Value>),
    /// The call returned a result; with its declared type and the arguments after the call.
    Returned { result: Value, after: Vec<Value>, ty: Type },
    /// The program was only loaded.
    Loaded,
}

/// A loaded program with its entries by name.
struct Instance {
    program: Program,
    entries: BTreeMap<String, Entry>,
    /// Whether the program is a single graph parsed from text.
    is_graph: bool,
}

impl Instance {
    fn entry(&mut self, name: &str) -> Result<&Entry, Error> {
        if !self.entries.contains_key(name) {
            // The entry of a graph parsed from text is always `forward`.
            let own = if self.is_graph { "forward" } else { name };
            self.entries.insert(name.to_string(), self.program.entry(own)?);
        }
        Ok(&self.entries[name])
    }

    /// Sets attributes of the module from outside.
    fn set(&self, call: &Call<'_>) -> Result<(), Verdict> {
        let failed = |e: Error| verdict_of(&e, "setting an attribute");
        for (path, value) in call.set() {
            let Some(module) = self.program.module() else {
                return Err(Verdict::failed(format!("`{path}` cannot be set: the program has no module")));
            };
            let ty = module.get(path).map_err(failed)?.type_of();
            let value = read_as(value, ty).map_err(|e| failed(e.into()))?;
            module.set(path, value).map_err(failed)?;
        }
        Ok(())
    }
}

/// Returns the verdict of a program that passed, with a remark on how its calls were differentiated: as graphs only if all
/// were, also those of second derivatives.
pub(super) fn differentiated<'e>(entries: impl Iterator<Item = &'e Entry> + Clone) -> Verdict {
    let reason = entries.clone().flat_map(Entry::gradient_refusals).next();
    let is_graph = reason.is_none() && entries.clone().any(|entry| !entry.gradient_graphs().is_empty());
    let why = if is_graph { GRAPH.to_string() } else { format!("{TAPE}{}", reason.unwrap_or_default()) };
    Verdict { why, ..Verdict::passed() }
}

impl Replay {
    /// Loads the program of a case.
    pub(super) fn load(&self, case: &Case, session: &Session) -> Result<Program, Error> {
        match case.text("kind") {
            "source" => session.compile_source(case.text("source"), "case.py"),
            "ir" => session.parse_ir(case.text("ir")),
            _ => {
                let program = self.frozen(self.archive(case, session)?, case.text("entry"))?;
                let Some(folder) = self.variants.through_save.as_ref() else { return Ok(program) };
                let saved = folder.join(format!("{}.pt", case.id().replace('/', "_")));
                program.save(&saved)?;
                session.load_archive(&saved)
            }
        }
    }

    /// Loads the archive of a case: a file of the suite, or bytes in the case.
    fn archive(&self, case: &Case, session: &Session) -> Result<Program, Error> {
        match case.archive_bytes() {
            Some(bytes) => session.load_archive_bytes(&bytes),
            None => session.load_archive(self.folder.join(case.text("archive"))),
        }
    }

    /// Freezes the module if the option is set and the module is in eval mode.
    fn frozen(&self, program: Program, entry: &str) -> Result<Program, Error> {
        let training = |p: &Program| {
            p.module().is_none_or(|root| root.named_modules().iter().any(|(_, module)| module.is_training()))
        };
        if !self.variants.through_freeze || training(&program) {
            return Ok(program);
        }
        // A case that is only loaded has no entry.
        let kept: &[&str] = if matches!(entry, "forward" | "") { &[] } else { &[entry] };
        program.freeze(kept)
    }

    /// Loads a program and runs its calls.
    pub(super) fn program(&self, case: &Case) -> Result<(), Verdict> {
        let calls = case.calls();
        let Some(first) = calls.first() else { return Err(Verdict::failed("the case has no call")) };
        let loaded = self.load(case, &self.session);
        let program = match loaded {
            Ok(_) if case.is("load_only") => return compare_end(first, &End::Loaded),
            Ok(program) => program,
            Err(error) => return compare_end(first, &End::Refused(error)),
        };
        let mut instance =
            Instance { program, entries: BTreeMap::new(), is_graph: case.text("kind") == "ir" };
        if case.get("steps").is_some() {
            let entry = training::replay(case, &self.session, &instance.program)?;
            let is_shown = self.variants.gradient_graphs;
            return if is_shown { Err(differentiated([&entry].into_iter())) } else { Ok(()) };
        }
        // One call alone would only be profiled. Programs without a module have no state, so it can be repeated.
        let repeats = self.variants.execution == Execution::Profiling && instance.program.module().is_none();
        let times = if repeats && calls.len() == 1 { PROFILED_CALLS } else { 1 };
        for (i, call) in calls.iter().enumerate().flat_map(|call| std::iter::repeat_n(call, times)) {
            let judged = self.call(&mut instance, call).and_then(|end| compare_end(call, &end));
            judged.map_err(|verdict| match (calls.len(), verdict.outcome) {
                (1, _) | (_, Outcome::Passed) => verdict,
                _ => Verdict { why: format!("call {i}: {}", verdict.why), ..verdict },
            })?;
        }
        let recorded = calls.iter().any(|call| call.gradients().is_some());
        if self.variants.gradient_graphs && recorded {
            return Err(differentiated(instance.entries.values()));
        }
        Ok(())
    }

    fn call(&self, instance: &mut Instance, call: &Call<'_>) -> Result<End, Verdict> {
        instance.set(call)?;
        let entry = match instance.entry(call.entry()) {
            Ok(entry) => entry,
            Err(error) => return Ok(End::Refused(error)),
        };
        let (args, kwargs) = match arguments(call, entry) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(End::Failed(error.into(), Vec::new())),
        };
        let mut host = self.session.host();
        host.set_stdout(std::io::sink());
        host.set_instruction_counts(self.variants.count_instructions.then(InstructionCounts::new));
        let is_exported = self.variants.through_export && call.get("expected_error").is_none();
        let result = match is_exported && call.gradients().is_none() {
            true => self.exported_call(entry, &args, &kwargs),
            false => entry.call_on(&args, &kwargs, &mut host),
        };
        if let Some(counts) = host.set_instruction_counts(None) {
            self.executed.borrow_mut().add(&counts);
        }
        let json = |value: &IValue| {
            flambeau::json::write(value).map_err(|error| verdict_of(&error.into(), "writing a value"))
        };
        // Converted before the gradients are computed, which may write to tensors that the program returned.
        let after = args.iter().map(json).collect::<Result<Vec<_>, _>>()?;
        let result = match result {
            Ok(result) => result,
            Err(error) => return Ok(End::Failed(error, after)),
        };
        let types: Vec<Type> = entry.schema().returns.iter().map(|r| r.ty).collect();
        let ty = if let [ty] = types.as_slice() { *ty } else { Type::tuple(&types) };
        let end = End::Returned { result: json(&result)?, after, ty };
        if call.gradients().is_some() {
            let inputs: Vec<IValue> = args.iter().chain(kwargs.iter().map(|(_, v)| v)).cloned().collect();
            let run = Run { call, session: &self.session, module: instance.program.module() };
            run.compare_gradients(&mut host, &inputs, &result)?;
        }
        Ok(end)
    }
}

impl Replay {
    /// Exports an entry with the arguments of a call, and calls the exported program, which must be written and read.
    fn exported_call(
        &self,
        entry: &Entry,
        args: &[IValue],
        kwargs: &[(&str, IValue)],
    ) -> Result<IValue, Error> {
        let program = ExportedProgram::from_entry(entry, args, kwargs)?;
        let program = match self.variants.through_decompositions {
            true => super::exported::decomposed(&program, &self.session)?,
            false => program,
        };
        self.session.load_exported_bytes(&program.to_bytes(FileVersion::default())?)?;
        program.call(args, kwargs)
    }
}

/// Number of calls of a program with one recorded call: one is profiled, the others run its plan.
pub(super) const PROFILED_CALLS: usize = 3;

type Arguments<'c> = (Vec<IValue>, Vec<(&'c str, IValue)>);

/// Returns the inputs of a call, read with the types of the parameters.
fn arguments<'c>(call: &Call<'c>, entry: &Entry) -> Result<Arguments<'c>, JsonError> {
    let params = entry.params();
    let args = call
        .inputs()
        .iter()
        .enumerate()
        .map(|(i, input)| read_as(input, params.get(i).map_or(Type::ANY, |p| p.ty)));
    let mut args: Vec<IValue> = args.collect::<Result<_, _>>()?;
    for (later, first) in call.same() {
        if let (Some(value), true) = (args.get(first).cloned(), later < args.len()) {
            args[later] = value;
        }
    }
    let kwargs = call.kwargs().map(|(name, input)| {
        let param = params.iter().find(|p| p.name.as_str() == name);
        read_as(input, param.map_or(Type::ANY, |p| p.ty)).map(|value| (name, value))
    });
    Ok((args, kwargs.collect::<Result<_, _>>()?))
}

/// Compares a call with the recorded error or result.
pub(super) fn compare_end(call: &Call<'_>, end: &End) -> Result<(), Verdict> {
    match call.get("expected_error") {
        Some(want) => judge_error(call.case, end, want)?,
        None => judge_result(call, end)?,
    }
    let (End::Returned { after, .. } | End::Failed(_, after)) = end else { return Ok(()) };
    let tolerance = Tolerance { meta: false, ..call.tolerance() };
    for (i, want) in call.inputs_after().iter().enumerate() {
        compare(after.get(i).unwrap_or(&Value::Null), want, tolerance)
            .map_err(|why| Verdict::failed(format!("input {i} after the call: {why}")))?;
    }
    Ok(())
}

fn judge_result(call: &Call<'_>, end: &End) -> Result<(), Verdict> {
    let (result, ty) = match end {
        End::Loaded => return Ok(()),
        End::Refused(error) => return Err(verdict_of(error, "refused")),
        End::Failed(error, _) => return Err(verdict_of(error, "failed")),
        End::Returned { result, ty, .. } => (result, *ty),
    };
    let Some(want) = call.get("expected") else { return Ok(()) };
    let want = as_declared(want, ty);
    // Only suite `calls` records which results require gradients.
    let tolerance = Tolerance { requires_grad: call.case.text("suite") == "calls", ..call.tolerance() };
    compare(result, &want, tolerance).map_err(|why| Verdict::failed(format!("wrong result: {why}")))
}

/// Returns whether the recorded error is a syntax error of PyTorch's string parser, which accepts less of Python than
/// PyTorch's other frontend.
fn is_syntax(want: &Value) -> bool {
    let message = want.get("message").and_then(Value::as_str).unwrap_or("");
    message.starts_with("expected ") && message.contains("but found")
}

/// Compares with a recorded error, at compile time or at run time.
fn judge_error(case: &Case, end: &End, want: &Value) -> Result<(), Verdict> {
    let at_compile_time = want.get("kind").and_then(Value::as_str) == Some("compile");
    // A program that PyTorch rejects despite valid syntax may be rejected or run here.
    let free = case.text("group") == "rejected" || is_syntax(want);
    match end {
        End::Returned { .. } | End::Loaded if free => {
            Err(Verdict { why: EXTENDED.to_string(), ..Verdict::passed() })
        }
        End::Returned { result, .. } => {
            let value = crate::value::print::print(result);
            Err(Verdict::failed(format!("no error, but {}", value.chars().take(80).collect::<String>())))
        }
        End::Loaded => Err(Verdict::failed("no error")),
        End::Refused(error) | End::Failed(error, _) => {
            if matches!(error.fault, Fault::Internal) || (matches!(error.fault, Fault::Unsupported) && !free)
            {
                return Err(verdict_of(error, "wrong error"));
            }
            let refused = matches!(end, End::Refused(_));
            if refused == at_compile_time || free {
                return Ok(());
            }
            let message = error.message.lines().next().unwrap_or("");
            let when = if refused { "fails at compile time already" } else { "fails only at run time" };
            Err(Verdict::failed(format!("{when}: {message}")))
        }
    }
}
