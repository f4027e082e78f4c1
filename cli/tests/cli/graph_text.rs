//! Text of graphs on the command line: comments, type verbosity, constants that read back.

use super::{accepted, data, file, refused, run_in};

#[test]
fn comments_before_a_graph() {
    let text =
        "; made by hand\n\n# model.py\ngraph(%x : Float(2)): ; the input\n  return (%x) # model.py:3:4\n";
    // The format is recognized by content: neither the name nor standard input states it.
    let path = file("graph_text", "graph.txt", text);
    assert_eq!(accepted(&["print", &path]), "graph(%x : Float(2)):\n  return (%x)\n");
}

#[test]
fn locations_that_are_printed_read_back() {
    let source =
        file("graph_text", "f.py", "def f(x: Tensor):\n    if bool(x):\n        x = x + 1\n    return x\n");
    let text = accepted(&["print", &source, "--locations"]);
    assert!(text.contains("# ") && text.contains("f.py:3:12"), "{text}");
    let path = file("graph_text", "located.ir", &text);
    assert_eq!(accepted(&["print", &path]), accepted(&["print", &source]));
}

#[test]
fn the_variable_sets_the_detail_of_types() {
    let recorded = std::fs::read_to_string(data("tests/oracle/types.txt")).expect("the record is there");
    let mut cases = recorded.split("=== ").skip(1).filter_map(|case| case.split_once('\n'));
    let (_, source) = cases.next().expect("a source");
    let path = file("graph_text", "types.ir", source);
    for (level, want) in cases {
        let variable = [("PYTORCH_JIT_TYPE_VERBOSITY", level)];
        for command in [&["print", &path][..], &["opt", &path, "-p", "inline"]] {
            let ran = run_in(&variable, command);
            assert_eq!((ran.code, ran.out.as_str()), (Some(0), want), "{level} {command:?}: {}", ran.err);
        }
        assert_eq!(
            run_in(&variable, &["print", "--exact", &path]).out,
            accepted(&["print", "--exact", &path])
        );
    }
}

#[test]
fn small_constants_read_back_and_large_ones_are_an_error() {
    let constants = "graph():
  %0 : Float(2, strides=[1]) = prim::Constant[value=tensor(float32, [2], [1], \"abaaaa3e0000803f\")]()
  %1 : Tensor = prim::Constant[value= 1  2  3 [ CPULongType{3} ]]()
  %2 : Half() = prim::Constant[value={0.333252}]()
  return (%0, %1, %2)
";
    let path = file("graph_text", "constants.ir", constants);
    let text = accepted(&["print", &path]);
    assert!(text.contains("[value= 0.3333333432674408"), "{text}");
    assert!(text.contains("[value= 1  2  3 [ CPULongType{3} ]]"), "{text}");
    let again = file("graph_text", "again.ir", &text);
    assert_eq!(accepted(&["print", "--exact", &again]), accepted(&["print", "--exact", &path]));
    let large = "graph():\n  %0 : Float(12) = prim::Constant[value={1}]()\n  return (%0)\n";
    let text = accepted(&["print", &file("graph_text", "large.ir", large)]);
    assert!(text.contains("[value=<Tensor>]"), "{text}");
    let large = file("graph_text", "large.ir", text);
    refused(&["print", &large], &["T008", "a constant of type Float(12)", "large.ir:2", "--exact"]);
}
