//! Replay of exported programs: loading, calling, and comparing results, arguments and buffers with the recorded ones.

use flambeau::export::FileVersion;
use flambeau::export::model::InputSpec;
use flambeau::json::{JsonError, read_as};
use flambeau::{
    DecompositionTable, Entry, Error, Execution, ExportedProgram, Fault, IValue, Program, Session, Type,
};
use flambeau_ir::schema::Argument;
use serde_json::Value;

use super::super::call::Call;
use super::super::case::{Case, Verdict};
use super::program::{End, PROFILED_CALLS, compare_end};
use super::{Replay, verdict_of};
use crate::value::compare::compare;

impl Replay {
    /// Loads an exported program and runs its calls, one after another on the same program.
    pub(super) fn exported(&self, case: &Case) -> Result<(), Verdict> {
        let calls = case.calls();
        let (Some(first), Some(last)) = (calls.first(), calls.last()) else {
            return Err(Verdict::failed("the case has no call"));
        };
        let program = match self.load_exported(case, &self.session) {
            Ok(program) => program,
            Err(error) => return compare_end(first, &End::Refused(error)),
        };
        if case.is("load_only") {
            return compare_end(first, &End::Loaded);
        }
        let before = versions(&program);
        self.calls_exported(&program, &calls)?;
        buffers_after(&program, last)?;
        // One call alone would only be profiled. A program that changed its state would have other results.
        if self.variants.execution == Execution::Profiling && versions(&program) == before {
            for _ in 1..PROFILED_CALLS {
                self.calls_exported(&program, &calls)?;
            }
        }
        Ok(())
    }

    fn calls_exported(&self, program: &ExportedProgram, calls: &[Call<'_>]) -> Result<(), Verdict> {
        for (i, call) in calls.iter().enumerate() {
            let judged = self.call_exported(program, call).and_then(|end| compare_end(call, &end));
            judged.map_err(|verdict| match calls.len() {
                1 => verdict,
                _ => Verdict { why: format!("call {i}: {}", verdict.why), ..verdict },
            })?;
        }
        Ok(())
    }

    fn load_exported(&self, case: &Case, session: &Session) -> Result<ExportedProgram, Error> {
        let program = match case.archive_bytes() {
            Some(bytes) => session.load_exported_bytes(&bytes)?,
            None => session.load_exported(self.folder.join(case.text("archive")))?,
        };
        let program = match self.variants.through_decompositions {
            true => decomposed(&program, session)?,
            false => program,
        };
        let program = match self.variants.through_save.is_some() {
            true => written_again(&program, session)?,
            false => program,
        };
        match &self.variants.through_pipeline {
            Some(pipeline) => program.optimized(pipeline),
            None => Ok(program),
        }
    }

    fn call_exported(&self, program: &ExportedProgram, call: &Call<'_>) -> Result<End, Verdict> {
        let mut host = self.session.host();
        host.set_stdout(std::io::sink());
        let module = match self.variants.through_modules && call.get("expected_error").is_none() {
            true => self.module(program, call).map_err(|error| verdict_of(&error, "making a module"))?,
            false => None,
        };
        let method = module.map(|module| module.entry("forward")).transpose();
        let method = method.map_err(|error| verdict_of(&error, "making a module"))?;
        let (args, kwargs) = match arguments(call, method.as_ref().map_or(&[], Entry::params)) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(End::Failed(error.into(), Vec::new())),
        };
        let result = match method {
            Some(method) => method.call_on(&args, &kwargs, &mut host),
            None => program.call_on(&args, &kwargs, &mut host),
        };
        let json = |value: &IValue| {
            flambeau::json::write(value).map_err(|error| verdict_of(&error.into(), "writing a value"))
        };
        let after = args.iter().map(json).collect::<Result<Vec<_>, _>>()?;
        match result {
            Ok(result) => Ok(End::Returned { result: json(&result)?, after, ty: Type::ANY }),
            Err(error) => Ok(End::Failed(error, after)),
        }
    }

    /// Returns the module that a program becomes; `None` if TorchScript has no types for its arguments and results. It is saved and
    /// loaded, unless the case looks at the buffers of the program, which only the module itself shares.
    fn module(&self, program: &ExportedProgram, call: &Call<'_>) -> Result<Option<Program>, Error> {
        let module = match program.unflatten() {
            Err(error) if error.fault == Fault::Unsupported => return Ok(None),
            module => module?,
        };
        if call.case.get("buffers_after").is_some() {
            return Ok(Some(module));
        }
        self.session.load_archive_bytes(&module.to_archive("module")?).map(Some)
    }

