//! Benchmarks of the executor: the time that a call pays for its plan, for a failed guard and for profiling, and the cost of plans
//! to make.
//!
//! The cost of finding a plan is a difference of two calls: of an entry that returns its first argument, run by its plan
//! and as optimized code. Both bind the same arguments and run one instruction.

use crate::{fastest, lstm_inputs, per_call, row};
use anyhow::{Context, Result, ensure};
use flambeau::ir::{At, CompilationUnit, Graph, IValue, Type};
use flambeau::{Compilation, Entry, Execution, Session};
use flambeau_exec::{CompiledProgram, Host, Vm};
use flambeau_executor::{CallOutcome, Executor, ExecutorSettings, Pipelines, PlanCache, RunMode};
use flambeau_rewrite::Checks;
use flambeau_tensor::Tensor;
use std::sync::Arc;
use std::time::Instant;

/// Number of arguments of the entry whose plan is found.
const TENSORS: usize = 5;

/// Number of calls of a fresh entry that are measured one by one.
const FIRST_CALLS: usize = 4;

/// Measures the executor.
pub(crate) fn figures(session: &Session) -> Result<()> {
    println!("-- executor");
    find(session)?;
    deoptimization(session)?;
    profiled(session)?;
    warm_up(session)?;
    specialization(session)
}

fn tensor(sizes: &[i64]) -> Result<IValue> {
    let n: i64 = sizes.iter().product();
    Ok(IValue::Tensor(Tensor::from_vec(vec![0.5f32; n as usize], sizes)?))
}

/// Calls an entry until its executor has a plan, if it has an executor.
fn warm(entry: &Entry, args: &[IValue]) -> Result<()> {
    for _ in 0..4 {
        entry.call(args, &[])?;
    }
    Ok(())
}

fn call_time(entry: &Entry, args: &[IValue]) -> Result<f64> {
    warm(entry, args)?;
    per_call(|| {
        entry.call(args, &[])?;
        Ok(())
    })
}

/// Measures the search for a plan.
fn find(session: &Session) -> Result<()> {
    let args: Vec<IValue> = (0..TENSORS).map(|_| tensor(&[4, 8])).collect::<Result<_>>()?;
    let time = |execution: Execution, count: usize| -> Result<f64> {
        let params: Vec<String> = (0..count).map(|i| format!("x{i}")).collect();
        let source = format!("def first({}):\n    return x0\n", params.join(", "));
        let session = session.with_execution(execution).with_compilation(Compilation::Synchronous);
        let entry = session.compile_source(&source, "bench.py")?.entry("first")?;
        let time = call_time(&entry, &args[..count])?;
        ensure!((execution == Execution::Profiling) != entry.plans().is_empty(), "no plan");
        Ok(time)
    };
    let cost = |count| {
        Ok::<f64, anyhow::Error>(time(Execution::Profiling, count)? - time(Execution::Optimized, count)?)
    };
    let (one, all) = (cost(1)?, cost(TENSORS)?);
    row("entry guards, per tensor", (all - one) / (TENSORS - 1) as f64, "ns", 20.0, "");
    row("cached plan of five tensors", all, "ns", 60.0, "");
    Ok(())
}

/// A function with its executor and machine.
struct Subject {
    executor: Arc<Executor>,
    cache: PlanCache,
    args: Vec<IValue>,
    machine: Vm,
    optimizer: Pipelines,
    host: Host,
}

impl Subject {
    fn new(session: &Session, graph: &Arc<Graph>, settings: ExecutorSettings) -> Result<Subject> {
        let unit = Arc::new(CompilationUnit::new());
        Ok(Subject {
            executor: Arc::new(Executor::new(Arc::clone(graph), settings)),
            cache: PlanCache::new(),
            args: Vec::new(),
            machine: Vm::new(CompiledProgram::new(Arc::clone(&unit) as _)),
            optimizer: Pipelines::new(session.passes(), unit, Checks::Off)?,
            host: Host::new(),
        })
    }

    fn call(&mut self, args: &[IValue]) -> Result<RunMode> {
        self.args.extend_from_slice(args);
        let Subject { executor, cache, args, machine, optimizer, host } = self;
        match executor.call(args, cache, machine, host, optimizer) {
            CallOutcome::Ran { result, how, failure: None } => {
                result?;
                Ok(how)
            }
            _ => anyhow::bail!("the executor declines the call"),
        }
    }
}

/// Measures a failed guard at the end of a program: the continuation only returns.
fn deoptimization(session: &Session) -> Result<()> {
    let source = "def f(x, n: int):\n    y = torch.narrow(x, 0, 0, n)\n    return y + y\n";
    let entry = session.compile_source(source, "bench.py")?.entry("f")?;
    let settings = ExecutorSettings { max_failures: u32::MAX, ..ExecutorSettings::default() };
    let mut subject = Subject::new(session, entry.graph(), settings)?;
    let args = [tensor(&[4, 8])?, IValue::Int(3)];
    for _ in 0..3 {
        subject.call(&args)?;
    }
    let plan = subject.executor.plans().into_iter().next().context("no plan")?;
    ensure!(plan.code().bailouts().len() > 0, "the plan has no bail-out");
    let passes = per_call(|| subject.call(&args).map(drop))?;
    plan.code().force_bailout(0, 1);
    let fails = per_call(|| subject.call(&args).map(drop))?;
    row("failed guard, minus a guard that holds", (fails - passes) / 1e3, "us", 2.0, "");
    Ok(())
}

