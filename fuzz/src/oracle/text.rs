//! Checks that a graph printed exactly parses to the same text.

use super::{CheckOutcome, Oracle};
use crate::case::Case;
use flambeau_ir::Source;
use flambeau_ir::text::{PrintOptions, parse_graph};
use flambeau_ir::verify::verify;

/// Prints, parses, prints.
pub struct TextRoundTrip;

impl Oracle for TextRoundTrip {
    fn name(&self) -> String {
        "text".into()
    }

    fn check(&self, case: &Case) -> CheckOutcome {
        let options = PrintOptions { exact: true, ..PrintOptions::default() };
        let text = case.graph.to_text(options);
        let source = Source::new("case.ir", text.clone());
        let read = match parse_graph(&source, case.graph.registry()) {
            Ok(g) => g,
            Err(e) => return CheckOutcome::Failed(format!("does not read back: {}", e.render())),
        };
        if let Err(e) = verify(&read) {
            return CheckOutcome::Failed(format!("does not verify when read back: {e}"));
        }
        let again = read.to_text(options);
        if again == text {
            CheckOutcome::Checked
        } else {
            CheckOutcome::Failed(format!("reads back as\n{again}"))
        }
    }
}
