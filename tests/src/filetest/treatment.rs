//! Treatments: variants of running a file that must not change the results.

use flambeau_ir::text::PrintOptions;

use super::subject;

/// Returns the printed program with all constants in full.
///
/// # Errors
/// Returns an error if the program does not parse.
pub(super) fn printed(program: &str) -> Result<String, String> {
    let exact = PrintOptions { exact: true, ..PrintOptions::default() };
    match subject::read(program) {
        Ok(graph) => Ok(graph.to_text(exact)),
        Err(errors) => Err(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}
