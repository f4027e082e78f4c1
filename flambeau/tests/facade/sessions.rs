//! Effects of a session's settings on its programs: checks, limits, extensions.

use flambeau::exec::Kernel;
use flambeau::ir::OpDef;
use flambeau::rewrite::autodiff::Gradients;
use flambeau::rewrite::{Checks, Pass, PassCx, PassEntry, PassError};
use flambeau::{
    Error, Execution, Fault, IValue, Limits, OptimizationLimits, RunLimits, Session, SessionBuilder, Tensor,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Fails, or panics, on any graph.
#[derive(Clone, Copy, Default)]
struct Fails;

impl Pass for Fails {
    const NAME: &'static str = "fails";
    const DOC: &'static str = "fails";

    fn run(&self, _: &mut PassCx<'_>) -> Result<(), PassError> {
        Err(PassError::new(Fault::Internal, "planted"))
    }
}

#[derive(Clone, Copy, Default)]
struct Panics;

impl Pass for Panics {
    const NAME: &'static str = "panics";
    const DOC: &'static str = "panics";

    fn run(&self, _: &mut PassCx<'_>) -> Result<(), PassError> {
        panic!("planted")
    }
}

const SOURCE: &str = "
def inner(x: int) -> int:
    return x + 1

def outer(x: int) -> int:
    return inner(x) * 2
";

fn failing(pipeline: &str) -> SessionBuilder {
    let passes = Session::builder().standard().pass(PassEntry::of::<Fails>()).pass(PassEntry::of::<Panics>());
    passes.pipeline("default", pipeline)
}

fn call(session: &Session, entry: &str) -> Result<IValue, Error> {
    session.compile_source(SOURCE, "s.py")?.entry(entry)?.call(&[IValue::Int(3)], &[])
}

#[test]
fn an_optimization_that_fails_is_an_error_under_checks() {
    for pipeline in ["fails", "inline,fails", "panics"] {
        let session = failing(pipeline).checks(Checks::Boundaries).build().expect("consistent");
        let error = call(&session, "outer").expect_err("the pass fails");
        assert_eq!((error.fault, error.code), (Fault::Internal, "P0001"), "{error}");
        assert!(error.message.contains("planted"), "{error}");
        for execution in [Execution::Reference, Execution::Machine] {
            let plain = session.with_execution(execution);
            assert_eq!(call(&plain, "outer").expect("no pass runs").as_int(), Some(8), "{execution:?}");
        }
    }
}

#[test]
fn without_checks_a_failed_optimization_is_reported() {
    for pipeline in ["fails", "panics"] {
        let reports = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&reports);
        let builder = failing(pipeline).checks(Checks::Off).on_optimization_failure(move |failure| {
            assert!(failure.to_string().contains("runs unoptimized"), "{failure}");
            count.fetch_add(1, Ordering::Relaxed);
        });
        let session = builder.build().expect("consistent");
        assert_eq!(call(&session, "outer").expect("runs unoptimized").as_int(), Some(8));
        let failures = session.optimization_failures();
        // The called function, and the one that it calls.
        assert_eq!((failures.len(), reports.load(Ordering::Relaxed)), (2, 2), "{failures:?}");
        let first = &failures[0];
        assert!(first.error.message.contains("planted"), "{first}");
        assert_eq!(first.pipeline, pipeline);
        let graph =
            first.reproducer.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        let again =
            session.with_execution(Execution::Machine).parse_ir(&graph).expect("the reproducer reads");
        let result = again.entry("forward").expect("there").call(&[IValue::Int(3)], &[]).expect("runs");
        assert_eq!(result.as_int(), Some(8), "the reproducer has calls inlined");
        assert!(again.entry("forward").is_ok() && session.optimize(again_graph(&again), pipeline).is_err());
    }
}

fn again_graph(program: &flambeau::Program) -> &flambeau::Graph {
    // Leaked for the brevity of the test.
    Box::leak(Box::new(program.entry("forward").expect("there"))).graph()
}

#[test]
fn the_standard_pipeline_does_not_fail() {
    let session = Session::builder().standard().checks(Checks::Off).build().expect("consistent");
    assert_eq!(call(&session, "outer").expect("runs").as_int(), Some(8));
    assert!(session.optimization_failures().is_empty());
}

/// `1` for a panic, else twice the argument.
fn touchy() -> OpDef {
    OpDef::new("acme::touchy(int x) -> int").with(Kernel::new(|cx| {
        let x = cx.int(0)?;
        assert!(x != 1, "one is too few");
        cx.ret(2 * x);
        Ok(())
    }))
}