/// Measures profiled runs beside runs of unoptimized code.
fn profiled(session: &Session) -> Result<()> {
    let loops = "
def f(x, n: int):
    y = x
    for i in range(n):
        y = y * x
        if i % 2 == 0:
            y = y + x
    return y
";
    let numbers = "
def f(x, n: int):
    s = 0
    for i in range(n):
        if i % 3 == 0:
            s = s + i * 3 % 7
    return x * s
";
    let plain = session.with_execution(Execution::Machine);
    let cell = include_str!("../../../../cli/data/lstm_cell.py");
    let cases = [
        ("LSTM cell", cell, lstm_inputs()?),
        ("loop of small tensors", loops, vec![tensor(&[4, 8])?, IValue::Int(50)]),
        ("loop of numbers", numbers, vec![tensor(&[4, 8])?, IValue::Int(1_000)]),
    ];
    for (name, source, args) in cases {
        let program = plain.compile_source(source, "bench.py")?;
        let entry = program.entry(&program.entries()[0])?;
        let unoptimized = call_time(&entry, &args)?;
        let never = ExecutorSettings { profiled_runs: u32::MAX, ..ExecutorSettings::default() };
        let mut subject = Subject::new(session, entry.graph(), never)?;
        ensure!(subject.call(&args)? == RunMode::Profiled, "not profiled");
        let profiled = per_call(|| subject.call(&args).map(drop))?;
        row(&format!("profiled run of {name}, to unoptimized"), profiled / unoptimized, "x", 2.0, "");
    }
    Ok(())
}

/// Measures the calls of the LSTM cell: the second one, and later ones.
fn warm_up(session: &Session) -> Result<()> {
    let args = lstm_inputs()?;
    let source = include_str!("../../../../cli/data/lstm_cell.py");
    let modes = [
        ("optimized", Execution::Optimized, Compilation::Synchronous),
        ("profiling", Execution::Profiling, Compilation::Synchronous),
        ("profiling in background", Execution::Profiling, Compilation::Background),
    ];
    for (mode, execution, compilation) in modes {
        let session = session.with_execution(execution).with_compilation(compilation);
        let fresh = || -> Result<Entry> {
            let program = session.compile_source(source, "bench.py")?;
            Ok(program.entry(&program.entries()[0])?)
        };
        // The first calls of fresh entries, the fastest of each. A compilation leaves the processor's caches and branch predictors cold,
        // which makes the next call of any function a microsecond longer; calls of another entry warm them.
        let other = fresh()?;
        let mut first = [f64::INFINITY; FIRST_CALLS];
        for _ in 0..40 {
            let entry = fresh()?;
            for best in &mut first {
                for _ in 0..20 {
                    other.call(&args, &[])?;
                }
                let start = Instant::now();
                let result = entry.call(&args, &[])?;
                *best = best.min(start.elapsed().as_nanos() as f64 / 1e3);
                drop(result);
                session.wait_for_compilations();
            }
        }
        let steady = call_time(&fresh()?, &args)? / 1e3;
        row(&format!("LSTM cell, {mode}"), steady, "us", 1.2, "");
        for (n, time) in first.into_iter().enumerate() {
            row(&format!("LSTM cell, {mode}, call {}", n + 1), time, "us", steady * 1.1, "");
        }
    }
    Ok(())
}

/// Measures the stages of compilation for a graph of 1,000 nodes.
fn specialization(session: &Session) -> Result<()> {
    let registry = session.registry();
    let ops = ["aten::mul.Tensor", "aten::add.Tensor", "aten::tanh", "aten::matmul"];
    let ops = ops.map(|o| registry.lookup(o)).into_iter().collect::<Option<Vec<_>>>().context("operators")?;
    let mut graph = Graph::new(Arc::clone(registry));
    let mut e = graph.edit();
    let (x, one) = (e.add_input(Type::TENSOR), e.constant(IValue::Int(1)));
    e.at(At::end(e.graph().root()));
    let (mut a, mut b) = (x, x);
    for i in 0..1000 {
        let v = match i % 4 {
            0 => e.value(ops[0], &[a, b], Type::TENSOR),
            1 => e.value(ops[1], &[a, b, one], Type::TENSOR),
            2 => e.value(ops[3], &[a, x], Type::TENSOR),
            _ => e.value(ops[2], &[a], Type::TENSOR),
        };
        (a, b) = (v, a);
    }
    e.add_output(a);
    let graph = Arc::new(graph);
    let args = [tensor(&[4, 4])?];
    // The first call compiles the profiled stage, the second one makes the plan.
    let prepare = || Subject::new(session, &graph, ExecutorSettings::default());
    let run = |subject: Result<Subject>| {
        let mut subject = subject?;
        subject.call(&args)?;
        Ok(subject)
    };
    let first = fastest(10, prepare, run)?;
    let prepare = || run(prepare());
    let second = fastest(10, prepare, run)?;
    row("first call of 1,000 nodes, with profiled stage", first / 1e6, "ms", 20.0, "");
    row("second call of 1,000 nodes, with its plan", second / 1e6, "ms", 20.0, "");
    Ok(())
}
