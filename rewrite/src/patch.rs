//! Plans: edits decided with a shared borrow of the graph and applied later, atomically. A plan for an outdated graph
//! is rejected.
//!
//! In a [`Patch`], existing values and results of planned nodes have the same type ([`Planned`]), so whole replacement
//! expressions can be planned. Applying a patch cannot fail halfway: the revision is compared first, and everything the
//! patch refers to existed at its revision.

use flambeau_analysis::MovePlan;
use flambeau_analysis::alias::MoveStep;
use flambeau_ir::{
    At, Attr, Editor, Graph, IValue, LocId, NodeId, Op, Prim, Revision, Stale, Symbol, Type, ValueId,
};
use smallvec::SmallVec;

/// Edits planned at one revision of a graph.
pub trait EditPlan {
    /// The result of applying the plan.
    type Done;

    /// Returns the revision that the plan was made at.
    fn revision(&self) -> Revision;

    /// Applies the edits.
    ///
    /// # Errors
    /// Returns [`Stale`] if the graph is another one (a clone included) or was edited since; the graph is then
    /// unchanged.
    fn apply(self, editor: &mut Editor<'_>) -> Result<Self::Done, Stale>;
}

/// A value in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Planned {
    /// A value of the graph.
    Value(ValueId),
    /// Result `.1` of the patch's node `.0`.
    New(u32, u32),
}

impl From<ValueId> for Planned {
    fn from(v: ValueId) -> Self {
        Planned::Value(v)
    }
}

#[derive(Debug)]
enum PatchStep {
    Insert {
        at: At,
        op: Op,
        operands: SmallVec<[Planned; 4]>,
        attrs: Vec<(Symbol, Attr)>,
        types: SmallVec<[Type; 1]>,
        loc: LocId,
    },
    ReplaceAll {
        old: ValueId,
        new: Planned,
    },
    SetOperand {
        node: NodeId,
        index: u32,
        value: Planned,
    },
    Erase(NodeId),
    Move(MoveStep),
}

/// A list of edits, planned with a shared borrow. See the module documentation.
#[derive(Debug)]
pub struct Patch {
    revision: Revision,
    steps: Vec<PatchStep>,
    nodes: u32,
}

impl Patch {
    /// Creates an empty patch for the current revision of the graph.
    pub fn new(graph: &Graph) -> Self {
        Patch { revision: graph.journal().revision(), steps: Vec::new(), nodes: 0 }
    }

    /// Whether the patch has no edits.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the number of planned edits.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Drops all but the first `len` edits. Results of dropped insertions must not be referred to afterwards.
    pub fn truncate(&mut self, len: usize) {
        let dropped = self.steps.drain(len.min(self.steps.len())..);
        let made = dropped.filter(|s| matches!(s, PatchStep::Insert { .. })).count();
        self.nodes -= made as u32;
    }

    /// Plans a node with one result. Returns that result.
    pub fn insert(
        &mut self,
        at: At,
        op: impl Into<Op>,
        operands: &[Planned],
        attrs: Vec<(Symbol, Attr)>,
        ty: Type,
        loc: LocId,
    ) -> Planned {
        self.insert_many(at, op, operands, attrs, &[ty], loc);
        Planned::New(self.nodes - 1, 0)
    }

    /// Plans a node with several results. With the returned number, `Planned::New(number, i)` is result `i`.
    pub fn insert_many(
        &mut self,
        at: At,
        op: impl Into<Op>,
        operands: &[Planned],
        attrs: Vec<(Symbol, Attr)>,
        types: &[Type],
        loc: LocId,
    ) -> u32 {
        self.steps.push(PatchStep::Insert {
            at,
            op: op.into(),
            operands: operands.into(),
            attrs,
            types: types.into(),
            loc,
        });
        self.nodes += 1;
        self.nodes - 1
    }

    /// Plans a constant. Returns its value.
    pub fn constant(&mut self, at: At, value: IValue, ty: Type, loc: LocId) -> Planned {
        let attrs = match value {
            IValue::None => Vec::new(),
            value => vec![(flambeau_ir::attr::names::value(), Attr::Value(value))],
        };
        self.insert(at, Prim::Constant, &[], attrs, ty, loc)
    }

    /// Plans the replacement of every use of `old` by `new`.
    pub fn replace_all_uses(&mut self, old: ValueId, new: impl Into<Planned>) {
        self.steps.push(PatchStep::ReplaceAll { old, new: new.into() });
    }

    /// Plans the replacement of operand `index`.
    pub fn set_operand(&mut self, node: NodeId, index: usize, value: impl Into<Planned>) {
        self.steps.push(PatchStep::SetOperand { node, index: index as u32, value: value.into() });
    }

