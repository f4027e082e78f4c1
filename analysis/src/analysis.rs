//! The trait [`Analysis`]: data computed from a graph, updated from its journal, and compared with a newly built
//! instance.
//!
//! An analysis may differ from a new one only in the conservative direction: after [`Analysis::update`] its facts must
//! be true of the current graph, though a new analysis may be more precise. Checks build a new analysis after every
//! synchronization and call [`Analysis::agrees`].

use crate::cache::Analyses;
use flambeau_ir::{Change, Graph};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use std::cell::RefCell;
use std::sync::Arc;

/// The result of [`Analysis::update`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// The analysis is valid for the current graph.
    Kept,
    /// The analysis must be rebuilt.
    Rebuild,
}

/// An analysis of a whole graph.
///
/// ```
/// use flambeau_analysis::{Analyses, Analysis, AnalysisCx};
/// use flambeau_ir::{Graph, Registry};
///
/// struct NodeCount(usize);
///
/// impl Analysis for NodeCount {
///     const NAME: &'static str = "node-count";
///     fn build(cx: &AnalysisCx<'_>) -> Self {
///         NodeCount(cx.graph().nodes_deep().count())
///     }
///     fn agrees(&self, _cx: &AnalysisCx<'_>, fresh: &Self) -> Result<(), String> {
///         if self.0 == fresh.0 { Ok(()) } else { Err(format!("{} nodes, not {}", fresh.0, self.0)) }
///     }
/// }
///
/// let graph = Graph::new(Registry::empty());
/// let mut analyses = Analyses::new();
/// assert_eq!(analyses.get::<NodeCount>(&graph).0, 0);
/// ```
pub trait Analysis: Sized + Send + Sync + 'static {
    /// The name, for reports. Other crates use a prefix: `acme/use-depth`.
    const NAME: &'static str;

    /// Builds the analysis for the current graph.
    fn build(cx: &AnalysisCx<'_>) -> Self;

    /// Updates the analysis for `changes`, oldest first, or returns [`Update::Rebuild`].
    fn update(&mut self, cx: &AnalysisCx<'_>, changes: &[Change]) -> Update {
        let _ = cx;
        if changes.iter().all(Change::is_metadata) { Update::Kept } else { Update::Rebuild }
    }

    /// Checks that no fact of this (updated) analysis contradicts a newly built one: it may be less precise, never
    /// wrong.
    ///
    /// # Errors
    /// Returns a sentence that describes the contradiction.
    fn agrees(&self, cx: &AnalysisCx<'_>, fresh: &Self) -> Result<(), String> {
        let _ = (cx, fresh);
        Ok(())
    }
}

/// The constants whose memory belongs to the graph alone.
///
/// A constant may be a tensor or container that the embedder also holds or passes as an argument. So by default, alias
/// analysis assumes that a write to outside memory may write any constant. The creator of constants may know better:
/// freezing turns attributes into constants whose memory no other part of the program references, and states that here
/// ([`Analyses::set_constant_owner`]). Constants whose memory is listed as shared keep the assumption.
#[derive(Clone, Debug, Default)]
pub struct ConstantOwner {
    /// Addresses of storages and identities of containers that are shared; `None` if any may be shared.
    shared: Option<Arc<HashSet<usize, FxBuildHasher>>>,
}

impl ConstantOwner {
    /// The graph owns all constants except storages with these addresses (`Storage::address`) and containers with these
    /// identities (`IValue::identity`).
    #[must_use]
    pub fn all_but(shared: impl IntoIterator<Item = usize>) -> Self {
        ConstantOwner { shared: Some(Arc::new(shared.into_iter().collect())) }
    }

    /// Whether a constant's storage or container belongs to the graph alone.
    pub(crate) fn owns(&self, memory: usize) -> bool {
        self.shared.as_ref().is_some_and(|shared| !shared.contains(&memory))
    }
}

/// The inputs of an analysis: the graph, and other analyses of it.
pub struct AnalysisCx<'a> {
    graph: &'a Graph,
    others: RefCell<&'a mut Analyses>,
}

impl<'a> AnalysisCx<'a> {
    pub(crate) fn new(graph: &'a Graph, others: &'a mut Analyses) -> Self {
        AnalysisCx { graph, others: RefCell::new(others) }
    }

    /// Returns the graph.
    #[must_use]
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// Returns the constants whose memory belongs to the graph alone.
    #[must_use]
    pub fn constant_owner(&self) -> ConstantOwner {
        self.others.borrow().constant_owner().clone()
    }

    /// Returns another analysis, up to date with the graph.
    ///
    /// # Panics
    /// Panics if analyses depend on each other cyclically.
    #[must_use]
    pub fn get<A: Analysis>(&self) -> Arc<A> {
        self.others.borrow_mut().shared::<A>(self.graph)
    }
}
