//! Compilation on a background thread, saved plans, and reports of failed guards.

use flambeau::executor::Deopt;
use flambeau::ir::{At, Prim};
use flambeau::rewrite::{Checks, Pass, PassCx, PassEntry, PassError};
use flambeau::{Compilation, Execution, IValue, RestoredPlans, Session, Tensor};

const SOURCE: &str = "
def g(x):
    return x * 2.0

def f(x, n: int):
    y = g(x) + x
    z = torch.narrow(y, 0, 0, n)
    return z * z
";

fn builder() -> flambeau::SessionBuilder {
    Session::builder().standard().execution(Execution::Profiling).checks(Checks::Off)
}

fn tensor(sizes: &[i64]) -> IValue {
    let n = sizes.iter().product::<i64>();
    let values = (0..n).map(|i| (i * 7 % 11) as f32 - 4.0).collect();
    IValue::Tensor(Tensor::from_vec(values, sizes).expect("sizes match"))
}

fn text(value: &IValue) -> String {
    let tensor = value.as_tensor().expect("a tensor");
    format!("{:?}{:?}", tensor.sizes(), tensor.contiguous().expect("small").to_vec::<f32>())
}

#[test]
fn calls_run_while_a_thread_compiles() {
    let session = builder().compilation(Compilation::Background).build().expect("consistent");
    let entry = session.compile_source(SOURCE, "test.py").expect("compiles").entry("f").expect("there");
    let reference = session.with_execution(Execution::Reference);
    let reference = reference.compile_source(SOURCE, "test.py").expect("compiles").entry("f").expect("there");
    for rows in [4, 4, 4, 6, 6, 4] {
        let args = [tensor(&[rows, 3]), IValue::Int(2)];
        let wanted = text(&reference.call(&args, &[]).expect("runs"));
        // Before, while and after a stage is compiled.
        for _ in 0..3 {
            assert_eq!(text(&entry.call(&args, &[]).expect("runs")), wanted);
        }
        session.wait_for_compilations();
        assert_eq!(text(&entry.call(&args, &[]).expect("runs")), wanted);
    }
    assert!(!entry.plans().is_empty());
    assert!(session.optimization_failures().is_empty());
}

#[test]
fn a_dropped_program_leaves_nothing_to_the_thread() {
    let session = builder().compilation(Compilation::Background).build().expect("consistent");
    for _ in 0..20 {
        let program = session.compile_source(SOURCE, "test.py").expect("compiles");
        let entry = program.entry("f").expect("there");
        let calls = 1 + program.entries().len();
        (0..calls).for_each(|_| drop(entry.call(&[tensor(&[4, 3]), IValue::Int(2)], &[]).expect("runs")));
    }
    session.wait_for_compilations();
    assert!(session.optimization_failures().is_empty());
}

/// Panics where a plan is made, which is after guards were inserted.
#[derive(Clone, Copy, Debug, Default)]
struct Panics;

impl Pass for Panics {
    const NAME: &'static str = "panics";
    const DOC: &'static str = "Panics.";

    fn run(&self, _: &mut PassCx<'_>) -> Result<(), PassError> {
        panic!("as intended")
    }
}

#[test]
fn a_panic_on_the_thread_is_recorded_and_calls_go_on() {
    let session = builder()
        .compilation(Compilation::Background)
        .pass(PassEntry::of::<Panics>())
        .pipeline("specialized", "panics")
        .build()
        .expect("consistent");
    let entry = session.compile_source(SOURCE, "test.py").expect("compiles").entry("f").expect("there");
    for _ in 0..6 {
        entry.call(&[tensor(&[4, 3]), IValue::Int(2)], &[]).expect("runs");
        session.wait_for_compilations();
    }
    assert_eq!(session.optimization_failures().len(), 1);
    assert!(session.optimization_failures()[0].error.message.contains("as intended"));
    assert!(entry.plans().is_empty());
}

/// Makes a plan of an invalid graph: a node after it uses a value that is not defined.
#[derive(Clone, Copy, Debug, Default)]
struct Breaks;

impl Pass for Breaks {
    const NAME: &'static str = "breaks";
    const DOC: &'static str = "Returns a graph that does not verify.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let input = cx.graph().inputs().next().expect("an input");
        let root = cx.graph().root();
        let mut editor = cx.edit();
        editor.at(At::start(root)).node(Prim::If, &[input], &[]);
        Ok(())
    }
}

