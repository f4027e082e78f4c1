//! Cache of the analyses of one graph, accessed by type and always up to date.
//!
//! [`Analyses::get`] compares the revision of an analysis with the journal's and passes the changes in between to
//! [`Analysis::update`]. It rebuilds the analysis if the update fails or the journal no longer reaches back that far.
//! The cache counts how often each analysis was built, kept and rebuilt, so the report shows a pass that forces a
//! rebuild after every edit.
//!
//! A cache belongs to the graph it was first used with, until [`Analyses::clear`]; any other graph is rejected, even a
//! clone. The returned references borrow the graph, so no edit can make them stale.

use crate::analysis::{Analysis, AnalysisCx, ConstantOwner, Update};
use flambeau_ir::{Change, Graph, Revision, Stale};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::any::{Any, TypeId};
use std::sync::Arc;

type Check = fn(&mut Analyses, &Graph) -> Result<(), String>;

struct Slot {
    /// `None` while the analysis is being built.
    value: Option<Arc<dyn Any + Send + Sync>>,
    /// The revision that the analysis is valid for.
    revision: Revision,
    check: Check,
    stats: Stats,
}

/// Counters of one analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The analysis.
    pub name: &'static str,
    /// Number of builds for the first time or after [`Analyses::clear`].
    pub built: u64,
    /// Number of successful updates.
    pub kept: u64,
    /// Number of rebuilds forced by edits.
    pub rebuilt: u64,
}

/// The analyses of one graph.
///
/// Returned references borrow the graph. Code that requests an analysis again after an edit compiles:
///
/// ```
/// use flambeau_analysis::{AliasDb, Analyses};
/// use flambeau_ir::{Graph, Registry, Type};
///
/// let mut graph = Graph::new(Registry::empty());
/// let input = graph.edit().add_input(Type::TENSOR);
/// let mut analyses = Analyses::new();
/// let written = analyses.get::<AliasDb>(&graph).has_writers(input);
/// graph.edit().add_output(input);
/// assert_eq!(analyses.get::<AliasDb>(&graph).has_writers(input), written);
/// ```
///
/// Code that holds a reference across an edit, where the analysis could be stale, does not compile:
///
/// ```compile_fail,E0502
/// use flambeau_analysis::{AliasDb, Analyses};
/// use flambeau_ir::{Graph, Registry, Type};
///
/// let mut graph = Graph::new(Registry::empty());
/// let input = graph.edit().add_input(Type::TENSOR);
/// let mut analyses = Analyses::new();
/// let alias = analyses.get::<AliasDb>(&graph);
/// graph.edit().add_output(input); // the graph is borrowed by `alias`
/// let _ = alias.has_writers(input);
/// ```
#[derive(Default)]
pub struct Analyses {
    slots: HashMap<TypeId, Slot, FxBuildHasher>,
    /// Analyses in order of first use.
    order: Vec<TypeId>,
    /// The revision of the cache's graph at first use.
    of: Option<Revision>,
    owner: ConstantOwner,
}

impl Analyses {
    /// Creates an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the constants whose memory belongs to the graph alone. Drops all analyses built so far.
    pub fn set_constant_owner(&mut self, owner: ConstantOwner) {
        self.clear();
        self.owner = owner;
    }

    pub(crate) fn constant_owner(&self) -> &ConstantOwner {
        &self.owner
    }

    /// Binds the cache to a graph, if it is not bound yet.
    ///
    /// # Errors
    /// Returns [`Stale`] if the cache is bound to another graph (a clone is another graph).
    pub fn bind(&mut self, graph: &Graph) -> Result<(), Stale> {
        let now = graph.journal().revision();
        let made = *self.of.get_or_insert(now);
        if made.graph() == now.graph() { Ok(()) } else { Err(Stale { made, now }) }
    }

