//! Printed texts are those of PyTorch.

use flambeau_export::print::{self, Style};
use flambeau_export::verify::{Strictness, violations};

use super::{RECORDED, edited, open, recorded, registry, replaced};

#[test]
fn recorded_programs_are_valid_and_print_as_pytorch_prints_them() {
    let registry = registry();
    for recorded in &RECORDED {
        let name = recorded.name;
        let program = open(recorded.bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(violations(&program, &registry, Strictness::Full, 9), [], "{name}");
        assert_eq!(print::graph_text(&program, &registry).as_deref(), Ok(recorded.graph), "{name}");
        let style = Style::of(program.schema_version);
        assert_eq!(
            print::program_text(&program, style, &registry).as_deref(),
            Ok(recorded.program),
            "{name}"
        );
    }
}

/// Later versions print the signature as lines, and the last one no white space at the end of lines.
#[test]
fn styles_differ_in_signature_and_white_space() {
    let registry = registry();
    let program = open(recorded("layers").bytes).expect("a program");
    let text = |style| print::program_text(&program, style, &registry).expect("a text");
    let (old, lines, newest) = (text(Style::Torch26), text(Style::Torch28), text(Style::Torch215));
    let signature = "Graph signature: \n    # inputs\n    p_first_weight: PARAMETER target='second.weight'\n";
    assert!(lines.contains(signature), "{lines}");
    assert!(lines.contains("    b_scale: BUFFER target='scale' persistent=False\n"), "{lines}");
    assert!(
        lines.contains("    \n    # outputs\n    add: USER_OUTPUT\n    mul_1: USER_OUTPUT\n    \nRange"),
        "{lines}"
    );
    let body = |text: &str| text.split("Graph signature:").next().expect("a part").to_owned();
    assert_eq!(body(&old), body(&lines));
    assert!(newest.contains("return (add, mul_1)\n    \nGraph signature:\n    # inputs\n"), "{newest}");
    // Comments have one space less.
    let without = |text: String| text.lines().map(|l| l.trim().to_owned()).collect::<Vec<_>>();
    assert_eq!(without(body(&newest)), without(body(&lines)));
}

/// From 8.20 the file names nodes with several results, and from 8.8 it states how arguments are passed.
#[test]
fn names_and_kinds_of_later_files_are_used() {
    let registry = registry();
    let bytes = edited("values", |json| {
        let json = replaced(
            &json,
            "\"target\": \"torch.ops.aten.max.dim\"",
            "\"name\": \"best\", \"target\": \"torch.ops.aten.max.dim\"",
        );
        let json =
            replaced(&json, "{\"name\": \"approximate\", ", "{\"name\": \"approximate\", \"kind\": 1, ");
        replaced(&json, "\"minor\": 2", "\"minor\": 20")
    });
    let text = print::graph_text(&open(&bytes).expect("a program"), &registry).expect("a text");
    assert!(text.contains("%best : [num_users=2] = call_function[target=torch.ops.aten.max.dim]"), "{text}");
    assert!(text.contains("torch.ops.aten.gelu.default](args = (%input, tanh), kwargs = {})"), "{text}");
}

/// PyTorch does not read storage offsets, and drops ranges of symbols that occur only there.
#[test]
fn symbols_of_storage_offsets_have_no_range() {
    let bytes = edited("branches", |json| {
        let offset = "{\"as_expr\": {\"expr_str\": \"Symbol('u9', integer=True)\", \"hint\": null}}";
        let old = "\"storage_offset\": {\"as_int\": 0}";
        let json = replaced(&json, old, &format!("\"storage_offset\": {offset}"));
        let ranges = "\"range_constraints\": {";
        replaced(&json, ranges, &format!("{ranges}\"u9\": {{\"min_val\": 1, \"max_val\": null}}, "))
    });
    let program = open(&bytes).expect("a program");
    assert_eq!(print::ranges_text(&program), "{s0: VR[2, int_oo]}");
}

/// Since 2.8, PyTorch names a node without a result by its operator, with a suffix.
#[test]
fn nodes_without_a_result_are_named_as_unused() {
    let registry = registry();
    let text = |minor: &str| {
        let bytes = edited("branches", |json| {
            let node = "{\"target\": \"torch.ops.aten.sum.default\", \"inputs\": [{\"name\": \"self\", \"arg\": \
                        {\"as_tensor\": {\"name\": \"x\"}}}], \"outputs\": [{\"as_none\": true}], \"metadata\": {}}";
            let json = replaced(&json, "\"nodes\": [{", &format!("\"nodes\": [{node}, {{"));
            replaced(&json, "\"minor\": 2", &format!("\"minor\": {minor}"))
        });
        print::graph_text(&open(&bytes).expect("a program"), &registry).expect("a text")
    };
    let (old, new) = (text("2"), text("8"));
    assert!(old.contains("%as_none : [num_users=0] = call_function[target=operator.getitem]"), "{old}");
    let unused = "%sum_default_unused : [num_users=0] = call_function[target=torch.ops.aten.sum.default]";
    assert!(new.contains(unused) && !new.contains("as_none"), "{new}");
}

#[test]
fn graphviz_shows_every_node_and_operand() {
    let program = open(recorded("branches").bytes).expect("a program");
    let text = print::dot_text(&program, &registry()).expect("a text");
    assert_eq!(text.matches("subgraph cluster_").count(), 4);
    assert!(text.contains("label=\"add_1\\n_operator.add\\nSym(s0 + 1)\""), "{text}");
    assert_eq!(text.matches('{').count(), text.matches('}').count());
}

#[test]
fn ports_and_operators_are_summarized() {
    let registry = registry();
    let program = open(recorded("branches").bytes).expect("a program");
    let (inputs, outputs) = flambeau_export::info::ports(&program);
    assert_eq!((inputs.len(), inputs[0].annotation.as_deref()), (2, Some("f32[s0, 2]")));
    assert_eq!((outputs[1].kind, outputs[1].annotation.as_deref()), ("USER_OUTPUT", Some("Sym(2*s0 + 1)")));
    let used = flambeau_export::info::operators(&program, &registry);
    let cond = used.iter().find(|o| o.target.ends_with("cond")).expect("it is used");
    assert_eq!((cond.uses, cond.has_schema, cond.id), (2, false, None));
    assert!(used.iter().filter(|o| o.has_schema).all(|o| o.id.is_some()));
    assert_eq!(flambeau_export::info::node_count(&program), used.iter().map(|o| o.uses).sum::<usize>());
}
