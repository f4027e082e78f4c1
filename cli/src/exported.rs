//! Exported programs on the command line: recognized by content, and their printed forms.

use crate::output;
use crate::program::{ProgramArgs, sharing};
use anyhow::Result;
use flambeau::export::model::ProgramModel;
use flambeau::export::verify::{Strictness, violations};
use flambeau::export::{
    ExportError, is_exported, is_exported_file, node_count, print as text, read, read_file,
};
use flambeau::ir::text::PrintOptions;
use flambeau::{Error, ExportedProgram, Session};
use std::path::Path;

/// Maximum number of violations that `verify` lists.
const VIOLATIONS: usize = 100;

/// A printed form of an exported program.
#[derive(Clone, Copy)]
pub(crate) enum ExportedForm {
    /// The graph as Python source, with signature and ranges.
    Program,
    /// One line per node.
    Graph,
    /// The graph of the IR that runs.
    Ir,
    /// The DOT language of Graphviz.
    Dot,
}

/// Reads an exported program, or returns `None` if the file is not one. Weights are read if `weights` is true.
pub(crate) fn model(args: &ProgramArgs, session: &Session, weights: bool) -> Result<Option<ProgramModel>> {
    let mut options = sharing(session, args.copy).read_options();
    options.skip_weights = !weights;
    let read = if args.file == "-" {
        let bytes = args.bytes()?;
        is_exported(&bytes, &options.archive).then(|| read(&bytes, &options))
    } else {
        let path = Path::new(&args.file);
        let found = args.is_archive_file()? && is_exported_file(path, &options.archive).map_err(failed)?;
        found.then(|| read_file(path, &options))
    };
    read.transpose().map_err(failed)
}

/// Prints an exported program in a form. The form `Ir` needs the weights.
pub(crate) fn print(
    model: ProgramModel,
    form: ExportedForm,
    session: &Session,
    options: PrintOptions,
) -> Result<()> {
    let registry = session.registry();
    match form {
        ExportedForm::Program => {
            let style = text::Style::of(model.schema_version);
            output::text(text::program_text(&model, style, registry).map_err(failed)?)?;
        }
        ExportedForm::Graph => output::line(text::graph_text(&model, registry).map_err(failed)?)?,
        ExportedForm::Dot => output::text(text::dot_text(&model, registry).map_err(failed)?)?,
        ExportedForm::Ir => {
            let program = ExportedProgram::new(session, model)?;
            output::text(output::graph_text(program.graph(), options)?)?;
        }
    }
    Ok(())
}

/// Checks all rules of exported programs. Returns the number of nodes, subgraphs included.
///
/// # Errors
/// An error that lists the violations, with the code of the first one.
pub(crate) fn verify(model: &ProgramModel, session: &Session) -> Result<usize> {
    let found = violations(model, session.registry(), Strictness::Full, VIOLATIONS);
    let Some((first, rest)) = found.split_first() else {
        return Ok(node_count(model));
    };
    let mut error = Error::from(first.clone());
    for other in rest {
        error.message += &format!("\n{other}");
    }
    Err(error.into())
}

fn failed(error: ExportError) -> anyhow::Error {
    Error::from(error).into()
}
