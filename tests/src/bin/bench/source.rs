//! Benchmarks of the frontend: time per line from source text to the cleaned graph, and its growth.
//!
//! The program is one function of assignments, calls, methods, branches and loops over a dozen variables. It exercises
//! every part of the frontend: lexer, parser, overload resolution, SSA construction, clean-up.

use crate::{fastest, row};
use anyhow::{Result, anyhow};
use flambeau::Session;
use flambeau::ir::Source;
use flambeau_frontend::{FrontendLimits, compile};
use std::fmt::Write;
use std::sync::Arc;

/// A fifteenth of PyTorch's 56 microseconds.
const LINE_NS: f64 = 3700.0;
const SIZES: [usize; 3] = [1_000, 6_000, 100_000];
const GROWTH: f64 = 12.6;

/// Returns the source of a function of about `lines` lines.
pub(crate) fn program(lines: usize) -> String {
    let mut text = String::from("def f(x: Tensor, n: int, s: float):\n    y = x\n    a = [n]\n");
    let mut line = 3;
    while line < lines {
        let k = line % 7;
        let _ = write!(
            text,
            "    t{k} = x * {k}.5 + y\n    y = torch.relu(t{k}).sum(dim=0, keepdim=True)\n    n = n * 3 + {k} - len(a)\n    \
             if n > {k}:\n        y = y - s\n        a.append(n % 5)\n    else:\n        s = s * 0.5\n    for i{k} in range(2):\n        \
             x = x + i{k}\n"
        );
        line += 10;
    }
    text.push_str("    return x, y, n, s, a\n");
    text
}

/// Returns the source of a function with nested `if` statements.
fn nested(depth: usize) -> String {
    let mut text = String::from("def f(n: int) -> int:\n");
    for level in 1..=depth {
        let _ = writeln!(text, "{:level$}if n > {level}:", "");
    }
    let _ = writeln!(text, "{:depth$} n = n + 1", "");
    text.push_str(" return n\n");
    text
}

/// Returns the source of a function with a list literal of `elements` elements.
fn literal(elements: usize) -> String {
    let mut text = String::from("def f():\n    return [");
    for i in 0..elements {
        let _ = write!(text, "{i}, ");
    }
    text.push_str("]\n");
    text
}

/// Compiles a text repeatedly; returns the minimum time in nanoseconds.
fn time(session: &Session, text: &str, repeat: usize) -> Result<f64> {
    let source = Source::new("bench.py", text);
    fastest(
        repeat,
        || Arc::clone(&source),
        |source| {
            compile(&source, session.registry(), &FrontendLimits::default())
                .map_err(|problems| anyhow!("{}", problems.first().map_or_else(String::new, |p| p.render())))
        },
    )
}

/// Measures the frontend.
pub(crate) fn figures(session: &Session) -> Result<()> {
    let mut before: Option<(usize, f64)> = None;
    for lines in SIZES {
        let text = program(lines);
        let ns = time(session, &text, (60_000 / lines).clamp(3, 20))?;
        let torch = if lines == 6_000 { "56" } else { "" };
        row(
            &format!("source to graph, {lines} lines: a line"),
            ns / lines as f64 / 1e3,
            "us",
            LINE_NS / 1e3,
            torch,
        );
        if let Some((smaller, small)) = before {
            let decades = ((lines / smaller) as f64).log10();
            row("growth for ten times the lines", (ns / small).powf(1.0 / decades), "x", GROWTH, "");
        }
        before = Some((lines, ns));
    }
    let deep = time(session, &nested(10_000), 2)?;
    row("10000 ifs in each other: a level", deep / 10_000.0 / 1e3, "us", 20.0, "dies");
    let long = time(session, &literal(100_000), 3)?;
    row("a literal of 100000 elements: an element", long / 100_000.0 / 1e3, "us", LINE_NS / 1e3, "");
    Ok(())
}
