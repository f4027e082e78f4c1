//! Elimination of guards is sound: in generated programs with a guard of every use of a tensor, no guard that
//! `eliminate_guards` removes would fail in a run in which all guards so far hold.
//!
//! The types of the guards are those of one run. Then the program runs on other arguments, with removed guards replaced by
//! profiling nodes whose values are compared with the guarded types. Every other program declares the types of its
//! inputs, so that most guards follow; the arguments of the rest also vary in sizes.

use flambeau::Session;
use flambeau_analysis::shape::TensorFact;
use flambeau_exec::{Host, reference};
use flambeau_fuzz::{Campaign, Case};
use flambeau_ir::attr::names;
use flambeau_ir::{Attr, Graph, IValue, NodeId, Prim, Type, ValueId};
use flambeau_rewrite::{Checks, Manager};
use flambeau_tensor::Tensor;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Number of generated programs.
const CASES: u64 = 150;

fn apply(session: &Session, graph: &mut Graph, case: &Case, pipeline: &str) {
    let pipeline = session.pipeline(pipeline).unwrap();
    Manager::new().unit(&case.unit).checks(Checks::EveryPass).run(graph, &pipeline).unwrap();
}

/// The attribute `index` of a profiling node or guard.
fn index(graph: &Graph, node: NodeId) -> Option<i64> {
    graph.attr(node, names::index())?.as_int()
}

fn nodes(graph: &Graph, prim: Prim) -> Vec<NodeId> {
    graph.nodes_deep().filter(|&n| graph.is_prim(n, prim)).collect()
}

/// Runs a graph and calls `see` for each value that passes through a profiling node.
fn observe(graph: &Graph, case: &Case, see: impl FnMut(i64, &Tensor) + Send + 'static) {
    let mut host = Host::quiet();
    host.set_fuel(100_000);
    let see = Mutex::new(see);
    host.set_observer(Some(Box::new(move |graph: &Graph, node: NodeId, values: &[IValue]| {
        if let (Some(index), [IValue::Tensor(tensor), ..]) = (index(graph, node), values) {
            (see.lock().unwrap())(index, tensor);
        }
    })));
    // A run that raises has passed guards too.
    let graph = Arc::new(graph.clone());
    let _ = reference::run(&graph, case.fresh_inputs(), &*case.unit, &mut host);
}

/// Returns the program with a guard of every use of a tensor, with declared types of the inputs or without.
fn guarded(session: &Session, case: &Case, declared: bool) -> Graph {
    let mut graph = (*case.graph).clone();
    let inputs: Vec<ValueId> = graph.inputs().collect();
    for (&input, value) in inputs.iter().zip(&case.inputs) {
        let ty = graph.ty(input).erase_shapes();
        graph.edit().set_type(input, ty);
        if let (true, IValue::Tensor(tensor)) = (declared && ty.is_tensor(), value) {
            graph.edit().set_type(input, Type::tensor(TensorFact::of(tensor).to_type()));
        }
    }
    apply(session, &mut graph, case, "inline,insert_profile_nodes");
    let seen: Arc<Mutex<BTreeMap<i64, Option<Type>>>> = Arc::default();
    let record = Arc::clone(&seen);
    observe(&graph, case, move |index, tensor| {
        let ty = Type::tensor(TensorFact::of(tensor).to_type());
        let mut seen = record.lock().unwrap();
        let known = seen.entry(index).or_insert(Some(ty));
        if *known != Some(ty) {
            *known = None;
        }
    });
    for node in nodes(&graph, Prim::Profile) {
        let ty = index(&graph, node).and_then(|i| seen.lock().unwrap().get(&i).copied().flatten());
        if let Some(ty) = ty {
            graph.edit().set_attr(node, names::profiled_type(), Attr::Type(ty));
        }
    }
    apply(
        session,
        &mut graph,
        case,
        "insert_guards,remove_profile_nodes,move_guards_to_definitions,coalesce_guards",
    );
    graph
}

/// A case like `case` with other numbers, elements in another order and, if requested, twice as long tensors.
fn varied(case: &Case, longer: bool) -> Case {
    let vary = |value: &IValue| match value {
        IValue::Int(n) => IValue::Int(n.wrapping_sub(1)),
        IValue::Bool(b) => IValue::Bool(!b),
        IValue::Tensor(tensor) => {
            let mut scalars = tensor.to_scalars().unwrap();
            scalars.reverse();
            let mut sizes = tensor.sizes().to_vec();
            if let Some(first) = sizes.first_mut().filter(|_| longer) {
                *first *= 2;
                scalars.extend_from_within(..);
            }
            IValue::Tensor(Tensor::from_scalars(&scalars, &sizes, tensor.dtype()).unwrap())
        }
        other => other.clone(),
    };
    Case { inputs: case.inputs.iter().map(vary).collect(), ..case.clone() }
}

/// Returns the guards among `removed` whose type a value does not have, in runs of the cases.
fn violations(graph: &Graph, cases: &[Case], removed: &[i64]) -> Vec<String> {
    let mut watched = graph.clone();
    let mut types: BTreeMap<i64, Type> = BTreeMap::new();
    for node in nodes(&watched, Prim::Guard) {
        if let Some(i) = index(&watched, node).filter(|i| removed.contains(i)) {
            types.insert(i, watched.ty(watched.result(node, 0)));
            watched.edit().set_op(node, Prim::Profile);
        }
    }
    let found: Arc<Mutex<Vec<String>>> = Arc::default();
    for case in cases {
        let (found, types) = (Arc::clone(&found), types.clone());
        observe(&watched, case, move |index, tensor| {
            let actual = TensorFact::of(tensor).to_type();
            if let Some(ty) = types.get(&index)
                && !ty.as_tensor().is_some_and(|stated| actual.implies(stated))
            {
                found
                    .lock()
                    .unwrap()
                    .push(format!("guard {index} states {ty}, found {}", Type::tensor(actual)));
            }
        });
    }
    let found = found.lock().unwrap();
    found.clone()
}

#[test]
fn no_removed_guard_would_fail() {
    let session = Session::standard().unwrap();
    let campaign = Campaign::new(session.registry(), 20);
    let (mut guards, mut eliminated, mut caught) = (0, 0, 0);
    for i in 0..CASES {
        let case = campaign.case(i);
        let declared = i % 2 == 0;
        let graph = guarded(&session, &case, declared);
        let cases = [case.clone(), varied(&case, false), varied(&case, !declared)];
        let mut after = graph.clone();
        apply(&session, &mut after, &case, "eliminate_guards");
        let of = |graph: &Graph| -> Vec<i64> {
            nodes(graph, Prim::Guard).into_iter().filter_map(|n| index(graph, n)).collect()
        };
        let (all, kept) = (of(&graph), of(&after));
        let removed: Vec<i64> = all.iter().copied().filter(|i| !kept.contains(i)).collect();
        let wrong = violations(&graph, &cases, &removed);
        assert!(wrong.is_empty(), "case {i}: {}\n{graph}\nand after:\n{after}", wrong.join("\n"));
        // The check finds guards that do not follow: all of them removed at once.
        caught += usize::from(!violations(&graph, &cases, &all).is_empty());
        (guards, eliminated) = (guards + all.len(), eliminated + removed.len());
    }
    println!("{eliminated} of {guards} guards eliminated; {caught} programs fail without any");
    assert!(eliminated * 3 > guards, "only {eliminated} of {guards} guards are eliminated");
    assert!(caught > 5, "only {caught} programs have guards that can fail");
}
