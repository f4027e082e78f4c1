//! Moves a node next to another one of its block without changing the program's behavior, as a plan made on a borrowed
//! graph. `motion.rs` moves nodes between blocks.
//!
//! Between the node and its new position, every node that depends on it (uses its results, defines its operands, writes
//! memory it reads or reads memory it writes, or raises an error where the other writes memory that the caller sees) must
//! move along, in order. In the end, this working set must not depend on the node that it moves past. Nodes with side
//! effects are neither moved nor passed.

use super::error_order::{MAY_NOT_COMPLETE, is_event};
use super::{AliasDb, MemorySet};
use crate::effects::effects_in;
use flambeau_ir::{Editor, Graph, NodeId, NodeSet, Revision, Stale, ValueId};

/// One move of a [`MovePlan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveStep {
    /// Move `node` directly before `next`.
    Before {
        /// The node to move.
        node: NodeId,
        /// The node that follows it.
        next: NodeId,
    },
    /// Move `node` directly after `prev`.
    After {
        /// The node to move.
        node: NodeId,
        /// The node that precedes it.
        prev: NodeId,
    },
}

impl MoveStep {
    /// Returns the node to move.
    #[must_use]
    pub fn node(self) -> NodeId {
        match self {
            MoveStep::Before { node, .. } | MoveStep::After { node, .. } => node,
        }
    }

    /// Moves the node.
    pub fn apply(self, editor: &mut Editor<'_>) {
        match self {
            MoveStep::Before { node, next } => editor.move_before(node, next),
            MoveStep::After { node, prev } => editor.move_after(node, prev),
        }
    }
}

/// Moves that preserve the program's behavior, valid for one revision of the graph.
#[derive(Clone, Debug)]
pub struct MovePlan {
    /// The revision that the plan was made for.
    pub revision: Revision,
    /// The moves, in order.
    pub steps: Vec<MoveStep>,
}

impl MovePlan {
    /// Applies the moves.
    ///
    /// # Errors
    /// Returns [`Stale`] if the graph is another one or has changed since the plan was made; the graph is then
    /// unchanged.
    pub fn apply(&self, editor: &mut Editor<'_>) -> Result<(), Stale> {
        self.revision.check(editor.graph().journal().revision())?;
        self.steps.iter().for_each(|step| step.apply(editor));
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

impl AliasDb {
    /// Plans to move `node` directly before `at`. Returns `None` if that could change the program's behavior. Both must
    /// be in the same block. O(nodes between them).
    #[must_use]
    pub fn plan_move_before(&self, graph: &Graph, node: NodeId, at: NodeId) -> Option<MovePlan> {
        self.plan(graph, node, at, Side::Before)
    }

    /// Plans to move `node` directly after `at`; see [`AliasDb::plan_move_before`].
    #[must_use]
    pub fn plan_move_after(&self, graph: &Graph, node: NodeId, at: NodeId) -> Option<MovePlan> {
        self.plan(graph, node, at, Side::After)
    }

    /// Plans to make a node and its user adjacent: moves `producer` directly before `consumer` or, if that is not
    /// possible, `consumer` directly after `producer`.
    #[must_use]
    pub fn plan_couple_move(&self, graph: &Graph, producer: NodeId, consumer: NodeId) -> Option<MovePlan> {
        self.plan_move_before(graph, producer, consumer)
            .or_else(|| self.plan_move_after(graph, consumer, producer))
    }

    fn plan(&self, g: &Graph, node: NodeId, at: NodeId, side: Side) -> Option<MovePlan> {
        let done = |steps| Some(MovePlan { revision: g.journal().revision(), steps });
        if g.parent(node) != g.parent(at) {
            return None;
        }
        if node == at {
            return done(Vec::new());
        }
        let forward = g.is_before(node, at);
        let step = |n: NodeId| if forward { g.next(n) } else { g.prev(n) };
        let on_side = forward == (side == Side::Before);
        let mut current = step(node)?;
        if on_side && current == at {
            return done(Vec::new());
        }
        if effects_in(g, node).has_side_effects() {
            return None;
        }
        let mut set = WorkingSet::new(self, g);
        set.add(node);
        while current != at {
            if effects_in(g, current).has_side_effects() {
                return None;
            }
            if set.depends_on(current, forward) {
                set.add(current);
            }
            current = step(current)?;
        }
        if on_side {
            // The node moves to this side of `at`, its dependent nodes past it.
            let rest: Vec<NodeId> = set.nodes[1..].to_vec();
            let mut set = WorkingSet::new(self, g);
            rest.iter().for_each(|&n| set.add(n));
            if !rest.is_empty() && (set.depends_on(at, forward) || effects_in(g, at).has_side_effects()) {
                return None;
            }
            let mut steps = vec![move_step(node, at, side)];
            let far = if side == Side::Before { Side::After } else { Side::Before };
            let mut last = at;
            for n in rest {
                steps.push(move_step(n, last, far));
                last = n;
            }
            return done(steps);
        }
        if set.depends_on(at, forward) || effects_in(g, at).has_side_effects() {
            return None;
        }
        let mut steps = Vec::new();
        let mut last = at;
        for n in set.nodes {
            steps.push(move_step(n, last, side));
            last = n;
        }
        done(steps)
    }
}

fn move_step(node: NodeId, at: NodeId, side: Side) -> MoveStep {
    match side {
        Side::Before => MoveStep::Before { node, next: at },
        Side::After => MoveStep::After { node, prev: at },
    }
}

/// Nodes that must move together, and the memory that they read and write.
struct WorkingSet<'a> {
    db: &'a AliasDb,
    g: &'a Graph,
    nodes: Vec<NodeId>,
    reads: MemorySet,
    writes: MemorySet,
    /// Nodes of the block that use results of the set, directly or in nested blocks.
    users: NodeSet,
    /// Nodes that define operands of the set.
    sources: NodeSet,
    /// Whether a node of the set draws random numbers: the order of such nodes matters.
    random: bool,
    errors: ErrorEffects,
}

/// The order of a node that may end the run by an error, and a node whose effects the caller then observes, matters.
#[derive(Clone, Copy, Default)]
struct ErrorEffects {
    may_end: bool,
    is_event: bool,
}

impl ErrorEffects {
    /// The effects of a node and its nested nodes.
    fn of(db: &AliasDb, g: &Graph, node: NodeId) -> ErrorEffects {
        let mut all =
            ErrorEffects { may_end: effects_in(g, node).intersects(MAY_NOT_COMPLETE), is_event: false };
        with_nested(g, node, |n, v| all.is_event |= v.is_none() && is_event(db, n, g.effects(n)));
        all
    }

