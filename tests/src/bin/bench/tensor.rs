//! Benchmarks of tensor operations: time per call and per element, fused and unfused.

use crate::{lstm_inputs, per_call, row};
use anyhow::Result;
use flambeau::tensor::{DType, Scalar, Tensor};
use flambeau::{IValue, Session};

/// Unfused operations: the expression, and PyTorch's nanoseconds per element for 65,536 and for 1,000,000 elements of
/// type f32.
const UNFUSED: &[(&str, f64, f64)] = &[
    ("x + y", 0.31, 0.98),
    ("x * y", 0.36, 0.83),
    ("torch.exp(x)", 1.52, 2.48),
    ("torch.tanh(x)", 4.40, 6.00),
    ("torch.sigmoid(x)", 1.53, 1.27),
    ("x.sum()", 0.17, 0.10),
    ("x.mean()", 0.26, 0.09),
    ("x.max()", 0.19, 0.13),
    ("x.view(-1, 16).sum(1)", 0.72, 1.20),
];

fn filled(n: i64) -> Result<IValue> {
    let t =
        Tensor::arange(Scalar::Float(0.0), Scalar::Float(1.0), Scalar::Float(1.0 / n as f64), DType::F32)?;
    Ok(IValue::Tensor(t.narrow(0, 0, n)?.clone_data()?))
}

/// Measures tensor operations.
pub(crate) fn figures(session: &Session) -> Result<()> {
    println!("-- tensors");
    let source = "
def one(x):
    return x + x

def chain(x, y):
    a = x * y + x
    b = torch.sigmoid(a) * torch.tanh(y)
    return torch.relu(b - x)
";
    let program = session.compile_source(source, "bench.py")?;
    let one = program.entry("one")?;
    let x = [filled(16)?];
    let ns = per_call(|| {
        one.call(&x, &[])?;
        Ok(())
    })?;
    row("one operation on 16 floats", ns, "ns", 150.0, "600-1300 ns");
    let chain = program.entry("chain")?;
    for (n, limit, torch) in [(1_000_000i64, 0.9, "2.7 ns"), (16_000_000, 1.8, "12 ns")] {
        let args = [filled(n)?, filled(n)?];
        let ns = per_call(|| {
            chain.call(&args, &[])?;
            Ok(())
        })?;
        row(&format!("chain of 6 operations, {n} floats, each"), ns / n as f64, "ns", limit, torch);
    }
    let lstm = include_str!("../../../../cli/data/lstm_cell.py");
    let inputs = lstm_inputs()?;
    let program = session.compile_source(lstm, "lstm_cell.py")?;
    let cell = program.entry("lstm_cell")?;
    let ns = per_call(|| {
        cell.call(&inputs, &[])?;
        Ok(())
    })?;
    row("LSTM cell, batch 1, hidden 8", ns / 1e3, "us", 3.0, "21 us");
    for (expression, at_small, at_large) in UNFUSED {
        let source = format!("def f(x, y):\n    return {expression}\n");
        let program = session.compile_source(&source, "bench.py")?;
        let f = program.entry("f")?;
        for (n, torch) in [(65_536i64, at_small), (1_000_000, at_large)] {
            let args = [filled(n)?, filled(n)?];
            let ns = per_call(|| {
                f.call(&args, &[])?;
                Ok(())
            })?;
            row(
                &format!("{expression}, {n} floats, each"),
                ns / n as f64,
                "ns",
                *torch,
                &format!("{torch} ns"),
            );
        }
    }
    Ok(())
}
