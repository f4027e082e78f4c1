//! Code motion: moves nodes without effects between blocks. Several moves are planned on one borrowed graph.
//!
//! [`AliasDb::plan_move_before`] moves any node within its block, together with dependent nodes. [`Motion`] moves
//! single nodes that do not write, in any direction, also out of and into branches and loops. A move is allowed if
//!
//! - **dominance**: all operands are defined before the new position, and the new position dominates all uses of the
//!   results (nodes with a planned move count at their new position);
//! - **aliasing**: no node that is passed writes memory that the node reads ([`WriteOrder`]); a node that leaves or
//!   enters a loop passes the whole loop. If a loop then creates one object instead of many or vice versa, the results
//!   must be neither written nor visible outside;
//! - **effects**: the node is pure, and either the move does not execute it speculatively, or it may be
//!   speculated ([`Effects::may_speculate`]). A move of the first nodes of a body that certainly runs is not speculative.
//!
//! Nodes that write never move here, so moves cannot invalidate each other: every prefix of the plan is valid.

use super::write_order::{WriteOrder, read_in};
use super::{AliasDb, MovePlan, MoveStep};
use crate::dominance::Dominance;
use crate::effects::NestedEffects;
use flambeau_ir::{BlockId, Effects, Graph, NodeId, Prim, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::ops::Range;

/// The reason why a node cannot be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// The node is a block's `Param` or `Return`; or the position is before a `Param`, before the node itself or nested in it;
    /// or the plan already moves the node, a node to a position in it, the node at the position or a node around that.
    #[error(
        "the node is a block's `prim::Param` or `prim::Return`, the new position is in the node or before a \
         `prim::Param`, or the plan already moves one of them"
    )]
    InvalidPosition,
    /// An operand is not defined at the new position.
    #[error("an operand is not defined at the new position")]
    UndefinedOperand(ValueId),
    /// The new position does not dominate a use of this result.
    #[error("the new position does not dominate a use of a result")]
    UseNotDominated(ValueId),
    /// The node, including nested nodes, has these effects, which the move would add, drop or reorder.
    #[error("the node has effects that the move would change: {0}")]
    Effects(Effects),
    /// A node that is passed writes memory that the value may be or hold.
    #[error("an operand is written between the old and the new position")]
    OperandWritten(ValueId),
    /// The result would be one object where a loop creates several, or vice versa, and the difference is observable.
    #[error("a result is written or visible outside, and would no longer be created once per iteration")]
    ObservableIdentity(ValueId),
}

/// Planned moves of nodes in one graph. See the [module](self).
///
/// ```
/// use flambeau_analysis::{AliasDb, Analyses, Dominance, Motion, NestedEffects};
/// use flambeau_ir::{Registry, Source, text::parse_graph};
///
/// let text = "graph(%n : int, %x : int):
///   %t : bool = prim::Constant[value=1]()
///   %y : (int, int) = prim::Loop(%n, %t, %x)
///     block0(%i : int, %c : (int, int)):
///       %p : (int, int) = prim::TupleConstruct(%x, %n)
///       -> (%t, %p)
///   return (%y)
/// ";
/// # let text = text.replace("prim::Loop(%n, %t, %x)", "prim::Loop(%n, %t, %q)")
/// #     .replace("  %t : bool", "  %q : (int, int) = prim::TupleConstruct(%n, %n)\n  %t : bool");
/// let mut graph = parse_graph(&Source::new("loop.ir", text), &Registry::empty()).unwrap();
/// let view = graph.nodes_deep().find_map(|n| graph.as_loop(n)).unwrap();
/// let pair = graph.nodes(view.body(&graph)).next().unwrap();
/// let mut analyses = Analyses::new();
/// let (g, (db, dominance, effects)) = analyses.with::<(AliasDb, Dominance, NestedEffects)>(&graph);
/// let mut motion = Motion::new(g, db, dominance, effects);
/// motion.move_before(pair, view.node()).unwrap();
/// let plan = motion.into_plan();
/// plan.apply(&mut graph.edit()).unwrap();
/// assert_eq!(graph.parent(pair), graph.root());
/// ```
pub struct Motion<'a> {
    graph: &'a Graph,
    db: &'a AliasDb,
    dominance: &'a Dominance,
    effects: &'a NestedEffects,
    writes: WriteOrder,
    /// Numbers of nodes that may not be speculated, ascending: a node that may fail must not move before them.
    barriers: Vec<u32>,
    /// By loop: how many of `barriers` at the start of its body are known to move before the loop.
    cleared: HashMap<NodeId, usize, FxBuildHasher>,
    /// Nodes that move, each with the node that it will precede directly.
    placed: HashMap<NodeId, NodeId, FxBuildHasher>,
    /// Numbers of nodes that others will directly precede: they and their enclosing nodes must stay.
    anchors: BTreeSet<u32>,
    steps: Vec<MoveStep>,
}

