//! Removes pairs of tuple construction and unpacking: the elements are used directly.
//!
//! Also handles `prim::If` and `prim::Loop`: if all sources of a tuple result are `prim::TupleConstruct`, the result is
//! split into one result per element; tuple constants count as constructed if another source is. Tuples that enter or leave the graph, or are operands of other nodes, stay.

use crate::control::InjectedBug;
use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::{At, Editor, Graph, IValue, NodeId, Prim, Type, ValueId};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct LowerSimpleTuples;

impl Pass for LowerSimpleTuples {
    const NAME: &'static str = "lower_simple_tuples";
    const ALIASES: &'static [&'static str] = &["lower_tuples"];
    const DOC: &'static str = "Removes pairs of tuple construction and unpacking.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        lower(cx, Extent::Taken);
        Ok(())
    }
}

/// The results of branches and loops to split.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Those that a node unpacks.
    Taken,
    /// All.
    All,
}

/// Lowers tuple accesses and splits results.
pub(super) fn lower(cx: &mut PassCx<'_>, extent: Extent) {
    let shift = usize::from(cx.injected_bug() == InjectedBug::TupleOffByOne);
    let graph = cx.graph();
    // Inner nodes first: lowering the tuples of a branch exposes its elements to the enclosing nodes.
    let work: Vec<NodeId> = graph.nodes_deep().filter(|&n| is_candidate(graph, n)).collect();
    let (mut editor, mut fuel) = cx.edit_fuelled();
    let mut stack: Vec<NodeId> = work.into_iter().rev().collect();
    while let Some(node) = stack.pop() {
        if !editor.graph().has_node(node) {
            continue;
        }
        let g = editor.graph();
        match g.prim(node) {
            Some(Prim::TupleUnpack | Prim::TupleIndex | Prim::TupleSlice) => {
                let Some(plan) = plan_access(g, node, shift) else { continue };
                if !fuel.take("access", g, node) {
                    return;
                }
                apply_access(&mut editor, node, plan);
            }
            Some(Prim::If | Prim::Loop) => {
                let Some((index, arity)) = splittable(g, node, extent) else { continue };
                if !fuel.take("split", g, node) {
                    return;
                }
                let tuple = split_result(&mut editor, node, index, arity);
                // Other results may be tuples, and users that unpack this one can be lowered now.
                stack.push(node);
                let users = editor.graph().uses(tuple).map(|u| u.user);
                stack.extend(users.filter(|&u| is_candidate(editor.graph(), u)));
            }
            _ => {}
        }
    }
}

fn is_candidate(g: &Graph, node: NodeId) -> bool {
    match g.prim(node) {
        Some(Prim::TupleUnpack | Prim::TupleIndex | Prim::TupleSlice) => true,
        Some(Prim::If | Prim::Loop) => g.results(node).any(|v| g.ty(v).as_tuple().is_some()),
        _ => false,
    }
}

/// The elements of a tuple that is constructed in the graph.
pub(super) fn elements(g: &Graph, tuple: ValueId) -> Option<Vec<ValueId>> {
    let def = g.def(tuple);
    g.is_prim(def, Prim::TupleConstruct).then(|| g.operands(def).collect())
}

enum Access {
    /// The results are these values.
    Values(Vec<ValueId>),
    /// The result is a tuple of these values.
    Tuple(Vec<ValueId>),
}

fn plan_access(g: &Graph, node: NodeId, shift: usize) -> Option<Access> {
    let elems = elements(g, g.operand(node, 0))?;
    match g.prim(node)? {
        Prim::TupleUnpack => (elems.len() == g.result_count(node)).then_some(Access::Values(elems)),
        Prim::TupleIndex => {
            let index = wrap_index(g.constant(g.operand(node, 1))?.as_int()?, elems.len())?;
            let index = if shift > 0 { (index + shift) % elems.len() } else { index };
            Some(Access::Values(vec![elems[index]]))
        }
        Prim::TupleSlice => {
            let bound = |name| Some(g.attr(node, name)?.as_int()?.clamp(0, elems.len() as i64) as usize);
            let (from, to) =
                (bound(flambeau_ir::attr::names::beg())?, bound(flambeau_ir::attr::names::end())?);
            Some(Access::Tuple(elems.get(from..to)?.to_vec()))
        }
        _ => None,
    }
}

/// Converts an index that counts from the end if negative. Returns `None` if it is out of bounds.
fn wrap_index(index: i64, len: usize) -> Option<usize> {
    let len_signed = i64::try_from(len).ok()?;
    let index = if index < 0 { index + len_signed } else { index };
    usize::try_from(index).ok().filter(|&i| i < len)
}

fn apply_access(editor: &mut Editor<'_>, node: NodeId, plan: Access) {
    match plan {
        Access::Values(values) => editor.replace_node(node, &values),
        Access::Tuple(values) => {
            let ty = editor.graph().ty(editor.graph().result(node, 0));
            let loc = editor.graph().loc(node);
            let tuple = editor.at(At::before(node)).loc(loc).value(Prim::TupleConstruct, &values, ty);
            editor.replace_node(node, &[tuple]);
        }
    }
}

