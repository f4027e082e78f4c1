//! Writes to operands and results of operators before the backward pass: it is refused where PyTorch refuses it, and else computes
//! the gradients of the call. The answers are those of `tests/oracle/kept.py`.

use flambeau::exec::Host;
use flambeau::{Entry, IValue, Session, Tensor};
use flambeau_tensor::{Complex, Scalar};

pub(crate) const OPERANDS: [(&str, &[f64], &[i64]); 3] = [
    ("x", &[0.3, -1.2, 0.8, 1.7, 0.4, -0.6], &[2, 3]),
    ("y", &[1.1, 0.2, -0.7, 0.9, -0.3, 0.5], &[2, 3]),
    ("s", &[2.0, 0.3, -0.4, 0.3, 1.5, 0.2, -0.4, 0.2, 1.8], &[3, 3]),
];

/// Expressions, operands that require gradients, and written tensors for which the outcome is another: PyTorch's formulas read
/// an operand for its sizes, compute from a result what ours compute from an operand, or the reverse.
const KNOWN: &str = include_str!("kept_differences.txt");

/// The gradients of operands, or the error of the backward pass.
type Outcome = Result<Vec<Option<Vec<f64>>>, String>;

/// Returns the function of an expression with a write behind it.
fn function(session: &Session, expression: &str, write: &str) -> Result<Entry, String> {
    let source = format!(
        "def f(x0, y0, s0):\n    x = x0 * 1\n    y = y0 * 1\n    s = s0 * 1\n    r = {expression}\n{write}    return r\n"
    );
    let program = session.compile_source(&source, "f.py").map_err(|error| error.to_string())?;
    program.entry("f").map_err(|error| error.to_string())
}

/// Calls a function, writes result `written` after the call, and runs the backward pass for the sum of all results.
fn outcome(session: &Session, entry: &Entry, requiring: &str, written: Option<usize>) -> Outcome {
    let text = |error: flambeau::Error| error.to_string();
    let operands = OPERANDS.map(|(name, elements, sizes)| {
        let tensor = Tensor::from_slice(elements, sizes).unwrap();
        tensor.set_requires_grad(requiring.contains(name));
        tensor
    });
    let mut host: Host = session.host();
    let args = operands.clone().map(IValue::Tensor);
    let result = entry.call_on(&args, &[], &mut host).map_err(text)?;
    let mut results = Vec::new();
    let _ = result.visit(|part| {
        results.extend(part.as_tensor().cloned());
        std::ops::ControlFlow::<()>::Continue(())
    });
    if let Some(tensor) = written.and_then(|i| results.get(i)) {
        host.set_tape(Some(session.tape().map_err(text)?));
        let write = session.compile_source("def w(t):\n    t.add_(1)\n", "w.py").map_err(text)?;
        let write = write.entry("w").map_err(text)?;
        write.call_on(&[IValue::Tensor(tensor.clone())], &[], &mut host).map_err(text)?;
    }
    let live = results.iter().filter(|tensor| tensor.requires_grad());
    let seeds = live.map(|tensor| {
        // PyTorch's program adds the real and imaginary parts of all results.
        let one = if tensor.dtype().is_complex() {
            Scalar::Complex(Complex::new(1.0, 1.0))
        } else {
            Scalar::Float(1.0)
        };
        (tensor.clone(), Tensor::full(tensor.sizes(), one, tensor.dtype()).unwrap())
    });
    let seeds: Vec<(Tensor, Tensor)> = seeds.collect();
    let required: Vec<Tensor> = operands.iter().filter(|tensor| tensor.requires_grad()).cloned().collect();
    let found = session.gradients(&seeds, &required, &mut host).map_err(text)?;
    Ok(found.into_iter().map(|grad| grad.map(|grad| grad.to_vec::<f64>().unwrap())).collect())
}

/// Whether two lists of gradients are equal up to rounding.
fn agree(a: &[Option<Vec<f64>>], b: &[Option<Vec<f64>>]) -> bool {
    let near = |a: &f64, b: &f64| (a - b).abs() <= 1e-9 * (1.0 + b.abs()) || a.is_nan() && b.is_nan();
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| match (a, b) {
            (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a, b)),
            (a, b) => a.is_none() && b.is_none(),
        })
}

/// Returns how the outcome after a write differs from the recorded answer: `+` if PyTorch computes gradients, `-` if it refuses.
fn difference(outcome: &Outcome, answer: &str, plain: &Outcome) -> Option<String> {
    match (outcome, answer, plain) {
        (Ok(found), "+", Ok(plain)) if agree(found, plain) => None,
        (Ok(found), "+", plain) => Some(format!("gradients {found:?} instead of {plain:?}")),
        (Ok(_), _, _) => Some("gradients where PyTorch refuses them".to_owned()),
        (Err(error), "-", _) if error.contains("modified by an inplace operation") => None,
        (Err(error), _, _) => Some(error.clone()),
    }
}

#[test]
fn writes_refuse_the_gradients_that_they_change() {
    let session = Session::builder().standard().differentiated_after(1).build().unwrap();
    let mut differences = Vec::new();
    for line in include_str!("../../oracle/kept.txt").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [expression, requiring, answers] = fields[..] else { panic!("{line}") };
        let plain = function(&session, expression, "").and_then(|f| outcome(&session, &f, requiring, None));
        for answer in answers.split(' ') {
            let (written, answer) = answer.split_at(answer.len() - 1);
            let result = written.strip_prefix('r').map(|i| i.parse().unwrap());
            let write = if result.is_some() { String::new() } else { format!("    {written}.add_(1)\n") };
            // The first call is recorded operator by operator, the second runs a differentiated graph.
            let calls = |entry: Entry| {
                let mut calls = (0..2).map(|_| outcome(&session, &entry, requiring, result));
                calls.find_map(|found| difference(&found, answer, &plain))
            };
            let found = function(&session, expression, &write).map_or_else(Some, calls);
            let case = format!("{expression}\t{requiring}\t{written}");
            match (found, KNOWN.lines().any(|known| known == case)) {
                (Some(found), false) => differences.push(format!("{case}\t{found}")),
                (None, true) => {
                    differences.push(format!("{case}\tagrees: remove the line of `kept_differences.txt`"))
                }
                _ => {}
            }
        }
    }
    assert!(differences.is_empty(), "{}\n{}", differences.len(), differences.join("\n"));
}
