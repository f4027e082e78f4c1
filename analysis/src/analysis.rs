//! What an analysis is: something built from a graph, brought in step with its journal, and compared with a fresh one.
//!
//! An analysis may lag behind the graph only in the conservative direction: what it says after [`Analysis::update`]
//! must be true of the graph as it is, though a fresh one may know more. Checks rebuild after every synchronisation and
//! ask [`Analysis::agrees`].

use crate::cache::Analyses;
use flambeau_ir::{Change, Graph};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use std::cell::RefCell;
use std::sync::Arc;

/// What [`Analysis::update`] achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// The analysis is true of the graph as it is.
    Kept,
    /// It has to be built anew.
    Rebuild,
}

/// A fact about a whole graph.
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
    /// The name, for reports; of an outside crate with its own prefix: `acme/use-depth`.
    const NAME: &'static str;

    /// Builds it for the graph as it is.
    fn build(cx: &AnalysisCx<'_>) -> Self;

    /// Brings it in step after `changes`, oldest first, or says that it must be rebuilt.
    fn update(&mut self, cx: &AnalysisCx<'_>, changes: &[Change]) -> Update {
        let _ = cx;
        if changes.iter().all(Change::is_metadata) { Update::Kept } else { Update::Rebuild }
    }

    /// Whether nothing that this (updated) analysis states contradicts a fresh one: it may be less precise, never wrong.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn agrees(&self, cx: &AnalysisCx<'_>, fresh: &Self) -> Result<(), String> {
        let _ = (cx, fresh);
        Ok(())
    }
}

/// Which constants are memory of the graph alone.
///
/// A constant may be a tensor or container that the outside has as well: the embedder put it there, or passes it as an argument. So
/// alias analysis assumes, by default, that a write to memory from outside may write any constant. The maker of
/// constants can know better: freezing turns attributes into constants of which nothing else in the program shows the
/// memory, and states that here ([`Analyses::set_constant_owner`]). Constants whose memory is listed
/// as shared keep the assumption.
#[derive(Clone, Debug, Default)]
pub struct ConstantOwner {
    /// Addresses of storages and identities of containers that are shared; `None` if all may be.
    shared: Option<Arc<HashSet<usize, FxBuildHasher>>>,
}

impl ConstantOwner {
    /// The graph owns all constants but storages at these addresses (`Storage::address`) and containers of these
    /// identities (`IValue::identity`).
    #[must_use]
    pub fn all_but(shared: impl IntoIterator<Item = usize>) -> Self {
        ConstantOwner { shared: Some(Arc::new(shared.into_iter().collect())) }
    }

    /// Whether a constant's storage or container is memory of the graph alone.
    pub(crate) fn owns(&self, memory: usize) -> bool {
        self.shared.as_ref().is_some_and(|shared| !shared.contains(&memory))
    }
}

/// What an analysis is built from: the graph, and other analyses of it.
pub struct AnalysisCx<'a> {
    graph: &'a Graph,
    others: RefCell<&'a mut Analyses>,
}

impl<'a> AnalysisCx<'a> {
    pub(crate) fn new(graph: &'a Graph, others: &'a mut Analyses) -> Self {
        AnalysisCx { graph, others: RefCell::new(others) }
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// Which constants are memory of the graph alone.
    #[must_use]
    pub fn constant_owner(&self) -> ConstantOwner {
        self.others.borrow().constant_owner().clone()
    }

    /// Another analysis, in step with the graph. Panics if analyses ask for each other in a circle.
    #[must_use]
    pub fn get<A: Analysis>(&self) -> Arc<A> {
        self.others.borrow_mut().shared::<A>(self.graph)
    }
}
