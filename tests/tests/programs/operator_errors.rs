//! Calls of operators with bad arguments: the first line of each error is that of PyTorch (`tests/oracle/operator_errors.py`).

use flambeau::{IValue, Session};
use flambeau_tensor::{DType, Tensor};
use std::fmt::Write as _;

/// Makes the tensor that an argument describes: dtype, sizes and, after `=`, the value of the elements (`i64 2x3=7`).
fn argument(text: &str) -> IValue {
    let (text, value) = text.split_once('=').unwrap_or((text, "1"));
    let (dtype, sizes) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let dtype = match dtype {
        "bool" => DType::Bool,
        "u8" => DType::U8,
        "i16" => DType::I16,
        "i32" => DType::I32,
        "i64" => DType::I64,
        "f16" => DType::F16,
        "bf16" => DType::BF16,
        "f32" => DType::F32,
        "f64" => DType::F64,
        "c64" => DType::C64,
        other => panic!("no dtype {other}"),
    };
    let sizes: Vec<i64> = sizes.split('x').filter(|n| !n.is_empty()).map(|n| n.parse().unwrap()).collect();
    let value: f64 = value.parse().unwrap();
    IValue::Tensor(Tensor::full(&sizes, value.into(), dtype).unwrap())
}

/// Returns the first line of the error of a call of `f`.
fn error_of(session: &Session, source: &str, args: &[IValue]) -> String {
    let entry = session.compile_source(source, "f.py").and_then(|program| program.entry("f"));
    let error = entry.and_then(|entry| Ok(entry.call_on(args, &[], &mut session.host())?));
    match error {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.message.trim().lines().next().unwrap_or_default().to_owned(),
    }
}

#[test]
fn operators_refuse_bad_arguments_as_in_pytorch() {
    let session = Session::standard().unwrap();
    let (mut wrong, mut count) = (String::new(), 0);
    for line in include_str!("../../oracle/operator_errors.txt").lines() {
        let [call, arguments, message] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let args: Vec<IValue> = arguments.split("; ").filter(|text| !text.is_empty()).map(argument).collect();
        let names: Vec<String> = ('a'..).take(args.len()).map(String::from).collect();
        let source = format!("def f({}):\n    return torch.ops.aten.{call}\n", names.join(", "));
        let found = error_of(&session, &source, &args);
        count += 1;
        if found != message {
            let _ = writeln!(wrong, "{call} | {arguments}\n  here    {found}\n  PyTorch {message}");
        }
    }
    assert!(count > 390 && wrong.is_empty(), "{} of {count}\n{wrong}", wrong.lines().count() / 3);
}
