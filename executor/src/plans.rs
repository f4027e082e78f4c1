//! The plans of one function: found by their preconditions, and remembered by the argument specs of calls.
//!
//! A plan is valid for calls whose arguments fit the declared types of its graph's inputs, its *precondition*. If the
//! precondition of a plan implies that of another one, the plan comes first in the list, so the first plan that fits a call is a
//! most specific one. The number of plans is bounded; the plan that was used least recently is evicted (LRU).
//!
//! The plan of a spec is cached in a table of fixed size, indexed by the hash, so that repeated calls compare words
//! only. The table is cleared when the plans change.

use crate::spec::CompleteArgumentSpec;
use flambeau_exec::fits_inputs;
use flambeau_ir::{Graph, IValue};
use std::sync::Arc;

/// Number of specs whose plan is remembered; a power of two.
const CACHED_SPECS: usize = 64;

/// A plan with a precondition.
pub(crate) trait HasPrecondition {
    /// Returns the graph whose inputs' types are the precondition.
    fn graph(&self) -> &Graph;

    /// Returns whether gradients are enabled in the calls that the plan is for.
    fn grad_enabled(&self) -> bool;

    /// Returns whether the plan was used since the last request.
    fn take_used(&self) -> bool;
}

/// Plans in order of implication. See the [module](self).
pub(crate) struct Plans<P> {
    plans: Vec<Entry<P>>,
    limit: usize,
    remembered: Vec<Option<(CompleteArgumentSpec, Option<Arc<P>>)>>,
    /// Number of lookups, the clock for `used`.
    lookups: u64,
}

struct Entry<P> {
    plan: Arc<P>,
    used: u64,
}

impl<P: HasPrecondition> Plans<P> {
    /// Creates a table of at most `limit` plans.
    pub(crate) fn new(limit: usize) -> Plans<P> {
        Plans { plans: Vec::new(), limit: limit.max(1), remembered: Vec::new(), lookups: 0 }
    }

    /// Returns the plans, the most specific ones first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<P>> {
        self.plans.iter().map(|entry| &entry.plan)
    }

    /// Returns the most specific plan that fits a call.
    pub(crate) fn find(
        &mut self,
        spec: &CompleteArgumentSpec,
        args: &[IValue],
        grad_enabled: bool,
    ) -> Option<Arc<P>> {
        if self.plans.is_empty() {
            return None;
        }
        self.lookups += 1;
        let slot = spec.hash() as usize % CACHED_SPECS;
        if let Some(Some((known, plan))) = self.remembered.get(slot)
            && !spec.is_truncated()
            && known == spec
        {
            let plan = plan.clone();
            if let Some(plan) = &plan {
                self.mark_used(plan);
            }
            return plan;
        }
        let fits = |plan: &P| plan.grad_enabled() == grad_enabled && fits_inputs(plan.graph(), args);
        let found = self.plans.iter().find(|entry| fits(&entry.plan)).map(|entry| Arc::clone(&entry.plan));
        if let Some(plan) = &found {
            self.mark_used(plan);
        }
        self.remembered.resize_with(CACHED_SPECS, || None);
        self.remembered[slot] = Some((spec.clone(), found.clone()));
        found
    }

    fn mark_used(&mut self, plan: &Arc<P>) {
        if let Some(entry) = self.plans.iter_mut().find(|entry| Arc::ptr_eq(&entry.plan, plan)) {
            entry.used = self.lookups;
        }
    }

    /// Adds a plan, in place of those with the same precondition.
    pub(crate) fn insert(&mut self, plan: Arc<P>) {
        // Calls that a cache answers do not look up their plan here.
        self.lookups += 1;
        self.plans
            .iter_mut()
            .filter(|entry| entry.plan.take_used())
            .for_each(|entry| entry.used = self.lookups);
        self.plans.retain(|entry| !(implies(&*entry.plan, &*plan) && implies(&*plan, &*entry.plan)));
        if self.plans.len() >= self.limit {
            let oldest = self.plans.iter().enumerate().min_by_key(|(_, entry)| entry.used);
            if let Some(at) = oldest.map(|(at, _)| at) {
                self.plans.remove(at);
            }
        }
        let at = self.plans.iter().position(|entry| implies(&*plan, &*entry.plan));
        let at = at.unwrap_or(self.plans.len());
        self.plans.insert(at, Entry { plan, used: self.lookups });
        self.remembered.clear();
    }

    /// Removes a plan.
    pub(crate) fn remove(&mut self, plan: &Arc<P>) {
        self.plans.retain(|entry| !Arc::ptr_eq(&entry.plan, plan));
        self.remembered.clear();
    }
}

/// Whether every call that fits `a` fits `b`. Types of inputs that are not tensors either agree or say that an optional
/// is present or absent, which `b` may leave open.
fn implies<P: HasPrecondition>(a: &P, b: &P) -> bool {
    let (x, y) = (a.graph(), b.graph());
    let pairs = || x.inputs().map(|v| x.ty(v)).zip(y.inputs().map(|v| y.ty(v)));
    a.grad_enabled() == b.grad_enabled()
        && pairs().all(|(s, t)| match (s.as_tensor(), t.unwrap_optional().as_tensor()) {
            (Some(s), Some(t)) => s.implies(t),
            _ => s == t || t.optional_elem().is_some(),
        })
        && keeps_equalities(pairs())
}

