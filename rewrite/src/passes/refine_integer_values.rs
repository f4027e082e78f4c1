//! Replaces integers by constants where a dominating comparison determines their value.
//!
//! In the block taken if `x == 3` holds, `x` is the constant 3; also after a branch whose other block only raises.
//! Conditions made by `and`, `or` and `not`, which are branches with bool results, are decomposed.

use crate::facets::OpRole;
use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::{At, BlockId, Column, Editor, Graph, IValue, NodeId, Prim, ValueId};
use smallvec::SmallVec;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct RefineIntegerValues;

/// Maximum number of nested conditions that are decomposed.
const MAX_DEPTH: usize = 32;

impl Pass for RefineIntegerValues {
    const NAME: &'static str = "refine_integer_values";
    const DOC: &'static str = "Replaces integers by constants where a comparison determines their value.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let roles = registry.column::<OpRole>();
        let graph = cx.graph();
        let found: Vec<Refinement> = graph
            .nodes_deep()
            .filter(|&n| graph.is_prim(n, Prim::If))
            .flat_map(|n| refinements(graph, &roles, n))
            .collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for f in found {
            if !fuel.take("refine", editor.graph(), f.node) {
                break;
            }
            f.apply(&mut editor);
        }
        Ok(())
    }
}

/// Where the value of an integer is known.
#[derive(Clone, Copy)]
enum KnownRegion {
    /// In this block of the branch.
    Block(usize),
    /// After the branch.
    After,
}

struct Refinement {
    node: NodeId,
    region: KnownRegion,
    value: ValueId,
    number: i64,
}

impl Refinement {
    fn apply(self, editor: &mut Editor<'_>) {
        let g = editor.graph();
        let at = match self.region {
            KnownRegion::Block(i) => At::start(g.block(self.node, i)),
            KnownRegion::After => At::after(self.node),
        };
        let holds = |user: NodeId| match self.region {
            KnownRegion::Block(i) => g.is_nested_in(g.parent(user), g.block(self.node, i)),
            KnownRegion::After => {
                g.is_before(self.node, user) && g.is_nested_in(g.parent(user), g.parent(self.node))
            }
        };
        let uses: Vec<_> = g.uses(self.value).filter(|u| holds(u.user)).collect();
        if uses.is_empty() {
            return;
        }
        let loc = g.loc(self.node);
        let constant = editor.at(at).loc(loc).constant(IValue::Int(self.number));
        for u in uses {
            editor.set_operand(u.user, u.index as usize, constant);
        }
    }
}

fn refinements(g: &Graph, roles: &Column<'_, OpRole>, node: NodeId) -> Vec<Refinement> {
    let condition = g.operand(node, 0);
    let mut found = Vec::new();
    for (i, holds) in [true, false].into_iter().enumerate() {
        let facts = facts(g, roles, condition, holds);
        let mut add = |region| {
            found.extend(facts.iter().map(|&(value, number)| Refinement { node, region, value, number }));
        };
        add(KnownRegion::Block(i));
        if raises(g, g.block(node, 1 - i)) {
            add(KnownRegion::After);
        }
    }
    found
}

/// Whether a block always ends in an exception.
fn raises(g: &Graph, block: BlockId) -> bool {
    g.nodes(block).any(|n| g.is_prim(n, Prim::RaiseException))
}

/// The values of integers implied if a condition holds, or if it does not.
fn facts(
    g: &Graph,
    roles: &Column<'_, OpRole>,
    condition: ValueId,
    holds: bool,
) -> SmallVec<[(ValueId, i64); 2]> {
    let mut facts = SmallVec::new();
    let mut stack: SmallVec<[(ValueId, bool); 4]> = SmallVec::from_slice(&[(condition, holds)]);
    let mut budget = MAX_DEPTH;
    while let Some((value, holds)) = stack.pop() {
        budget -= 1;
        if budget == 0 {
            break;
        }
        let node = g.def(value);
        match roles.of(g.op(node)) {
            Some(OpRole::Equal) if holds => facts.extend(equality(g, node)),
            Some(OpRole::Unequal) if !holds => facts.extend(equality(g, node)),
            Some(OpRole::Not) => stack.push((g.operand(node, 0), !holds)),
            _ if g.is_prim(node, Prim::If) => stack.extend(through(g, node, value, holds)),
            _ => {}
        }
    }
    facts
}

fn equality(g: &Graph, node: NodeId) -> Option<(ValueId, i64)> {
    let (a, b) = (g.operand(node, 0), g.operand(node, 1));
    let number = |v| g.constant(v).and_then(|c| c.as_int());
    match (number(a), number(b)) {
        (None, Some(n)) => Some((a, n)),
        (Some(n), None) => Some((b, n)),
        _ => None,
    }
}

/// The conditions implied by the result of a branch: if one block always returns the other truth value, this block was
/// taken.
fn through(g: &Graph, node: NodeId, value: ValueId, holds: bool) -> SmallVec<[(ValueId, bool); 2]> {
    let mut known = SmallVec::new();
    let Some(at) = g.results(node).position(|v| v == value) else { return known };
    for i in [0, 1] {
        let other = g.block_outputs(g.block(node, 1 - i)).nth(at);
        let operand_constant = other.and_then(|v| g.constant(v)).and_then(|c| c.as_bool());
        if operand_constant == Some(!holds) {
            known.push((g.operand(node, 0), i == 0));
            known.extend(g.block_outputs(g.block(node, i)).nth(at).map(|v| (v, holds)));
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn compared_values_are_constant_in_branches() {
        assert_passes(
            &toy(),
            "refine_integer_values,dce",
            "graph(%a : int, %b : int, %s : str):
  %3 : int = prim::Constant[value=3]()
  %f : bool = prim::Constant[value=0]()
  %c : bool = toy::eq(%a, %3)
  %both : bool = prim::If(%c)
    block0():
      %d : bool = toy::eq(%3, %b)
      -> (%d)
    block1():
      -> (%f)
  %r : int = prim::If(%both)
    block0():
      %x : int = toy::mul(%a, %b)
      -> (%x)
    block1():
      %y : int = toy::mul(%a, %b)
      -> (%y)
  %e : bool = toy::eq(%r, %3)
   = prim::If(%e)
    block0():
      -> ()
    block1():
       = prim::RaiseException(%s, %s)
      -> ()
  %z : int = toy::mul(%r, %a)
  return (%z)
",
            "graph(%a : int, %b : int, %s : str):
  %3 : int = prim::Constant[value=3]()
  %f : bool = prim::Constant[value=0]()
  %c : bool = toy::eq(%a, %3)
  %both : bool = prim::If(%c)
    block0():
      %d : bool = toy::eq(%3, %b)
      -> (%d)
    block1():
      -> (%f)
  %r : int = prim::If(%both)
    block0():
      %4 : int = prim::Constant[value=3]()
      %5 : int = prim::Constant[value=3]()
      %x : int = toy::mul(%4, %5)
      -> (%x)
    block1():
      %y : int = toy::mul(%a, %b)
      -> (%y)
  %e : bool = toy::eq(%r, %3)
   = prim::If(%e)
    block0():
      -> ()
    block1():
       = prim::RaiseException(%s, %s)
      -> ()
  %6 : int = prim::Constant[value=3]()
  %z : int = toy::mul(%6, %a)
  return (%z)
",
        );
    }
}
