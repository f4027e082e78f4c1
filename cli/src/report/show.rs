//! Formats a report as text.

use super::{FileReport, ModuleRow, TensorRow};
use serde_json::{Value, json};
use std::fmt::Write;

/// Maximum number of modules shown without `--all`.
const MODULES: usize = 40;

pub(super) fn json(report: &FileReport) -> Value {
    let tensor = |t: &TensorRow| json!({"name": t.name, "dtype": t.dtype, "shape": t.sizes, "kind": t.role});
    let tensors = |rows: &[TensorRow]| rows.iter().map(tensor).collect::<Vec<_>>();
    let attribute =
        |(name, ty, value): &(String, String, String)| json!({"name": name, "type": ty, "value": value});
    let module = |m: &ModuleRow| {
        json!({
            "path": m.path, "class": m.class, "parameters": m.parameters, "buffers": m.buffers,
            "tensors": tensors(&m.tensors),
            "attributes": m.attributes.iter().map(attribute).collect::<Vec<_>>(),
            "methods": m.methods,
        })
    };
    let operators = report.operators.iter();
    let missing = report.missing.iter();
    json!({
        "file": report.file, "kind": report.kind, "bytes": report.bytes,
        "modules": report.modules.iter().map(module).collect::<Vec<_>>(),
        "tensors": tensors(&report.tensors),
        "methods": report.methods,
        "operators": operators
            .map(|o| json!({"name": o.name, "uses": o.uses, "missing_at": o.missing_at, "modules": o.modules}))
            .collect::<Vec<_>>(),
        "unregistered": report.unregistered,
        "missing": missing.map(|m| json!({"function": m.function, "problem": m.problem})).collect::<Vec<_>>(),
        "extra_files": report
            .extra_files
            .iter()
            .map(|(name, bytes)| json!({"name": name, "bytes": bytes}))
            .collect::<Vec<_>>(),
    })
}

pub(super) fn text(report: &FileReport, all: bool) -> String {
    let mut out = format!("{}: {}, {}\n", report.file, report.kind, counted(report.bytes as usize, "byte"));
    // Writing to a string cannot fail.
    let _ = write_parts(&mut out, report, all);
    out
}

fn write_parts(out: &mut String, report: &FileReport, all: bool) -> std::fmt::Result {
    let shown = if all { usize::MAX } else { MODULES };
    for module in report.modules.iter().take(shown) {
        write_module(out, module, all)?;
    }
    if report.modules.len() > shown {
        writeln!(out, "… {} more modules (--all shows them)", report.modules.len() - shown)?;
    }
    for tensor in &report.tensors {
        write_tensor(out, "", tensor)?;
    }
    if !report.tensors.is_empty() {
        let numbers: usize = report.tensors.iter().map(numel).sum();
        writeln!(out, "{}, {}", counted(report.tensors.len(), "tensor"), counted(numbers, "number"))?;
    }
    for (name, bytes) in &report.extra_files {
        writeln!(out, "extra file {name}: {}", counted(*bytes, "byte"))?;
    }
    for method in &report.methods {
        writeln!(out, "method {method}")?;
    }
    if !report.operators.is_empty() || !report.unregistered.is_empty() {
        writeln!(out, "{}", operator_summary(report))?;
    }
    for operator in &report.operators {
        match &operator.missing_at {
            Some(at) => {
                let uses = counted(operator.uses, "use");
                write!(out, "  missing {} ({uses}, first at {at})", operator.name)?;
                let of = if operator.modules.is_empty() { "" } else { ", used by " };
                writeln!(out, "{of}{}", operator.modules.join(", "))?;
            }
            None if all => writeln!(out, "  {} ({})", operator.name, counted(operator.uses, "use"))?,
            None => {}
        }
    }
    for missing in &report.missing {
        writeln!(
            out,
            "not compiled: {}\n  {}",
            missing.function,
            missing.problem.trim_end().replace('\n', "\n  ")
        )?;
    }
    Ok(())
}

/// Returns the numbers of operators: used ones and, if there are any, ones without a kernel and unregistered ones.
fn operator_summary(report: &FileReport) -> String {
    let mut text = format!("{} used", counted(report.operators.len(), "operator"));
    let without_kernel = report.operators.iter().filter(|o| o.missing_at.is_some()).count();
    if without_kernel > 0 {
        text += &format!("; {without_kernel} without a kernel");
    }
    if !report.unregistered.is_empty() {
        text +=
            &format!("; {} not registered: {}", report.unregistered.len(), report.unregistered.join(", "));
    }
    text
}

/// Formats a number with its noun in the right number.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

fn write_module(out: &mut String, module: &ModuleRow, all: bool) -> std::fmt::Result {
    let depth = if module.path.is_empty() { 0 } else { module.path.matches('.').count() + 1 };
    let indent = "  ".repeat(depth);
    let name = module.path.rsplit('.').next().filter(|n| !n.is_empty()).unwrap_or("(root)");
    write!(out, "{indent}{name}: {}", module.class)?;
    if module.parameters > 0 {
        write!(out, ", {}", counted(module.parameters, "parameter"))?;
    }
    if module.buffers > 0 {
        write!(out, ", {} in buffers", grouped(module.buffers))?;
    }
    writeln!(out)?;
    for tensor in &module.tensors {
        write_tensor(out, &format!("{indent}  "), tensor)?;
    }
    if all {
        for (name, ty, value) in &module.attributes {
            writeln!(out, "{indent}  {name}: {ty} = {value}")?;
        }
        if !module.methods.is_empty() {
            writeln!(out, "{indent}  methods: {}", module.methods.join(", "))?;
        }
    }
    Ok(())
}

fn write_tensor(out: &mut String, indent: &str, tensor: &TensorRow) -> std::fmt::Result {
    writeln!(out, "{indent}{}: {}{:?} {}", tensor.name, tensor.dtype, tensor.sizes, tensor.role)
}

fn numel(tensor: &TensorRow) -> usize {
    tensor.sizes.iter().map(|&size| size as usize).product()
}

/// Formats `1234567` as `1,234,567`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