    /// Loads a hostile file, and calls the program if the case says so.
    pub(super) fn try_exported(&self, case: &Case) -> Result<(), Error> {
        let program = self.load_exported(case, &self.strict)?;
        let calls = case.calls();
        if let (true, Some(call)) = (case.is("run"), calls.first()) {
            let mut host = self.strict.host();
            host.set_stdout(std::io::sink());
            let (args, kwargs) = arguments(call, &[])?;
            program.call_on(&args, &kwargs, &mut host)?;
        }
        Ok(())
    }
}

/// Decomposes a program to the operators of core ATen, and writes and reads the result.
pub(super) fn decomposed(program: &ExportedProgram, session: &Session) -> Result<ExportedProgram, Error> {
    let table = DecompositionTable::core_aten(session)?;
    let decomposed = program.run_decompositions(&table)?;
    session.load_exported_bytes(&decomposed.to_bytes(FileVersion::default())?)
}

/// Writes a program for every version of PyTorch that can contain it, reads it again, and returns the newest. A file that is
/// read and written once more has the same bytes.
fn written_again(program: &ExportedProgram, session: &Session) -> Result<ExportedProgram, Error> {
    let mut newest = None;
    for version in FileVersion::ALL {
        let bytes = match program.to_bytes(version) {
            // Older versions lack some kinds of arguments.
            Err(error) if error.fault == Fault::Unsupported && version != FileVersion::Torch215 => continue,
            bytes => bytes?,
        };
        let again = session.load_exported_bytes(&bytes)?;
        if again.to_bytes(version)? != bytes {
            let message = format!("{version:?}: a file that was read is written with other bytes");
            return Err(Error::new(Fault::Internal, "X0001", message));
        }
        newest = Some(again);
    }
    newest.ok_or_else(|| Error::new(Fault::Internal, "X0001", "the program was not written"))
}

/// Returns the versions of all tensors of the program, which count writes.
fn versions(program: &ExportedProgram) -> Vec<u64> {
    let inputs = &program.model().module.signature.inputs;
    let targets = inputs.iter().filter_map(|spec| match spec {
        InputSpec::Parameter { target, .. }
        | InputSpec::Buffer { target, .. }
        | InputSpec::TensorConstant { target, .. } => Some(target),
        _ => None,
    });
    targets.filter_map(|name| program.tensor(name)).map(|tensor| tensor.storage().version()).collect()
}

type Arguments<'c> = (Vec<IValue>, Vec<(&'c str, IValue)>);

/// Reads the arguments of a call for parameters; those of exported programs have no types.
fn arguments<'c>(call: &Call<'c>, params: &[Argument]) -> Result<Arguments<'c>, JsonError> {
    let types = params.iter().map(|param| param.ty).chain(std::iter::repeat(Type::ANY));
    let args =
        call.inputs().iter().zip(types).map(|(input, ty)| read_as(input, ty)).collect::<Result<_, _>>()?;
    let kwargs = call.kwargs().map(|(name, input)| {
        let ty = params.iter().find(|param| param.name.as_str() == name).map_or(Type::ANY, |param| param.ty);
        Ok((name, read_as(input, ty)?))
    });
    Ok((args, kwargs.collect::<Result<_, JsonError>>()?))
}

/// Compares buffers with those recorded after the call.
fn buffers_after(program: &ExportedProgram, call: &Call<'_>) -> Result<(), Verdict> {
    let recorded = call.case.get("buffers_after").and_then(Value::as_object);
    for (name, want) in recorded.into_iter().flatten() {
        let failed = |why: String| Verdict::failed(format!("buffer {name} after the call: {why}"));
        let tensor = program.tensor(name).ok_or_else(|| failed("there is no such buffer".to_owned()))?;
        let got = flambeau::json::write(&IValue::Tensor(tensor.clone()));
        let got = got.map_err(|error| verdict_of(&error.into(), "writing a buffer"))?;
        compare(&got, want, call.tolerance()).map_err(failed)?;
    }
    Ok(())
}
