//! `test egraph [OPTIONS]`: the rewrites of equality saturation in each function, and the resulting graph.
//!
//! The options are those of the pass: `test egraph accept=rounding`.

use flambeau_analysis::Analyses;
use flambeau_rewrite::{Checks, Control, Manager, TraceEvent};

use super::super::command::{Blame, Command};
use super::super::file::TestFile;
use super::super::subject;

/// `test egraph`.
pub(super) struct Egraph;

impl Command for Egraph {
    fn name(&self) -> &'static str {
        "egraph"
    }

    fn run(&self, file: &TestFile, program: &str, args: &str) -> Result<String, Vec<Blame>> {
        let text = if args.is_empty() { "egraph,dce".to_owned() } else { format!("egraph{{{args}}},dce") };
        let pipeline = subject::session().pipeline(&text).map_err(|e| subject::blames(&e))?;
        let mut texts = Vec::new();
        for (_, graph) in subject::graphs(file, program)? {
            subject::verify(&graph)?;
            let (mut graph, mut control) = ((*graph).clone(), Control::new().with_trace());
            Manager::new()
                .checks(Checks::EveryEdit)
                .run_with(&mut graph, &pipeline, &mut Analyses::new(), &mut control)
                .map_err(Blame::nowhere)?;
            let events = control.trace().map(|s| s.events()).unwrap_or_default();
            let rewrites = events.iter().filter(|e| matches!(e, TraceEvent::Rewrite { pass: "egraph", .. }));
            let lines: String = rewrites.map(|e| format!("{e}\n")).collect();
            texts.push(format!("{lines}{graph}"));
        }
        Ok(texts.join("\n"))
    }
}
