//! `test gradient`: the forward and the backward graph of each function, with respect to all tensor inputs.

use super::super::command::{Blame, Command};
use super::super::file::TestFile;
use super::super::subject;

/// `test gradient`.
pub(super) struct Gradient;

impl Command for Gradient {
    fn name(&self) -> &'static str {
        "gradient"
    }

    fn run(&self, file: &TestFile, program: &str, _: &str) -> Result<String, Vec<Blame>> {
        let mut texts = Vec::new();
        for (_, graph) in subject::graphs(file, program)? {
            subject::verify(&graph)?;
            let inputs: Vec<usize> = graph
                .inputs()
                .enumerate()
                .filter(|(_, v)| graph.ty(*v).is_tensor())
                .map(|(i, _)| i)
                .collect();
            let gradient =
                subject::session().differentiate(&graph, &inputs).map_err(|e| subject::blames(&e))?;
            for part in [&gradient.forward, &gradient.backward] {
                subject::verify(part)?;
                texts.push(part.to_string());
            }
        }
        Ok(texts.join("\n"))
    }
}
