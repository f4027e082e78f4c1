//! The verifier: what every graph must satisfy, checked in phases, all violations collected.
//!
//! Phases, each relying on the ones before: **handles** (use lists, order keys, back links), **structure** (brackets,
//! blocks per operator, arity), **dominance** (every use is reached by its definition), **types** (blocks, loops and
//! structural operators agree on types), **schemas** (operands fit their operator's schema). A graph that passes is
//! [`Verified`]; code emission takes nothing else.

mod dominance;
mod handles;
mod report;
mod schemas;
mod structure;
mod types;

pub use report::{VerifyError, VerifyErrors};

use crate::graph::Graph;
use crate::types::{ClassEnv, NoClasses};
use std::sync::Arc;

/// A graph that has been verified, and is owned so that it stays so: while a `Verified` holds its graph, no other owner
/// can change it, and what is emitted from it is what was verified.
///
/// ```
/// use flambeau_ir::{Graph, Registry, types::NoClasses, verify::Verified};
/// use std::sync::Arc;
///
/// let mut graph = Arc::new(Graph::new(Registry::empty()));
/// let verified = Verified::new(Arc::clone(&graph), &NoClasses).unwrap();
/// assert!(Arc::get_mut(&mut graph).is_none(), "the graph is shared with `verified`");
/// assert!(Arc::ptr_eq(verified.graph(), &graph));
/// ```
#[derive(Clone)]
pub struct Verified {
    graph: Arc<Graph>,
}

impl Verified {
    /// Verifies a graph whose classes and interfaces are those of `classes`.
    ///
    /// # Errors
    /// All violations found.
    pub fn new(graph: Arc<Graph>, classes: &dyn ClassEnv) -> Result<Self, VerifyErrors> {
        verify_with(&graph, classes)?;
        Ok(Verified { graph })
    }

    /// The graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The graph, no longer known to be as it was verified.
    pub fn into_graph(self) -> Arc<Graph> {
        self.graph
    }
}

/// Most violations reported: a broken graph of a million nodes should not answer with a million messages.
const MAX_ERRORS: usize = 100;

/// Collects violations.
pub(crate) struct Findings {
    errors: Vec<VerifyError>,
}

impl Findings {
    pub(crate) fn push(&mut self, error: VerifyError) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        }
    }
}

/// Verifies a graph that names no interfaces.
///
/// # Errors
/// All violations found.
pub fn verify(graph: &Graph) -> Result<(), VerifyErrors> {
    verify_with(graph, &NoClasses)
}

/// Verifies a graph whose classes and interfaces are those of `classes`.
///
/// # Errors
/// All violations found.
pub fn verify_with(graph: &Graph, classes: &dyn ClassEnv) -> Result<(), VerifyErrors> {
    let mut findings = Findings { errors: Vec::new() };
    handles::check(graph, &mut findings);
    if findings.errors.is_empty() {
        structure::check(graph, &mut findings);
    }
    if findings.errors.is_empty() {
        dominance::check(graph, &mut findings);
        types::check(graph, classes, &mut findings);
        schemas::check(graph, classes, &mut findings);
    }
    if findings.errors.is_empty() { Ok(()) } else { Err(VerifyErrors::new(graph, findings.errors)) }
}
