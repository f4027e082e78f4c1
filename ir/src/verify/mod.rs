//! The verifier: checks the invariants of a graph in phases and collects the violations of each phase.
//!
//! The phases are **links** (use lists, order keys), **structure** (`prim::Param` and `prim::Return`, blocks
//! per operator, arity), **dominance** (the definition of every operand dominates its use), **types** (blocks, loops
//! and structural operators agree on types), **schemas** (operands match their operator's schema). Later phases rely on
//! links and structure: violations in one of these two end the verification, so the later ones are reported only after
//! a repair. A graph that passes is [`Verified`]; code emission accepts nothing else.

mod dominance;
mod links;
mod report;
mod schemas;
mod structure;
mod types;

pub use report::{VerifyError, VerifyErrors};

use crate::graph::Graph;
use crate::types::{ClassEnv, NoClasses};
use std::sync::Arc;

/// A graph that passed the verifier. It holds a reference to the graph, so the graph cannot be changed while a
/// `Verified` exists: emitted code is code of the verified graph.
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
    /// Verifies a graph whose classes and interfaces are defined by `classes`.
    ///
    /// # Errors
    /// Returns the violations found, up to a limit.
    pub fn new(graph: Arc<Graph>, classes: &dyn ClassEnv) -> Result<Self, VerifyErrors> {
        verify_with(&graph, classes)?;
        Ok(Verified { graph })
    }

    /// Returns the graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Returns the graph without the guarantee that it stays as verified.
    pub fn into_graph(self) -> Arc<Graph> {
        self.graph
    }
}

/// Maximum number of violations reported, so that a large broken graph does not produce a message per node.
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

/// Verifies a graph without interface types.
///
/// # Errors
/// Returns the violations found, up to a limit.
pub fn verify(graph: &Graph) -> Result<(), VerifyErrors> {
    verify_with(graph, &NoClasses)
}

/// Verifies a graph whose classes and interfaces are defined by `classes`.
///
/// # Errors
/// Returns the violations found, up to a limit.
pub fn verify_with(graph: &Graph, classes: &dyn ClassEnv) -> Result<(), VerifyErrors> {
    let mut findings = Findings { errors: Vec::new() };
    links::check(graph, &mut findings);
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
