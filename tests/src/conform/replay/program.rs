//! Programs: loaded, called, and compared with what they should come to.

use flambeau::json::{JsonError, read_as};
use flambeau::{Entry, Error, Fault, IValue, Program, Session, Type};
use serde_json::Value;

use super::super::case::{Case, Verdict};
use super::super::tally::EXTENDED;
use super::declared::as_declared;
use super::{Replay, gradients, verdict_of};
use crate::value::compare::{Tolerance, compare};

/// How far a program came.
enum End {
    /// It was not accepted.
    Refused(Error),
    /// It was accepted, and the call failed.
    Failed(Error),
    /// The result and its declared type, and the arguments as they are after the call.
    Returned { result: Value, after: Vec<Value>, ty: Type },
    /// It was to be loaded only.
    Loaded,
}

impl Replay {
    /// Loads the program of a case.
    pub(super) fn load(&self, case: &Case, session: &Session) -> Result<Program, Error> {
        match case.text("kind") {
            "source" => session.compile_source(case.text("source"), "case.py"),
            "ir" => session.parse_ir(case.text("ir")),
            _ => {
                let path = self.folder.join(case.text("archive"));
                let program = self.frozen(session.load_archive(&path)?, case.text("entry"))?;
                match self.ways.through_save.as_ref().zip(path.file_name()) {
                    Some((folder, name)) => {
                        program.save(folder.join(name))?;
                        session.load_archive(folder.join(name))
                    }
                    None => Ok(program),
                }
            }
        }
    }

    /// The program with its module frozen, if that is asked for and it is in eval mode.
    fn frozen(&self, program: Program, entry: &str) -> Result<Program, Error> {
        let training = |p: &Program| {
            p.module().is_none_or(|root| root.named_modules().iter().any(|(_, module)| module.is_training()))
        };
        if !self.ways.through_freeze || training(&program) {
            return Ok(program);
        }
        // What is to be loaded only has no entry.
        let kept: &[&str] = if matches!(entry, "forward" | "") { &[] } else { &[entry] };
        program.freeze(kept)
    }

    /// Loads and calls a program.
    pub(super) fn program(&self, case: &Case) -> Result<(), Verdict> {
        let end = self.run(case)?;
        match case.get("expected_error") {
            Some(want) => judge_error(case, &end, want),
            None => judge_result(case, &end),
        }
    }

    fn run(&self, case: &Case) -> Result<End, Verdict> {
        let entry = self.load(case, &self.session).and_then(|program| {
            if case.is("load_only") {
                return Ok(None);
            }
            program.entry(case.text("entry")).map(Some)
        });
        let entry = match entry {
            Ok(Some(entry)) => entry,
            Ok(None) => return Ok(End::Loaded),
            Err(error) => return Ok(End::Refused(error)),
        };
        let (args, kwargs) = match arguments(case, &entry) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(End::Failed(error.into())),
        };
        let mut host = self.session.host();
        host.set_stdout(std::io::sink());
        if case.is("want_grads") {
            host.set_tape(Some(self.session.tape().map_err(|e| verdict_of(&e, "making a tape"))?));
        }
        let result = match entry.call_on(&args, &kwargs, &mut host) {
            Ok(result) => result,
            Err(error) => return Ok(End::Failed(error)),
        };
        if case.is("want_grads") {
            let inputs: Vec<IValue> = args.iter().chain(kwargs.iter().map(|(_, v)| v)).cloned().collect();
            gradients::judge(case, &self.session, &mut host, &inputs, &result)?;
        }
        let json = |value: &IValue| {
            flambeau::json::write(value).map_err(|error| verdict_of(&error.into(), "writing the result"))
        };
        let after = args.iter().map(json).collect::<Result<Vec<_>, _>>()?;
        let types: Vec<Type> = entry.schema().returns.iter().map(|r| r.ty).collect();
        let ty = if let [ty] = types.as_slice() { *ty } else { Type::tuple(&types) };
        Ok(End::Returned { result: json(&result)?, after, ty })
    }
}

type Arguments<'c> = (Vec<IValue>, Vec<(&'c str, IValue)>);

/// The inputs of a case, read as the types of the parameters.
fn arguments<'c>(case: &'c Case, entry: &Entry) -> Result<Arguments<'c>, JsonError> {
    let params = entry.params();
    let args = case
        .inputs()
        .iter()
        .enumerate()
        .map(|(i, input)| read_as(input, params.get(i).map_or(Type::ANY, |p| p.ty)));
    let kwargs = case.kwargs().map(|(name, input)| {
        let param = params.iter().find(|p| p.name.as_str() == name);
        read_as(input, param.map_or(Type::ANY, |p| p.ty)).map(|value| (name, value))
    });
    Ok((args.collect::<Result<_, _>>()?, kwargs.collect::<Result<_, _>>()?))
}

fn judge_result(case: &Case, end: &End) -> Result<(), Verdict> {
    let (result, after, ty) = match end {
        End::Loaded => return Ok(()),
        End::Refused(error) => return Err(verdict_of(error, "refused")),
        End::Failed(error) => return Err(verdict_of(error, "failed")),
        End::Returned { result, after, ty } => (result, after, *ty),
    };
    let tolerance = case.tolerance();
    if let Some(want) = case.get("expected") {
        let want = as_declared(want, ty);
        compare(result, &want, tolerance).map_err(|why| Verdict::failed(format!("wrong result: {why}")))?;
    }
    for (i, want) in case.get("inputs_after").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let got = after.get(i).unwrap_or(&Value::Null);
        compare(got, want, Tolerance { meta: false, ..tolerance })
            .map_err(|why| Verdict::failed(format!("input {i} after the call: {why}")))?;
    }
    Ok(())
}

/// Did PyTorch's string parser stumble? It reads less of Python than PyTorch's other frontend.
fn is_syntax(want: &Value) -> bool {
    let message = want.get("message").and_then(Value::as_str).unwrap_or("");
    message.starts_with("expected ") && message.contains("but found")
}

/// An error was recorded: at compile time or at run time.
fn judge_error(case: &Case, end: &End, want: &Value) -> Result<(), Verdict> {
    let at_compile_time = want.get("kind").and_then(Value::as_str) == Some("compile");
    // What PyTorch refuses although it reads well may be refused or run.
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
        End::Refused(error) | End::Failed(error) => {
            if matches!(error.fault, Fault::Internal) || (matches!(error.fault, Fault::Unsupported) && !free)
            {
                return Err(verdict_of(error, "another error"));
            }
            let refused = matches!(end, End::Refused(_));
            if refused == at_compile_time || free {
                return Ok(());
            }
            let message = error.message.lines().next().unwrap_or("");
            let when =
                if refused { "refused, where it fails at run time" } else { "accepted, where it is refused" };
            Err(Verdict::failed(format!("{when}: {message}")))
        }
    }
}