impl<'a> Motion<'a> {
    /// Creates an empty plan. O(nodes).
    #[must_use]
    pub fn new(
        graph: &'a Graph,
        db: &'a AliasDb,
        dominance: &'a Dominance,
        effects: &'a NestedEffects,
    ) -> Motion<'a> {
        let writes = WriteOrder::new(graph, db, dominance);
        let stays = |&n: &NodeId| !graph.effects(n).may_speculate();
        let barriers = graph.nodes_deep().filter(stays).map(|n| dominance.order(n)).collect();
        Motion {
            graph,
            db,
            dominance,
            effects,
            writes,
            barriers,
            cleared: HashMap::default(),
            placed: HashMap::default(),
            anchors: BTreeSet::new(),
            steps: Vec::new(),
        }
    }

    /// Returns the plan, for the graph at its current revision.
    #[must_use]
    pub fn into_plan(self) -> MovePlan {
        MovePlan { revision: self.graph.journal().revision(), steps: self.steps }
    }

    /// Plans to move `node` directly before `at`, in any blocks. Constants among its operands move along if necessary.
    /// O(operands + uses + nesting between the two), plus a search among the writes.
    ///
    /// # Errors
    /// Returns the [`MoveError`] that prevents the move; the plan is then unchanged.
    pub fn move_before(&mut self, node: NodeId, at: NodeId) -> Result<(), MoveError> {
        self.check_place(node, at)?;
        let constants = self.constants_to_move(node, at)?;
        if !self.dominance.starts_by(at, node) {
            self.check_uses(node, at)?;
        }
        let between = NodesBetween::between(self.graph, self.dominance, node, at);
        if between.entered.iter().any(|owner| self.placed.contains_key(owner)) {
            return Err(MoveError::InvalidPosition);
        }
        let speculated = self.check_effects(node, at, &between)?;
        self.check_memory(node, &between)?;
        for moved in constants.into_iter().chain([node]) {
            self.placed.insert(moved, at);
            self.steps.push(MoveStep::Before { node: moved, next: at });
        }
        self.anchors.insert(self.dominance.order(at));
        if !speculated {
            *self.cleared.entry(at).or_insert(0) += 1;
        }
        Ok(())
    }

    fn check_place(&self, node: NodeId, at: NodeId) -> Result<(), MoveError> {
        let is_bracket = |n: NodeId| matches!(self.graph.prim(n), Some(Prim::Param | Prim::Return));
        let moves = |n: NodeId| self.placed.contains_key(&n);
        let span = self.dominance.span(node);
        let is_wrong = is_bracket(node)
            || self.graph.is_prim(at, Prim::Param)
            || node == at
            || self.dominance.contains(node, at)
            || self.anchors.range(span).next().is_some()
            || moves(node)
            || moves(at);
        if is_wrong { Err(MoveError::InvalidPosition) } else { Ok(()) }
    }

    /// The constants among a node's operands that are not defined at the new position and must move along.
    fn constants_to_move(&self, node: NodeId, at: NodeId) -> Result<SmallVec<[NodeId; 2]>, MoveError> {
        let mut constants: SmallVec<[NodeId; 2]> = SmallVec::new();
        let own = self.dominance.span(node);
        for value in read_in(self.graph, node) {
            let def = self.graph.def(value);
            let nested = own.contains(&self.dominance.order(def));
            if nested || self.is_defined_at(def, at) || constants.contains(&def) {
                continue;
            }
            let is_free =
                !self.placed.contains_key(&def) && !self.anchors.contains(&self.dominance.order(def));
            // A constant that moves up is still defined before its other uses.
            if !(self.graph.is_prim(def, Prim::Constant) && is_free && self.dominance.starts_by(at, def)) {
                return Err(MoveError::UndefinedOperand(value));
            }
            constants.push(def);
        }
        Ok(constants)
    }

    /// Whether the results of `def` are defined at the position directly before `at`.
    fn is_defined_at(&self, def: NodeId, at: NodeId) -> bool {
        match self.placed.get(&def) {
            Some(&place) => self.dominance.starts_by(place, at),
            None => self.dominance.dominates(def, at),
        }
    }

    /// Checks that all uses of a node's results follow the new position.
    fn check_uses(&self, node: NodeId, at: NodeId) -> Result<(), MoveError> {
        for value in self.graph.results(node) {
            for user in self.graph.uses(value).map(|u| u.user) {
                let after = match self.placed.get(&user) {
                    Some(&place) => place != at && self.dominance.starts_by(at, place),
                    None => self.dominance.starts_by(at, user),
                };
                if !after {
                    return Err(MoveError::UseNotDominated(value));
                }
            }
        }
        Ok(())
    }

    /// Checks the effects. Returns whether the node may be speculated.
    fn check_effects(&self, node: NodeId, at: NodeId, between: &NodesBetween) -> Result<bool, MoveError> {
        let effects = self.effects.of(self.graph, node);
        let speculated = effects.may_speculate();
        let allowed = effects.without(Effects::IDENTITY).is_pure()
            && (speculated || self.runs_first(node, at, between));
        if !allowed || between.loops && effects.contains(Effects::IDENTITY) {
            return Err(MoveError::Effects(effects));
        }
        Ok(speculated)
    }

    /// Whether a node that may fail certainly runs at its new position: directly before a loop whose body certainly
    /// runs, and every node in between is without effects and cannot fail, or moves there too.
    fn runs_first(&self, node: NodeId, at: NodeId, between: &NodesBetween) -> bool {
        let body = self.graph.parent(node);
        let is_out_of_loop = between.left.as_slice() == [at] && between.entered.is_empty();
        let runs = self.graph.as_loop(at).is_some_and(|view| !view.may_skip(self.graph));
        if !(is_out_of_loop && runs && self.graph.owner(body) == Some(at)) {
            return false;
        }
        let inside = self.dominance.order(at) + 1;
        let first = self.barriers.partition_point(|&number| number < inside);
        let cleared = self.cleared.get(&at).copied().unwrap_or(0);
        self.barriers.get(first + cleared) == Some(&self.dominance.order(node))
    }

    fn check_memory(&self, node: NodeId, between: &NodesBetween) -> Result<(), MoveError> {
        if self.writes.any_in(between.passed.clone()) {
            for value in read_in(self.graph, node) {
                if self.writes.writes_to(self.db, value, between.passed.clone()) {
                    return Err(MoveError::OperandWritten(value));
                }
            }
        }
        if between.loops {
            for value in self.graph.results(node) {
                if self.db.has_writers(value) || self.db.escapes_scope(&[value]) {
                    return Err(MoveError::ObservableIdentity(value));
                }
            }
        }
        Ok(())
    }
}

