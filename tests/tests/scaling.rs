//! Checks that no pass and no analysis takes quadratic time, with two sizes of graphs of every form.
//!
//! The passes are those of the standard library and the analyses those of the list in `flambeau-analysis`, so new ones
//! are included automatically. `FLAMBEAU_SCALING=full` uses 10^4 and 10^5 nodes instead of sizes suitable for a debug
//! build, and prints the table. `FLAMBEAU_SCALING_ONLY=NAME` tests a single step.
#![allow(clippy::unwrap_used, reason = "a test")]

use flambeau::Session;
use flambeau_analysis::STANDARD;
use flambeau_ir::Graph;
use flambeau_rewrite::manager::Manager;
use flambeau_tests::scaling::{Form, exponent, fastest};
use std::time::Duration;

/// Exponents above this count as quadratic growth. Linear steps measure up to 1.3, because of caches and growing
/// tables.
const LIMIT: f64 = 1.55;

struct Sizes {
    small: usize,
    large: usize,
    /// Maximum expected time of a run on the large graph, extrapolated from the small one.
    patience: Duration,
}

const SHORT: Sizes = Sizes { small: 600, large: 6_000, patience: Duration::from_millis(600) };
const FULL: Sizes = Sizes { small: 10_000, large: 100_000, patience: Duration::from_secs(600) };

fn sizes() -> &'static Sizes {
    if std::env::var("FLAMBEAU_SCALING").is_ok_and(|v| v == "full") { &FULL } else { &SHORT }
}

/// Measures a step on graphs of a form; returns the measurement if the growth is above the limit, else `None`.
fn quadratic(name: &str, form: Form, make: &dyn Fn(usize) -> Graph, step: &dyn Fn(Graph)) -> Option<String> {
    let sizes = sizes();
    if std::env::var("FLAMBEAU_SCALING_ONLY").is_ok_and(|only| only != name) {
        return None;
    }
    let small = make(sizes.small);
    let first = fastest(2, || small.clone(), step);
    // A slow step gets a smaller large graph, limited by the expected time, but at least three times the small one.
    let affordable = sizes.patience.as_secs_f64() / first.as_secs_f64().max(1e-6);
    let large_size = sizes.large.min((sizes.small as f64 * affordable.max(3.0)) as usize);
    let large = make(large_size);
    let mut worst = String::new();
    for _ in 0..3 {
        let a = fastest(3, || small.clone(), step).min(first);
        let b = fastest(1, || large.clone(), step);
        let growth = exponent((sizes.small, a), (large_size, b));
        worst = format!(
            "{name:<36} {form:<10?} {:>7} {a:>9.2?} {large_size:>7} {b:>9.2?} {growth:>5.2}",
            sizes.small
        );
        if growth < LIMIT {
            if sizes.large == FULL.large {
                println!("{worst}");
            }
            return None;
        }
    }
    Some(worst)
}

#[test]
fn no_step_is_quadratic() {
    let session = Session::standard().unwrap();
    let registry = session.registry();
    let mut found = Vec::new();
    for form in Form::ALL {
        let make = |nodes: usize| form.graph(registry, nodes);
        flambeau_ir::verify::verify(&make(100)).unwrap_or_else(|why| panic!("{form:?}: {why:?}"));
        for entry in session.passes().passes() {
            let pipeline = session.pipeline(entry.name).unwrap();
            let step = |mut graph: Graph| drop(Manager::new().run(&mut graph, &pipeline));
            found.extend(quadratic(entry.name, form, &make, &step));
        }
        for analysis in STANDARD {
            found.extend(quadratic(analysis.name, form, &make, &|graph| analysis.build(&graph)));
        }
        found.extend(quadratic("clone", form, &make, &|graph| drop(graph.clone())));
        found.extend(quadratic("verify", form, &make, &|graph| {
            assert!(flambeau_ir::verify::verify(&graph).is_ok())
        }));
        // The text of nested blocks is quadratic itself, since every level is indented further.
        if form != Form::Nested {
            found.extend(quadratic("print", form, &make, &|graph| drop(graph.to_string())));
        }
    }
    assert!(found.is_empty(), "growth above {LIMIT}:\n{}", found.join("\n"));
}

#[test]
fn differentiation_is_not_quadratic() {
    let session = Session::standard().unwrap();
    let mut found = Vec::new();
    // Deeply nested graphs are refused.
    for form in Form::ALL.into_iter().filter(|form| *form != Form::Nested) {
        let make = |nodes: usize| form.graph(session.registry(), nodes);
        session.differentiate(&make(100), &[0]).unwrap_or_else(|why| panic!("{form:?}: {why:?}"));
        found.extend(quadratic("differentiate", form, &make, &|graph| {
            session.differentiate(&graph, &[0]).unwrap_or_else(|why| panic!("{form:?}: {why:?}"));
        }));
    }
    assert!(found.is_empty(), "growth above {LIMIT}:\n{}", found.join("\n"));
}

#[test]
fn a_quadratic_step_is_detected() {
    let session = Session::standard().unwrap();
    let make = |nodes: usize| Form::Straight.graph(session.registry(), nodes);
    let step = |graph: Graph| {
        let pairs = graph.nodes_deep().flat_map(|a| graph.nodes_deep().map(move |b| (a, b)));
        assert!(pairs.filter(|(a, b)| graph.op(*a) == graph.op(*b)).count() > 0);
    };
    assert!(quadratic("all-pairs", Form::Straight, &make, &step).is_some());
}

/// Statements that a program repeats: writes in place, through views, and into containers.
const STATEMENTS: [&str; 4] =
    ["y = y.add_(1.0)", "y[0].add_(1.0)", "zs.append(y)\n    zs[-1].add_(1.0)", "n.append(len(n))"];

#[test]
fn compilation_is_not_quadratic() {
    let session = Session::standard().unwrap();
    for statement in STATEMENTS {
        let source = |count: usize| {
            let head = "def main(x):\n    y = x * 1.0\n    zs = [x]\n    n: List[int] = []\n";
            format!("{head}{}    return y\n", format!("    {statement}\n").repeat(count))
        };
        let compile = |source: String| drop(session.compile_source(&source, "main.py").unwrap());
        let growth = || {
            let [small, large] = [300, 3_000].map(|count| (count, fastest(2, || source(count), &compile)));
            exponent(small, large)
        };
        let least = (0..2).map(|_| growth()).fold(f64::INFINITY, f64::min);
        assert!(least < LIMIT, "compiling `{statement}` grows with exponent {least:.2}");
    }
}
