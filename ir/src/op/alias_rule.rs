//! What an operator does to memory that its schema's annotations do not say.

use super::Facet;
use crate::graph::Graph;
use crate::id::{NodeId, ValueId};

/// What an operator does to memory that its schema's annotations do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasRule {
    /// Results are new, even those in containers, and nothing is written.
    Fresh,
    /// Arguments `args` are written although the schema does not say so, unless argument `flag` is the constant `false`:
    /// running statistics of normalisation in training.
    WritesWhen {
        /// The argument that switches writing on.
        flag: &'static str,
        /// What is written.
        args: &'static [&'static str],
    },
    /// Waits for another task: results come from the outside, and whatever is shared may have been written meanwhile.
    Waits,
}

impl Facet for AliasRule {
    const NAME: &'static str = "alias";
}

impl AliasRule {
    /// The operands that a node with this rule may write beside those its schema marks.
    pub fn written(self, graph: &Graph, node: NodeId) -> impl Iterator<Item = ValueId> + '_ {
        let schema = graph.op(node).row().map(|id| graph.registry().schema(id));
        let operand = move |name: &str| {
            let index = schema?.arg_index(name).filter(|&i| i < graph.operand_count(node))?;
            Some(graph.operand(node, index))
        };
        let args = match self {
            AliasRule::WritesWhen { flag, args } => {
                let constant = operand(flag).and_then(|v| graph.constant(v));
                if constant.is_some_and(|c| c.as_bool() == Some(false)) { &[][..] } else { args }
            }
            AliasRule::Fresh | AliasRule::Waits => &[],
        };
        args.iter().filter_map(move |name| operand(name))
    }
}