    /// [`Analyses::with`] for a graph that may not be the cache's.
    ///
    /// # Errors
    /// Returns [`Stale`] if the cache is bound to another graph; the cache is then unchanged.
    ///
    /// ```
    /// use flambeau_analysis::{AliasDb, Analyses};
    /// use flambeau_ir::{Graph, Registry};
    ///
    /// let graph = Graph::new(Registry::empty());
    /// let clone = graph.clone();
    /// let mut analyses = Analyses::new();
    /// assert!(analyses.try_with::<AliasDb>(&graph).is_ok());
    /// assert!(analyses.try_with::<AliasDb>(&clone).is_err());
    /// ```
    pub fn try_with<'a, S: AnalysisSet>(
        &'a mut self,
        graph: &'a Graph,
    ) -> Result<(&'a Graph, S::Refs<'a>), Stale> {
        self.bind(graph)?;
        Ok(self.with::<S>(graph))
    }

    /// Returns an analysis, up to date with the graph.
    ///
    /// # Panics
    /// As [`Analyses::sync`].
    pub fn get<'a, A: Analysis>(&'a mut self, graph: &'a Graph) -> &'a A {
        self.sync::<A>(graph);
        self.read::<A>()
    }

    /// Returns several analyses, up to date with the graph: `with::<(AliasDb, Shapes)>(&graph)`.
    ///
    /// # Panics
    /// As [`Analyses::sync`].
    pub fn with<'a, S: AnalysisSet>(&'a mut self, graph: &'a Graph) -> (&'a Graph, S::Refs<'a>) {
        S::sync(self, graph);
        (graph, S::refs(self))
    }

    /// Returns an analysis as a shared handle. While the handle exists, edits cause a rebuild instead of an update.
    ///
    /// # Panics
    /// As [`Analyses::sync`].
    pub fn shared<A: Analysis>(&mut self, graph: &Graph) -> Arc<A> {
        self.sync::<A>(graph);
        self.value::<A>().clone().downcast::<A>().expect("invariant: a slot holds its own analysis")
    }

    /// Updates or builds an analysis for the current graph.
    ///
    /// # Panics
    /// Panics if the cache belongs to another graph, for which [`Analyses::bind`] and [`Analyses::try_with`] return an
    /// error.
    pub fn sync<A: Analysis>(&mut self, graph: &Graph) {
        if let Err(stale) = self.bind(graph) {
            panic!("the analyses were {stale}");
        }
        let id = TypeId::of::<A>();
        let now = graph.journal().revision();
        let Some(slot) = self.slots.get_mut(&id) else {
            self.order.push(id);
            let stats = Stats { name: A::NAME, built: 1, kept: 0, rebuilt: 0 };
            self.slots.insert(id, Slot { value: None, revision: now, check: check::<A>, stats });
            return self.rebuild::<A>(graph);
        };
        if slot.revision == now && slot.value.is_some() {
            return;
        }
        let since = std::mem::replace(&mut slot.revision, now);
        let Some(value) = slot.value.take() else {
            slot.stats.built += 1;
            return self.rebuild::<A>(graph);
        };
        match self.follow::<A>(graph, value, since) {
            Some(value) => {
                let slot = self.slot_mut(id);
                slot.stats.kept += 1;
                slot.value = Some(value);
            }
            None => {
                self.slot_mut(id).stats.rebuilt += 1;
                self.rebuild::<A>(graph);
            }
        }
    }

    /// Updates an analysis for the edits since a revision. Returns `None` if it must be rebuilt.
    fn follow<A: Analysis>(
        &mut self,
        graph: &Graph,
        value: Arc<dyn Any + Send + Sync>,
        since: Revision,
    ) -> Option<Arc<dyn Any + Send + Sync>> {
        let journal = graph.journal();
        let changes: Vec<Change> = journal.since(since)?.copied().collect();
        if changes.iter().all(Change::is_metadata) {
            return Some(value);
        }
        let mut value = value.downcast::<A>().expect("invariant: a slot holds its own analysis");
        let cx = AnalysisCx::new(graph, self);
        match Arc::get_mut(&mut value)?.update(&cx, &changes) {
            Update::Kept => Some(value),
            Update::Rebuild => None,
        }
    }

    fn rebuild<A: Analysis>(&mut self, graph: &Graph) {
        let fresh = Arc::new(A::build(&AnalysisCx::new(graph, self)));
        self.slot_mut(TypeId::of::<A>()).value = Some(fresh);
    }

    fn slot_mut(&mut self, id: TypeId) -> &mut Slot {
        self.slots.get_mut(&id).expect("invariant: an analysis in use has a slot")
    }

    fn value<A: Analysis>(&self) -> &Arc<dyn Any + Send + Sync> {
        let slot = self.slots.get(&TypeId::of::<A>()).expect("invariant: an analysis in use has a slot");
        slot.value.as_ref().expect("analyses depend on each other cyclically")
    }

    fn read<A: Analysis>(&self) -> &A {
        self.value::<A>().downcast_ref::<A>().expect("invariant: a slot holds its own analysis")
    }

    /// Drops all analyses, for use with another graph. The counters remain.
    pub fn clear(&mut self) {
        self.of = None;
        for id in &self.order {
            if let Some(slot) = self.slots.get_mut(id) {
                slot.value = None;
            }
        }
    }

    /// Returns the counters of each analysis, in order of first use.
    pub fn stats(&self) -> impl Iterator<Item = Stats> + '_ {
        self.order.iter().map(|id| self.slots[id].stats)
    }

    /// Updates every analysis, builds a new instance of each, and compares the two: this detects wrong updates.
    ///
    /// # Errors
    /// Returns one sentence per analysis that contradicts the new instance.
    pub fn check(&mut self, graph: &Graph) -> Result<(), Vec<String>> {
        let checks: Vec<Check> = self.order.iter().map(|id| self.slots[id].check).collect();
        let errors: Vec<String> = checks.into_iter().filter_map(|check| check(self, graph).err()).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

fn check<A: Analysis>(analyses: &mut Analyses, graph: &Graph) -> Result<(), String> {
    let current = analyses.shared::<A>(graph);
    let cx = AnalysisCx::new(graph, analyses);
    let fresh = A::build(&cx);
    current.agrees(&cx, &fresh).map_err(|why| format!("{}: {why}", A::NAME))
}

/// One analysis, or a tuple of several, for [`Analyses::with`].
pub trait AnalysisSet {
    /// Shared references to all analyses of the set.
    type Refs<'a>;

    /// Updates all analyses of the set.
    fn sync(analyses: &mut Analyses, graph: &Graph);

    /// Returns references to all analyses of the set, which must be up to date.
    fn refs(analyses: &Analyses) -> Self::Refs<'_>;
}

impl<A: Analysis> AnalysisSet for A {
    type Refs<'a> = &'a A;

    fn sync(analyses: &mut Analyses, graph: &Graph) {
        analyses.sync::<A>(graph);
    }

    fn refs(analyses: &Analyses) -> &A {
        analyses.read::<A>()
    }
}

impl<A: Analysis, B: Analysis> AnalysisSet for (A, B) {
    type Refs<'a> = (&'a A, &'a B);

    fn sync(analyses: &mut Analyses, graph: &Graph) {
        analyses.sync::<A>(graph);
        analyses.sync::<B>(graph);
    }

    fn refs(analyses: &Analyses) -> (&A, &B) {
        (analyses.read::<A>(), analyses.read::<B>())
    }
}

impl<A: Analysis, B: Analysis, C: Analysis> AnalysisSet for (A, B, C) {
    type Refs<'a> = (&'a A, &'a B, &'a C);

    fn sync(analyses: &mut Analyses, graph: &Graph) {
        analyses.sync::<A>(graph);
        analyses.sync::<B>(graph);
        analyses.sync::<C>(graph);
    }

    fn refs(analyses: &Analyses) -> (&A, &B, &C) {
        (analyses.read::<A>(), analyses.read::<B>(), analyses.read::<C>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_ir::{IValue, Registry};

    struct Count(usize);
    struct Twice(usize);
    struct Stubborn(usize);

    impl Analysis for Count {
        const NAME: &'static str = "count";

        fn build(cx: &AnalysisCx<'_>) -> Self {
            Count(cx.graph().nodes_deep().count())
        }

        fn update(&mut self, _: &AnalysisCx<'_>, changes: &[Change]) -> Update {
            for change in changes {
                match change {
                    Change::Inserted(_) => self.0 += 1,
                    Change::Metadata => {}
                    _ => return Update::Rebuild,
                }
            }
            Update::Kept
        }

        fn agrees(&self, _: &AnalysisCx<'_>, fresh: &Self) -> Result<(), String> {
            if self.0 == fresh.0 { Ok(()) } else { Err("miscounted".into()) }
        }
    }

    impl Analysis for Twice {
        const NAME: &'static str = "twice";

        fn build(cx: &AnalysisCx<'_>) -> Self {
            Twice(2 * cx.get::<Count>().0)
        }
    }

    impl Analysis for Stubborn {
        const NAME: &'static str = "stubborn";

        fn build(cx: &AnalysisCx<'_>) -> Self {
            Stubborn(cx.graph().node_count())
        }

        fn update(&mut self, _: &AnalysisCx<'_>, _: &[Change]) -> Update {
            Update::Kept
        }

        fn agrees(&self, _: &AnalysisCx<'_>, fresh: &Self) -> Result<(), String> {
            if self.0 == fresh.0 { Ok(()) } else { Err("stale".into()) }
        }
    }

    #[test]
    fn updates_follow_the_journal() {
        let mut g = Graph::new(Registry::empty());
        let mut all = Analyses::new();
        assert_eq!(all.with::<(Count, Twice)>(&g).1.1.0, 0);
        let v = g.edit().constant(IValue::Int(1));
        g.edit().set_name(v, "one");
        let (_, (count, twice)) = all.with::<(Count, Twice)>(&g);
        assert_eq!((count.0, twice.0), (1, 2));
        let node = g.def(v);
        g.edit().erase(node);
        assert_eq!(all.get::<Count>(&g).0, 0);
        let stats: Vec<_> = all.stats().collect();
        assert_eq!(stats[0], Stats { name: "count", built: 1, kept: 1, rebuilt: 1 });
        assert_eq!(stats[1], Stats { name: "twice", built: 1, kept: 0, rebuilt: 1 });
    }

    #[test]
    fn checks_detect_stale_analyses() {
        let mut g = Graph::new(Registry::empty());
        let mut all = Analyses::new();
        all.get::<Count>(&g);
        all.get::<Stubborn>(&g);
        assert_eq!(all.check(&g), Ok(()));
        g.edit().constant(IValue::Int(1));
        assert_eq!(all.check(&g), Err(vec!["stubborn: stale".to_owned()]));
    }

    #[test]
    fn a_wrapped_journal_rebuilds() {
        let mut g = Graph::new(Registry::empty());
        let mut all = Analyses::new();
        all.get::<Count>(&g);
        for _ in 0..=flambeau_ir::Journal::CAPACITY {
            g.edit().constant(IValue::Int(1));
        }
        assert_eq!(all.get::<Count>(&g).0, flambeau_ir::Journal::CAPACITY + 1);
        assert_eq!(all.stats().next().unwrap().rebuilt, 1);
    }
}
