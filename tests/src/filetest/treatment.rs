//! Treatments: ways to run a file that must change nothing.

use flambeau_ir::text::PrintOptions;

use super::subject;

/// The program printed with every constant written out.
///
/// # Errors
/// If it cannot be read.
pub(super) fn printed(program: &str) -> Result<String, String> {
    let exact = PrintOptions { exact: true, ..PrintOptions::default() };
    match subject::read(program) {
        Ok(graph) => Ok(graph.to_text(exact)),
        Err(errors) => Err(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}
