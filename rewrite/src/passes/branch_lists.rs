//! Lists that branches construct: a result of a branch whose blocks all construct a list of the same number of elements becomes
//! one result per element, and the list is constructed after the branch.
//!
//! The constructed lists must have no other use, so the time of construction is not observable. A block that raises has an
//! uninitialized value instead of the list, which becomes one uninitialized value per element. Each branch takes time in
//! proportion to its results times the lists among them.

use flambeau_ir::{At, Editor, Graph, NodeId, Prim, ValueId};

/// A result of a `prim::If` that is split: its index and the number of list elements.
struct Split {
    result: usize,
    count: usize,
}

/// Splits the lists that branches return and whose elements are taken.
///
/// `permits` returns whether the rewrite of a node may be applied (fuel).
pub(super) fn split_lists(editor: &mut Editor<'_>, mut permits: impl FnMut(&Graph, NodeId) -> bool) {
    let g = editor.graph();
    let branches: Vec<NodeId> = g.nodes_deep().filter(|n| g.is_prim(*n, Prim::If)).collect();
    // Inner branches first: the list is then constructed in the block of the outer one.
    for node in branches.into_iter().rev() {
        while let Some(split) = splittable(editor.graph(), node) {
            if !permits(editor.graph(), node) {
                return;
            }
            apply(editor, node, &split);
        }
    }
}

fn splittable(g: &Graph, node: NodeId) -> Option<Split> {
    g.results(node).enumerate().find_map(|(result, list)| {
        g.ty(list).list_elem()?;
        let ends = || g.blocks(node).filter_map(|block| g.block_outputs(block).nth(result));
        let count = ends().find_map(|end| {
            let def = g.def(end);
            g.is_prim(def, Prim::ListConstruct).then(|| g.operand_count(def))
        })?;
        let is_made = |end: ValueId| {
            let def = g.def(end);
            let is_list = g.is_prim(def, Prim::ListConstruct) && g.operand_count(def) == count;
            (is_list && g.use_count(end) == 1) || g.is_prim(def, Prim::Uninitialized)
        };
        let is_taken = g.uses(list).all(|u| match g.prim(u.user) {
            Some(Prim::ListUnpack) => g.result_count(u.user) == count,
            Some(Prim::Return) => g.owner(g.parent(u.user)).is_some_and(|owner| g.is_prim(owner, Prim::If)),
            _ => false,
        });
        (g.use_count(list) > 0 && is_taken && ends().all(is_made)).then_some(Split { result, count })
    })
}

fn apply(editor: &mut Editor<'_>, node: NodeId, split: &Split) {
    let g = editor.graph();
    let (list, loc) = (g.result(node, split.result), g.loc(node));
    let ty = g.ty(list);
    let Some(elem) = ty.list_elem() else { return };
    let blocks: Vec<_> = g.blocks(node).collect();
    for block in blocks {
        let g = editor.graph();
        let ret = g.ret(block);
        let end = g.operand(ret, split.result);
        let def = g.def(end);
        let elements: Vec<ValueId> = match g.is_prim(def, Prim::ListConstruct) {
            true => g.operands(def).collect(),
            false => {
                editor.at(At::before(def)).loc(loc);
                (0..split.count).map(|_| editor.value(Prim::Uninitialized, &[], elem)).collect()
            }
        };
        for (i, element) in elements.into_iter().enumerate() {
            editor.insert_operand(ret, split.result + 1 + i, element);
        }
        editor.remove_operand(ret, split.result);
        if editor.graph().use_count(end) == 0 {
            editor.erase(def);
        }
    }
    let elements: Vec<ValueId> =
        (0..split.count).map(|i| editor.insert_result(node, split.result + 1 + i, elem)).collect();
    let made = editor.at(At::after(node)).loc(loc).value(Prim::ListConstruct, &elements, ty);
    editor.replace_all_uses(list, made);
    editor.remove_result(node, split.result);
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn lists_of_nested_branches_are_split() {
        assert_passes(
            &toy(),
            "container_replacement,dce",
            "graph(%c : bool, %d : bool, %x : Tensor, %y : Tensor):
  %l : Tensor[] = prim::If(%c)
    block0():
      %m : Tensor[] = prim::If(%d)
        block0():
          %a : Tensor[] = prim::ListConstruct(%x, %y)
          -> (%a)
        block1():
          %b : Tensor[] = prim::ListConstruct(%y, %x)
          -> (%b)
      -> (%m)
    block1():
      %e : Tensor[] = prim::ListConstruct(%x, %x)
      -> (%e)
  %p : Tensor, %q : Tensor = prim::ListUnpack(%l)
  %s : Tensor = toy::mul(%p, %q)
  return (%s)
",
            "graph(%c : bool,
      %d : bool,
      %x : Tensor,
      %y : Tensor):
  %p : Tensor, %q : Tensor = prim::If(%c)
    block0():
      %m : Tensor, %n : Tensor = prim::If(%d)
        block0():
          -> (%x, %y)
        block1():
          -> (%y, %x)
      -> (%m, %n)
    block1():
      -> (%x, %x)
  %s : Tensor = toy::mul(%p, %q)
  return (%s)
",
        );
    }

    #[test]
    fn lists_with_other_uses_or_lengths_stay() {
        let text = "graph(%c : bool,
      %x : Tensor,
      %y : Tensor):
  %l : Tensor[] = prim::If(%c)
    block0():
      %a : Tensor[] = prim::ListConstruct(%x, %y)
      -> (%a)
    block1():
      %b : Tensor[] = prim::ListConstruct(%x)
      -> (%b)
  %p : Tensor, %q : Tensor = prim::ListUnpack(%l)
  %s : Tensor = toy::mul(%p, %q)
  return (%s)
";
        assert_passes(&toy(), "container_replacement,dce", text, text);
    }
}