/// Whether sizes that have the same symbol in the second type of the pairs are equal by the first.
fn keeps_equalities(pairs: impl Iterator<Item = (flambeau_ir::Type, flambeau_ir::Type)>) -> bool {
    use flambeau_ir::types::Dim;
    let mut meaning: Vec<(i64, Dim)> = Vec::new();
    for (s, t) in pairs {
        let (Some(s), Some(t)) = (s.as_tensor(), t.unwrap_optional().as_tensor()) else { continue };
        let sizes = s.sizes.iter().flatten().zip(t.sizes.iter().flatten());
        for (&own, &other) in sizes {
            let Dim::Sym(symbol) = other else { continue };
            match meaning.iter().find(|(known, _)| *known == symbol) {
                Some(&(_, first)) if first != own || own == Dim::Unknown => return false,
                Some(_) => {}
                None => meaning.push((symbol, own)),
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_ir::text::parse_graph;
    use flambeau_ir::{Registry, Source};
    use flambeau_tensor::Tensor;

    struct Plan(Graph);

    impl HasPrecondition for Plan {
        fn graph(&self) -> &Graph {
            &self.0
        }

        fn grad_enabled(&self) -> bool {
            true
        }

        fn take_used(&self) -> bool {
            false
        }
    }

    fn plan(inputs: &str) -> Arc<Plan> {
        let text = format!("graph({inputs}):\n  return ()\n");
        Arc::new(Plan(parse_graph(&Source::new("test.ir", &text), &Registry::empty()).unwrap()))
    }

    fn inputs(plan: &Plan) -> Vec<String> {
        plan.0.inputs().map(|v| plan.0.ty(v).to_string()).collect()
    }

    fn tensor(sizes: &[i64]) -> IValue {
        let n = sizes.iter().product::<i64>() as usize;
        IValue::Tensor(Tensor::from_vec(vec![0.0f32; n], sizes).unwrap())
    }

    fn find(plans: &mut Plans<Plan>, args: &[IValue]) -> Option<Vec<String>> {
        plans.find(&CompleteArgumentSpec::of(args, true), args, true).map(|plan| inputs(&plan))
    }

    #[test]
    fn the_most_specific_plan_that_fits_runs() {
        let mut plans = Plans::new(8);
        plans.insert(plan("%x : Float(*, *)"));
        plans.insert(plan("%x : Float(2, 3)"));
        plans.insert(plan("%x : Float(2, *)"));
        assert_eq!(find(&mut plans, &[tensor(&[2, 3])]).unwrap(), ["Float(2, 3)"]);
        assert_eq!(find(&mut plans, &[tensor(&[2, 4])]).unwrap(), ["Float(2, *)"]);
        assert_eq!(find(&mut plans, &[tensor(&[5, 4])]).unwrap(), ["Float(*, *)"]);
        assert_eq!(find(&mut plans, &[tensor(&[5])]), None);
        // Again, from the table.
        assert_eq!(find(&mut plans, &[tensor(&[2, 3])]).unwrap(), ["Float(2, 3)"]);
        assert_eq!(find(&mut plans, &[tensor(&[5])]), None);
    }

    #[test]
    fn symbols_are_equalities() {
        let mut plans = Plans::new(8);
        plans.insert(plan("%x : Float(SS(-2), SS(-2))"));
        assert!(find(&mut plans, &[tensor(&[3, 3])]).is_some());
        assert!(find(&mut plans, &[tensor(&[3, 4])]).is_none());
        assert!(implies(&*plan("%x : Float(2, 2)"), &*plan("%x : Float(SS(-2), SS(-2))")));
        assert!(!implies(&*plan("%x : Float(2, 3)"), &*plan("%x : Float(SS(-2), SS(-2))")));
        assert!(!implies(&*plan("%x : Float(SS(-2), SS(-3))"), &*plan("%x : Float(SS(-2), SS(-2))")));
    }

    #[test]
    fn optionals_are_present_or_absent() {
        let mut plans = Plans::new(8);
        plans.insert(plan("%x : NoneType"));
        plans.insert(plan("%x : int"));
        assert_eq!(find(&mut plans, &[IValue::None]).unwrap(), ["NoneType"]);
        assert_eq!(find(&mut plans, &[IValue::Int(2)]).unwrap(), ["int"]);
    }

    #[test]
    fn the_least_recently_used_plan_is_evicted() {
        let mut plans = Plans::new(2);
        plans.insert(plan("%x : Float(1)"));
        plans.insert(plan("%x : Float(2)"));
        assert!(find(&mut plans, &[tensor(&[1])]).is_some());
        plans.insert(plan("%x : Float(3)"));
        assert!(find(&mut plans, &[tensor(&[1])]).is_some());
        assert!(find(&mut plans, &[tensor(&[2])]).is_none());
        assert!(find(&mut plans, &[tensor(&[3])]).is_some());
    }

    #[test]
    fn an_equal_precondition_replaces_a_plan() {
        let mut plans = Plans::new(8);
        plans.insert(plan("%x : Float(1)"));
        plans.insert(plan("%x : Float(1)"));
        assert_eq!(plans.iter().count(), 1);
    }
}
