//! Operators whose meaning changed, in archives of every format version, compared with PyTorch.
//!
//! `tests/oracle/upgrades.py` records the cases: bodies of methods, and their results by version. Each is packed into
//! an archive in PyTorch's format.

use flambeau::tensor::Scalar;
use flambeau::{Error, IValue, Session};
use flambeau_archive::zip::ZipWriter;

const RECORDED: &str = include_str!("../../../tests/oracle/upgrades.txt");

/// Builds a module without attributes from its code and its version.
fn archive(version: u64, code: &str) -> Vec<u8> {
    let mut out = ZipWriter::new(Vec::new(), "m");
    for (name, bytes) in [
        ("data.pkl", &b"\x80\x02c__torch__\nM\n)\x81}b."[..]),
        ("constants.pkl", b"\x80\x02)."),
        ("code/__torch__.py", code.as_bytes()),
        ("version", format!("{version}\n").as_bytes()),
    ] {
        out.store(name, bytes).expect("the memory suffices");
    }
    out.finish().expect("the memory suffices")
}

fn number(value: Scalar) -> String {
    match value {
        Scalar::Bool(b) => (if b { "True" } else { "False" }).to_owned(),
        Scalar::Int(i) => i.to_string(),
        Scalar::Float(x) if x.is_nan() => "nan".to_owned(),
        Scalar::Float(x) if x.is_infinite() => (if x > 0.0 { "inf" } else { "-inf" }).to_owned(),
        Scalar::Float(x) => format!("{x:.4}"),
        Scalar::Complex(z) => format!("{}+{}j", number(Scalar::Float(z.re)), number(Scalar::Float(z.im))),
    }
}

fn spell(value: &IValue) -> String {
    match value {
        IValue::Tensor(t) => {
            let elements: Vec<_> = t.to_scalars().expect("readable").into_iter().map(number).collect();
            format!("{} {:?} [{}]", t.dtype().name(), t.sizes(), elements.join(", "))
        }
        IValue::List(list) => list.to_vec().iter().map(spell).collect::<Vec<_>>().join("; "),
        IValue::Int(i) => i.to_string(),
        IValue::Float(x) => number(Scalar::Float(*x)),
        other => format!("{other:?}"),
    }
}

fn answer(session: &Session, version: u64, code: &str) -> Result<String, Error> {
    let program = session.load_archive_bytes(&archive(version, code))?;
    Ok(spell(&program.entry("forward")?.call(&[], &[])?))
}

struct Case {
    code: String,
    answers: Vec<(u64, String)>,
}

/// Returns the cases, with the recorded result for the first and last version of each range.
fn cases() -> Vec<Case> {
    let parse = |text: &str| {
        let mut lines = text.lines();
        let ty = lines.next().expect("a type");
        let mut code = format!(
            "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  def forward(self) -> {ty}:\n"
        );
        let mut answers = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            if let Some(body) = line.strip_prefix("| ") {
                code += &format!("    {body}\n");
                continue;
            }
            let (run, text) = line.split_once(' ').expect("versions and an answer");
            let (first, last) = run.split_once('-').expect("versions");
            let ends = [first, last].map(|v| v.parse::<u64>().expect("a version"));
            answers.extend(ends.map(|version| (version, text.to_owned())));
        }
        answers.dedup();
        Case { code, answers }
    };
    RECORDED.split("\ncase ").skip(1).map(parse).collect()
}

#[test]
fn operators_of_old_versions_keep_their_meaning() {
    let session = Session::standard().expect("consistent");
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() > 300, "{} cases", cases.len());
    for Case { code, answers } in &cases {
        for (version, want) in answers {
            let (got, why) = match answer(&session, *version, code) {
                Ok(got) => (got, String::new()),
                Err(e) => ("error".to_owned(), e.to_string()),
            };
            if got.replace("-0.0000", "0.0000") != want.replace("-0.0000", "0.0000") {
                wrong.push(format!("{code}version {version}: {got}, recorded {want} {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n\n"));
}