#[test]
fn a_kernel_that_panics_is_an_error_of_the_call() {
    let source = "
def f(x: int) -> int:
    y = torch.ones(3)
    y += x
    return torch.ops.acme.touchy(x) + int(y.sum()) * 0
";
    for execution in [Execution::Reference, Execution::Machine, Execution::Optimized] {
        let session =
            Session::builder().standard().ops([touchy()]).execution(execution).build().expect("consistent");
        let entry = session.compile_source(source, "f.py").expect("compiles").entry("f").expect("there");
        for _ in 0..2 {
            let error = entry.call(&[IValue::Int(1)], &[]).expect_err("panics");
            assert_eq!(error.fault, Fault::Misuse, "{error}");
            assert!(error.message.contains("`acme::touchy` panicked: one is too few"), "{error}");
            assert!(error.render().contains("f.py"), "the error says where: {}", error.render());
            assert_eq!(entry.call(&[IValue::Int(4)], &[]).expect("the session is usable").as_int(), Some(8));
        }
    }
}

#[test]
fn a_graph_has_one_entry() {
    let session = Session::standard().expect("consistent");
    let program = session.parse_ir("graph(%x : int):\n  return (%x)\n").expect("reads");
    assert!(program.entry("forward").is_ok());
    let error = program.entry("forwrd").err().expect("not there");
    assert_eq!((error.code, error.help.as_deref()), ("X0003", Some("did you mean `forward`?")), "{error}");
}

