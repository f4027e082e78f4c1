//! Calls that are refused because an operand requires a gradient, as PyTorch refuses them: `tests/oracle/refused.py`.

use super::kept::OPERANDS;
use flambeau::{IValue, Session};
use flambeau_tensor::{DType, Tensor};

/// The texts of such errors.
const REFUSALS: [&str; 2] = ["does not support automatic differentiation", "is not differentiable"];

/// Expressions whose calls succeed where a part of a composite operator refuses them in PyTorch: whether the part runs depends on
/// other arguments, or another error comes first.
const ACCEPTED: [&str; 6] = [
    "F.gumbel_softmax(",
    "F.cross_entropy(x, torch.tensor([0, 2])",
    "F.cross_entropy(x, y.softmax(1))",
    "F.grid_sample(",
    "F.adaptive_avg_pool1d(x, 2)",
    "F.ctc_loss(",
];

/// Calls `f` with operands of a dtype, of which one requires a gradient; returns the error.
fn error_of(session: &Session, source: &str, dtype: DType, rows: i64, requiring: &str) -> Option<String> {
    let entry = match session.compile_source(source, "f.py").and_then(|program| program.entry("f")) {
        Ok(entry) => entry,
        Err(error) => return Some(error.to_string()),
    };
    let args = OPERANDS.map(|(name, elements, sizes)| {
        let rows = if name == "s" { sizes[0] } else { rows };
        let count = (rows * sizes[1]) as usize;
        let tensor = Tensor::from_slice(&elements[..count], &[rows, sizes[1]]).unwrap();
        let tensor = tensor.to_dtype(dtype).unwrap().clone_data().unwrap();
        tensor.set_requires_grad(requiring == name);
        IValue::Tensor(tensor)
    });
    entry.call_on(&args, &[], &mut session.host()).err().map(|error| error.to_string())
}

#[test]
fn calls_are_refused_that_have_no_derivative() {
    // Recorded operator by operator, and as a differentiated graph from the first call on.
    let mut differences = Vec::new();
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        for line in include_str!("../../oracle/refused.txt").lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [expression, dtype, rows, requiring, answer] = fields[..] else { panic!("{line}") };
            let dtype = if dtype == "float64" { DType::F64 } else { DType::C128 };
            let source = format!("def f(x, y, s):\n    return {expression}\n");
            let error = error_of(&session, &source, dtype, rows.parse().unwrap(), requiring);
            let agrees = match &error {
                _ if answer == "-" => !error.iter().any(|e| REFUSALS.iter().any(|text| e.contains(text))),
                Some(error) => error.contains(answer),
                None => false,
            };
            if !agrees && !ACCEPTED.iter().any(|known| expression.starts_with(known)) {
                differences.push(format!("{calls}: {line}\n    {error:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}\n{}", differences.len(), differences.join("\n"));
}
