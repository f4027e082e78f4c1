//! Replay of the texts of exported programs: a file must print as PyTorch printed the program that it loaded from it.
//!
//! The program must also satisfy the rules of exported programs. Compared are the graph, the whole program, the entries of the signature and the ranges of symbols, each if it is recorded.

use flambeau_export::ProgramModel;
use flambeau_export::expr::python_float;
use flambeau_export::model::{Argument, InputSpec, OutputSpec};
use flambeau_export::print::{self, Style};
use flambeau_export::read::{ReadOptions, read, read_file};
use flambeau_export::verify::{Strictness, violations};
use flambeau_ir::Registry;
use serde_json::{Value, json};

use super::super::case::{Case, Verdict};
use super::Replay;

impl Replay {
    /// Compares the texts of an exported program with the recorded ones.
    pub(super) fn exported_text(&self, case: &Case) -> Result<(), Verdict> {
        if case.get("graph").is_none() {
            return Ok(());
        }
        let options = ReadOptions::default();
        let program = match case.archive_bytes() {
            Some(bytes) => read(&bytes, &options),
            None => read_file(&self.folder.join(case.text("archive")), &options),
        };
        let program = program.map_err(|e| Verdict::failed(format!("reading the program: {e}")))?;
        let registry = self.session.registry();
        if let Some(error) = violations(&program, registry, Strictness::Full, 1).first() {
            return Err(Verdict::failed(format!("verifying the program: {error}")));
        }
        compare(case, &program, registry)
    }
}

fn compare(case: &Case, program: &ProgramModel, registry: &Registry) -> Result<(), Verdict> {
    let failed = |e: flambeau_export::ExportError| Verdict::failed(format!("printing the program: {e}"));
    let style = Style::of(program.schema_version);
    let graph = print::graph_text(program, registry).map_err(failed)?;
    same_text("graph", case.text("graph"), &graph)?;
    let text = print::program_text(program, style, registry).map_err(failed)?;
    same_text("program_text", case.text("program_text"), &text)?;
    same("signature", case, &signature(program))?;
    let ranges: serde_json::Map<String, Value> = print::ranges(program)
        .map(|(name, range)| {
            let (low, high) = print::bounds(range);
            (name.to_owned(), json!([low, high]))
        })
        .collect();
    same("range_constraints", case, &Value::Object(ranges))
}

/// Compares a text line by line, and reports the first line that differs.
fn same_text(field: &str, want: &str, got: &str) -> Result<(), Verdict> {
    if want == got {
        return Ok(());
    }
    let (mut wanted, mut found) = (want.split('\n'), got.split('\n'));
    for line in 1.. {
        let (w, g) = (wanted.next(), found.next());
        if w != g {
            return Err(Verdict::failed(format!(
                "{field} differs in line {line}: expected {w:?}, found {g:?}"
            )));
        }
        if w.is_none() {
            break;
        }
    }
    Ok(())
}

fn same(field: &str, case: &Case, got: &Value) -> Result<(), Verdict> {
    match case.get(field) {
        Some(want) if want != got => {
            Err(Verdict::failed(format!("{field} differs: expected {want}, found {got}")))
        }
        _ => Ok(()),
    }
}

/// Returns the signature in the form of the corpus.
fn signature(program: &ProgramModel) -> Value {
    let signature = &program.module.signature;
    let inputs: Vec<Value> = signature.inputs.iter().map(input).collect();
    let outputs: Vec<Value> = signature.outputs.iter().map(output).collect();
    json!({ "inputs": inputs, "outputs": outputs })
}

fn input(spec: &InputSpec) -> Value {
    let (kind, arg, target, persistent) = match spec {
        InputSpec::UserInput { arg } => ("USER_INPUT", argument("", arg), None, None),
        InputSpec::ConstantInput { name, value } => ("USER_INPUT", argument(name, value), None, None),
        InputSpec::Parameter { arg, target } => ("PARAMETER", tensor(arg), Some(target), None),
        InputSpec::Buffer { arg, target, persistent } => {
            ("BUFFER", tensor(arg), Some(target), Some(*persistent))
        }
        InputSpec::TensorConstant { arg, target } => ("CONSTANT_TENSOR", tensor(arg), Some(target), None),
        InputSpec::CustomObj { arg, target } => (
            "CUSTOM_OBJ",
            json!({ "type": "CustomObjArgument", "name": arg.name, "class_fqn": arg.class }),
            Some(target),
            None,
        ),
        InputSpec::Token { arg } => ("TOKEN", json!({ "type": "TokenArgument", "name": arg }), None, None),
    };
    json!({ "kind": kind, "arg": arg, "target": target, "persistent": persistent })
}

fn output(spec: &OutputSpec) -> Value {
    let (kind, arg, target) = match spec {
        OutputSpec::UserOutput { arg } => ("USER_OUTPUT", argument("", arg), None),
        OutputSpec::LossOutput { arg } => ("LOSS_OUTPUT", tensor(arg), None),
        OutputSpec::BufferMutation { arg, target } => ("BUFFER_MUTATION", tensor(arg), Some(target)),
        OutputSpec::ParameterMutation { arg, target } => ("PARAMETER_MUTATION", tensor(arg), Some(target)),
        OutputSpec::GradientToParameter { arg, target } => {
            ("GRADIENT_TO_PARAMETER", tensor(arg), Some(target))
        }
        OutputSpec::GradientToUserInput { arg, target } => {
            ("GRADIENT_TO_USER_INPUT", tensor(arg), Some(target))
        }
        OutputSpec::UserInputMutation { arg, target } => ("USER_INPUT_MUTATION", tensor(arg), Some(target)),
        OutputSpec::Token { arg } => ("TOKEN", json!({ "type": "TokenArgument", "name": arg }), None),
    };
    json!({ "kind": kind, "arg": arg, "target": target })
}

fn tensor(name: &str) -> Value {
    json!({ "type": "TensorArgument", "name": name })
}

/// Returns a user input or output. `constant` is the name if it is a constant.
fn argument(constant: &str, arg: &Argument) -> Value {
    let named = |kind: &str, name: Option<&str>| json!({ "type": kind, "name": name });
    match arg {
        Argument::Tensor(name) => named("TensorArgument", Some(name)),
        Argument::SymInt(_) => named("SymIntArgument", arg.name()),
        Argument::SymFloat(_) => named("SymFloatArgument", arg.name()),
        Argument::SymBool(_) => named("SymBoolArgument", arg.name()),
        other => {
            let value = match other {
                Argument::Int(v) => json!(v),
                // The corpus has floats as Python prints them.
                Argument::Float(v) => json!(python_float(*v)),
                Argument::Bool(v) => json!(v),
                Argument::String(v) => json!(v),
                _ => Value::Null,
            };
            json!({ "type": "ConstantArgument", "name": constant, "value": value })
        }
    }
}
