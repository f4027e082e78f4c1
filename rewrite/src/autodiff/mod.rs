//! Derivatives: the formulas that operators state, and the differentiation of graphs with them.
//!
//! - `formulas.rs`: the language of `.grads` files and the table of all entries.
//! - `bodies.rs`: replacement of composite operators by the operators they consist of; `kept.rs`: what these keep for their
//!   derivatives.
//! - `declare_writes.rs`: replacement of operators whose writes schemas do not declare; `functionalize.rs`: replacement of
//!   writes to tensors that the graph allocates or the caller names.
//! - `lists.rs`: replacement of lists and tuples of known lengths by their elements.
//! - `regions.rs`: regions without gradients, and queries of `requires_grad`.
//! - `raise.rs`: replacement of branches that cannot be differentiated by errors.
//! - `activity.rs`: which values of a graph depend on the inputs that need gradients; `certainty.rs`: whether a result does
//!   in this run, where a branch or loop decides.
//! - `input_facts.rs`: what is known of the inputs of a formula, which is simplified for them.
//! - `reverse.rs`: the gradients of those values, as nodes appended to the graph; `blocks.rs`: those of branches and loops.
//! - `exports.rs`: the values of branches and loops that gradients read, made available after them.
//! - `differentiate.rs`: the split of that graph into a forward and a backward graph, and the choice of the values that
//!   the forward graph keeps for the backward one; `known.rs`: facts about forward values, stated in the backward graph.
//!
//! This crate cannot compile formulas: graphs of formulas come from [`FormulaGraphs`].

mod activity;
mod blocks;
mod bodies;
mod certainty;
mod declare_writes;
mod differentiate;
mod exports;
mod formulas;
mod functionalize;
mod input_facts;
mod kept;
mod known;
mod lists;
mod raise;
mod regions;
mod reverse;

pub use activity::Dependence;
pub(crate) use activity::only_stores;
pub use bodies::{BodyDependence, check_dependence, expand_bodies};
pub use declare_writes::declare_writes;
pub use differentiate::{Gradient, differentiate};
pub use formulas::{
    ArgGradient, FormulaSource, GradientEntry, GradientTable, Gradients, GradientsError, Named,
    concrete_value,
};
pub use functionalize::functionalize;
pub use input_facts::InputFact;
pub use kept::KeptTensors;
pub use lists::{unpack_results, unpack_tuples};
pub use raise::raise_in_branch;
pub use regions::{expand_contexts, resolve_grad_mode, resolve_requires_grad};
pub use reverse::{FormulaGraph, FormulaGraphs, Helper, OpDerivative};

/// Error: a graph cannot be differentiated as a graph. Its runs are recorded instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{operator}`: {reason}")]
pub struct NotDifferentiable {
    /// The operator of the node that prevents it.
    pub operator: String,
    /// The reason.
    pub reason: String,
    /// The node, in the graph that was to be differentiated or in a graph that was made of it.
    pub node: Option<flambeau_ir::NodeId>,
}

impl NotDifferentiable {
    /// Creates the error of a node.
    pub fn at(graph: &flambeau_ir::Graph, node: flambeau_ir::NodeId, reason: impl Into<String>) -> Self {
        NotDifferentiable {
            operator: graph.op_name(node).to_string(),
            reason: reason.into(),
            node: Some(node),
        }
    }
}
