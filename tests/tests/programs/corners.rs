//! Pointwise operators at special values: results that PyTorch recorded (`tests/oracle/corners.py`), with the signs of zeros.

use flambeau::tensor::{DType, Tensor};
use flambeau::{IValue, Session};
use std::fmt::Write as _;

/// Expressions whose zeros have another sign than in PyTorch, with the reason.
const OTHER_ZEROS: [(&str, &str); 1] = [(
    "torch.amax(torch.stack([x, y]), 0)",
    "PyTorch returns the first zero in an order that depends on the strides, here 0 is larger than -0",
)];

fn agrees(found: f64, recorded: f64, dtype: DType) -> bool {
    let tolerance = match dtype {
        DType::F64 => 1e-12,
        DType::F32 => 2e-6,
        // Some vectorized functions of PyTorch have errors of several units in the last place.
        _ => 3e-2,
    };
    if recorded == 0.0 {
        found == 0.0 && found.is_sign_negative() == recorded.is_sign_negative()
    } else {
        found == recorded
            || found.is_nan() && recorded.is_nan()
            || (found - recorded).abs() <= tolerance * recorded.abs()
    }
}

#[test]
fn operators_agree_at_special_values() {
    let session = Session::standard().unwrap();
    let mut lines = include_str!("../../oracle/corners.txt").lines();
    let numbers = |text: &str| text.split(' ').map(|v| v.parse().unwrap()).collect::<Vec<f64>>();
    let values = numbers(lines.next().unwrap());
    let (mut wrong, mut count) = (String::new(), 0);
    for line in lines {
        let [expression, dtype, recorded] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let dtype = match dtype {
            "float32" => DType::F32,
            "float64" => DType::F64,
            _ => DType::BF16,
        };
        let source = format!("def f(x, y):\n    return {expression}\n");
        let entry = session.compile_source(&source, "f.py").unwrap().entry("f").unwrap();
        let call = |x: f64| {
            let y = if x == 0.0 && x.is_sign_negative() { 0.0 } else { -0.0 };
            let tensor = |v: f64| Tensor::from_vec(vec![v], &[1]).and_then(|t| t.to_dtype(dtype)).unwrap();
            entry.call(&[IValue::Tensor(tensor(x)), IValue::Tensor(tensor(y))], &[])
        };
        if recorded == "raises" {
            assert!(call(1.0).is_err(), "{expression} {dtype:?} is not refused");
            continue;
        }
        for (&x, recorded) in values.iter().zip(numbers(recorded)) {
            let result = call(x).unwrap_or_else(|error| panic!("{expression} {dtype:?}: {error}"));
            let found = result.as_tensor().unwrap().to_vec::<f64>().unwrap()[0];
            count += 1;
            let is_other_zero =
                found == 0.0 && recorded == 0.0 && OTHER_ZEROS.iter().any(|(other, _)| *other == expression);
            if !agrees(found, recorded, dtype) && !is_other_zero {
                let _ = writeln!(wrong, "{expression} {dtype:?} at {x}: {found} instead of {recorded}");
            }
        }
    }
    assert!(count > 6_000, "{count} results");
    assert!(wrong.is_empty(), "\n{wrong}");
}
