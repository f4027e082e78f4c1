//! Operators on empty operands, and on those of every category of dtypes: what PyTorch returns or refuses (`tests/oracle/unusual.py`).

use flambeau::tensor::{DType, Tensor};
use flambeau::{IValue, Session};
use std::fmt::Write as _;

const DTYPES: [(char, DType); 13] = [
    ('b', DType::Bool),
    ('u', DType::U8),
    ('i', DType::I64),
    ('h', DType::F16),
    ('f', DType::F32),
    ('c', DType::C64),
    ('s', DType::I16),
    ('d', DType::F64),
    ('w', DType::I32),
    ('a', DType::I8),
    ('g', DType::BF16),
    ('z', DType::C128),
    ('k', DType::C32),
];
const SIZES: [&[i64]; 9] = [&[], &[0], &[1], &[2, 0], &[0, 3], &[2, 2], &[2, 3], &[1, 0, 4], &[2, 3, 3]];
const PAIRS: [[&[i64]; 2]; 10] = [
    [&[2, 3], &[2, 3]],
    [&[2, 3], &[]],
    [&[], &[2, 3]],
    [&[2, 1], &[1, 3]],
    [&[0, 3], &[3]],
    [&[2, 0], &[2, 1]],
    [&[1], &[]],
    [&[3], &[3]],
    [&[2, 2], &[2]],
    [&[2, 3], &[3, 2]],
];

/// Calls whose code is another one, by expression and operands, with the reason.
const DIFFERENCES: [(&str, &str, &str); 1] =
    [("torch.ldexp(x, y)", "complex64", "PyTorch refuses powers of complex32, ours are complex64")];

fn operand(dtype: char, sizes: &[i64], first: i64) -> Tensor {
    let number = |i: i64| {
        let n = (7 * i + 3 * first) % 5 - 1;
        match dtype {
            'u' => n.abs(),
            'b' => i64::from(n > 0),
            // Indices of two elements.
            'i' if first > 0 => n.rem_euclid(2),
            _ => n,
        }
    };
    let values = (0..sizes.iter().product()).map(|i| number(i) as f32).collect();
    let (_, dtype) = DTYPES.into_iter().find(|(letter, _)| *letter == dtype).unwrap();
    Tensor::from_vec(values, sizes).and_then(|t| t.to_dtype(dtype)).unwrap()
}

/// Collects the numbers that make the code of a result.
fn numbers_of(result: &IValue, numbers: &mut Vec<i64>) {
    match result {
        IValue::Tensor(t) => {
            numbers.push(t.rank() as i64);
            numbers.extend(t.sizes());
            if t.numel() > 1 {
                numbers.extend(t.strides());
            }
            if t.dtype().is_integral(true) {
                numbers.extend(t.to_vec::<i64>().unwrap());
            }
        }
        IValue::Tuple(parts) => parts.items().iter().for_each(|part| numbers_of(part, numbers)),
        IValue::List(parts) => parts.to_vec().iter().for_each(|part| numbers_of(part, numbers)),
        IValue::Bool(b) => numbers.push(i64::from(*b)),
        IValue::Int(i) => numbers.push(*i),
        _ => {}
    }
}

fn letter(result: &IValue) -> char {
    match result {
        IValue::Tensor(t) => DTYPES.into_iter().find(|(_, dtype)| *dtype == t.dtype()).unwrap().0,
        IValue::Tuple(parts) => parts.items().first().map_or('l', letter),
        IValue::List(parts) => parts.to_vec().first().map_or('l', letter),
        _ => 'n',
    }
}

fn code(result: &IValue) -> String {
    let mut numbers = Vec::new();
    numbers_of(result, &mut numbers);
    let mut total = 0x811C_9DC5_u32;
    for byte in numbers.iter().flat_map(|number| number.to_le_bytes()) {
        total = (total ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    let digit = |n: u32| char::from_digit(n % 36, 36).unwrap();
    String::from_iter([letter(result), digit(total / 36), digit(total)])
}

fn described(operands: &[Tensor]) -> String {
    let all: Vec<String> = operands.iter().map(|t| format!("{}{:?}", t.dtype().name(), t.sizes())).collect();
    all.join(" ")
}

#[derive(Default)]
struct Comparison {
    calls: usize,
    wrong: String,
    /// Calls that differ as [`DIFFERENCES`] says.
    known: usize,
}

/// Compares the codes of a line.
fn compare(
    session: &Session,
    parameters: &str,
    line: &str,
    operands: &[Vec<Tensor>],
    comparison: &mut Comparison,
) {
    let (expression, codes) = line.split_once('\t').unwrap();
    assert_eq!(codes.len(), 3 * operands.len(), "{expression}");
    let source = format!("def f({parameters}):\n    return {expression}\n");
    let entry = session.compile_source(&source, "f.py").and_then(|unit| unit.entry("f"));
    let entry = entry.unwrap_or_else(|error| panic!("{expression}: {error}"));
    for (i, given) in operands.iter().enumerate() {
        let recorded = &codes[3 * i..3 * i + 3];
        let arguments: Vec<IValue> = given.iter().map(|t| IValue::Tensor(t.clone_data().unwrap())).collect();
        let (found, error) = match entry.call(&arguments, &[]) {
            Ok(result) => (code(&result), String::new()),
            // Another fault than that of the input is not what PyTorch refuses.
            Err(error) if error.to_string().contains("internal error") => {
                ("int".to_owned(), error.to_string())
            }
            Err(error) => ("...".to_owned(), error.to_string()),
        };
        let given = described(given);
        comparison.calls += 1;
        // A few of PyTorch's kernels support complex32.
        if found == recorded || error.contains("ComplexHalf") {
            continue;
        }
        if DIFFERENCES.iter().any(|(e, operands, _)| *e == expression && given.contains(operands)) {
            comparison.known += 1;
            continue;
        }
        let error = error.lines().last().unwrap_or_default();
        let _ = writeln!(comparison.wrong, "{expression} of {given}: {found} instead of {recorded} {error}");
    }
}

#[test]
fn operators_take_and_refuse_unusual_operands() {
    let session = Session::standard().unwrap();
    let recorded = include_str!("../../oracle/unusual.txt").trim_end();
    let (of_one, of_two) = recorded.split_once("\n\n").unwrap();
    let one: Vec<Vec<Tensor>> =
        "buishgfc".chars().flat_map(|d| SIZES.map(|sizes| vec![operand(d, sizes, 0)])).collect();
    let pairs = "buihfc".chars().flat_map(|d| "buihfc".chars().map(move |e| (d, e)));
    let two: Vec<Vec<Tensor>> = pairs
        .flat_map(|(d, e)| PAIRS.map(|[first, second]| vec![operand(d, first, 0), operand(e, second, 1)]))
        .collect();
    let mut comparison = Comparison::default();
    for line in of_one.lines() {
        compare(&session, "x", line, &one, &mut comparison);
    }
    for line in of_two.lines() {
        compare(&session, "x, y", line, &two, &mut comparison);
    }
    let Comparison { calls, wrong, known } = comparison;
    assert_eq!(calls, 64_872, "calls");
    assert!(wrong.is_empty(), "{} differ\n{wrong}", wrong.lines().count());
    assert_eq!(known, 6, "calls that differ as stated");
}
