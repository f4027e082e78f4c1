//! Memory effects of an operator that the alias annotations of its schema do not express.

use super::Facet;
use crate::graph::Graph;
use crate::id::{NodeId, ValueId};
use crate::schema::FunctionSchema;

/// Memory effects of an operator that the alias annotations of its schema do not express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasRule {
    /// Results are newly allocated, including the elements of containers, and nothing is written.
    Fresh,
    /// Arguments `args` are written although the schema does not mark them, unless argument `flag` is the constant
    /// `false`. For the running statistics of normalisation in training.
    WritesWhen {
        /// The argument that enables the write.
        flag: &'static str,
        /// The arguments that are written.
        args: &'static [&'static str],
    },
    /// Waits for another task: results come from outside, and any shared memory may have been written meanwhile.
    Waits,
}

impl Facet for AliasRule {
    const NAME: &'static str = "alias";
}

impl AliasRule {
    /// Returns the operands that a node with this rule may write in addition to those its schema marks.
    pub fn written(self, graph: &Graph, node: NodeId) -> impl Iterator<Item = ValueId> + '_ {
        let schema = graph.op(node).row().map(|id| graph.registry().schema(id));
        let operand = move |i: usize| (i < graph.operand_count(node)).then(|| graph.operand(node, i));
        let arguments =
            schema.map(|schema| self.written_arguments(schema, &|i| graph.constant(operand(i)?)?.as_bool()));
        arguments.into_iter().flatten().filter_map(operand)
    }

    /// Returns the positions of arguments that a call of an operator with this rule may write in addition to those its
    /// schema marks. `value` returns the value of a boolean argument if it is constant.
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
