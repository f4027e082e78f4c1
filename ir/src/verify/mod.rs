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

/// A graph that has been verified, and is borrowed so that it stays so:
///
/// ```compile_fail,E0502
/// use flambeau_ir::{Graph, Registry, Type, verify::verify};
///
/// let mut graph = Graph::new(Registry::empty());
/// let verified = verify(&graph).unwrap();
/// graph.edit().add_input(Type::TENSOR); // the graph is borrowed by `verified`
/// let _ = verified.graph();
/// ```
#[derive(Clone, Copy)]
pub struct Verified<'g> {
    graph: &'g Graph,
}

impl<'g> Verified<'g> {
    /// The graph.
    pub fn graph(self) -> &'g Graph {
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
pub fn verify(graph: &Graph) -> Result<Verified<'_>, VerifyErrors> {
    verify_with(graph, &NoClasses)
}

/// Verifies a graph whose classes and interfaces are those of `classes`.
pub fn verify_with<'g>(graph: &'g Graph, classes: &dyn ClassEnv) -> Result<Verified<'g>, VerifyErrors> {
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
    if findings.errors.is_empty() {
        Ok(Verified { graph })
    } else {
        Err(VerifyErrors::new(graph, findings.errors))
    }
}
