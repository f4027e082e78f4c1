//! Moving a node next to another one of its block without changing what the program does, as a plan made on a borrowed
//! graph. Moves between blocks are in `motion.rs`.
//!
//! Between the node and where it goes, everything that depends on it (uses its results, gives its operands, writes what
//! it reads or reads what it writes) has to come along, in order; that working set must in the end not depend on the
//! node it is moved past. Nodes with side effects neither move nor are passed.

use super::{AliasDb, MemorySet};
use crate::effects::effects_in;
use flambeau_ir::{Editor, Graph, NodeId, NodeSet, Revision, Stale, ValueId};

/// One relinking of a [`MovePlan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveStep {
    /// Put `node` directly before `next`.
    Before {
        /// What is moved.
        node: NodeId,
        /// What it comes before.
        next: NodeId,
    },
    /// Put `node` directly after `prev`.
    After {
        /// What is moved.
        node: NodeId,
        /// What it comes after.
        prev: NodeId,
    },
}

impl MoveStep {
    /// The node that is moved.
    #[must_use]
    pub fn node(self) -> NodeId {
        match self {
            MoveStep::Before { node, .. } | MoveStep::After { node, .. } => node,
        }
    }

    /// Relinks the node.
    pub fn apply(self, editor: &mut Editor<'_>) {
        match self {
            MoveStep::Before { node, next } => editor.move_before(node, next),
            MoveStep::After { node, prev } => editor.move_after(node, prev),
        }
    }
}

/// A move that keeps the program's meaning, to be applied to the graph at the revision it was made for.
#[derive(Clone, Debug)]
pub struct MovePlan {
    /// The revision it was made for.
    pub revision: Revision,
    /// The relinkings, in order.
    pub steps: Vec<MoveStep>,
}

impl MovePlan {
    /// Carries the plan out.
    ///
    /// # Errors
    /// If the graph is another one, or has changed since the plan was made; nothing is done then.
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
    /// How to move `node` directly before `at`; `None` if that could change what the program does. Both must stand in
    /// one block. O(nodes between them).
    #[must_use]
    pub fn plan_move_before(&self, graph: &Graph, node: NodeId, at: NodeId) -> Option<MovePlan> {
        self.plan(graph, node, at, Side::Before)
    }

    /// How to move `node` directly after `at`; see [`AliasDb::plan_move_before`].
    #[must_use]
    pub fn plan_move_after(&self, graph: &Graph, node: NodeId, at: NodeId) -> Option<MovePlan> {
        self.plan(graph, node, at, Side::After)
    }

    /// How to bring a node next to the one that uses it: `producer` directly before `consumer`, or, where that cannot
    /// be, `consumer` directly after `producer`.
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
            // The node goes to this side of `at`, what depends on it past it.
            let rest: Vec<NodeId> = set.nodes[1..].to_vec();
            let mut set = WorkingSet::new(self, g);
            rest.iter().for_each(|&n| set.add(n));
            if !rest.is_empty() && (set.depends_on(at, forward) || effects_in(g, at).has_side_effects()) {
                return None;
            }
            let mut steps = vec![place(node, at, side)];
            let far = if side == Side::Before { Side::After } else { Side::Before };
            let mut last = at;
            for n in rest {
                steps.push(place(n, last, far));
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
            steps.push(place(n, last, side));
            last = n;
        }
        done(steps)
    }
}

fn place(node: NodeId, at: NodeId, side: Side) -> MoveStep {
    match side {
        Side::Before => MoveStep::Before { node, next: at },
        Side::After => MoveStep::After { node, prev: at },
    }
}

/// Nodes that have to move together, and the memory they read and write.
struct WorkingSet<'a> {
    db: &'a AliasDb,
    g: &'a Graph,
    nodes: Vec<NodeId>,
    reads: MemorySet,
    writes: MemorySet,
    /// Nodes of the block that use what the set makes, themselves or nested.
    users: NodeSet,
    /// Nodes that make what the set uses.
    sources: NodeSet,
    /// Whether one draws random numbers: the order of those that do matters.
    random: bool,
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
        }
    }

    fn add(&mut self, node: NodeId) {
        self.nodes.push(node);
        self.random |= effects_in(self.g, node).is_nondeterministic();
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
        data || self.memory_conflict(node) || (self.random && effects_in(self.g, node).is_nondeterministic())
    }

    fn memory_conflict(&self, node: NodeId) -> bool {
        if self.db.writes.rows.is_empty() {
            return false;
        }
        let mut conflict = false;
        with_nested(self.g, node, |n, v| {
            conflict |= match v {
                Some(v) => self.writes.meets(self.db, v),
                None => self.reads.written_by(self.db, n) || self.writes.written_by(self.db, n),
            }
        });
        conflict
    }
}

/// Calls `f` for a node and all nested in it: once with `None`, then with each operand (those of `prim::Return` too,
/// since what a branch gives out is read).
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
