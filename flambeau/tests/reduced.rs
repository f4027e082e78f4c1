//! Tests of every build, with any features: programs are compiled, read, analysed, rewritten and printed. `cargo xtask
//! test` runs these tests with all features and without any.
#![allow(clippy::assertions_on_constants, reason = "features are constants of a build")]

use flambeau::analysis::{AliasDb, Analyses, Dtype, Liveness, ResultShapes, Shapes};
#[cfg(not(feature = "kernels"))]
use flambeau::exec::{Host, Intrinsic, Kernel};
use flambeau::ir::text::PrintOptions;
use flambeau::ir::{Effects, Graph, Symbol};
use flambeau::{Fault, IValue, Session, Tensor};

const SOURCE: &str = "
def f(x: Tensor, n: int):
    y = torch.relu(x * 2 + x * 2)
    y.t().add_(1)
    if 2 * 3 > 5:
        y = y * n
    return y
";

const TYPED: &str = "graph(%x : Float(2, 3)):
  %y : Tensor = aten::t(%x)
  %z : Tensor = aten::relu(%y)
  return (%z, %y)
";

fn session() -> Session {
    Session::standard().expect("the standard session is made")
}

fn compiled(session: &Session) -> Graph {
    let program = session.compile_source(SOURCE, "f.py").expect("the source compiles");
    (**program.entry("f").expect("there is an f").graph()).clone()
}

fn count(graph: &Graph, op: &str) -> usize {
    graph.nodes_deep().filter(|&node| graph.op_name(node).as_str() == op).count()
}

#[test]
fn source_is_compiled_and_printed() {
    let session = session();
    let program = session.compile_source(SOURCE, "f.py").expect("the source compiles");
    let entry = program.entry("f").expect("there is an f");
    assert_eq!(entry.schema().to_string(), "f(Tensor x, int n) -> Tensor");
    assert!(entry.code().expect("it is printed as source").contains("torch.relu"));
    let text = entry.graph().to_text(PrintOptions { exact: true, ..PrintOptions::default() });
    let again = session.parse_ir(&text).expect("the text reads");
    let read = again.entry("forward").expect("there is a graph").graph().clone();
    assert_eq!(read.to_text(PrintOptions { exact: true, ..PrintOptions::default() }), text);
    let error = session.compile_source("def g(x: Tensor):\n    return x.nothing()\n", "g.py").err();
    assert_eq!(error.expect("there is no such method").fault, Fault::Input);
}

#[test]
fn aliasing_shapes_and_liveness_are_known() {
    let session = session();
    let program = session.parse_ir(TYPED).expect("the text reads");
    let graph = program.entry("forward").expect("there is a graph").graph().clone();
    let [view, fresh] = ["aten::t", "aten::relu"].map(|op| {
        let node = graph.nodes_deep().find(|&node| graph.op_name(node).as_str() == op).expect("it is there");
        graph.result(node, 0)
    });
    let input = graph.block_inputs(graph.root()).next().expect("there is an input");
    let mut analyses = Analyses::new();
    let aliases = analyses.get::<AliasDb>(&graph);
    assert!(aliases.may_alias(input, view) && !aliases.may_alias(input, fresh));
    let ty = analyses.get::<Shapes>(&graph).refined_type(&graph, fresh).to_string();
    assert!(ty.starts_with("Float(3, 2"), "{ty}");
    analyses.get::<Liveness>(&graph);
}

#[test]
fn graphs_are_rewritten() {
    let session = session();
    let graph = compiled(&session);
    assert_eq!(count(&graph, "aten::mul"), 4);
    let after = session.optimize(&graph, "simplify,peephole,cse,dce").expect("the pipeline runs");
    // The branch is taken, since scalars need no kernel, and the product is computed once.
    assert_eq!((count(&after, "prim::If"), count(&after, "aten::mul")), (0, 2), "{after}");
    let fused = session.optimize(&graph, "default").expect("the pipeline runs");
    assert!(fused.to_string().contains("prim::FusionGroup"), "{fused}");
}

#[test]
fn saturation_runs_or_reports_the_missing_feature() {
    let session = session();
    let result = session.optimize(&compiled(&session), "simplify,egraph,dce");
    match result {
        Ok(graph) => assert!(cfg!(feature = "egraph"), "{graph}"),
        Err(error) => {
            assert!(!cfg!(feature = "egraph"), "{error}");
            assert!(error.message.contains("lacks the feature `egraph`"), "{error}");
        }
    }
}

#[test]
fn facts_about_operators_need_no_kernel() {
    let session = session();
    let registry = session.registry();
    assert!(registry.column::<ResultShapes>().iter().count() > 1500);
    assert!(registry.column::<Dtype>().iter().count() > 1500);
    let find = |name: &str, overload: &str| {
        registry.find(Symbol::new(name), Symbol::new(overload)).expect("it is declared")
    };
    let add = find("aten::add_", "Tensor");
    assert!(registry.schema(add).args[0].is_write());
    assert!(registry.effects(add).contains(Effects::WRITES));
    assert!(registry.effects(find("aten::rand", "")).contains(Effects::RANDOM));
    assert!(registry.schema(find("aten::view", "")).has_aliases());
    assert!(session.rules().expect("the rules read").rules().len() >= 40);
}

/// Operations of the machine run in every build; a build without the feature contains no other kernel.
#[cfg(not(feature = "kernels"))]
#[test]
fn absent_kernels_return_an_error() {
    let session = session();
    let registry = session.registry();
    let mut absent = 0;
    for (id, kernel) in registry.column::<Kernel>().iter() {
        if registry.facet::<Intrinsic>(id).is_some() {
            continue;
        }
        let schema = registry.schema(id);
        let error = kernel.call_on(schema, &mut [], &mut Host::quiet()).expect_err("it cannot run");
        assert!(error.message().contains("built without the feature `kernels`"), "{error}");
        absent += 1;
    }
    assert!(absent > 2000, "{absent}");
}

#[test]
fn calls_run_or_report_the_missing_feature() {
    let session = session();
    let program = session
        .compile_source(
            "def double(n: int):\n    return n + n\n\ndef relu(x: Tensor):\n    return torch.relu(x)\n",
            "calls.py",
        )
        .expect("the source compiles");
    let double = program.entry("double").and_then(|entry| entry.call(&[IValue::Int(21)], &[]));
    assert_eq!(double.expect("scalars need no kernel").as_int(), Some(42));
    let x = Tensor::from_slice(&[-1.0_f32, 2.0], &[2]).expect("it is small");
    match program.entry("relu").and_then(|entry| entry.call(&[IValue::Tensor(x)], &[])) {
        Ok(_) => assert!(cfg!(feature = "kernels")),
        Err(error) => {
            assert!(!cfg!(feature = "kernels"), "{error}");
            assert_eq!(error.fault, Fault::Unsupported);
            assert!(error.message.contains("built without the feature `kernels`"), "{error}");
        }
    }
}
