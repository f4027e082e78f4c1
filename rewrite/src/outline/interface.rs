//! Types of the inputs of groups.
//!
//! The declared types of a subgraph's inputs are checked when it is entered, unlike those of other values of a graph. So
//! a group must not declare the type that the graph states of the outer value: the statement may be unfounded, or
//! hold only before a node of the graph resizes the tensor or changes its `requires_grad`. An input is declared with
//! the part of the type that shape analysis confirms for all uses of the value.

use crate::pass::PassCx;
use flambeau_analysis::Shapes;
use flambeau_ir::{Graph, Type, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// The types of values that shape analysis implies.
#[derive(Default)]
pub(super) struct ImpliedTypes {
    /// Values whose implied type differs from the declared one.
    weaker: HashMap<ValueId, Type, FxBuildHasher>,
}

impl ImpliedTypes {
    /// Compares all declared types with the facts of shape analysis, which is needed only if a declared type states
    /// more than the kind of a value.
    pub(super) fn of_graph(cx: &mut PassCx<'_>) -> ImpliedTypes {
        let g = cx.graph();
        if g.values_in_order().all(|v| g.ty(v) == g.ty(v).erase_shapes()) {
            return ImpliedTypes::default();
        }
        let (g, shapes) = cx.with::<Shapes>();
        let implied = g.values_in_order().map(|v| (v, shapes.implied_type(g, v)));
        ImpliedTypes { weaker: implied.filter(|&(v, ty)| ty != g.ty(v)).collect() }
    }

    /// Returns the type of the input of a group that stands for a value.
    pub(super) fn type_of(&self, g: &Graph, value: ValueId) -> Type {
        self.weaker.get(&value).copied().unwrap_or_else(|| g.ty(value))
    }

    /// Records that `new`, of the same declared type, replaces `old`.
    pub(super) fn replace(&mut self, old: ValueId, new: ValueId) {
        if let Some(&ty) = self.weaker.get(&old) {
            self.weaker.insert(new, ty);
        }
    }
}
