//! Replaces integers and bools that shape analysis knows by constants: sizes, ranks, and comparisons that the ranges of sizes decide.
//!
//! The nodes that compute them stay for dead code elimination: an operator may raise. Branches on the constants are removed by
//! constant propagation.

use super::constant_propagation::ConstantPropagation;
use crate::pass::{Pass, PassCx, PassError};
use crate::schedule::Schedule;
use flambeau_analysis::Shapes;
use flambeau_analysis::shape::{Dim, Fact};
use flambeau_ir::{At, Graph, IValue, Type, ValueId};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct FoldFacts;

impl Pass for FoldFacts {
    const NAME: &'static str = "fold_facts";
    const DOC: &'static str = "Replaces integers and bools that shape analysis knows by constants.";

    fn schedule(&self) -> Schedule {
        Schedule::alone().then_if_changed(ConstantPropagation::default())
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let (graph, shapes) = cx.with::<Shapes>();
        let found: Vec<(ValueId, IValue)> = graph
            .values_in_order()
            .filter(|&value| is_computed(graph, value))
            .filter_map(|value| Some((value, known(shapes.fact(value), graph.ty(value))?)))
            .collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for (value, constant) in found {
            let node = editor.graph().def(value);
            if !fuel.take("fold", editor.graph(), node) {
                break;
            }
            let loc = editor.graph().loc(node);
            let constant = editor.at(At::after(node)).loc(loc).constant(constant);
            editor.replace_all_uses(value, constant);
        }
        Ok(())
    }
}

/// Whether a value that is used is the result of an operator. Facts about structural operators are those of their operands.
fn is_computed(graph: &Graph, value: ValueId) -> bool {
    graph.op(graph.def(value)).row().is_some() && graph.use_count(value) > 0
}

/// Returns the value that a fact states for a type with one representation of it.
fn known(fact: &Fact, ty: Type) -> Option<IValue> {
    match fact {
        Fact::Bool(b) if ty == Type::BOOL => Some(IValue::Bool(*b)),
        Fact::Int(Dim::Known(n)) if ty == Type::INT => Some(IValue::Int(*n)),
        _ => None,
    }
}
