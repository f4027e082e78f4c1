//! Tests of each part of the extension in a session, and of errors in wrong definitions.
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]

use extension::AssertBranches;
use flambeau::analysis::{AliasDb, Analyses, Dtype, ResultShapes};
use flambeau::exec::soundness::{try_facts, try_operator};
use flambeau::exec::{Kernel, Sample, soundness};
use flambeau::ir::{At, IValue, OpDef, Prim};
use flambeau::rewrite::rules::trial::{TrialLimits, try_rules};
use flambeau::rewrite::{Checks, Manager};
use flambeau::{Execution, Graph, Session};
use flambeau_fuzz::oracle::{FactsHold, MachineAgrees, PassEquivalence};
use flambeau_fuzz::{Campaign, Oracle};
use std::sync::Arc;
use std::time::Duration;

const SOURCE: &str = "def f(x):
    assert x.dim() == 2, 'a matrix is wanted'
    return x * x.sigmoid() + torch.sigmoid(x) * x
";

fn session() -> Session {
    Session::builder().standard().with(extension::extend).build().unwrap_or_else(|e| panic!("{e}"))
}

fn graph(session: &Session, source: &str) -> Arc<Graph> {
    let program = session.compile_source(source, "f.py").unwrap_or_else(|e| panic!("{e}"));
    Arc::clone(program.entry("f").unwrap().graph())
}

fn names(graph: &Graph) -> Vec<&'static str> {
    graph.nodes_deep().map(|n| graph.op_name(n).as_str()).collect()
}

/// Runs a pipeline with every edit checked; returns the graph and the report.
fn optimized(session: &Session, graph: &Graph, pipeline: &str) -> (Graph, flambeau::rewrite::PipelineReport) {
    let mut copy = graph.clone();
    let pipeline = session.pipeline(pipeline).unwrap();
    let report = Manager::new().checks(Checks::EveryEdit).run(&mut copy, &pipeline);
    (copy, report.unwrap_or_else(|e| panic!("{e}")))
}

#[test]
fn the_operator_runs_and_its_shape_is_known() {
    let session = session();
    let text = "graph(%x : Float(2, 3)):\n  %y : Tensor = extension::swish(%x)\n  return (%y)\n";
    for execution in [Execution::Reference, Execution::Machine, Execution::Optimized] {
        let program = session.with_execution(execution).parse_ir(text).unwrap();
        let call = |sizes: &[i64]| {
            let x = flambeau::Tensor::zeros(sizes, flambeau::tensor::DType::F32).unwrap();
            program.entry("forward").unwrap().call(&[IValue::Tensor(x)], &[])
        };
        assert!(call(&[2, 3]).is_ok());
        // The declared type of an input is checked, since optimization relies on it.
        let error = call(&[3, 2]).unwrap_err().to_string();
        assert!(error.contains("`%x`, is declared as Float(2, 3)"), "{error}");
        assert!(error.contains("the argument is Float(3, 2"), "{error}");
    }
    let graph = session.parse_ir(text).unwrap().entry("forward").unwrap().graph().clone();
    let mut analyses = Analyses::new();
    let report = analyses.get::<flambeau::analysis::Shapes>(&graph).report(&graph);
    assert!(report.contains("%y : Float(2, 3)"), "{report}");
}

#[test]
fn the_rule_applies_where_its_conditions_hold() {
    let session = session();
    let (after, report) = optimized(&session, &graph(&session, SOURCE), "peephole,dce");
    // The element type is unknown, so the exactness of the rule is unknown too.
    assert!(!names(&after).contains(&"extension::swish"), "{after}\n{report}");
    let typed = "graph(%x : Float(2, 3)):
  %s : Float(2, 3) = aten::sigmoid(%x)
  %y : Float(2, 3) = aten::mul(%x, %s)
  return (%y)
";
    let graph = session.parse_ir(typed).unwrap().entry("forward").unwrap().graph().clone();
    for pipeline in ["peephole,dce", "egraph,dce", "default", "extension"] {
        let (after, report) = optimized(&session, &graph, pipeline);
        assert_eq!(names(&after), ["extension::swish"], "{pipeline}: {after}");
        let fired: u64 = report.passes.iter().flat_map(|p| p.counts.get("extension/swish-left")).sum();
        assert!(fired > 0, "{pipeline}:\n{report}");
    }
    // Another session of the same process does not have the extension.
    let plain = Session::standard().unwrap();
    assert!(plain.registry().lookup("extension::swish").is_none());
    assert!(plain.pipeline("drop_asserts").is_err());
}

