//! Removes all tuples: every tuple that enters or leaves the graph or is carried around a loop is replaced by its
//! elements.
//!
//! A tuple input becomes one input per element, and a tuple constant becomes a `prim::TupleConstruct` of constants. A
//! tuple that flows into a result of a branch or loop is first unpacked and repacked, so that the lowering of simple
//! tuples finds a `prim::TupleConstruct` everywhere. The graph returns the elements instead of the tuple. This changes
//! the graph's signature: for exporters. Tuples that operators take or return as a whole (lists of tuples, calls,
//! objects) stay.

use super::dce::Dce;
use super::lower_simple_tuples::{Extent, elements, lower};
use crate::pass::{Pass, PassCx, PassError};
use crate::schedule::Schedule;
use flambeau_ir::{At, Editor, Graph, IValue, NodeId, Prim, Type, ValueId};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct LowerAllTuples;

impl Pass for LowerAllTuples {
    const NAME: &'static str = "lower_all_tuples";
    const DOC: &'static str = "Removes all tuples, including those in the graph's inputs and outputs.";

    fn schedule(&self) -> Schedule {
        Schedule::alone().then(Dce::default())
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        {
            let (mut editor, mut fuel) = cx.edit_fuelled();
            let end = editor.graph().ret(editor.graph().root());
            if !fuel.take("lower", editor.graph(), end) {
                return Ok(());
            }
            split_tuple_inputs(&mut editor);
            make_constants(&mut editor);
            repack_control_results(&mut editor);
        }
        lower(cx, Extent::All);
        spread_outputs(&mut cx.edit());
        Ok(())
    }
}

/// Replaces tuple inputs by their elements, nested tuples included.
fn split_tuple_inputs(editor: &mut Editor<'_>) {
    let root = editor.graph().root();
    let mut index = 0;
    loop {
        let input = editor.graph().inputs().nth(index);
        let Some(input) = input else { return };
        let ty = editor.graph().ty(input);
        let Some(tuple) = ty.as_tuple() else {
            index += 1;
            continue;
        };
        let parts: Vec<ValueId> = tuple
            .elems
            .iter()
            .enumerate()
            .map(|(i, &t)| editor.insert_block_input(root, index + 1 + i, t))
            .collect();
        let whole = editor.at(At::start(root)).value(Prim::TupleConstruct, &parts, ty);
        editor.replace_all_uses(input, whole);
        editor.remove_block_input(root, index);
    }
}

/// Replaces tuple constants by `prim::TupleConstruct` nodes over constants.
fn make_constants(editor: &mut Editor<'_>) {
    let g = editor.graph();
    let is_tuple = |&n: &NodeId| g.is_prim(n, Prim::Constant) && g.ty(g.result(n, 0)).as_tuple().is_some();
    let mut work: Vec<NodeId> = g.nodes_deep().filter(is_tuple).collect();
    while let Some(node) = work.pop() {
        let g = editor.graph();
        let (value, loc) = (g.result(node, 0), g.loc(node));
        let ty = g.ty(value);
        let (Some(IValue::Tuple(tuple)), Some(types)) = (g.constant(value), ty.as_tuple()) else { continue };
        let mut parts = Vec::with_capacity(types.elems.len());
        for (item, &t) in tuple.items().iter().zip(&types.elems) {
            let part = editor.at(At::before(node)).loc(loc).constant_of(item.clone(), t);
            if t.as_tuple().is_some() {
                work.push(editor.graph().def(part));
            }
            parts.push(part);
        }
        let whole = editor.at(At::before(node)).loc(loc).value(Prim::TupleConstruct, &parts, ty);
        editor.replace_node(node, &[whole]);
    }
}

/// Unpacks and repacks each tuple that flows into a result of a branch or loop.
fn repack_control_results(editor: &mut Editor<'_>) {
    let g = editor.graph();
    let flows = |&n: &NodeId| matches!(g.prim(n), Some(Prim::If | Prim::Loop));
    let nodes: Vec<NodeId> = g.nodes_deep().filter(flows).collect();
    for node in nodes {
        let g = editor.graph();
        let is_loop = g.is_prim(node, Prim::Loop);
        let ends: Vec<NodeId> = g.blocks(node).map(|b| g.ret(b)).collect();
        for index in 0..g.result_count(node) {
            let ty = editor.graph().ty(editor.graph().result(node, index));
            if ty.as_tuple().is_none() {
                continue;
            }
            for &end in &ends {
                repack_operand(editor, end, index + usize::from(is_loop), ty);
            }
            if is_loop {
                repack_operand(editor, node, index + 2, ty);
            }
        }
    }
}

/// Replaces a tuple operand by a tuple constructed directly before its user, nested tuples included.
fn repack_operand(editor: &mut Editor<'_>, user: NodeId, index: usize, ty: Type) {
    let value = editor.graph().operand(user, index);
    if editor.graph().ty(value) == ty && elements(editor.graph(), value).is_none() {
        let made = repacked(editor, user, value);
        editor.set_operand(user, index, made);
    }
}

/// The tuple, unpacked and repacked before a node. Recursion depth is that of the type, which is bounded.
fn repacked(editor: &mut Editor<'_>, before: NodeId, value: ValueId) -> ValueId {
    let ty = editor.graph().ty(value);
    let Some(tuple) = ty.as_tuple() else { return value };
    let loc = editor.graph().loc(before);
    let unpack = editor.at(At::before(before)).loc(loc).node(Prim::TupleUnpack, &[value], &tuple.elems);
    let parts: Vec<ValueId> = editor.graph().results(unpack).collect();
    let parts: Vec<ValueId> = parts.into_iter().map(|p| repacked(editor, before, p)).collect();
    editor.at(At::before(before)).loc(loc).value(Prim::TupleConstruct, &parts, ty)
}

/// Returns the elements of constructed tuples in place of the tuples.
fn spread_outputs(editor: &mut Editor<'_>) {
    let root = editor.graph().root();
    let end = editor.graph().ret(root);
    let mut index = 0;
    while index < editor.graph().operand_count(end) {
        let value = editor.graph().operand(end, index);
        let Some(parts) = made_elements(editor.graph(), value) else {
            index += 1;
            continue;
        };
        for (i, &v) in parts.iter().enumerate() {
            editor.insert_operand(end, index + 1 + i, v);
        }
        editor.remove_operand(end, index);
    }
}

fn made_elements(g: &Graph, value: ValueId) -> Option<Vec<ValueId>> {
    g.ty(value).as_tuple()?;
    elements(g, value)
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn tuples_of_signatures_branches_and_constants() {
        assert_passes(
            &toy(),
            "lower_all_tuples",
            "graph(%p : (int, (Tensor, int)), %c : bool):
  %a : int, %q : (Tensor, int) = prim::TupleUnpack(%p)
  %r : (Tensor, int) = prim::If(%c)
    block0():
      -> (%q)
    block1():
      %x : Tensor, %n : int = prim::TupleUnpack(%q)
      %y : Tensor = toy::relu(%x)
      %s : (Tensor, int) = prim::TupleConstruct(%y, %a)
      -> (%s)
  return (%r)
",
            "graph(%1 : int, %2 : Tensor, %3 : int, %c : bool):
  %4 : Tensor, %5 : int = prim::If(%c)
    block0():
      -> (%2, %3)
    block1():
      %y : Tensor = toy::relu(%2)
      -> (%y, %1)
  return (%4, %5)
",
        );
    }
}
