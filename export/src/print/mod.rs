//! The texts that PyTorch prints for a program.
//!
//! | function | text |
//! |---|---|
//! | [`graph_text`] | `str(ep.graph)`: one line per node |
//! | [`program_text`] | `str(ep)`: the graph as Python source, the signature, the ranges of symbols |
//! | [`signature_text`] | `str(ep.graph_signature)` |
//! | [`ranges_text`] | `str(ep.range_constraints)` |
//! | [`dot_text`] | the graph for Graphviz, which PyTorch does not print |
//!
//! The texts are those of the version of PyTorch that wrote the file ([`Style`]), byte for byte. They are made of the FX graph
//! ([`FxGraph`](crate::fx::FxGraph)), because they name nodes and not values. Printing is linear in the size of the text.

mod code;
mod dot;
mod graph;
mod signature;
mod value;

pub use signature::{SignatureRow, signature_rows};

use std::fmt::Write as _;

use flambeau_ir::Registry;

use crate::fx::{build, val_of};
use crate::info::symbols_of_metadata;
use crate::json::Res;
use crate::model::{ProgramModel, RangeConstraint, SchemaVersion};

/// The version of PyTorch whose texts are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Style {
    /// 2.6: the signature is one line of Python.
    Torch26,
    /// 2.8 and 2.9: the signature has one line per input and output.
    Torch28,
    /// 2.15: as before, without white space at the end of lines.
    Torch215,
}

impl Style {
    /// Returns the style of the version that wrote a file.
    pub fn of(version: SchemaVersion) -> Self {
        match version.minor {
            ..=7 => Style::Torch26,
            8..=19 => Style::Torch28,
            20.. => Style::Torch215,
        }
    }
}

/// Returns `str(ep.graph)`, without a line end at the end.
///
/// # Errors
///
/// Returns `E006`, `E007` and `E012` if the graph is inconsistent.
pub fn graph_text(program: &ProgramModel, registry: &Registry) -> Res<String> {
    let fx = build(program, registry).map_err(in_graph)?;
    Ok(graph::text(&fx))
}

/// Returns `str(ep)`.
///
/// # Errors
///
/// Returns the same errors as [`graph_text`].
pub fn program_text(program: &ProgramModel, style: Style, registry: &Registry) -> Res<String> {
    let fx = build(program, registry).map_err(in_graph)?;
    let mut out = String::from("ExportedProgram:\n");
    code::class(&mut out, &fx, "GraphModule", 1, &program.exprs, style);
    let signature = signature_text(program, style).replace('\n', "\n    ");
    let space = if style == Style::Torch215 { "" } else { " " };
    match style {
        Style::Torch26 => {
            let _ = writeln!(out, "Graph signature: {signature}");
        }
        _ => {
            let _ = writeln!(out, "Graph signature:{space}{signature}");
        }
    }
    let _ = writeln!(out, "Range constraints: {}", ranges_text(program));
    Ok(out)
}

/// Returns `str(ep.graph_signature)`.
pub fn signature_text(program: &ProgramModel, style: Style) -> String {
    match style {
        Style::Torch26 => signature::python(&program.module.signature),
        _ => signature::lines(&program.module.signature),
    }
}

/// Returns `str(ep.range_constraints)`: the ranges of the symbols that occur in the program, in the order of the file.
pub fn ranges_text(program: &ProgramModel) -> String {
    let mut out = String::from("{");
    for (n, (symbol, range)) in ranges(program).enumerate() {
        let (low, high) = bounds(range);
        let _ = write!(out, "{}{symbol}: VR[{low}, {high}]", if n > 0 { ", " } else { "" });
    }
    out.push('}');
    out
}

/// Returns the ranges of the symbols and expressions that occur in the program. PyTorch drops the others with a warning.
pub fn ranges(program: &ProgramModel) -> impl Iterator<Item = (&str, RangeConstraint)> {
    /// Rows of the largest expression that is compared with the names of ranges.
    const LARGEST: u32 = 64;
    let ranges = &program.range_constraints;
    let mut used = symbols_of_metadata(&program.module.graph, &program.exprs);
    if ranges.keys().any(|name| !used.contains(name)) {
        used.extend(program.exprs.call_texts(LARGEST));
    }
    ranges.iter().filter(move |(name, _)| used.contains(*name)).map(|(name, range)| (name.as_str(), *range))
}

/// Returns the annotation of a value of the program's graph, such as `f32[s77, 3]` or `Sym(s77 - 1)`; `None` for constants.
pub fn annotation_of(program: &ProgramModel, name: &str) -> Option<String> {
    value::annotation(val_of(&program.module.graph, name), &program.exprs)
}

/// Returns the bounds of a range as PyTorch writes them.
pub fn bounds(range: RangeConstraint) -> (String, String) {
    let bound =
        |value: Option<i64>, unbounded: &str| value.map_or_else(|| unbounded.to_owned(), |v| v.to_string());
    (bound(range.min, "-int_oo"), bound(range.max, "int_oo"))
}

/// Returns the graph for Graphviz: a node per FX node, an edge per operand, a cluster per subgraph.
///
/// # Errors
///
/// Returns the same errors as [`graph_text`].
pub fn dot_text(program: &ProgramModel, registry: &Registry) -> Res<String> {
    let fx = build(program, registry).map_err(in_graph)?;
    Ok(dot::text(&fx, &program.exprs))
}

fn in_graph(error: crate::ExportError) -> crate::ExportError {
    error.in_field("graph").in_field("graph_module")
}