    fn conflicts(self, other: ErrorEffects) -> bool {
        self.may_end && other.is_event || self.is_event && other.may_end
    }
}

impl<'a> WorkingSet<'a> {
    fn new(db: &'a AliasDb, g: &'a Graph) -> Self {
        WorkingSet {
            db,
            g,
            nodes: Vec::new(),
            reads: MemorySet::new(db),
            writes: MemorySet::new(db),
            users: NodeSet::new(),
            sources: NodeSet::new(),
            random: false,
            errors: ErrorEffects::default(),
        }
    }

    fn add(&mut self, node: NodeId) {
        self.nodes.push(node);
        self.random |= effects_in(self.g, node).is_nondeterministic();
        let errors = ErrorEffects::of(self.db, self.g, node);
        self.errors.may_end |= errors.may_end;
        self.errors.is_event |= errors.is_event;
        let block = self.g.parent(node);
        for v in self.g.results(node) {
            for u in self.g.uses(v) {
                if let Some(user) = self.g.ancestor_in(u.user, block) {
                    self.users.insert(user);
                }
            }
        }
        let (db, g) = (self.db, self.g);
        with_nested(g, node, |n, v| match v {
            Some(v) => {
                self.reads.add(db, v);
                self.sources.insert(g.def(v));
            }
            None => self.writes.add_writes_of(db, n),
        });
    }

    /// Whether the order of a node and the set matters.
    fn depends_on(&self, node: NodeId, forward: bool) -> bool {
        if self.nodes.is_empty() {
            return false;
        }
        let data = if forward { self.users.contains(node) } else { self.sources.contains(node) };
        data || self.memory_conflict(node)
            || (self.random && effects_in(self.g, node).is_nondeterministic())
            || self.errors.conflicts(ErrorEffects::of(self.db, self.g, node))
    }

    fn memory_conflict(&self, node: NodeId) -> bool {
        if self.db.writes.rows.is_empty() {
            return false;
        }
        let mut conflict = false;
        with_nested(self.g, node, |n, v| {
            conflict |= match v {
                Some(v) => self.writes.intersects(self.db, v),
                None => self.reads.written_by(self.db, n) || self.writes.written_by(self.db, n),
            }
        });
        conflict
    }
}

/// Calls `f` for a node and all nested nodes: once with `None`, then with each operand. Operands of `prim::Return` are
/// included, because block outputs are reads.
fn with_nested(g: &Graph, node: NodeId, mut f: impl FnMut(NodeId, Option<ValueId>)) {
    let mut each = |n: NodeId| {
        f(n, None);
        g.operands(n).for_each(|v| f(n, Some(v)));
    };
    each(node);
    for block in g.blocks(node) {
        for step in g.walk(block) {
            match step {
                flambeau_ir::WalkStep::Node(n) => each(n),
                flambeau_ir::WalkStep::Leave(b) => each(g.ret(b)),
                _ => {}
            }
        }
    }
}
