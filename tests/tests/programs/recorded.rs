//! Programs at the borders of what is recorded: writes to views and leaves, arguments whose elements share memory, results
//! that do not depend on arguments, graphs that were released. Each call has the gradients, or raises the error, that PyTorch
//! has: `tests/oracle/recorded.py`. The first call of a program is recorded operator by operator, the second may run a
//! differentiated graph.

use flambeau::exec::Host;
use flambeau::exec::tape::is_recorded;
use flambeau::tensor::DType;
use flambeau::{Entry, IValue, Session, Tensor};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Lines of programs whose outcomes differ from PyTorch's, the beginnings of ours, and the reasons.
const DIFFERENT: [(&str, &str, &str); 6] = [
    (
        "torch.batch_norm(a, ",
        "raises weight and bias must be vectors",
        "PyTorch broadcasts an empty input with the first element of weight and bias, whatever their rank",
    ),
    (
        "expand(3, 4).as_strided",
        "gradients  2.000000000 4.000000000 6.000000000 6.000000000 4.000000000 2.000000000 0.0",
        "PyTorch drops the gradients of elements that the expanded tensor does not have",
    ),
    (
        "c = b * b",
        "refuses one of the variables needed for gradient computation has been modified",
        "PyTorch removes the write, which nothing reads, before the program runs",
    ),
    (
        "torch.add(b, 1, out=a)",
        "raises add(): functions with out=... arguments",
        "the text of the error is that of eager PyTorch",
    ),
    (
        "torch.autograd.grad([(a * 2).sum()], [b])[0]",
        "raises element 0 of the differentiated Tensors appears to not have been used",
        "PyTorch's text lacks a space",
    ),
    (
        "    torch.autograd.grad([b], [a])",
        "raises Trying to backward through the graph a second time",
        "PyTorch removes calls of `grad` whose results are not used",
    ),
];

/// Returns the arguments of these names in the script.
fn arguments(names: &str) -> Vec<IValue> {
    let mut args: Vec<IValue> = Vec::new();
    for name in names.split(' ') {
        args.push(match (name, args.last()) {
            ("again", Some(IValue::Tensor(before))) => {
                let again = before.alias();
                again.set_requires_grad(true);
                IValue::Tensor(again)
            }
            _ => argument(name),
        });
    }
    args
}

/// Returns the argument of this name in the script.
fn argument(name: &str) -> IValue {
    let iota = |n: i32| {
        let values: Vec<f64> = (1..=n).map(|i| f64::from(i) / 8.0).collect();
        Tensor::from_slice(&values, &[i64::from(n)]).unwrap()
    };
    let tensor = match name {
        "leaf" | "plain" => iota(12).view(&[3, 4]).unwrap(),
        "empty" => Tensor::zeros(&[0, 4], DType::F64).unwrap(),
        "row" => iota(4).expand(&[3, 4]).unwrap(),
        "flat" => iota(1).expand(&[3, 4]).unwrap(),
        "windows" => iota(4).as_strided(&[3, 2], &[1, 1], None).unwrap(),
        "scalar" => Tensor::from_slice(&[0.5], &[]).unwrap(),
        "signs" => Tensor::from_slice(&[1.0, -1.0, 1.0, 1.0], &[4]).unwrap(),
        "ints" => Tensor::from_slice(&(0..12).collect::<Vec<i64>>(), &[3, 4]).unwrap(),
        other => panic!("no argument {other}"),
    };
    tensor.set_requires_grad(!matches!(name, "plain" | "ints"));
    IValue::Tensor(tensor)
}

/// Returns the text of an error without details that differ: PyTorch names the tensor that was modified.
fn text(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    first.split_once("inplace operation:").map_or(first, |(before, _)| before).to_owned()
}

/// Calls a program and returns its outcome as the script writes it.
fn outcome(session: &Session, entry: &Entry, names: &str) -> String {
    let mut host: Host = session.host();
    let args = arguments(names);
    let result = match entry.call_on(&args, &[], &mut host) {
        Ok(result) => result.as_tensor().unwrap().clone(),
        Err(error) => return format!("raises {}", text(&error.message)),
    };
    let tensors = || args.iter().map(|arg| arg.as_tensor().unwrap());
    let wanted: Vec<Tensor> = tensors().filter(|t| t.requires_grad()).cloned().collect();
    if !is_recorded(&result) || wanted.is_empty() {
        return "requires no gradient".to_owned();
    }
    let ones = Tensor::full(result.sizes(), 1.0.into(), result.dtype()).unwrap();
    let found = match session.gradients(&[(result, ones)], &wanted, &mut host) {
        Ok(found) => found,
        Err(error) => return format!("refuses {}", text(&error.message)),
    };
    let mut found = found.into_iter();
    let shown = tensors().map(|t| match if t.requires_grad() { found.next().flatten() } else { None } {
        Some(grad) => numbers(grad.to_vec::<f64>().unwrap()),
        None => "none".to_owned(),
    });
    format!("gradients {}", shown.collect::<Vec<_>>().join("; "))
}

/// Returns numbers as text, rounded: the order of sums may differ.
fn numbers(values: impl IntoIterator<Item = f64>) -> String {
    let rounded = values.into_iter().fold(String::new(), |mut text, v| {
        let _ = write!(text, " {v:.9}");
        text
    });
    rounded.replace("-0.000000000", "0.000000000")
}

fn expected(outcome: &str) -> String {
    let Some(gradients) = outcome.strip_prefix("gradients ") else { return text(outcome) };
    let of_tensor = |text: &str| match text {
        "none" => text.to_owned(),
        "[]" => String::new(),
        list => numbers(list.trim_matches(['[', ']']).split(", ").map(|v| v.parse().unwrap())),
    };
    format!("gradients {}", gradients.split("; ").map(of_tensor).collect::<Vec<_>>().join("; "))
}

#[test]
fn programs_record_as_in_pytorch() {
    let session = Session::standard().unwrap();
    let (mut wrong, mut seen) = (String::new(), BTreeSet::new());
    for case in include_str!("../../oracle/recorded.txt").split("\n\n").filter(|case| !case.is_empty()) {
        let (source, notes) = case.split_once("\n# ").unwrap();
        let (names, wanted) = notes.trim().split_once("\n# ").unwrap();
        let entry = session
            .compile_source(&format!("{source}\n"), "f.py")
            .and_then(|program| program.entry("f"))
            .unwrap_or_else(|error| panic!("{source}\n{error}"));
        for call in ["first", "second"] {
            let found = outcome(&session, &entry, names);
            // Some texts of PyTorch continue with advice.
            let agrees = match found.strip_prefix("raises ") {
                Some(message) => !message.is_empty() && expected(wanted).starts_with(&found),
                None => found == expected(wanted),
            };
            let known =
                |&&(line, ours, _): &&(&str, &str, &str)| source.contains(line) && found.starts_with(ours);
            let different = DIFFERENT.iter().find(known).filter(|_| !agrees);
            seen.extend(different.map(|(line, ..)| *line));
            if !agrees && different.is_none() {
                let _ = writeln!(
                    wrong,
                    "{source}\n{names}, {call} call\n  here    {found}\n  PyTorch {wanted}\n"
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let stale = DIFFERENT.iter().find(|(line, ..)| !seen.contains(line));
    assert!(stale.is_none(), "no outcome differs as stated: {stale:?}");
}
