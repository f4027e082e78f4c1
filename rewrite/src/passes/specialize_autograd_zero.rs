//! Specializes gradient code for gradients that are known to be undefined or defined.
//!
//! Walks the program once and classifies each value as an undefined gradient, a tensor, or either. Inputs are
//! classified by type; operator results are tensors. A sum with an undefined operand becomes the other operand. A
//! `prim::GradOf` whose gradients are all undefined has undefined results; one whose gradients are all defined is
//! inlined. Queries for definedness are folded.

use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::{At, Editor, Graph, IValue, NodeId, Prim, Type, ValueId, ValueMap};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpecializeAutogradZero;

impl Pass for SpecializeAutogradZero {
    const NAME: &'static str = "specialize_autogradzero";
    const ALIASES: &'static [&'static str] = &["specialize_undef"];
    const DOC: &'static str = "Removes computations on gradients that are known to be undefined.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let found = Search::new(cx.graph()).run();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for (node, edit) in found {
            if !fuel.take(edit.name(), editor.graph(), node) {
                break;
            }
            edit.apply(&mut editor, node);
        }
        Ok(())
    }
}

/// Whether a gradient is defined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    Undefined,
    Defined,
}

enum Edit {
    /// The result is operand number `.0`.
    Operand(usize),
    /// The results are undefined.
    Undefined,
    /// The block is always computed.
    Computed,
    /// The query has this answer.
    Answer(bool),
}

impl Edit {
    fn name(&self) -> &'static str {
        match self {
            Edit::Operand(_) => "sum",
            Edit::Undefined => "undefined",
            Edit::Computed => "computed",
            Edit::Answer(_) => "answer",
        }
    }

    fn apply(self, editor: &mut Editor<'_>, node: NodeId) {
        let loc = editor.graph().loc(node);
        match self {
            Edit::Operand(i) => {
                let value = editor.graph().operand(node, i);
                editor.replace_node(node, &[value]);
            }
            Edit::Undefined => {
                let types: Vec<Type> = editor.graph().results(node).map(|v| editor.graph().ty(v)).collect();
                let zeros: Vec<ValueId> = types
                    .into_iter()
                    .map(|ty| editor.at(At::before(node)).loc(loc).value(Prim::AutogradZero, &[], ty))
                    .collect();
                editor.replace_node(node, &zeros);
            }
            Edit::Computed => {
                let block = editor.graph().block(node, 0);
                let outputs: Vec<ValueId> = editor.graph().block_outputs(block).collect();
                editor.splice_before(block, node);
                editor.replace_node(node, &outputs);
            }
            Edit::Answer(yes) => {
                let answer = editor.at(At::before(node)).loc(loc).constant(IValue::Bool(yes));
                editor.replace_node(node, &[answer]);
            }
        }
    }
}

struct Search<'g> {
    graph: &'g Graph,
    states: ValueMap<State>,
}

impl<'g> Search<'g> {
    fn new(graph: &'g Graph) -> Self {
        let mut states = ValueMap::for_values(graph, State::Unknown);
        for input in graph.inputs() {
            states[input] = match graph.ty(input).as_tensor() {
                Some(t) if t.undefined => State::Undefined,
                Some(t) if t.dtype.is_some() => State::Defined,
                _ => State::Unknown,
            };
        }
        Search { graph, states }
    }

    fn run(mut self) -> Vec<(NodeId, Edit)> {
        let g = self.graph;
        let mut found = Vec::new();
        // Nodes in a block that is not computed are skipped.
        let mut skipped = flambeau_ir::NodeSet::new();
        for node in g.nodes_deep() {
            if g.enclosing(node).is_some_and(|n| skipped.contains(n)) {
                skipped.insert(node);
                continue;
            }
            let edit = self.visit(node);
            if let Some(Edit::Undefined) = edit {
                skipped.insert(node);
            }
            found.extend(edit.map(|edit| (node, edit)));
        }
        found
    }

    fn visit(&mut self, node: NodeId) -> Option<Edit> {
        let g = self.graph;
        let all = |state| g.operands(node).all(|v| self.states[v] == state);
        let any = |state| g.operands(node).any(|v| self.states[v] == state);
        let (edit, state) = match g.prim(node) {
            None if g.op(node).row().is_some() => (None, State::Defined),
            Some(Prim::AutogradZero) => (None, State::Undefined),
            Some(Prim::Constant) if g.constant(g.result(node, 0)).is_some_and(|c| c.is_tensor()) => {
                (None, State::Defined)
            }
            Some(Prim::AutogradAdd) => {
                let of = |i: usize| self.states[g.operand(node, i)];
                match (of(0), of(1)) {
                    (State::Undefined, other) => (Some(Edit::Operand(1)), other),
                    (other, State::Undefined) => (Some(Edit::Operand(0)), other),
                    (State::Defined, _) | (_, State::Defined) => (None, State::Defined),
                    _ => (None, State::Unknown),
                }
            }
            Some(Prim::GradOf) if all(State::Undefined) => (Some(Edit::Undefined), State::Undefined),
            Some(Prim::GradOf) if all(State::Defined) => (Some(Edit::Computed), State::Unknown),
            Some(Prim::AutogradAnyNonZero) => {
                (answer(any(State::Defined), all(State::Undefined)), State::Unknown)
            }
            Some(Prim::AutogradAllNonZero) => {
                (answer(all(State::Defined), any(State::Undefined)), State::Unknown)
            }
            Some(Prim::AutogradAllZero) => {
                (answer(all(State::Undefined), any(State::Defined)), State::Unknown)
            }
            _ => (None, State::Unknown),
        };
        for v in g.results(node).filter(|&v| g.ty(v).is_tensor()) {
            self.states[v] = state;
        }
        edit
    }
}

fn answer(yes: bool, no: bool) -> Option<Edit> {
    (yes || no).then_some(Edit::Answer(yes))
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn undefined_gradients_cost_nothing() {
        assert_passes(
            &toy(),
            "specialize_autogradzero,dce",
            "graph(%g : Float(2), %x : Tensor):
  %z : Tensor = prim::AutogradZero()
  %s : Tensor = prim::AutogradAdd(%z, %g)
  %a : bool = prim::AutogradAnyNonZero(%z, %s)
  %d : Tensor = prim::GradOf(%s)
    block0():
      %e : Tensor = toy::mul(%s, %x)
      -> (%e)
  %f : Tensor = prim::GradOf(%z)
    block0():
      %h : Tensor = toy::mul(%z, %x)
      -> (%h)
  return (%d, %f, %a)
",
            "graph(%g : Float(2), %x : Tensor):
  %1 : bool = prim::Constant[value=1]()
  %e : Tensor = toy::mul(%g, %x)
  %2 : Tensor = prim::AutogradZero()
  return (%e, %2, %1)
",
        );
    }
}
