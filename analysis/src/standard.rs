//! List of the analyses of this crate, for tools that test or time all of them.

use crate::{AliasDb, Analyses, Analysis, Dominance, GuardGraph, Liveness, NestedEffects, Shapes};
use flambeau_ir::Graph;

/// A named analysis.
#[derive(Clone, Copy, Debug)]
pub struct StandardAnalysis {
    /// [`Analysis::NAME`].
    pub name: &'static str,
    build: fn(&Graph),
}

impl StandardAnalysis {
    const fn of<A: Analysis>() -> Self {
        StandardAnalysis { name: A::NAME, build: |graph| drop(Analyses::new().shared::<A>(graph)) }
    }

    /// Builds the analysis and those it depends on, and drops them.
    pub fn build(&self, graph: &Graph) {
        (self.build)(graph);
    }
}

/// All analyses of this crate.
pub const STANDARD: &[StandardAnalysis] = &[
    StandardAnalysis::of::<AliasDb>(),
    StandardAnalysis::of::<Dominance>(),
    StandardAnalysis::of::<GuardGraph>(),
    StandardAnalysis::of::<Liveness>(),
    StandardAnalysis::of::<NestedEffects>(),
    StandardAnalysis::of::<Shapes>(),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Counts the implementations in the files of a folder.
    fn implementations(folder: &Path) -> usize {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        // Implementations in test modules are indented.
        let of_file = |path: &Path| {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().filter(|line| line.starts_with("impl Analysis for ")).count()
        };
        entries.map(|path| if path.is_dir() { implementations(&path) } else { of_file(&path) }).sum()
    }

    #[test]
    fn the_list_is_complete() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert_eq!(implementations(&source), STANDARD.len(), "an analysis is missing in `STANDARD`");
    }
}