#[test]
fn the_rules_hold_on_their_trials() {
    let session = session();
    let rules = session.rules().unwrap().filtered(|r| r.name.starts_with("extension/"));
    let trials = try_rules(session.registry(), &rules, TrialLimits::default());
    assert_eq!(trials.len(), 2);
    for trial in trials {
        assert!(trial.failure.is_none(), "{}: {}", trial.rule, trial.failure.unwrap());
        assert!(trial.tried > 0, "{} was never tried: {:?}", trial.rule, trial.refused);
    }
}

#[test]
fn claims_about_the_operators_hold() {
    let session = session();
    let registry = session.registry();
    let own = |id| registry.schema(id).full_name().starts_with("extension::");
    let trials = try_facts(registry, own, soundness::TrialCount::default());
    assert_eq!(trials.len(), 1);
    for trial in trials {
        assert!(trial.failures.is_empty(), "{}: {:?}", trial.operator, trial.failures);
        assert!(trial.checked > 0, "{} was never tried", trial.operator);
    }
}

#[test]
fn wrong_claims_are_detected() {
    let op = OpDef::new("extension::total(Tensor self) -> Tensor")
        .with(ResultShapes::same_as("self"))
        .with(Dtype::same_as("self"))
        .with(Kernel::new(|cx| {
            let total = flambeau::tensor::reduce::sum(cx.tensor(0)?, None, false, None)?;
            cx.ret(total);
            Ok(())
        }))
        .with(Sample::tensors(1).floats());
    let session = Session::builder().standard().ops([op]).build().unwrap_or_else(|e| panic!("{e}"));
    let id = session.registry().lookup("extension::total").unwrap();
    let trial = try_operator(session.registry(), id, soundness::TrialCount::default());
    assert!(trial.failures.iter().any(|f| f.contains("rank is 0, inferred")), "{trial:?}");
}

#[test]
fn wrong_rules_are_detected() {
    let build =
        |text: &str| Session::builder().standard().with(extension::extend).rules("w.rules", text).build();
    let error = build("use aten\nrule a [exact]: nope(%x) => %x\n").err().unwrap();
    assert!(error.code.starts_with('R') && error.render().contains("w.rules:2"), "{}", error.render());
    // This rule is well formed but wrong: the trial finds inputs for which the sides differ.
    let session = build("ruleset w\nuse aten\nrule a [exact]: extension::swish(%x) => relu(%x)\n").unwrap();
    let rules = session.rules().unwrap().filtered(|r| r.name == "w/a");
    let trials = try_rules(session.registry(), &rules, TrialLimits::default());
    assert!(trials.iter().all(|t| t.failure.is_some()), "{trials:?}");
}

#[test]
fn the_pass_changes_the_graph() {
    let session = session();
    let before = graph(&session, SOURCE);
    assert!(names(&before).contains(&"prim::RaiseException"));
    let (after, report) = optimized(&session, &before, "drop_asserts,dce");
    assert!(!names(&after).contains(&"prim::If"), "{after}");
    assert!(report.passes[0].changed);
    // A program whose checks succeed keeps its meaning; one with a failing check continues.
    let run = |graph: &Graph, sizes: &[i64]| {
        let x = flambeau::Tensor::from_scalars(
            &[flambeau::tensor::Scalar::Float(0.5); 4],
            sizes,
            flambeau::tensor::DType::F32,
        );
        let program = session.with_execution(Execution::Reference).program_of(graph.clone()).unwrap();
        program.entry("forward").unwrap().call(&[IValue::Tensor(x.unwrap())], &[])
    };
    let (a, b) = (run(&before, &[2, 2]).unwrap(), run(&after, &[2, 2]).unwrap());
    assert_eq!(a.to_string(), b.to_string());
    assert!(run(&before, &[4]).is_err() && run(&after, &[4]).is_ok());
}