fn refused(change: impl FnOnce(SessionBuilder) -> SessionBuilder, code: &str, texts: &[&str]) {
    let error = change(Session::builder().standard()).build().err().expect("refused");
    let text = error.render();
    assert_eq!(error.code, code, "{text}");
    for part in texts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn extensions_are_checked_when_the_session_is_built() {
    refused(
        |b| b.ops([OpDef::new("acme::f(Tensr x) -> Tensor")]),
        "S0001",
        &["`Tensr`", "did you mean `Tensor`?"],
    );
    refused(|b| b.ops([OpDef::new("acme::f(itn x) -> Tensor")]), "S0001", &["`itn`", "did you mean `int`?"]);
    refused(|b| b.facet("aten::rellu", Gradients::file("a.grads", "")), "S0001", &["aten::rellu"]);
    refused(|b| b.pipeline("mine", "inline,cze"), "R0101", &["`cze`", "did you mean `cse`?", "mine:1:8"]);
    let op = || OpDef::new("acme::f(Tensor self, Tensor other) -> Tensor").with(Kernel::new(|_| Ok(())));
    let with = |text| move |b: SessionBuilder| b.ops([op().with(Gradients::file("acme.grads", text))]);
    refused(with("acme::g\n  self = grad\n"), "S0002", &["acme.grads:1", "`acme::g`"]);
    refused(with("aten::rellu\n  self = grad\n"), "S0002", &["acme.grads:1", "did you mean `aten::relu`?"]);
    refused(
        with("acme::f\n  self = grad\n  othre = grad\n"),
        "S0002",
        &["acme.grads:3", "`othre`", "did you mean `other`?"],
    );
    refused(with("acme::f\n  self = torch.sinn(grad)\n"), "F0100", &["acme::f", "sinn"]);
    assert!(with("acme::f\n  self, other = grad * 2, grad\n")(Session::builder().standard()).build().is_ok());
}

fn within(limits: RunLimits, source: &str) -> Error {
    let session = Session::builder().standard().limits(Limits { run: limits, ..Limits::default() });
    let session = session.build().expect("consistent");
    let mut last = None;
    for execution in [Execution::Reference, Execution::Optimized] {
        let program = session.with_execution(execution).compile_source(source, "f.py").expect("compiles");
        let start = Instant::now();
        let error = program.entry("f").expect("there").call(&[], &[]).expect_err("a limit");
        assert_eq!(error.fault, Fault::Limit, "{error}");
        assert!(error.render().contains("\"f.py\", line "), "{}", error.render());
        assert!(start.elapsed() < Duration::from_secs(60));
        last = Some(error);
    }
    last.expect("ran")
}

#[test]
fn every_limit_ends_a_run() {
    let none = RunLimits::trusted();
    let forever = "def f():\n    i = 0\n    while True:\n        i += 1\n    return i\n";
    let error = within(RunLimits { fuel: 10_000, ..none }, forever);
    assert!(error.message.contains("out of fuel"), "{error}");
    let time = Some(Duration::from_millis(200));
    let error = within(RunLimits { time, ..none }, forever);
    assert!(error.message.contains("0.200 seconds"), "{error}");
    let slow = "def f():\n    x = torch.ones(200, 200)\n    while True:\n        x = torch.tanh(x @ x)\n    return x\n";
    assert!(within(RunLimits { time, ..none }, slow).message.contains("out of time"));
    let large = "def f():\n    return torch.zeros(1000, 1000)\n";
    assert!(within(RunLimits { memory: Some(1 << 20), ..none }, large).message.contains("memory"));
}

#[test]
fn optimization_ends_at_its_time_limit() {
    let optimization = OptimizationLimits { time: Some(Duration::ZERO) };
    let limits = Limits { optimization, ..Limits::default() };
    let builder = || Session::builder().standard().limits(limits.clone());
    let checked = builder().checks(Checks::Boundaries).build().expect("consistent");
    let error = call(&checked, "outer").expect_err("out of time");
    assert_eq!((error.fault, error.code), (Fault::Limit, "P0001"), "{error}");
    assert!(error.message.contains("out of time"), "{error}");
    let unchecked = builder().checks(Checks::Off).build().expect("consistent");
    assert_eq!(call(&unchecked, "outer").expect("runs unoptimized").as_int(), Some(8));
    assert_eq!(unchecked.optimization_failures()[0].error.fault, Fault::Limit);
}

#[test]
fn the_standard_session_is_bounded() {
    let limits = Session::standard().expect("consistent").limits();
    assert!(limits.run.fuel < u64::MAX && limits.run.memory.is_some() && limits.run.time.is_some());
    assert!(limits.optimization.time.is_some());
    let session = Session::standard().expect("consistent").with_limits(Limits::trusted());
    assert_eq!(session.limits().run, RunLimits::trusted());
    assert_eq!(session.limits().optimization, OptimizationLimits::trusted());
    assert_eq!(session.limits().archive, flambeau::archive::ArchiveLimits::trusted());
    let x = IValue::Tensor(Tensor::zeros(&[2], flambeau::tensor::DType::F32).expect("small"));
    let program = session.compile_source("def f(x):\n    return x + 1\n", "f.py").expect("compiles");
    assert!(program.entry("f").expect("there").call(&[x], &[]).is_ok());
}

#[test]
fn tasks_run_at_their_forks_if_nothing_observes_it() {
    let source = "
def double(x: int):
    return x * 2

def root(x: int):
    return torch.full([x], 1.0)

def pure(x: int, y: Tensor):
    a = torch.jit.fork(double, x)
    y.add_(1)
    return torch.jit.wait(a)

def failing(x: int, y: Tensor):
    a = torch.jit.fork(root, x)
    y.add_(1)
    return torch.jit.wait(a)
";
    let program = Session::standard().expect("consistent").compile_source(source, "f.py").expect("compiles");
    let inlined = |name: &str| {
        let graph = program.entry(name).expect("there").optimized("inline_fork_wait").expect("optimizes");
        !graph.to_string().contains("prim::fork")
    };
    assert!(inlined("pure"), "the function's body cannot fail");
    assert!(!inlined("failing"), "an error would prevent the write");
}

#[test]
fn expensive_calls_become_tasks_if_nothing_observes_it() {
    let source = "
def power(x: Tensor):
    for i in range(4):
        x = x @ x
    return x

def in_place(x: Tensor):
    for i in range(4):
        x.copy_(x @ x)
    return x

def endless(x: Tensor):
    i = 0
    while i < 4:
        x = x @ x
        i += 1
    return x

def pure(x: Tensor, y: Tensor):
    a = power(x)
    b = power(y)
    return a + b

def writing(x: Tensor, y: Tensor):
    a = in_place(x)
    b = in_place(y)
    return a + b

def looping(x: Tensor, y: Tensor):
    a = endless(x)
    b = endless(y)
    return a + b
";
    let program = Session::standard().expect("consistent").compile_source(source, "f.py").expect("compiles");
    let forks = |name: &str| {
        let graph = program.entry(name).expect("there").optimized("insert_forks").expect("optimizes");
        graph.to_string().matches("= prim::fork").count()
    };
    assert_eq!(forks("pure"), 2, "the effects and the cost of a call are those of the function");
    assert_eq!(forks("writing"), 0, "the calls write their arguments, which may be the same");
    assert_eq!(forks("looping"), 0, "the second call would not run if the first failed, and may not end");
}
