//! Checks that alias analysis predicted all observed sharing and writes.

use super::{CheckOutcome, Oracle};
use crate::case::Case;
use crate::observe::host;
use crate::sharing::Sharing;
use flambeau_analysis::AliasDb;
use flambeau_exec::reference;
use flambeau_ir::{At, Graph, IValue, NodeId, Prim, ValueId};
use flambeau_tensor::Tensor;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Compares observed sharing and writes with [`AliasDb`].
///
/// A copy of the program passes every value to an observer when it is defined, in loops in each iteration. At each such
/// point the observer inspects all values seen so far. Values with the same storage must have been predicted to share
/// it (alias or, for containers, contain an alias). A storage whose version has changed was written by the node that
/// ran last, which must have been predicted to write each value with this storage. The prediction is for the program
/// without the observer. Arguments and constants share memory in every form of [`Sharing`].
pub struct AliasTruth;

impl Oracle for AliasTruth {
    fn name(&self) -> String {
        "alias".into()
    }

    fn check(&self, case: &Case) -> CheckOutcome {
        let mut outcome = CheckOutcome::Rejected("the program fails");
        for sharing in Sharing::ALL {
            let Some(shared) = sharing.apply(case) else { continue };
            match check(&shared) {
                CheckOutcome::Failed(why) => return CheckOutcome::Failed(format!("{sharing:?}: {why}")),
                CheckOutcome::Checked => outcome = CheckOutcome::Checked,
                _ => {}
            }
        }
        outcome
    }
}

fn check(case: &Case) -> CheckOutcome {
    let g = &case.graph;
    let alias = AliasDb::new(g);
    let (open, shows) = observed(g);
    let watch = Arc::new(Mutex::new(Watch::default()));
    let mut host = host();
    let sees = Arc::clone(&watch);
    host.set_observer(Some(Box::new(move |_: &Graph, node: NodeId, values: &[IValue]| {
        if let Some((after, shown)) = shows.get(&node) {
            sees.lock().unwrap_or_else(PoisonError::into_inner).observe_values(*after, shown, values);
        }
    })));
    let run = reference::run(&Arc::new(open), case.inputs.clone(), &*case.unit, &mut host);
    if run.is_err() {
        return CheckOutcome::Rejected("the program fails");
    }
    let watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
    match watch.unpredicted(g, &alias) {
        Some(why) => CheckOutcome::Failed(format!("{why}\n{g}\n{}", alias.dump(g))),
        None => CheckOutcome::Checked,
    }
}

/// Observer nodes: the node of the program that precedes each, and the observed values.
type ObserverNodes = BTreeMap<NodeId, (Option<NodeId>, Vec<ValueId>)>;

/// Returns the program with a profiling node after every node and at the start of every block. Ids of the program are
/// unchanged.
fn observed(g: &Graph) -> (Graph, ObserverNodes) {
    let mut open = g.clone();
    let mut shows = ObserverNodes::new();
    let mutable = |values: &mut dyn Iterator<Item = ValueId>| -> Vec<ValueId> {
        values.filter(|&v| g.ty(v).is_mutable()).collect()
    };
    let mut places = vec![(At::start(g.root()), None, mutable(&mut g.inputs()))];
    for node in g.nodes_deep() {
        places.push((At::after(node), Some(node), mutable(&mut g.results(node))));
        for block in g.blocks(node) {
            places.push((At::start(block), None, mutable(&mut g.block_inputs(block))));
        }
    }
    for (at, after, values) in places {
        let node = open.edit().at(at).node(Prim::Profile, &values, &[]);
        shows.insert(node, (after, values));
    }
    (open, shows)
}

/// Observations of a run.
#[derive(Default)]
struct Watch {
    /// Values at the time of their definition.
    seen: Vec<(ValueId, IValue)>,
    /// Versions of storages at the last observation, by address, with a tensor that keeps the storage alive: a value may
    /// lose its elements, and their addresses must not be reused.
    versions: BTreeMap<usize, (u64, Tensor)>,
    sharing: BTreeSet<(ValueId, ValueId)>,
    writes: BTreeSet<(NodeId, ValueId)>,
    /// Number of observations.
    looks: usize,
}

/// Maximum number of values observed in one run: the cost of an observation is proportional to it.
const MAX_OBSERVED_VALUES: usize = 300;

/// Maximum number of observations in one run. An endless loop would be observed until its fuel is used up, without new
/// facts.
const MAX_OBSERVATIONS: usize = 2_000;

impl Watch {
    fn observe_values(&mut self, after: Option<NodeId>, shown: &[ValueId], values: &[IValue]) {
        self.looks += 1;
        if self.looks > MAX_OBSERVATIONS {
            return;
        }
        for (&v, value) in shown.iter().zip(values) {
            if self.seen.len() < MAX_OBSERVED_VALUES {
                self.seen.push((v, value.clone()));
            }
        }
        let mut showing: BTreeMap<usize, (Tensor, BTreeSet<ValueId>)> = BTreeMap::new();
        for (v, value) in &self.seen {
            value.visit_tensors(|tensor: &Tensor| {
                let address = tensor.storage().address();
                showing.entry(address).or_insert_with(|| (tensor.clone(), BTreeSet::new())).1.insert(*v);
            });
        }
        for (address, (tensor, values)) in showing {
            let version = tensor.version();
            for &a in &values {
                self.sharing.extend(values.range(a..).skip(1).map(|&b| (a, b)));
            }
            let before = self.versions.insert(address, (version, tensor));
            if let Some(node) = after.filter(|_| before.is_some_and(|(before, _)| before != version)) {
                self.writes.extend(values.iter().map(|&v| (node, v)));
            }
        }
    }

    /// Returns a description of the first observation that was not predicted.
    fn unpredicted(&self, g: &Graph, alias: &AliasDb) -> Option<String> {
        let name = |v: ValueId| format!("%{}", g.name(v));
        for &(a, b) in &self.sharing {
            let tensors = g.ty(a).is_tensor() && g.ty(b).is_tensor();
            if if tensors { !alias.may_alias(a, b) } else { !alias.may_contain_alias(a, b) } {
                return Some(format!("{} and {} share a storage, which is not predicted", name(a), name(b)));
            }
        }
        for &(node, v) in &self.writes {
            if !alias.has_writers(v) || !alias.writes_to(g, node, &[v]) {
                return Some(format!("{} writes {}, which is not predicted", g.op_name(node), name(v)));
            }
        }
        None
    }
}