/// The nodes that a move passes.
struct NodesBetween {
    /// Nodes whose blocks are left, innermost first.
    left: SmallVec<[NodeId; 4]>,
    /// Nodes whose blocks are entered, innermost first.
    entered: SmallVec<[NodeId; 4]>,
    /// Whether a node other than a branch is left or entered, so that the number of executions changes.
    loops: bool,
    /// Numbers of all nodes that may run between the old and the new position.
    passed: Range<u32>,
}

impl NodesBetween {
    fn between(graph: &Graph, dominance: &Dominance, node: NodeId, at: NodeId) -> NodesBetween {
        let (from, to) = (graph.parent(node), graph.parent(at));
        let is_around = |outer: BlockId, inner: NodeId| {
            let ends = dominance.order(graph.param(outer))..dominance.order(graph.ret(outer)) + 1;
            ends.contains(&dominance.order(inner))
        };
        let owners = |mut block: BlockId, other: NodeId| {
            let mut owners: SmallVec<[NodeId; 4]> = SmallVec::new();
            while !is_around(block, other) {
                let Some(owner) = graph.owner(block) else { break };
                owners.push(owner);
                block = graph.parent(owner);
            }
            owners
        };
        let (left, entered) = (owners(from, at), owners(to, node));
        let (old, new) = (dominance.span(node), dominance.order(at));
        let mut passed = if new < old.start { new..old.start } else { old.end..new };
        let mut loops = false;
        for &owner in left.iter().chain(&entered).filter(|&&n| !graph.is_prim(n, Prim::If)) {
            let whole = dominance.span(owner);
            passed = passed.start.min(whole.start)..passed.end.max(whole.end);
            loops = true;
        }
        NodesBetween { left, entered, loops, passed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Analyses;
    use crate::testing::{def, graph, value};
    use flambeau_ir::verify;

    type All = (AliasDb, Dominance, NestedEffects);

    /// Plans the moves, checks each result, applies the plan and verifies the graph.
    fn moves(text: &str, wanted: &[(&str, &str, Result<(), &str>)]) -> Graph {
        let mut g = graph(text);
        let mut analyses = Analyses::new();
        let (of, (db, dominance, effects)) = analyses.with::<All>(&g);
        let mut motion = Motion::new(of, db, dominance, effects);
        for (node, at, answer) in wanted {
            let at = if *at == "return" { g.ret(g.root()) } else { def(&g, at) };
            let got = motion.move_before(def(&g, node), at);
            let got = got.as_ref().map(|&()| ()).map_err(|why| match why {
                MoveError::InvalidPosition => "place",
                MoveError::UndefinedOperand(_) => "operand",
                MoveError::UseNotDominated(_) => "use",
                MoveError::Effects(_) => "effects",
                MoveError::OperandWritten(_) => "written",
                MoveError::ObservableIdentity(_) => "shared",
            });
            assert_eq!(&got, answer, "{node} before {at:?}");
        }
        let plan = motion.into_plan();
        plan.apply(&mut g.edit()).unwrap();
        verify::verify(&g).unwrap_or_else(|why| panic!("{why:?}\n{g}"));
        analyses.check(&g).unwrap();
        g
    }

    #[test]
    fn moves_out_of_a_loop() {
        let text = "graph(%x : Tensor, %y : Tensor, %k : int):
  %n : int = prim::Constant[value=3]()
  %t : bool = prim::Constant[value=1]()
  %z : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %c : Tensor):
      %two : int = prim::Constant[value=2]()
      %p : int = aten::mul(%k, %two)
      %m : Tensor = aten::mm(%y, %y)
      %r : Tensor = aten::relu(%m)
      %d : Tensor = aten::add(%c, %r, %p)
      %late : Tensor = aten::mm(%y, %y)
      %e : Tensor = aten::add(%d, %late, %p)
      -> (%t, %e)
  return (%z)";
        let g = moves(
            text,
            &[
                ("r", "z", Err("operand")),
                ("m", "z", Err("effects")),
                ("p", "z", Ok(())),
                ("d", "z", Err("operand")),
                ("two", "z", Err("place")),
                ("m", "z", Ok(())),
            ],
        );
        assert_eq!(g.parent(def(&g, "two")), g.root(), "the constant comes along");
    }

    /// The first nodes of a body that certainly runs may fail: they ran first anyway.
    #[test]
    fn nodes_that_may_raise_leave_a_loop_in_order() {
        let text = |count: &str| {
            format!(
                "graph(%x : Tensor, %y : Tensor, %k : int):
  %n : int = prim::Constant[value={count}]()
  %t : bool = prim::Constant[value=1]()
  %z : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %c : Tensor):
      %m : Tensor = aten::mm(%y, %y)
      %r : Tensor = aten::relu(%m)
      %d : Tensor = aten::add(%c, %r, %k)
      %late : Tensor = aten::mm(%y, %y)
      %e : Tensor = aten::add(%d, %late, %k)
      -> (%t, %e)
  return (%z)"
            )
        };
        let g = moves(
            &text("3"),
            &[
                ("late", "z", Err("effects")),
                ("m", "z", Ok(())),
                ("late", "z", Err("effects")),
                ("r", "z", Ok(())),
                ("late", "z", Err("effects")),
            ],
        );
        let order: Vec<NodeId> = g.nodes(g.root()).collect();
        assert_eq!(order[2..], ["m", "r", "z"].map(|name| def(&g, name)));
        moves(&text("0"), &[("m", "z", Err("effects"))]);
    }