    /// Adds moves of nodes, within or between blocks, which the alias analysis planned
    /// ([`AliasDb::plan_move_before`](flambeau_analysis::AliasDb::plan_move_before),
    /// [`Motion`](flambeau_analysis::Motion)). The plan was checked for dominance, aliasing and effects against the
    /// unchanged graph, so the moves must precede edits of the moved nodes' operands in the patch.
    ///
    /// # Errors
    /// Returns [`Stale`] if the moves were planned for another graph or revision than the patch.
    ///
    /// ```
    /// use flambeau_analysis::{AliasDb, Analyses, Dominance, Motion, NestedEffects};
    /// use flambeau_ir::{Prim, Registry, Source, text::parse_graph};
    /// use flambeau_rewrite::{Patch, EditPlan};
    ///
    /// let text = "graph(%n : int, %p : bool):
    ///   %q : (int, int) = prim::If(%p)
    ///     block0():
    ///       %a : (int, int) = prim::TupleConstruct(%n, %n)
    ///       -> (%a)
    ///     block1():
    ///       %b : (int, int) = prim::TupleConstruct(%n, %n)
    ///       -> (%b)
    ///   return (%q)
    /// ";
    /// let mut graph = parse_graph(&Source::new("branch.ir", text), &Registry::empty()).unwrap();
    /// let branch = graph.nodes_deep().find_map(|n| graph.as_if(n)).unwrap();
    /// let pair = graph.nodes(graph.block(branch.node(), 0)).next().unwrap();
    /// let mut analyses = Analyses::new();
    /// let (g, (db, dominance, effects)) = analyses.with::<(AliasDb, Dominance, NestedEffects)>(&graph);
    /// let mut motion = Motion::new(g, db, dominance, effects);
    /// motion.move_before(pair, branch.node()).unwrap();
    /// let moves = motion.into_plan();
    ///
    /// let mut patch = Patch::new(&graph);
    /// patch.move_nodes(&moves).unwrap();
    /// patch.replace_all_uses(graph.result(branch.node(), 0), graph.result(pair, 0));
    /// patch.erase(branch.node());
    /// patch.apply(&mut graph.edit()).unwrap();
    /// assert!(graph.nodes_deep().all(|n| graph.is_prim(n, Prim::TupleConstruct)));
    /// ```
    pub fn move_nodes(&mut self, moves: &MovePlan) -> Result<(), Stale> {
        moves.revision.check(self.revision)?;
        self.steps.extend(moves.steps.iter().copied().map(PatchStep::Move));
        Ok(())
    }

    /// Plans the removal of a node. The node must have no uses when the edit is applied.
    pub fn erase(&mut self, node: NodeId) {
        self.steps.push(PatchStep::Erase(node));
    }
}

impl EditPlan for Patch {
    /// The nodes inserted, in order of planning.
    type Done = Vec<NodeId>;

    fn revision(&self) -> Revision {
        self.revision
    }

    fn apply(self, editor: &mut Editor<'_>) -> Result<Vec<NodeId>, Stale> {
        self.revision.check(editor.graph().journal().revision())?;
        let mut made: Vec<NodeId> = Vec::with_capacity(self.nodes as usize);
        let resolve = |graph: &Graph, made: &[NodeId], value: Planned| match value {
            Planned::Value(v) => v,
            Planned::New(node, result) => graph.result(made[node as usize], result as usize),
        };
        for step in self.steps {
            match step {
                PatchStep::Insert { at, op, operands, attrs, types, loc } => {
                    let operands: SmallVec<[ValueId; 8]> =
                        operands.iter().map(|&v| resolve(editor.graph(), &made, v)).collect();
                    let attrs = editor.attrs(attrs);
                    editor.at(at).loc(loc);
                    made.push(editor.insert(op, &operands, attrs, &types));
                }
                PatchStep::ReplaceAll { old, new } => {
                    let new = resolve(editor.graph(), &made, new);
                    editor.replace_all_uses(old, new);
                }
                PatchStep::SetOperand { node, index, value } => {
                    let value = resolve(editor.graph(), &made, value);
                    editor.set_operand(node, index as usize, value);
                }
                PatchStep::Erase(node) => editor.erase(node),
                PatchStep::Move(step) => step.apply(editor),
            }
        }
        Ok(made)
    }
}

impl EditPlan for MovePlan {
    type Done = ();

    fn revision(&self) -> Revision {
        self.revision
    }

    fn apply(self, editor: &mut Editor<'_>) -> Result<(), Stale> {
        MovePlan::apply(&self, editor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::toy;
    use flambeau_analysis::{AliasDb, Analyses};

    #[test]
    fn clones_and_later_revisions_are_refused() {
        let mut graph = Graph::new(toy());
        let x = graph.edit().add_input(Type::TENSOR);
        let relu = toy().lookup("toy::relu").expect("there");
        let made = graph.edit().value(relu, &[x], Type::TENSOR);
        let last = graph.edit().value(relu, &[made], Type::TENSOR);
        let mut clone = graph.clone();
        let plan = || {
            let mut patch = Patch::new(&graph);
            patch.constant(
                At::before(graph.def(made)),
                IValue::Int(1),
                Type::INT,
                graph.loc(graph.def(made)),
            );
            patch
        };
        let (patch, other) = (plan(), plan());
        let mut analyses = Analyses::new();
        let db = analyses.get::<AliasDb>(&graph);
        let moves = db.plan_move_before(&graph, graph.def(made), graph.def(last)).expect("a plan exists");
        assert!(patch.apply(&mut clone.edit()).is_err(), "a clone is another graph");
        assert!(EditPlan::apply(moves.clone(), &mut clone.edit()).is_err());
        assert!(analyses.try_with::<AliasDb>(&clone).is_err());
        assert_eq!(clone.node_count(), graph.node_count());
        assert_eq!(other.apply(&mut graph.edit()).expect("fresh").len(), 1);
        let stale = EditPlan::apply(moves, &mut graph.edit()).expect_err("the graph was edited");
        assert!(stale.to_string().contains("which is at revision"), "{stale}");
    }
}