#[test]
fn a_graph_that_does_not_compile_is_recorded() {
    let session = builder()
        .compilation(Compilation::Background)
        .pass(PassEntry::of::<Breaks>())
        .pipeline("specialized", "breaks")
        .build()
        .expect("consistent");
    let entry = session.compile_source(SOURCE, "test.py").expect("compiles").entry("f").expect("there");
    for _ in 0..6 {
        entry.call(&[tensor(&[4, 3]), IValue::Int(2)], &[]).expect("runs");
        session.wait_for_compilations();
    }
    assert_eq!(session.optimization_failures().len(), 1);
}

#[test]
fn saved_plans_need_no_profiled_runs() {
    let session = builder().compilation(Compilation::Synchronous).build().expect("consistent");
    let load = || session.compile_source(SOURCE, "test.py").expect("compiles");
    let args = |rows| [tensor(&[rows, 3]), IValue::Int(2)];
    let program = load();
    let entry = program.entry("f").expect("there");
    for rows in [4, 6, 4] {
        entry.call(&args(rows), &[]).expect("runs");
    }
    let preconditions = |entry: &flambeau::Entry| -> Vec<String> {
        entry
            .plans()
            .iter()
            .map(|plan| plan.graph().inputs().map(|v| plan.graph().ty(v).to_string()).collect())
            .collect()
    };
    let saved = program.save_plans();
    let again = load();
    assert_eq!(
        again.restore_plans(saved.as_bytes()).expect("a file of plans"),
        RestoredPlans::Used { profiles: 1 }
    );
    let restored = again.entry("f").expect("there");
    assert_eq!(again.save_plans(), saved, "before the first call");
    let result = restored.call(&args(8), &[]).expect("runs");
    assert_eq!(text(&result), text(&entry.call(&args(8), &[]).expect("runs")));
    assert_eq!(preconditions(&restored), preconditions(&entry));
    assert_eq!(again.save_plans(), saved, "after the first call");
}

#[test]
fn plans_that_do_not_fit_are_ignored() {
    let session = builder().compilation(Compilation::Synchronous).build().expect("consistent");
    let program = session.compile_source(SOURCE, "test.py").expect("compiles");
    let args = [tensor(&[4, 3]), IValue::Int(2)];
    let entry = program.entry("f").expect("there");
    (0..3).for_each(|_| drop(entry.call(&args, &[]).expect("runs")));
    let saved = program.save_plans();
    let ignored = |program: &flambeau::Program, text: &str| match program.restore_plans(text.as_bytes()) {
        Ok(RestoredPlans::Ignored { reason }) => reason,
        other => panic!("{other:?}"),
    };
    let other = session.compile_source("def f(x):\n    return x\n", "test.py").expect("compiles");
    assert!(ignored(&other, &saved).contains("`program`"));
    let version = format!("\"flambeau\":\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(ignored(&program, &saved.replace(&version, "\"flambeau\":\"0.0.0\"")).contains("`flambeau`"));
    assert!(ignored(&program, &saved.replace("flambeau-plans-2", "flambeau-plans-9")).contains("format"));
    let plain = session.with_execution(Execution::Optimized);
    let plain = plain.compile_source(SOURCE, "test.py").expect("compiles");
    ignored(&plain, &saved);
    for text in ["", "{", "[]", "null", "{\"format\": \"flambeau-plans-2\"}", &"[".repeat(100_000)] {
        assert_eq!(program.restore_plans(text.as_bytes()).expect_err("malformed").code, "S0010", "{text}");
    }
}

