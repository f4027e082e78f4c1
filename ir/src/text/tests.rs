//! Comparison with PyTorch's text: constants and type verbosity as recorded by `tests/oracle/constants.py`, and
//! comments.

use super::{PrintOptions, parse_graph};
use crate::attr::{Attr, names};
use crate::op::{Prim, Registry};
use crate::types::{Type, Verbosity};
use crate::value::IValue;
use crate::{Graph, RegistryBuilder, Source, verify};
use flambeau_tensor::{DType, Layout, Tensor};
use std::sync::Arc;

fn registry() -> Arc<Registry> {
    RegistryBuilder::new().build().unwrap()
}

fn read(text: &str) -> Graph {
    parse_graph(&Source::new("test.ir", text), &registry()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Parses a text that must fail; returns code and message of the error.
fn refused(text: &str) -> (&'static str, String) {
    let error = parse_graph(&Source::new("test.ir", text), &registry()).expect_err(text);
    (error.code, error.render())
}

fn recorded(file: &str) -> String {
    let path = format!("{}/../tests/oracle/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn constant(tensor: &Tensor, ty: Type) -> Graph {
    let mut graph = Graph::new(registry());
    let mut edit = graph.edit();
    let attrs = edit.attrs([(names::value(), Attr::Value(IValue::Tensor(tensor.clone())))]);
    edit.insert(Prim::Constant, &[], attrs, &[ty]);
    graph
}

/// Returns the tensor of the first constant of a graph.
fn tensor_in(graph: &Graph) -> Tensor {
    let node = graph.nodes_deep().next().unwrap();
    match graph.attrs(node).get(names::value()) {
        Some(Attr::Value(IValue::Tensor(t))) => t.clone(),
        other => panic!("{other:?}"),
    }
}

/// Returns dtype, sizes and elements; all NaN are equal.
fn contents(t: &Tensor) -> (DType, Vec<i64>, String) {
    let elements = if t.dtype().is_complex() {
        format!("{:?}", t.to_dtype(DType::C128).unwrap().to_vec::<flambeau_tensor::Complex<f64>>().unwrap())
    } else if t.dtype().is_integral(true) {
        format!("{:?}", t.to_vec::<i64>().unwrap())
    } else {
        format!("{:?}", t.to_vec::<f64>().unwrap())
    };
    (t.dtype(), t.sizes().to_vec(), elements)
}

/// Constants print as in PyTorch or with more digits. All but abbreviated ones parse back to the same tensor.
#[test]
fn tensors_print_and_read_as_recorded() {
    let (mut same, mut longer, mut abbreviated) = (0, 0, 0);
    for case in recorded("constants.txt").split("=== ").skip(1) {
        let (head, want) = case.trim_end().split_once('\n').unwrap();
        let mut words = head.split(' ');
        let dtype = DType::from_name(words.next().unwrap()).unwrap();
        let sizes: Vec<i64> = words.next().unwrap().split(',').filter_map(|n| n.parse().ok()).collect();
        let hex = words.next().unwrap_or("");
        let bytes: Vec<u8> =
            (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
        let tensor = Tensor::from_bytes(&bytes, dtype, Layout::contiguous(&sizes).unwrap()).unwrap();
        let declaration = want.split(" = ").next().unwrap();
        let refined = read(&format!("graph():\n  {declaration} = toy::op()\n  return ()\n"));
        let ty = refined.ty(refined.result(refined.nodes_deep().next().unwrap(), 0));
        let printed = constant(&tensor, ty).to_string();
        let line = printed.lines().nth(1).unwrap().trim();
        if want.contains("<Tensor>") {
            assert_eq!(line, want);
            abbreviated += 1;
            continue;
        }
        if line == want {
            same += 1;
        } else {
            longer += 1;
        }
        assert_eq!(contents(&tensor_in(&read(&printed))), contents(&tensor), "{head}\n{printed}");
        // Without a refined type the text itself contains dtype and sizes.
        let bare = constant(&tensor, Type::TENSOR).to_string();
        assert_eq!(contents(&tensor_in(&read(&bare))), contents(&tensor), "{head}\n{bare}");
    }
    assert_eq!((same, longer, abbreviated), (35, 8, 1));
}

#[test]
fn types_print_as_recorded_at_every_level() {
    let text = recorded("types.txt");
    let mut cases = text.split("=== ").skip(1).map(|case| case.split_once('\n').unwrap());
    let (_, source) = cases.next().unwrap();
    let graph = read(source);
    let exact = |types| PrintOptions { types, exact: true, ..PrintOptions::default() };
    let exact_text = graph.to_text(exact(PrintOptions::default().types));
    // Exact text names the symbols of sizes.
    assert_eq!(
        exact_text.replace("SS(-1), SS(-2)", "*, *").replace("SS(-3)", "*").replace("SS(-4)", "*"),
        graph.to_string()
    );
    let mut count = 0;
    for (level, want) in cases {
        let types = Verbosity::from_number(level.parse().unwrap()).unwrap();
        assert_eq!(graph.to_text(PrintOptions { types, ..PrintOptions::default() }), want, "level {level}");
        assert_eq!(graph.to_text(exact(types)), exact_text, "exact text has all of its types");
        count += 1;
    }
    assert_eq!(count, 5);
    assert_eq!(Verbosity::from_number(5), None);
}

/// PyTorch's text in formats that the printer does not use: rounded numbers, groups of columns, scales.
#[test]
fn short_tensors_of_pytorch_read_as_they_stand() {
    let tensor = |ty: &str, value: &str| {
        tensor_in(&read(&format!("graph():\n  %0 : {ty} = prim::Constant[value={value}]()\n  return (%0)\n")))
    };
    let t = tensor(
        "Float(2, 2, strides=[1, 2])",
        "0.01 *  1.0000  2.5000   3.0000  4.0000 [ CPUFloatType{2,2} ]",
    );
    assert_eq!((t.strides(), t.to_vec::<f32>().unwrap()), (&[1, 2][..], vec![0.01, 0.025, 0.03, 0.04]));
    let t = tensor("Tensor", "Columns 1 to 2 1  2  4  5  Columns 3 to 3 3  6 [ CPULongType{2,3} ]");
    assert_eq!(t.to_vec::<i64>().unwrap(), [1, 2, 3, 4, 5, 6]);
    let t = tensor(
        "Tensor?",
        "(1,1,.,.) =    1 (2,1,.,.) =    2 (1,2,.,.) =    3 (2,2,.,.) =    4 [ CPULongType{2,2,1,1} ]",
    );
    assert_eq!(t.to_vec::<i64>().unwrap(), [1, 3, 2, 4]);
    let t = tensor("Long(2)", "1.23457e+06        2 [ CPULongType{2} ]");
    assert_eq!(t.to_vec::<i64>().unwrap(), [1_234_570, 2]);
    let t = tensor("ComplexFloat(2)", "{(1,-2)}");
    assert_eq!(t.to_vec::<flambeau_tensor::Complex<f32>>().unwrap()[1].im, -2.0);
    let list = read(
        "graph():\n  %0 : Tensor[] = prim::Constant[value=[{1},  1  2 [ CPULongType{2} ]]]()\n  return (%0)\n",
    );
    let node = list.nodes_deep().next().unwrap();
    let Some(Attr::Value(IValue::List(items))) = list.attrs(node).get(names::value()) else {
        panic!("{list}")
    };
    assert_eq!(items.to_vec()[1].as_tensor().unwrap().sizes(), [2]);
    assert_eq!(read(&list.to_string()).to_string(), list.to_string());
}

#[test]
fn short_tensors_that_make_none_are_refused() {
    for (value, code, part) in [
        ("<Tensor>", "T008", "the elements of a constant of type Float(2) are not in the text"),
        ("1  2  3 [ CPUFloatType{2} ]", "T009", "the 3 numbers do not make a tensor of the sizes [2]"),
        ("1  x [ CPUFloatType{2} ]", "T007", "`x` is not an element"),
        ("1  2.5 [ CPULongType{2} ]", "T007", "`2.5` is not an element"),
        ("1  300 [ CPUByteType{2} ]", "T009", "`300` is not a value of the dtype uint8"),
        ("1  2 [ CUDAFloatType{2} ]", "T009", "is not a dtype of tensors on the CPU"),
        ("1  2 [ CPUComplexFloatType{2} ]", "T008", "only the real parts"),
        ("3 *  1  2 [ CPUFloatType{2} ]", "T009", "`3` is not a power of ten"),
        ("1  2", "T001", "expected a number, or `[`"),
        ("[ CPUFloatType{99999999999,9999999999} ]", "T002", "larger than the limit"),
        ("[ CPUFloatType{1000000000} ]", "T002", "larger than the limit"),
        ("Columns 2 to 1 (1,.,.) = [ CPUFloatType{0,9999999} ]", "T", ""),
        (
            "Columns 2 to 1 (1,.,.) = [ CPUFloatType{0,99999999999} ]",
            "T009",
            "a tensor without elements of sizes",
        ),
        ("Columns 2 to 9 1  2 [ CPUFloatType{1,2} ]", "T009", "the 2 numbers do not make"),
        ("(1,.,.) = 1 (1,.,.) = 2 [ CPUFloatType{2,1,1} ]", "T009", "the 2 numbers do not make"),
        ("{x}", "T007", "`x` is not a number"),
        ("tensor(float32, [2], [1], \"00\")", "T009", "do not match its sizes"),
    ] {
        let text = format!("graph():\n  %0 : Float(2) = prim::Constant[value={value}]()\n  return (%0)\n");
        if code == "T" {
            // A tensor without elements needs no data.
            assert_eq!(tensor_in(&read(&text)).numel(), 0);
            continue;
        }
        let (found, message) = refused(&text);
        assert!(found == code && message.contains(part), "{value}: {found}: {message}");
    }
}

/// Comments of both kinds are allowed wherever white space is, and do not change the parsed graph.
#[test]
fn comments_stand_where_white_space_may() {
    let plain = "graph(%x : Float(2, 3),
      %c : bool):
  %2 : int[] = prim::Constant[value=[1, 2]]()
  %3 : Tensor = prim::Constant[value= 1  2 [ CPULongType{2} ]]()
  %4 : (Tensor, Dict(str, int)) = toy::op[a=1](%x, %2)
  %5 : Tensor = prim::If(%c)
    block0():
      -> (%3)
    block1():
      -> (%x)
  %6 : Tensor = prim::FusionGroup_0(%5)
  return (%6)
with prim::FusionGroup_0 = graph(%0 : Tensor):
  return (%0)
";
    let graph = read(plain);
    verify::verify(&graph).unwrap();
    assert_eq!(graph.to_string(), plain);
    // White space is allowed around punctuation, except between a type's name and its bracket.
    let mut spaced = String::new();
    for line in plain.lines() {
        let mut previous = ' ';
        for (at, c) in line.char_indices() {
            let next = line[at + c.len_utf8()..].chars().next().unwrap_or(' ');
            let is_joined = c == ':' && (previous == ':' || next == ':') || c == '[' && next == ']';
            if !is_joined && "),=]:".contains(c) && previous != '[' {
                spaced.push_str(" # file.py:3:4 ; %a\n ");
            }
            spaced.push(c);
            if !is_joined && "(),=[:".contains(c) {
                spaced.push_str(" ; graph(# :\n ");
            }
            previous = c;
        }
        spaced.push_str(" # end\n");
    }
    let spaced = format!("; first\n# second\n{spaced}; last");
    assert_eq!(read(&spaced).to_string(), plain);
    let behind = "graph(%x : int):\n  %y : int = toy::op # b\n[a=1] ; c\n(%x) # d\n, scope # e\n : A::a/B::b # m.py:3:4\n  return ; f\n (%y) # m.py:4:0\n";
    assert_eq!(read(behind).nodes_deep().count(), 1);
    assert_eq!(refused("graph(%x : int):\n  return (%x) ; fine\nmore").0, "T001");
}

#[test]
fn numbers_of_values_stay_unique() {
    let text = "graph(%150 : int, %80 : int, %120 : int, %007 : int, %0 : int, %1234567890 : int):
  return (%150, %80, %120, %007, %0, %1234567890)
";
    // `%120` doubles the length of the table of numbers to 162, which includes a number beyond the length of the text.
    assert!((120..150).contains(&text.len()), "{}", text.len());
    let graph = read(text);
    let numbers: Vec<u32> = graph.inputs().map(|v| graph.name(v).number().expect("a number")).collect();
    assert_eq!((numbers[1], numbers[2], numbers[4]), (80, 120, 0), "{graph}");
    assert_eq!(numbers.iter().collect::<std::collections::BTreeSet<_>>().len(), 6, "{graph}");
    assert!(graph.outputs().eq(graph.inputs()), "{graph}");
    let printed = graph.to_string();
    assert_eq!(read(&printed).to_string(), printed);
    assert_eq!(refused("graph(%999 : int, %999 : int):\n  return (%999)\n").0, "T006");
    assert_eq!(refused("graph(%1x : int):\n  return (%1)\n").0, "T005");
}
