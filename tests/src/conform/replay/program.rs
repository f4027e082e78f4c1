//! Programs: loaded, called, and compared with what they should come to.

use flambeau::{Error, Fault, IValue, Program};
use serde_json::Value;

use super::super::case::{Case, Verdict};
use super::super::tally::EXTENDED;
use super::{Replay, verdict_of};
use crate::value::compare::{Tolerance, compare};

/// How far a program came.
enum End {
    /// It was not accepted.
    Refused(Error),
    /// It was accepted, and the call failed.
    Failed(Error),
    /// The result, and the arguments as they are after the call.
    Returned(Value, Vec<Value>),
    /// It was to be loaded only.
    Loaded,
}

impl Replay {
    /// Loads the program of a case.
    pub(super) fn load(&self, case: &Case) -> Result<Program, Error> {
        match case.text("kind") {
            "source" => self.session.compile_source(case.text("source"), "case"),
            "ir" => self.session.parse_ir(case.text("ir")),
            _ => self.session.load_archive(self.folder.join(case.text("archive"))),
        }
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
        let program = match self.load(case) {
            Ok(program) => program,
            Err(error) => return Ok(End::Refused(error)),
        };
        if case.is("load_only") {
            return Ok(End::Loaded);
        }
        let entry = match program.entry(case.text("entry")) {
            Ok(entry) => entry,
            Err(error) => return Ok(End::Refused(error)),
        };
        let schema = entry.schema();
        let types: Vec<_> = schema.args().collect();
        let mut args = Vec::new();
        for (i, input) in case.inputs().iter().enumerate() {
            match flambeau::json::read_as(input, types.get(i).map_or(flambeau::Type::ANY, |a| a.ty)) {
                Ok(value) => args.push(value),
                Err(error) => return Ok(End::Failed(error.into())),
            }
        }
        let mut kwargs: Vec<(&str, IValue)> = Vec::new();
        for (name, input) in case.kwargs() {
            let ty = types.iter().find(|a| a.name == name).map_or(flambeau::Type::ANY, |a| a.ty);
            match flambeau::json::read_as(input, ty) {
                Ok(value) => kwargs.push((name, value)),
                Err(error) => return Ok(End::Failed(error.into())),
            }
        }
        let result = match entry.call(&args, &kwargs) {
            Ok(result) => result,
            Err(error) => return Ok(End::Failed(error)),
        };
        let json = |value: &IValue| {
            flambeau::json::write(value).map_err(|error| verdict_of(&error.into(), "writing the result"))
        };
        let after = args.iter().map(json).collect::<Result<Vec<_>, _>>()?;
        Ok(End::Returned(json(&result)?, after))
    }
}

fn judge_result(case: &Case, end: &End) -> Result<(), Verdict> {
    let (result, after) = match end {
        End::Loaded => return Ok(()),
        End::Refused(error) => return Err(verdict_of(error, "refused")),
        End::Failed(error) => return Err(verdict_of(error, "failed")),
        End::Returned(result, after) => (result, after),
    };
    let tolerance = case.tolerance();
    if let Some(want) = case.get("expected") {
        compare(result, want, tolerance).map_err(|why| Verdict::failed(format!("wrong result: {why}")))?;
    }
    for (i, want) in case.get("inputs_after").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let got = after.get(i).unwrap_or(&Value::Null);
        compare(got, want, Tolerance { meta: false, ..tolerance })
            .map_err(|why| Verdict::failed(format!("input {i} after the call: {why}")))?;
    }
    if case.is("want_grads") {
        return Err(Verdict::unsupported("gradients"));
    }
    Ok(())
}

/// An error was recorded: at compile time or at run time.
fn judge_error(case: &Case, end: &End, want: &Value) -> Result<(), Verdict> {
    let at_compile_time = want.get("kind").and_then(Value::as_str) == Some("compile");
    // What PyTorch refuses although it reads well may be refused or run.
    let free = case.text("group") == "rejected";
    match end {
        End::Returned(..) | End::Loaded if free => {
            Err(Verdict { why: EXTENDED.to_string(), ..Verdict::passed() })
        }
        End::Returned(result, _) => {
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