    #[test]
    fn moves_into_and_out_of_branches() {
        let text = "graph(%x : Tensor, %p : bool, %k : int):
  %q : (int, int) = prim::TupleConstruct(%k, %k)
  %a : Tensor = aten::relu(%x)
  %s : (int, int) = prim::If(%p)
    block0():
      %u : (int, int) = prim::TupleConstruct(%k, %k)
      %b : Tensor = aten::relu(%a)
      %w : Tensor = aten::add_(%a, %x, %k)
      %o : Tensor[] = prim::ListConstruct(%a)
      -> (%q)
    block1():
      -> (%q)
  return (%s, %a)";
        let g = moves(
            text,
            &[
                ("u", "s", Ok(())),
                ("b", "s", Err("effects")),
                ("o", "s", Err("written")),
                ("a", "b", Err("use")),
                ("s", "u", Err("place")),
                ("q", "b", Err("use")),
            ],
        );
        assert_eq!(g.parent(def(&g, "u")), g.root());
        let _ = value(&g, "u");
    }

    #[test]
    fn observable_allocations_stay_in_the_loop() {
        let text = "graph(%x : int, %n : int, %p : bool):
  %l : int[] = prim::Loop(%n, %p, %m)
    block0(%i : int, %c : int[]):
      %k : int[] = prim::ListConstruct(%x)
      -> (%p, %k)
  return (%l)"
            .replace(
                "  %l : int[] = prim::Loop",
                "  %m : int[] = prim::ListConstruct(%x)\n  %l : int[] = prim::Loop",
            );
        let g = graph(&text);
        let mut analyses = Analyses::new();
        let (of, (db, dominance, effects)) = analyses.with::<All>(&g);
        let mut motion = Motion::new(of, db, dominance, effects);
        let k = def(&g, "k");
        assert!(matches!(
            motion.move_before(k, def(&g, "l")),
            Err(MoveError::ObservableIdentity(_) | MoveError::Effects(_))
        ));
    }
}
