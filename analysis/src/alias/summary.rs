//! Summaries of subgraphs: the effect of a subgraph on the operands of its node, computed once per subgraph.

use super::AliasDb;
use super::build::{Builder, Inputs};
use super::locations::Flags;
use flambeau_ir::{Effects, Graph};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// The effect on one input.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InputEffect {
    /// Whether the input or its contents are written.
    pub(crate) written: bool,
    /// Whether the input is stored outside.
    pub(crate) escapes: bool,
}

/// The possible origins of one output.
#[derive(Clone, Debug)]
pub(crate) struct OutputOrigin {
    /// Inputs that the output may be.
    pub(crate) inputs: Vec<u32>,
    /// Whether the output may be new memory.
    pub(crate) fresh: bool,
    /// Whether the output may be other outside memory.
    pub(crate) outside: bool,
}

/// The summary of a subgraph.
#[derive(Debug)]
pub(crate) struct SubgraphSummary {
    pub(crate) inputs: Vec<InputEffect>,
    pub(crate) outputs: Vec<OutputOrigin>,
    pub(crate) writes_wildcards: bool,
    /// Whether a tensor gets the storage of another one: sharing between inputs is then unknown.
    pub(crate) rebinds: bool,
}

/// The summaries of subgraphs, keyed by address. Subgraphs live as long as the graph that holds them, which is borrowed
/// during the build.
#[derive(Default)]
pub(crate) struct Summaries {
    known: HashMap<usize, Option<Arc<SubgraphSummary>>, FxBuildHasher>,
    writers: HashMap<usize, bool, FxBuildHasher>,
    depth: u32,
}

/// A more deeply nested subgraph is treated as arbitrary code.
const MAX_DEPTH: u32 = 16;

impl Summaries {
    pub(crate) fn of(&mut self, body: &Arc<Graph>) -> Option<Arc<SubgraphSummary>> {
        let key = Arc::as_ptr(body) as usize;
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let mut builder = Builder::new(body, Inputs::Distinct, std::mem::take(self));
        builder.run();
        *self = std::mem::take(&mut builder.summaries);
        self.depth -= 1;
        let summary = Some(Arc::new(summarise(body, &AliasDb::from_builder(builder))));
        self.known.insert(key, summary.clone());
        summary
    }

    /// Whether some node of a graph may write the graph's inputs or outside memory.
    pub(crate) fn writes_anything(&mut self, body: &Arc<Graph>) -> bool {
        *self.writers.entry(Arc::as_ptr(body) as usize).or_insert_with(|| {
            body.all_effects()
                .intersects(Effects::WRITES | Effects::WAITS | Effects::HOST | Effects::CONSERVATIVE)
        })
    }
}

fn summarise(body: &Graph, db: &AliasDb) -> SubgraphSummary {
    // A constant of the subgraph may be a constant of the enclosing graph, which counts as outside memory.
    let elsewhere = Flags(Flags::WILDCARD.0 | Flags::CONSTANT_TENSOR.0 | Flags::CONSTANT_CONTAINER.0);
    let inputs = body
        .inputs()
        .map(|v| InputEffect { written: db.has_writers(v), escapes: db.deep_flags(v).has(Flags::WILDCARD) })
        .collect();
    let outputs = body
        .outputs()
        .map(|out| {
            let from: Vec<u32> = body
                .inputs()
                .enumerate()
                .filter(|(_, v)| db.may_contain_alias(out, *v))
                .map(|(i, _)| i as u32)
                .collect();
            let locs = db.locations_of(out);
            let of_inputs = |loc: u32| {
                from.iter().any(|&i| {
                    let v = body.inputs().nth(i as usize).expect("invariant: an input's index");
                    db.locations_of(v).contains(&loc)
                })
            };
            // A value without an element is new memory.
            let fresh = from.is_empty() || locs.iter().any(|&loc| !of_inputs(loc));
            OutputOrigin { inputs: from, fresh, outside: db.deep_flags(out).has(elsewhere) }
        })
        .collect();
    let writes_wildcards =
        db.writes.rows.iter().any(|w| db.set_flags(db.set_of(w.element, w.deep)).has(elsewhere));
    SubgraphSummary { inputs, outputs, writes_wildcards, rebinds: !db.dag.unified().is_empty() }
}
