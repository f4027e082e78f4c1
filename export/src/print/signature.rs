//! The signature: one line of Python (2.6), or one line per input and output (2.8 and later).

use std::fmt::Write as _;

use super::value::{python_bool, python_string};
use crate::expr::python_float;
use crate::model::{Argument, CustomObj, InputSpec, OutputSpec, Signature};

/// An entry of a signature in the terms of PyTorch.
struct Entry<'m> {
    /// Name and number of the kind.
    kind: (&'static str, u32),
    arg: Arg<'m>,
    target: Option<&'m str>,
    persistent: Option<bool>,
}

/// The value of an entry.
enum Arg<'m> {
    Tensor(&'m str),
    SymInt(&'m str),
    SymFloat(&'m str),
    SymBool(&'m str),
    Custom(&'m str, &'m str),
    Token(&'m str),
    Constant(&'m str, &'m Argument),
}

/// An entry of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureRow<'m> {
    /// The name of the value; empty for an output that is a constant.
    pub name: &'m str,
    /// The kind in the terms of PyTorch, such as `PARAMETER` or `USER_OUTPUT`.
    pub kind: &'static str,
    /// Name of the tensor or input that the entry stands for.
    pub target: Option<&'m str>,
    /// For a buffer, whether it is in the state dict.
    pub persistent: Option<bool>,
}

/// Returns the entries of a signature: inputs and outputs.
pub fn signature_rows(signature: &Signature) -> (Vec<SignatureRow<'_>>, Vec<SignatureRow<'_>>) {
    (
        signature.inputs.iter().map(input).map(row).collect(),
        signature.outputs.iter().map(output).map(row).collect(),
    )
}

fn row(entry: Entry<'_>) -> SignatureRow<'_> {
    let name = match entry.arg {
        Arg::Tensor(name)
        | Arg::SymInt(name)
        | Arg::SymFloat(name)
        | Arg::SymBool(name)
        | Arg::Token(name)
        | Arg::Custom(name, _)
        | Arg::Constant(name, _) => name,
    };
    SignatureRow { name, kind: entry.kind.0, target: entry.target, persistent: entry.persistent }
}

/// Returns the signature as a Python expression.
pub(super) fn python(signature: &Signature) -> String {
    let mut out = String::from("ExportGraphSignature(input_specs=[");
    for (n, entry) in signature.inputs.iter().map(input).enumerate() {
        out.push_str(if n > 0 { ", InputSpec(" } else { "InputSpec(" });
        fields(&mut out, "InputKind", &entry);
        let persistent = entry.persistent.map_or("None", python_bool);
        let _ = write!(out, ", persistent={persistent})");
    }
    out.push_str("], output_specs=[");
    for (n, entry) in signature.outputs.iter().map(output).enumerate() {
        out.push_str(if n > 0 { ", OutputSpec(" } else { "OutputSpec(" });
        fields(&mut out, "OutputKind", &entry);
        out.push(')');
    }
    out.push_str("])");
    out
}

fn fields(out: &mut String, class: &str, entry: &Entry<'_>) {
    let (kind, number) = entry.kind;
    let target = entry.target.map_or_else(|| "None".to_owned(), python_string);
    let _ = write!(out, "kind=<{class}.{kind}: {number}>, arg={}, target={target}", python_arg(&entry.arg));
}

fn python_arg(arg: &Arg<'_>) -> String {
    let named = |class: &str, name: &str| format!("{class}(name={})", python_string(name));
    match arg {
        Arg::Tensor(name) => named("TensorArgument", name),
        Arg::SymInt(name) => named("SymIntArgument", name),
        Arg::SymFloat(name) => named("SymFloatArgument", name),
        Arg::SymBool(name) => named("SymBoolArgument", name),
        Arg::Token(name) => named("TokenArgument", name),
        Arg::Custom(name, class) => format!(
            "CustomObjArgument(name={}, class_fqn={}, fake_val=None)",
            python_string(name),
            python_string(class)
        ),
        Arg::Constant(name, value) => {
            format!("ConstantArgument(name={}, value={})", python_string(name), python_constant(value))
        }
    }
}

/// Returns the constants that a signature may have as Python writes them.
fn python_constant(value: &Argument) -> String {
    match value {
        Argument::Int(v) => v.to_string(),
        Argument::Float(v) => python_float(*v),
        Argument::Bool(v) => python_bool(*v).to_owned(),
        Argument::String(v) => python_string(v),
        _ => "None".to_owned(),
    }
}

/// Returns the signature as lines, with a line end at the end.
pub(super) fn lines(signature: &Signature) -> String {
    let (inputs, outputs) = signature_rows(signature);
    let mut out = String::new();
    for (title, rows) in [("inputs", inputs), ("outputs", outputs)] {
        let _ = writeln!(out, "\n# {title}");
        rows.iter().for_each(|row| line(&mut out, row));
        if rows.is_empty() {
            out.push('\n');
        }
    }
    out
}

fn line(out: &mut String, row: &SignatureRow<'_>) {
    let _ = write!(out, "{}: {}", row.name, row.kind);
    if let Some(target) = row.target {
        let _ = write!(out, " target={}", python_string(target));
    }
    if let Some(persistent) = row.persistent {
        let _ = write!(out, " persistent={}", python_bool(persistent));
    }
    out.push('\n');
}

fn input(spec: &InputSpec) -> Entry<'_> {
    let entry = |kind, arg, target| Entry { kind, arg, target, persistent: None };
    match spec {
        InputSpec::UserInput { arg } => entry(("USER_INPUT", 1), user(arg), None),
        InputSpec::ConstantInput { name, value } => {
            entry(("USER_INPUT", 1), Arg::Constant(name, value), None)
        }
        InputSpec::Parameter { arg, target } => entry(("PARAMETER", 2), Arg::Tensor(arg), Some(target)),
        InputSpec::Buffer { arg, target, persistent } => {
            Entry { persistent: Some(*persistent), ..entry(("BUFFER", 3), Arg::Tensor(arg), Some(target)) }
        }
        InputSpec::TensorConstant { arg, target } => {
            entry(("CONSTANT_TENSOR", 4), Arg::Tensor(arg), Some(target))
        }
        InputSpec::CustomObj { arg: CustomObj { name, class }, target } => {
            entry(("CUSTOM_OBJ", 5), Arg::Custom(name, class), Some(target))
        }
        InputSpec::Token { arg } => entry(("TOKEN", 6), Arg::Token(arg), None),
    }
}

fn output(spec: &OutputSpec) -> Entry<'_> {
    let entry = |kind, arg, target| Entry { kind, arg, target, persistent: None };
    match spec {
        OutputSpec::UserOutput { arg } => entry(("USER_OUTPUT", 1), user(arg), None),
        OutputSpec::LossOutput { arg } => entry(("LOSS_OUTPUT", 2), Arg::Tensor(arg), None),
        OutputSpec::BufferMutation { arg, target } => {
            entry(("BUFFER_MUTATION", 3), Arg::Tensor(arg), Some(target))
        }
        OutputSpec::GradientToParameter { arg, target } => {
            entry(("GRADIENT_TO_PARAMETER", 4), Arg::Tensor(arg), Some(target))
        }
        OutputSpec::GradientToUserInput { arg, target } => {
            entry(("GRADIENT_TO_USER_INPUT", 5), Arg::Tensor(arg), Some(target))
        }
        OutputSpec::UserInputMutation { arg, target } => {
            entry(("USER_INPUT_MUTATION", 6), Arg::Tensor(arg), Some(target))
        }
        OutputSpec::Token { arg } => entry(("TOKEN", 7), Arg::Token(arg), None),
        OutputSpec::ParameterMutation { arg, target } => {
            entry(("PARAMETER_MUTATION", 8), Arg::Tensor(arg), Some(target))
        }
    }
}

/// Returns the value of a user input or output: a constant has no name.
fn user(arg: &Argument) -> Arg<'_> {
    match (arg, arg.name()) {
        (Argument::Tensor(_) | Argument::OptionalTensor(_), Some(name)) => Arg::Tensor(name),
        (Argument::SymInt(_), Some(name)) => Arg::SymInt(name),
        (Argument::SymFloat(_), Some(name)) => Arg::SymFloat(name),
        (Argument::SymBool(_), Some(name)) => Arg::SymBool(name),
        (Argument::CustomObj { name, .. }, _) => Arg::Constant(name, arg),
        _ => Arg::Constant("", arg),
    }
}