/// The first result whose sources are all `prim::TupleConstruct`, with the tuple's length.
fn splittable(g: &Graph, node: NodeId, extent: Extent) -> Option<(usize, usize)> {
    let is_loop = g.is_prim(node, Prim::Loop);
    g.results(node).enumerate().find_map(|(i, v)| {
        let arity = g.ty(v).as_tuple()?.elems.len();
        let constructed = |v| elements(g, v).is_some_and(|e| e.len() == arity);
        let made = |v| constructed(v) || is_constant(g, v, arity);
        let outputs = usize::from(is_loop) + i;
        let all = g.blocks(node).all(|b| g.block_outputs(b).nth(outputs).is_some_and(made))
            && (!is_loop || made(g.operand(node, i + 2)));
        // Splitting pays off if a node unpacks the tuple or a nested block returns it.
        let taken = |v: ValueId| {
            g.uses(v).any(|u| {
                matches!(
                    g.prim(u.user),
                    Some(Prim::TupleUnpack | Prim::TupleIndex | Prim::TupleSlice | Prim::Return)
                ) && g.owner(g.parent(u.user)).is_some_and(|_| true)
                    || matches!(g.prim(u.user), Some(Prim::TupleUnpack | Prim::TupleIndex | Prim::TupleSlice))
            })
        };
        let inside = || is_loop && g.block_inputs(g.block(node, 0)).nth(i + 1).is_some_and(taken);
        let constants_only = || {
            let ends = g.blocks(node).filter_map(|b| g.block_outputs(b).nth(outputs));
            let ends = ends.chain(is_loop.then(|| g.operand(node, i + 2)));
            !ends.into_iter().any(constructed)
        };
        (all && !constants_only() && (extent == Extent::All || taken(v) || inside())).then_some((i, arity))
    })
}

/// Splits tuple result `index` into `arity` results and constructs the tuple after the node. Returns that tuple.
fn split_result(editor: &mut Editor<'_>, node: NodeId, index: usize, arity: usize) -> ValueId {
    let is_loop = editor.graph().is_prim(node, Prim::Loop);
    let old = editor.graph().result(node, index);
    let ty = editor.graph().ty(old);
    let types: Vec<Type> = ty.as_tuple().map_or_else(Vec::new, |t| t.elems.to_vec());
    let loc = editor.graph().loc(node);
    let blocks: Vec<_> = editor.graph().blocks(node).collect();
    for &block in &blocks {
        let ret = editor.graph().ret(block);
        spread_operand(editor, ret, usize::from(is_loop) + index);
    }
    if is_loop {
        spread_operand(editor, node, index + 2);
        let body = blocks[0];
        let whole = editor
            .graph()
            .block_inputs(body)
            .nth(index + 1)
            .expect("invariant: a loop's body has an input per carried value");
        let parts: Vec<ValueId> = types
            .iter()
            .enumerate()
            .map(|(j, &t)| editor.insert_block_input(body, index + 2 + j, t))
            .collect();
        let rebuilt = editor.at(At::start(body)).loc(loc).value(Prim::TupleConstruct, &parts, ty);
        editor.replace_all_uses(whole, rebuilt);
        editor.remove_block_input(body, index + 1);
    }
    let parts: Vec<ValueId> =
        types.iter().enumerate().map(|(j, &t)| editor.insert_result(node, index + 1 + j, t)).collect();
    debug_assert_eq!(parts.len(), arity);
    let tuple = editor.at(At::after(node)).loc(loc).value(Prim::TupleConstruct, &parts, ty);
    editor.replace_all_uses(old, tuple);
    editor.remove_result(node, index);
    tuple
}

/// Whether a value is a constant tuple of this many elements.
fn is_constant(g: &Graph, value: ValueId, arity: usize) -> bool {
    g.is_prim(g.def(value), Prim::Constant)
        && matches!(g.constant(value), Some(IValue::Tuple(tuple)) if tuple.items().len() == arity)
}

/// Returns a tuple's elements before a node: those of a constant are new constants.
fn elements_before(editor: &mut Editor<'_>, node: NodeId, tuple: ValueId) -> Option<Vec<ValueId>> {
    let g = editor.graph();
    if let Some(elems) = elements(g, tuple) {
        return Some(elems);
    }
    let (Some(IValue::Tuple(items)), ty) = (g.constant(tuple), g.ty(tuple)) else { return None };
    let (types, loc) = (ty.as_tuple()?.elems.to_vec(), g.loc(node));
    let parts = items.items().iter().zip(types);
    Some(parts.map(|(item, t)| editor.at(At::before(node)).loc(loc).constant_of(item.clone(), t)).collect())
}

/// Replaces an operand that is a constructed or constant tuple by its elements.
fn spread_operand(editor: &mut Editor<'_>, node: NodeId, index: usize) {
    let tuple = editor.graph().operand(node, index);
    let elems = elements_before(editor, node, tuple).expect("invariant: looked at before");
    for (j, v) in elems.into_iter().enumerate() {
        editor.insert_operand(node, index + 1 + j, v);
    }
    editor.remove_operand(node, index);
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn accesses_and_branches() {
        assert_passes(
            &toy(),
            "lower_simple_tuples,dce",
            "graph(%c : bool, %x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=-1]()
  %t : (Tensor, Tensor) = prim::If(%c)
    block0():
      %a : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)
      -> (%a)
    block1():
      %b : (Tensor, Tensor) = prim::TupleConstruct(%y, %x)
      -> (%b)
  %p : Tensor, %q : Tensor = prim::TupleUnpack(%t)
  %r : Tensor = prim::TupleIndex(%t, %1)
  %s : Tensor = toy::mul(%q, %r)
  return (%s)
",
            "graph(%c : bool,
      %x : Tensor,
      %y : Tensor):
  %11 : Tensor = prim::If(%c)
    block0():
      -> (%y)
    block1():
      -> (%x)
  %s : Tensor = toy::mul(%11, %11)
  return (%s)
",
        );
    }
}
