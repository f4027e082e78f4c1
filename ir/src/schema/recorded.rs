//! Comparison with PyTorch's overload choices and conversions, recorded for many calls.

use super::{ArgInfo, Binding, Conversion, FunctionSchema, MatchedSchema, SchemaCall, match_call};
use crate::symbol::Symbol;
use crate::types::{NoClasses, NoNames, Type, read_annotation};

/// Written by the script of the same name.
const RECORDED: &str = include_str!("../../../tests/oracle/overloads.txt");

/// PyTorch excludes these overloads from matching, because their parameters do not differ from those of another
/// overload.
const BLOCKED: [&str; 3] = ["aten::view.dtype", "aten::max.unary_out", "aten::min.unary_out"];

fn arg(text: &str) -> ArgInfo {
    match text {
        "[]" => ArgInfo { empty_list: true, ..Type::LIST_TENSOR.into() },
        _ => read_annotation(text, &NoNames).unwrap_or_else(|e| panic!("{text}: {e}")).into(),
    }
}

/// Collects the names of the nodes that a plan inserts.
fn nodes(conversions: &[Conversion], into: &mut Vec<&'static str>) {
    for step in conversions {
        match step {
            Conversion::Repeat { .. } | Conversion::EmptyList(_) => into.push("prim::ListConstruct"),
            Conversion::TupleToList(_) => into.extend(["prim::TupleUnpack", "prim::ListConstruct"]),
            Conversion::TupleElements(elements) => {
                into.extend(["prim::TupleUnpack", "prim::TupleConstruct"]);
                elements.iter().for_each(|e| nodes(e, into));
            }
            Conversion::FloatImplicit => into.push("aten::FloatImplicit"),
            Conversion::ComplexImplicit => into.push("aten::ComplexImplicit"),
            Conversion::IntImplicit => into.push("aten::IntImplicit"),
            Conversion::ScalarImplicit => into.push("aten::ScalarImplicit"),
            Conversion::ToFloat => into.push("aten::Float"),
            Conversion::ToComplex => into.push("aten::Complex"),
            Conversion::ToInt => into.push("aten::Int"),
            Conversion::StrToDevice => into.push("aten::device"),
        }
    }
}

fn planned(matched: &MatchedSchema) -> String {
    let mut all = Vec::new();
    for param in &matched.params {
        nodes(&param.conversions, &mut all);
        if let Binding::Varargs { conversions, .. } = &param.binding {
            conversions.iter().for_each(|c| nodes(c, &mut all));
            all.push("prim::ListConstruct");
        }
    }
    all.sort_unstable();
    all.join(" ")
}

#[test]
fn overloads_agree_with_pytorch() {
    let mut schemas: Vec<FunctionSchema> = Vec::new();
    let mut differences = Vec::new();
    let (mut calls, mut fits, mut after_calls) = (0, 0, false);
    for line in RECORDED.lines() {
        if let Some(text) = line.strip_prefix("S\t") {
            if std::mem::take(&mut after_calls) {
                schemas.clear();
            }
            schemas.push(FunctionSchema::parse(text).unwrap_or_else(|e| panic!("{e}")));
            continue;
        }
        after_calls = true;
        let cells: Vec<&str> = line.split('\t').collect();
        let (mut args, mut kwargs) = (Vec::new(), Vec::new());
        for text in cells[1].split("; ") {
            match text.split_once('=') {
                Some((name, ty)) => kwargs.push((Symbol::new(name), arg(ty))),
                None => args.push(arg(text)),
            }
        }
        let candidates: Vec<&FunctionSchema> =
            schemas.iter().filter(|s| !BLOCKED.contains(&s.full_name().as_str())).collect();
        let found =
            match_call(&candidates, SchemaCall { receiver: None, args: &args, kwargs: &kwargs }, &NoClasses);
        let (name, steps) = match &found {
            Ok(m) => (candidates[m.schema].to_string(), planned(m)),
            Err(_) => ("-".to_owned(), String::new()),
        };
        calls += 1;
        fits += usize::from(found.is_ok());
        if name != cells[2] || steps != cells[3] {
            differences.push(format!(
                "{} {}: {name} [{steps}], recorded {} [{}]",
                schemas[0].name, cells[1], cells[2], cells[3]
            ));
        }
    }
    assert!(calls > 2000 && fits > 500, "{calls} calls, {fits} fit");
    assert_eq!(differences, [""; 0], "{} differences of {calls}", differences.len());
}