#[test]
fn any_bytes_of_a_file_of_plans_leave_results_alone() {
    let session = builder().compilation(Compilation::Synchronous).build().expect("consistent");
    let program = session.compile_source(SOURCE, "test.py").expect("compiles");
    let args = [tensor(&[4, 3]), IValue::Int(2)];
    let entry = program.entry("f").expect("there");
    let wanted: Vec<String> = (0..3).map(|_| text(&entry.call(&args, &[]).expect("runs"))).collect();
    let saved = program.save_plans().into_bytes();
    // The key stays, so that most changes reach the executor.
    let start = saved.windows(9).position(|w| w == b"\"kinds\":[").expect("there");
    let mut seed = 7u64;
    for _ in 0..300 {
        let mut bytes = saved.clone();
        for _ in 0..3 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = start + (seed >> 33) as usize % (bytes.len() - start);
            bytes[at] = b"0123456789,[]{}\"nul-"[(seed >> 20) as usize % 20];
        }
        let program = session.compile_source(SOURCE, "test.py").expect("compiles");
        let _ = program.restore_plans(&bytes);
        let entry = program.entry("f").expect("there");
        let got: Vec<String> = (0..3).map(|_| text(&entry.call(&args, &[]).expect("runs"))).collect();
        assert_eq!(got, wanted, "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn failed_guards_are_reported() {
    let session = builder().compilation(Compilation::Synchronous).build().expect("consistent");
    let entry = session.compile_source(SOURCE, "test.py").expect("compiles").entry("f").expect("there");
    for n in [2, 2, 2, 3, 3, 1] {
        entry.call(&[tensor(&[4, 3]), IValue::Int(n)], &[]).expect("runs");
    }
    let failed = entry.deoptimizations();
    assert_eq!(failed.iter().map(|d| (d.times, d.forced)).collect::<Vec<_>>(), [(2, false), (1, false)]);
    let first = &failed[0];
    assert_eq!((first.plan, first.replaced_by), (1, Some(2)));
    assert_eq!(first.location.as_deref(), Some("test.py:8"));
    assert!(first.expected.to_string().starts_with("Float(2, 3"), "{}", first.expected);
    let seen = first.seen.expect("the kind is kept").to_string();
    assert!(seen.starts_with("Float(3, 3"), "{seen}");
}

#[test]
fn a_guard_that_fails_rarely_stays_and_its_continuation_is_specialized() {
    let session = builder().compilation(Compilation::Synchronous).build().expect("consistent");
    let entry = session.compile_source(SOURCE, "test.py").expect("compiles").entry("f").expect("there");
    for call in 0..400 {
        let n = if call % 40 == 39 { 3 } else { 2 };
        entry.call(&[tensor(&[4, 3]), IValue::Int(n)], &[]).expect("runs");
    }
    let failed = entry.deoptimizations();
    let [only] = &failed[..] else { panic!("one kind of failures: {failed:?}") };
    assert_eq!((only.times, only.replaced_by, only.specialized), (10, None, true));
}

#[test]
fn sizes_of_dependent_values_leave_the_plan_with_a_guard() {
    let source = "
def f(x, n: int, m: int):
    a = torch.narrow(x, 0, 0, n)
    b = torch.narrow(a * 2, 0, 0, a.size(0) - m)
    return b + 1
";
    let session = builder().compilation(Compilation::Synchronous).build().expect("consistent");
    let entry = session.compile_source(source, "test.py").expect("compiles").entry("f").expect("there");
    for n in [3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4] {
        entry.call(&[tensor(&[5, 3]), IValue::Int(n), IValue::Int(1)], &[]).expect("runs");
    }
    let failed = entry.deoptimizations();
    assert!(failed.iter().all(|d| d.plan == 1 && d.replaced_by == Some(2)), "{failed:?}");
    assert_eq!(entry.plans().len(), 1);
}

#[test]
fn forced_failures_keep_results() {
    let session =
        builder().compilation(Compilation::Synchronous).deopt(Deopt::All).build().expect("consistent");
    let entry = session.compile_source(SOURCE, "test.py").expect("compiles").entry("f").expect("there");
    let args = [tensor(&[4, 3]), IValue::Int(2)];
    let results: Vec<String> = (0..6).map(|_| text(&entry.call(&args, &[]).expect("runs"))).collect();
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    let failed = entry.deoptimizations();
    assert!(failed.iter().all(|d| d.forced) && failed.iter().any(|d| d.replaced_by == Some(2)), "{failed:?}");
}

#[test]
fn threads_share_an_entry_while_it_is_compiled() {
    let session = builder().compilation(Compilation::Background).build().expect("consistent");
    let entry = session.compile_source(SOURCE, "test.py").expect("compiles").entry("f").expect("there");
    let reference = session.with_execution(Execution::Reference);
    let reference = reference.compile_source(SOURCE, "test.py").expect("compiles").entry("f").expect("there");
    let cases: Vec<([IValue; 2], String)> = (0..4)
        .map(|i| {
            let args = [tensor(&[3 + i % 2, 3]), IValue::Int(1 + i / 2)];
            let wanted = text(&reference.call(&args, &[]).expect("runs"));
            (args, wanted)
        })
        .collect();
    std::thread::scope(|scope| {
        for first in 0..4 {
            let (entry, cases) = (&entry, &cases);
            scope.spawn(move || {
                for number in 0..60 {
                    // Phases of equal arguments, then of different ones.
                    let at = if number / 20 == 1 { first } else { first + number };
                    let (args, wanted) = &cases[at % cases.len()];
                    assert_eq!(&text(&entry.call(args, &[]).expect("runs")), wanted);
                }
            });
        }
    });
    // All calls may have ended before the first stage was compiled.
    for _ in 0..8 {
        session.wait_for_compilations();
        if !entry.plans().is_empty() {
            break;
        }
        let (args, wanted) = &cases[0];
        assert_eq!(&text(&entry.call(args, &[]).expect("runs")), wanted);
    }
    assert!(!entry.plans().is_empty() && session.optimization_failures().is_empty());
}