#[test]
fn fuel_stops_the_pass() {
    let session = session();
    let source = "def f(x: int):\n    assert x > 0\n    assert x > 1\n    assert x > 2\n    return x\n";
    let mut copy = (*graph(&session, source)).clone();
    let pipeline = session.pipeline("drop_asserts").unwrap();
    let mut control = flambeau::rewrite::Control::parse("drop_asserts=2").unwrap();
    Manager::new().run_with(&mut copy, &pipeline, &mut Analyses::new(), &mut control).unwrap();
    assert_eq!(names(&copy).iter().filter(|n| **n == "prim::If").count(), 1);
}

#[test]
fn the_analysis_follows_edits() {
    let session = session();
    let source = "def f(x: int):\n    assert x > 0\n    assert x > 1\n    return x\n";
    let mut graph = (*graph(&session, source)).clone();
    let mut analyses = Analyses::new();
    let branches = analyses.get::<AssertBranches>(&graph).nodes().to_vec();
    assert_eq!(branches.len(), 2);
    graph.edit().erase(branches[0]);
    assert_eq!(analyses.get::<AssertBranches>(&graph).nodes(), &branches[1..], "kept, one fewer");
    let block = graph.block(branches[1], 0);
    graph.edit().at(At::start(block)).node(Prim::Print, &[], &[]);
    assert!(analyses.get::<AssertBranches>(&graph).nodes().is_empty(), "built anew: the branch prints");
    let stats = analyses.stats().find(|s| s.name == "extension/assert_branches").unwrap();
    assert_eq!((stats.built, stats.kept, stats.rebuilt), (1, 1, 1));
    assert_eq!(analyses.check(&graph), Ok(()));
}

#[test]
fn branches_that_draw_random_numbers_are_not_assertions() {
    let text = "graph(%p : bool, %s : int[]):
  %none : NoneType = prim::Constant()
   = prim::If(%p)
    block0():
      %r : Tensor = aten::rand(%s, %none, %none, %none, %none)
      -> ()
    block1():
      -> ()
  return (%p)
";
    let graph = session().parse_ir(text).unwrap().entry("forward").unwrap().graph().clone();
    assert!(names(&graph).contains(&"aten::rand"));
    assert!(Analyses::new().get::<AssertBranches>(&graph).nodes().is_empty());
}

#[test]
fn the_analysis_combines_with_standard_ones() {
    let session = session();
    let graph = graph(&session, SOURCE);
    let mut analyses = Analyses::new();
    let (graph, (branches, alias)) = analyses.with::<(AssertBranches, AliasDb)>(&graph);
    assert_eq!(branches.nodes().len(), 1);
    let x = graph.inputs().next().unwrap();
    assert!(alias.may_alias(x, x) && alias.may_be_wildcard(x));
}

#[test]
fn the_oracles_cover_extensions() {
    let session = session();
    let campaign = Campaign::new(session.registry(), 11);
    let pipeline = session.pipeline("extension").unwrap();
    let oracles: [Box<dyn Oracle>; 3] =
        [Box::new(PassEquivalence::new("extension", pipeline)), Box::new(MachineAgrees), Box::new(FactsHold)];
    for oracle in oracles {
        let (tally, finding) = campaign.run(&*oracle, 60, Duration::from_secs(20), |_| {});
        if let Some(finding) = finding {
            panic!("{}: {}\n{}", oracle.name(), finding.why, finding.case.to_text());
        }
        assert!(tally.checked > 0, "{}: {tally:?}", oracle.name());
    }
}
