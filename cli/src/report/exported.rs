//! The report of `info` about an exported program: layout, signature, ranges of symbols, operators.

use super::show::counted;
use anyhow::{Context, Result};
use flambeau::exec::Kernel;
use flambeau::export::model::ProgramModel;
use flambeau::export::{
    CallSpec, OperatorUse, Port, ReadOptions, file_layout, node_count, operators, ports, print, read_file,
};
use flambeau::{Error, ExportedProgram, Session};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Maximum number of inputs, outputs or operators shown without `--all`.
const MAX_ROWS: usize = 40;

/// An operator with the reason why it cannot be run.
struct Row {
    used: OperatorUse,
    missing: Option<&'static str>,
}

/// All data about an exported program.
pub(crate) struct ExportedReport {
    file: String,
    bytes: u64,
    layout: &'static str,
    model: ProgramModel,
    models: Vec<String>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    operators: Vec<Row>,
    /// Guards of the file that calls do not check.
    unread_guards: Vec<String>,
    /// The error that prevents the program from being run.
    problem: Option<String>,
}

impl ExportedReport {
    /// Gathers the data about the file at `path`.
    pub(crate) fn gather(session: &Session, path: &Path, options: &ReadOptions) -> Result<ExportedReport> {
        let failed = |e: flambeau::export::ExportError| Error::from(e);
        let bytes = std::fs::metadata(path).with_context(|| format!("reading {}", path.display()))?.len();
        let model = read_file(path, options).map_err(failed)?;
        let (layout, models) = file_layout(path, options).map_err(failed)?;
        let registry = session.registry();
        let missing = |used: &OperatorUse| match used.id {
            None if used.has_schema => Some("not registered"),
            Some(id) if registry.facet::<Kernel>(id).is_none() => Some("no kernel"),
            _ => None,
        };
        let rows = operators(&model, registry).into_iter();
        let mut rows: Vec<Row> = rows.map(|used| Row { missing: missing(&used), used }).collect();
        rows.sort_by(|a, b| a.used.target.cmp(&b.used.target));
        rows.sort_by_key(|row| row.missing.is_none());
        let (inputs, outputs) = ports(&model);
        Ok(ExportedReport {
            file: path.display().to_string(),
            bytes,
            layout: layout.name(),
            models,
            inputs,
            outputs,
            operators: rows,
            unread_guards: CallSpec::new(&model)
                .map_or_else(|_| Vec::new(), |call| call.unread_guards().to_vec()),
            problem: ExportedProgram::check(session, &model).err().map(|e| e.render()),
            model,
        })
    }

    /// Returns the report as JSON.
    pub(crate) fn json(&self) -> Value {
        let port =
            |p: &Port| json!({"name": p.name, "kind": p.kind, "target": p.target, "type": p.annotation});
        let ranges: serde_json::Map<String, Value> = print::ranges(&self.model)
            .map(|(name, range)| (name.to_owned(), json!([range.min, range.max])))
            .collect();
        let operator = |row: &Row| json!({"target": row.used.target, "uses": row.used.uses, "first": row.used.first, "missing": row.missing});
        let unknown = self.model.unknown.iter();
        json!({
            "file": self.file, "kind": "exported program", "bytes": self.bytes, "layout": self.layout,
            "models": self.models,
            "schema_version": [self.model.schema_version.major, self.model.schema_version.minor],
            "torch_version": self.model.torch_version, "verifiers": self.model.verifiers,
            "nodes": node_count(&self.model),
            "inputs": self.inputs.iter().map(port).collect::<Vec<_>>(),
            "outputs": self.outputs.iter().map(port).collect::<Vec<_>>(),
            "range_constraints": ranges, "guards": self.model.guards_code,
            "unread_guards": self.unread_guards,
            "operators": self.operators.iter().map(operator).collect::<Vec<_>>(),
            "problem": self.problem,
            "unknown_fields": unknown
                .map(|u| json!({"object": u.object, "name": u.name, "byte": u.offset}))
                .collect::<Vec<_>>(),
            "extra_files": self
                .model
                .extra_files
                .iter()
                .map(|(name, bytes)| json!({"name": name, "bytes": bytes.len()}))
                .collect::<Vec<_>>(),
        })
    }

    /// Returns the report as text: complete if `all`, else a summary.
    pub(crate) fn text(&self, all: bool) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out, if all { usize::MAX } else { MAX_ROWS });
        out
    }

    fn write(&self, out: &mut String, shown: usize) -> std::fmt::Result {
        let version = self.model.schema_version;
        let torch = match self.model.torch_version.is_empty() {
            true => String::new(),
            false => format!(", PyTorch {}", self.model.torch_version),
        };
        writeln!(
            out,
            "{}: exported program, schema {}.{}{torch}, {}, {}",
            self.file,
            version.major,
            version.minor,
            self.layout,
            counted(self.bytes as usize, "byte")
        )?;
        if self.models.len() > 1 {
            writeln!(out, "programs: {}", self.models.join(", "))?;
        }
        writeln!(
            out,
            "{}, verifier {}",
            counted(node_count(&self.model), "node"),
            self.model.verifiers.join(", ")
        )?;
        for (what, ports) in [("input", &self.inputs), ("output", &self.outputs)] {
            writeln!(out, "{}", counted(ports.len(), what))?;
            ports.iter().take(shown).try_for_each(|p| write_port(out, p))?;
            write_rest(out, ports.len(), shown)?;
        }
        for (name, range) in print::ranges(&self.model) {
            let (low, high) = print::bounds(range);
            writeln!(out, "range of {name}: {low} to {high}")?;
        }
        for guard in self.unread_guards.iter().take(shown) {
            writeln!(out, "guard that calls do not check: {guard}")?;
        }
        for (name, bytes) in &self.model.extra_files {
            writeln!(out, "extra file {name}: {}", counted(bytes.len(), "byte"))?;
        }
        for field in self.model.unknown.iter().take(shown) {
            writeln!(out, "unknown field {} of {} at byte {}", field.name, field.object, field.offset)?;
        }
        self.write_operators(out, shown)
    }

    fn write_operators(&self, out: &mut String, shown: usize) -> std::fmt::Result {
        let missing = self.operators.iter().filter(|row| row.missing.is_some()).count();
        write!(out, "{} used", counted(self.operators.len(), "operator"))?;
        writeln!(out, "{}", if missing > 0 { format!("; {missing} missing") } else { String::new() })?;
        let rows = self.operators.iter().filter(|row| row.missing.is_some() || shown == usize::MAX);
        for row in rows.take(shown) {
            let uses = counted(row.used.uses, "use");
            match row.missing {
                Some(why) => {
                    writeln!(out, "  missing {} ({why}; {uses}, first {})", row.used.target, row.used.first)?;
                }
                None => writeln!(out, "  {} ({uses})", row.used.target)?,
            }
        }
        match &self.problem {
            Some(problem) => writeln!(out, "cannot be run: {}", problem.trim_end()),
            None => Ok(()),
        }
    }
}

fn write_port(out: &mut String, port: &Port) -> std::fmt::Result {
    write!(out, "  {}: {}", if port.name.is_empty() { "(constant)" } else { &port.name }, port.kind)?;
    if let Some(target) = &port.target {
        write!(out, " `{target}`")?;
    }
    if let Some(annotation) = &port.annotation {
        write!(out, ", {annotation}")?;
    }
    writeln!(out)
}

fn write_rest(out: &mut String, count: usize, shown: usize) -> std::fmt::Result {
    match count > shown {
        true => writeln!(out, "  … {} more (--all shows them)", count - shown),
        false => Ok(()),
    }
}
