//! What an operator does to memory that its schema's annotations do not say.

use super::Facet;
use crate::graph::Graph;
use crate::id::{NodeId, ValueId};
use crate::schema::FunctionSchema;

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
        let operand = move |i: usize| (i < graph.operand_count(node)).then(|| graph.operand(node, i));
        let arguments =
            schema.map(|schema| self.written_arguments(schema, &|i| graph.constant(operand(i)?)?.as_bool()));
        arguments.into_iter().flatten().filter_map(operand)
    }

    /// The arguments that a call of an operator with this rule writes beside those its schema marks, by position;
    /// `value` gives the truth value of an argument, if it is known.
    pub fn written_arguments<'a>(
        self,
        schema: &'a FunctionSchema,
        value: &dyn Fn(usize) -> Option<bool>,
    ) -> impl Iterator<Item = usize> + use<'a> {
        let args = match self {
            AliasRule::WritesWhen { flag, args } => {
                let is_off = schema.arg_index(flag).and_then(value) == Some(false);
                if is_off { &[][..] } else { args }
            }
            AliasRule::Fresh | AliasRule::Waits => &[],
        };
        args.iter().filter_map(move |name| schema.arg_index(name))
    }
}
