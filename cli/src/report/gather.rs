//! Gathers the data that `info` shows about a file.

use super::{FileReport, MissingRow, ModuleRow, OperatorRow, TensorRow};
use anyhow::{Context, Result};
use flambeau::exec::Kernel;
use flambeau::ir::module::AttributeKind;
use flambeau::ir::{Graph, NodeId, SourceRange};
use flambeau::{IValue, Module, Program, Session};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum number of characters shown of an attribute's value.
const VALUE: usize = 60;

/// Returns the report on the file at `path`.
pub(crate) fn report(session: &Session, path: &Path) -> Result<FileReport> {
    let bytes = std::fs::metadata(path).with_context(|| format!("reading {}", path.display()))?.len();
    let limits = flambeau::archive::ArchiveLimits::default();
    let empty = FileReport {
        file: path.display().to_string(),
        kind: String::new(),
        bytes,
        modules: Vec::new(),
        tensors: Vec::new(),
        methods: Vec::new(),
        operators: Vec::new(),
        unregistered: Vec::new(),
        missing: Vec::new(),
        extra_files: Vec::new(),
    };
    if !flambeau::archive::has_code_file(path, &limits).map_err(flambeau::Error::from)? {
        let weights = session.load_weights(path)?;
        let tensors = weights.iter().map(|(name, t)| TensorRow::new(name.clone(), t, "tensor")).collect();
        return Ok(FileReport { kind: "tensors by name".to_owned(), tensors, ..empty });
    }
    let program = session.load_archive(path)?;
    let kind = format!(
        "TorchScript archive `{}`, format version {}",
        program.archive_name(),
        program.archive_version().unwrap_or_default()
    );
    Ok(FileReport {
        kind,
        modules: program.module().map(|m| modules(&m)).unwrap_or_default(),
        methods: methods(&program),
        operators: operators(&program),
        unregistered: unregistered(&program),
        missing: missing(&program),
        extra_files: program.extra_files().iter().map(|(name, b)| (name.clone(), b.len())).collect(),
        ..empty
    })
}

fn modules(root: &Module) -> Vec<ModuleRow> {
    let count = |tensors: Vec<(String, flambeau::Tensor)>| tensors.iter().map(|(_, t)| t.numel()).sum();
    let row = |(path, module): (String, Module)| {
        let mut tensors = Vec::new();
        let mut attributes = Vec::new();
        for (attribute, value) in module.attributes() {
            let role = match attribute.kind {
                AttributeKind::Parameter => "parameter",
                AttributeKind::Buffer => "buffer",
                AttributeKind::Plain => "attribute",
            };
            match &value {
                IValue::Tensor(t) => tensors.push(TensorRow::new(attribute.name.to_string(), t, role)),
                IValue::Object(_) => {}
                other => {
                    attributes.push((attribute.name.to_string(), attribute.ty.annotation_str(), short(other)))
                }
            }
        }
        let constants = module.constants().iter();
        attributes.extend(constants.map(|(name, v)| (name.to_string(), "Final".to_owned(), short(v))));
        ModuleRow {
            path,
            class: module.class_name(),
            parameters: count(module.named_parameters()),
            buffers: count(module.named_buffers()),
            tensors,
            attributes,
            methods: module.methods().into_iter().map(|(name, _)| name).collect(),
        }
    };
    root.named_modules().into_iter().map(row).collect()
}

fn short(value: &IValue) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn methods(program: &Program) -> Vec<String> {
    let line = |name: String| match program.entry(&name) {
        Ok(entry) => entry.schema().to_string(),
        Err(_) => format!("{name} (not compiled)"),
    };
    program.entries().into_iter().map(line).collect()
}

/// Returns all operators, those without a kernel first, then by name.
fn operators(program: &Program) -> Vec<OperatorRow> {
    let mut rows: BTreeMap<String, OperatorRow> = BTreeMap::new();
    let mut users = BTreeSet::new();
    for function in program.unit().functions() {
        let graph = &function.graph;
        for node in graph.nodes_deep() {
            let Some(schema) = graph.registry().schema_of(graph.op(node)) else { continue };
            let name = schema.full_name();
            let row = rows.entry(name.clone()).or_insert_with(|| {
                let kernel = graph.op(node).row().and_then(|row| graph.registry().facet::<Kernel>(row));
                let missing_at = kernel.is_none().then(|| source_position(graph, node));
                OperatorRow { name, uses: 0, missing_at, modules: Vec::new() }
            });
            row.uses += 1;
            if row.missing_at.is_some() && users.insert((row.name.clone(), function.name)) {
                row.modules.extend(program.modules_with(function.name));
            }
        }
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| row.missing_at.is_none());
    for row in &mut rows {
        row.modules.sort();
        row.modules.dedup();
    }
    rows
}

/// Returns the position of a node: the original source line if the archive has it, else the line in the archive's code.
fn source_position(graph: &Graph, node: NodeId) -> String {
    match graph.locs().range(graph.loc(node)) {
        Some(range) => file_and_line(&range.original().unwrap_or(range)),
        None => "an unknown position".to_owned(),
    }
}

/// Returns `FILE:LINE`.
fn file_and_line(range: &SourceRange) -> String {
    let (line, _) = range.source.line_column(range.range.start as usize);
    format!("{}:{line}", range.source.name)
}

/// The code of errors for operators that are not registered. Their message has the name between backticks.
const UNREGISTERED: &str = "F0108";

fn unregistered(program: &Program) -> Vec<String> {
    let mut names = BTreeSet::new();
    for (_, error) in program.missing() {
        let all = error.diagnostics.iter().filter(|d| d.code == UNREGISTERED);
        names.extend(all.filter_map(|d| d.message.split('`').nth(1).map(str::to_owned)));
    }
    names.into_iter().collect()
}

fn missing(program: &Program) -> Vec<MissingRow> {
    let row = |(function, error): (flambeau::ir::Symbol, flambeau::Error)| MissingRow {
        function: function.to_string(),
        problem: error.render(),
    };
    program.missing().map(row).collect()
}
