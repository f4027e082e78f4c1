//! Checks that no rewrite observably changes which values share memory. The engine imposes this condition on every
//! rewrite.
//!
//! The alias analysis answers queries for pairs of values of the original program. Rewrites of one plan build on each
//! other, so [`Sharing`] tracks their effect: the replacement of each value, and which values newly share memory.

use crate::memory;
use crate::patch::Planned;
use flambeau_analysis::AliasDb;
use flambeau_ir::{Graph, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// The values that a value may share memory with. Empty for new memory.
pub(crate) type Bases = SmallVec<[ValueId; 2]>;

pub(crate) struct Sharing<'a> {
    graph: &'a Graph,
    db: &'a AliasDb,
    becomes: HashMap<ValueId, (Planned, Bases), FxBuildHasher>,
    planned: HashMap<Planned, Bases, FxBuildHasher>,
    /// Values that newly share memory with a value. Only values that escape the graph or are written are recorded. A
    /// second such value is rejected, so the lists are short.
    joined: HashMap<ValueId, SmallVec<[ValueId; 1]>, FxBuildHasher>,
}

impl<'a> Sharing<'a> {
    pub(crate) fn new(graph: &'a Graph, db: &'a AliasDb) -> Self {
        Sharing {
            graph,
            db,
            becomes: HashMap::default(),
            planned: HashMap::default(),
            joined: HashMap::default(),
        }
    }

    /// The value of the plan that replaces a value of the program, or the value itself.
    pub(crate) fn resolve(&self, value: ValueId) -> Planned {
        self.becomes.get(&value).map_or(Planned::Value(value), |b| b.0)
    }

    /// Records that a planned value is a view of the memory of others.
    pub(crate) fn plan_view(&mut self, planned: Planned, bases: Bases) {
        self.planned.insert(planned, bases);
    }

    /// Removes a planned value that is no longer part of the plan.
    #[cfg(feature = "egraph")]
    pub(crate) fn forget(&mut self, planned: Planned) {
        self.planned.remove(&planned);
    }

    /// The values that a value may share memory with.
    pub(crate) fn bases(&self, of: Planned) -> Bases {
        let Planned::Value(value) = of else { return self.planned.get(&of).cloned().unwrap_or_default() };
        let g = self.graph;
        let mut found = Bases::new();
        let mut stack: SmallVec<[ValueId; 4]> = SmallVec::from_slice(&[value]);
        // Chains of views are short; beyond the budget the view itself counts as a base.
        let mut budget = 1_000;
        while let Some(v) = stack.pop() {
            if let Some((_, bases)) = self.becomes.get(&v) {
                let new = bases.is_empty().then_some(v);
                for &b in bases.iter().chain(&new) {
                    if !found.contains(&b) {
                        found.push(b);
                    }
                }
                continue;
            }
            let def = g.def(v);
            let view = budget > 0 && g.op(def).row().is_some() && g.effects(def).result_aliases();
            budget -= 1;
            if view {
                stack.extend(g.operands(def).filter(|&o| g.ty(o).is_mutable()));
            } else if !found.contains(&v) {
                found.push(v);
            }
        }
        found
    }

    /// Replaces `old` by `new` if the change of sharing is unobservable. Returns whether it did.
    pub(crate) fn replace_if_unobservable(&mut self, old: ValueId, new: Planned) -> bool {
        if !self.graph.ty(old).is_mutable() {
            self.becomes.insert(old, (new, Bases::new()));
            return true;
        }
        let (was, is) = (self.bases(Planned::Value(old)), self.bases(new));
        let differs: Bases = was
            .iter()
            .filter(|v| !is.contains(v))
            .chain(is.iter().filter(|v| !was.contains(v)))
            .copied()
            .collect();
        if !differs.iter().filter(|&&v| v != old).all(|&v| self.groups_may_share(old, v)) {
            return false;
        }
        let share = |a: ValueId, b: ValueId| memory::may_share(self.db, self.graph, a, b);
        let leaving: SmallVec<[ValueId; 4]> = self.group(old).into_iter().filter(|&v| !share(v, v)).collect();
        for &base in is.iter().filter(|&&b| b != old) {
            let list = self.joined.entry(base).or_default();
            for &v in &leaving {
                if !list.contains(&v) {
                    list.push(v);
                }
            }
        }
        self.becomes.insert(old, (new, is));
        true
    }

    fn group(&self, value: ValueId) -> SmallVec<[ValueId; 4]> {
        let joined = self.joined.get(&value).map_or(&[] as &[ValueId], SmallVec::as_slice);
        std::iter::once(value).chain(joined.iter().copied()).collect()
    }

    /// Whether two values, and all values that share memory with them, may share memory with each other.
    fn groups_may_share(&self, a: ValueId, b: ValueId) -> bool {
        let (left, right) = (self.group(a), self.group(b));
        left.iter().all(|&x| right.iter().all(|&y| memory::may_share(self.db, self.graph, x, y)))
    }
}
