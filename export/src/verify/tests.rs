//! Each rule with a program that breaks it. The programs differ from a valid one in one place.

use std::sync::Arc;

use flambeau_ir::{Registry, RegistryBuilder};
use flambeau_tensor::{DType, Tensor};

use super::*;
use crate::container::Limits;
use crate::model::{ModuleCall, NodeModel, RangeConstraint, SymInt, Weight};
use crate::read::read_program;

const PROGRAM: &str = r#"{
  "graph_module": {
    "graph": {
      "inputs": [
        {"as_tensor": {"name": "p_w"}}, {"as_tensor": {"name": "b_s"}}, {"as_tensor": {"name": "b_t"}},
        {"as_tensor": {"name": "c_k"}}, {"as_tensor": {"name": "x"}}, {"as_int": 3}
      ],
      "outputs": [
        {"as_tensor": {"name": "add_1"}}, {"as_tensor": {"name": "add_2"}}, {"as_sym_int": {"as_name": "size"}}, {"as_int": 1}
      ],
      "nodes": [
        {"target": "torch.ops.test.add.Tensor", "outputs": [{"as_tensor": {"name": "add"}}], "metadata": {}, "inputs": [
          {"name": "self", "arg": {"as_tensor": {"name": "x"}}}, {"name": "other", "arg": {"as_tensor": {"name": "p_w"}}}]},
        {"target": "torch.ops.test.add.Tensor", "outputs": [{"as_tensor": {"name": "add_1"}}], "metadata": {}, "inputs": [
          {"name": "self", "arg": {"as_tensor": {"name": "add"}}}, {"name": "other", "arg": {"as_tensor": {"name": "b_s"}}}]},
        {"target": "torch.ops.test.add.Tensor", "outputs": [{"as_tensor": {"name": "add_2"}}], "metadata": {}, "inputs": [
          {"name": "self", "arg": {"as_tensor": {"name": "add_1"}}}, {"name": "other", "arg": {"as_tensor": {"name": "c_k"}}}]},
        {"target": "torch.ops.test.size.default", "outputs": [{"as_sym_int": {"as_name": "size"}}], "metadata": {}, "inputs": [
          {"name": "self", "arg": {"as_tensor": {"name": "b_t"}}}]},
        {"target": "torch.ops.higher_order.wrap", "outputs": [{"as_tensor": {"name": "out"}}], "metadata": {}, "inputs": [
          {"name": "", "arg": {"as_graph": {"name": "body", "graph": {
            "inputs": [{"as_tensor": {"name": "y"}}], "outputs": [{"as_tensor": {"name": "z"}}],
            "nodes": [{"target": "torch.ops.test.add.Tensor", "outputs": [{"as_tensor": {"name": "z"}}], "metadata": {}, "inputs": [
              {"name": "self", "arg": {"as_tensor": {"name": "y"}}}, {"name": "other", "arg": {"as_tensor": {"name": "y"}}}]}],
            "tensor_values": {"y": META, "z": META}}}}},
          {"name": "", "arg": {"as_tensor": {"name": "x"}}}]}
      ],
      "tensor_values": {"p_w": META, "b_s": META, "b_t": META, "c_k": META, "x": META, "add": META, "add_1": META,
        "add_2": META, "out": META},
      "sym_int_values": {"size": {"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": null}}}
    },
    "signature": {
      "input_specs": [
        {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
        {"buffer": {"arg": {"name": "b_s"}, "buffer_name": "s", "persistent": true}},
        {"buffer": {"arg": {"name": "b_t"}, "buffer_name": "t", "persistent": false}},
        {"tensor_constant": {"arg": {"name": "c_k"}, "tensor_constant_name": "k"}},
        {"user_input": {"arg": {"as_tensor": {"name": "x"}}}},
        {"constant_input": {"name": "n", "value": {"as_int": 3}}}
      ],
      "output_specs": [
        {"buffer_mutation": {"arg": {"name": "add_1"}, "buffer_name": "s"}},
        {"user_output": {"arg": {"as_tensor": {"name": "add_2"}}}},
        {"user_output": {"arg": {"as_sym_int": {"as_name": "size"}}}},
        {"user_output": {"arg": {"as_int": 1}}}
      ]
    },
    "module_call_graph": [{"fqn": "", "signature": {"inputs": [], "outputs": [], "forward_arg_names": ["x", "n"],
      "in_spec": "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [LEAF, LEAF]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}]",
      "out_spec": "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [LEAF, LEAF, LEAF]}]"}},
      {"fqn": "inner", "signature": null}]
  },
  "opset_version": {"test": 1}, "range_constraints": {"s0": {"min_val": 2, "max_val": 9}},
  "schema_version": {"major": 8, "minor": 14}, "verifiers": ["ATEN"], "torch_version": "2.9.1", "guards_code": []
}"#;

const META: &str = r#"{"dtype": 7, "sizes": [{"as_int": 2}], "requires_grad": false, "device": {"type": "cpu"},
  "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7}"#;

const LEAF: &str = r#"{\"type\": null, \"context\": null, \"children_spec\": []}"#;

fn registry() -> Arc<Registry> {
    let mut builder = RegistryBuilder::new();
    builder.declare(
        "test::add.Tensor(Tensor self, Tensor other) -> Tensor\n\
         test::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)\n\
         test::size(Tensor self) -> SymInt\n",
    );
    builder.build().unwrap_or_else(|e| panic!("{e:?}"))
}

fn tensor() -> Tensor {
    Tensor::zeros(&[2], DType::F32).expect("memory")
}

fn weight(is_parameter: bool) -> Weight {
    Weight { tensor: tensor(), is_parameter: Some(is_parameter) }
}

fn valid() -> ProgramModel {
    let text = PROGRAM.replace("META", META).replace("LEAF", LEAF);
    let mut program = read_program(&text, &Limits::default()).expect("a program");
    program.state_dict.insert("w".to_owned(), weight(true));
    program.state_dict.insert("s".to_owned(), weight(false));
    program.constants.insert("t".to_owned(), Constant::Tensor(tensor()));
    program.constants.insert("k".to_owned(), Constant::Tensor(tensor()));
    program
}

/// Returns the codes of the violations after a change of the valid program.
fn codes(change: impl FnOnce(&mut ProgramModel)) -> Vec<&'static str> {
    let mut program = valid();
    change(&mut program);
    let found = violations(&program, &registry(), Strictness::Full, 9);
    found.iter().map(|e| e.code().as_str()).collect()
}

fn node(program: &mut ProgramModel, n: usize) -> &mut NodeModel {
    &mut program.module.graph.nodes[n]
}

fn body(program: &mut ProgramModel) -> &mut GraphModel {
    match &mut node(program, 4).inputs[0].arg {
        Argument::Graph { graph, .. } => graph,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_program_is_valid() {
    let program = valid();
    assert_eq!(violations(&program, &registry(), Strictness::Full, 9), []);
    assert_eq!(verify(&program, &registry()), Ok(()));
}

#[test]
fn names_are_unique_and_defined_before_their_use() {
    assert_eq!(codes(|p| node(p, 0).inputs[0].arg = Argument::Tensor("nope".into())), ["E007"]);
    assert_eq!(codes(|p| p.module.graph.nodes.swap(0, 1)), ["E007"]);
    assert_eq!(codes(|p| node(p, 1).outputs[0] = Argument::Tensor("x".into()))[0], "E006");
    assert_eq!(codes(|p| drop(node(p, 0).inputs.pop())), ["E012"]);
    assert_eq!(codes(|p| node(p, 0).inputs[0].name = "selfish".into()), ["E012"]);
    // Subgraphs do not see the values of the graph around them.
    assert_eq!(codes(|p| body(p).nodes[0].inputs[0].arg = Argument::Tensor("x".into())), ["E007"]);
}

/// An operator that is not registered is a violation, once per operator; a program is loaded without it.
#[test]
fn operators_are_registered() {
    assert_eq!(codes(|p| node(p, 0).target = "torch.ops.test.nope.default".into()), ["E011"]);
    assert_eq!(codes(|p| node(p, 4).target = "torch.ops.higher_order.nope".into()), ["E011"]);
    assert_eq!(codes(|p| body(p).nodes[0].target = "torch.ops.test.add.Nope".into()), ["E011"]);
    let mut program = valid();
    node(&mut program, 0).target = "torch.ops.test.nope.default".into();
    node(&mut program, 1).target = "torch.ops.test.nope.default".into();
    let found = violations(&program, &registry(), Strictness::Full, 9);
    let [only] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((only.node(), only.field()), (Some("add"), "graph_module.graph.nodes[0].target"));
    assert_eq!(verify(&program, &registry()), Ok(()));
}

#[test]
fn every_value_has_metadata() {
    assert_eq!(codes(|p| drop(p.module.graph.tensor_values.shift_remove("add"))), ["E060"]);
    assert_eq!(codes(|p| drop(p.module.graph.tensor_values.shift_remove("x"))), ["E060"]);
    assert_eq!(codes(|p| drop(body(p).tensor_values.shift_remove("z"))), ["E060"]);
    // Metadata of another kind does not count.
    let other_kind = |p: &mut ProgramModel| {
        p.module.graph.sym_int_values.insert("add".into(), SymInt::Int(2));
        p.module.graph.tensor_values.shift_remove("add");
    };
    assert_eq!(codes(other_kind), ["E060"]);
}

#[test]
fn nodes_call_operators_and_decomposed_programs_only_functional_ones() {
    for target in ["os.system", "builtins.eval", "torch.load", "_operator.setitem", "torch.ops.test", ""] {
        assert_eq!(codes(|p| node(p, 0).target = target.into()), ["E061"], "{target}");
    }
    for target in ["torch.sym_max", "torch._sym_sqrt", "math.trunc", "_operator.add"] {
        assert_eq!(codes(|p| node(p, 0).target = target.into()), [""; 0], "{target}");
    }
    let in_place = |p: &mut ProgramModel| node(p, 0).target = "torch.ops.test.add_.Tensor".into();
    assert_eq!(codes(in_place), ["E062"]);
    assert_eq!(codes(|p| body(p).nodes[0].target = "torch.ops.test.add_.Tensor".into()), ["E062"]);
    let training = |p: &mut ProgramModel| {
        in_place(p);
        p.verifiers = vec!["TRAINING".into()];
    };
    assert_eq!(codes(training), [""; 0]);
    assert_eq!(codes(|p| p.verifiers.push("OTHER".into())), ["E074"]);
}

#[test]
fn inputs_are_those_of_the_signature() {
    assert_eq!(codes(|p| drop(p.module.signature.inputs.pop())), ["E002", "E063", "E073"]);
    assert_eq!(codes(|p| p.module.signature.inputs.swap(1, 2)), ["E064", "E064"]);
    let constant =
        |p: &mut ProgramModel| p.module.signature.inputs[4] = InputSpec::UserInput { arg: Argument::Int(3) };
    assert_eq!(codes(constant), [""; 0], "constants are not compared");
}

#[test]
fn parameters_buffers_and_constants_are_in_the_file() {
    assert_eq!(codes(|p| drop(p.state_dict.shift_remove("w"))), ["E065"]);
    assert_eq!(codes(|p| drop(p.state_dict.insert("w".into(), weight(false)))), ["E065"]);
    let unmarked = Weight { tensor: tensor(), is_parameter: None };
    assert_eq!(
        codes(|p| drop(p.state_dict.insert("w".into(), unmarked))),
        [""; 0],
        "pickled weights have no mark"
    );
    assert_eq!(codes(|p| drop(p.state_dict.shift_remove("s"))), ["E066"]);
    assert_eq!(codes(|p| drop(p.state_dict.insert("t".into(), weight(false)))), ["E066"]);
    assert_eq!(codes(|p| drop(p.constants.shift_remove("t"))), ["E066"]);
    assert_eq!(codes(|p| drop(p.constants.shift_remove("k"))), ["E067"]);
    let object =
        |p: &mut ProgramModel| drop(p.constants.insert("k".into(), Constant::Object { what: "o".into() }));
    assert_eq!(codes(object), ["E067"]);
}

#[test]
fn outputs_are_those_of_the_signature_in_order() {
    assert_eq!(codes(|p| drop(p.module.graph.outputs.pop())), ["E068"]);
    assert_eq!(codes(|p| p.module.graph.outputs[1] = Argument::Tensor("add".into())), ["E069"]);
    let late = |p: &mut ProgramModel| {
        p.module.graph.outputs.swap(0, 1);
        p.module.signature.outputs.swap(0, 1);
    };
    assert_eq!(codes(late), ["E069"]);
    let target = |p: &mut ProgramModel| {
        let arg = "add_1".to_owned();
        p.module.signature.outputs[0] = OutputSpec::BufferMutation { arg, target: "w".into() };
    };
    assert_eq!(codes(target), ["E070"]);
    let input = |p: &mut ProgramModel| {
        let arg = "add_1".to_owned();
        p.module.signature.outputs[0] = OutputSpec::UserInputMutation { arg, target: "x".into() };
    };
    assert_eq!(codes(input), [""; 0]);
}

#[test]
fn lifted_constants_are_used() {
    let unused = |p: &mut ProgramModel| node(p, 2).inputs[1].arg = Argument::Tensor("add".into());
    assert_eq!(codes(unused), ["E071"]);
    let mut program = valid();
    unused(&mut program);
    assert_eq!(verify(&program, &registry()), Ok(()), "the program has a meaning");
}

#[test]
fn calls_of_modules_and_trees_agree_with_the_signature() {
    let call = |name: &str| ModuleCall {
        fqn: "inner".into(),
        signature: Some(ModuleCallSignature {
            inputs: vec![Argument::Tensor(name.into()), Argument::Int(1)],
            outputs: vec![Argument::Tensor("add".into())],
            in_spec: String::new(),
            out_spec: String::new(),
            forward_arg_names: None,
        }),
    };
    assert_eq!(codes(|p| p.module.module_call_graph[1] = call("x")), [""; 0]);
    assert_eq!(codes(|p| p.module.module_call_graph[1] = call("nope")), ["E072"]);
    let own = |p: &mut ProgramModel, change: fn(&mut ModuleCallSignature)| {
        change(p.module.module_call_graph[0].signature.as_mut().expect("the program's own"));
    };
    assert_eq!(codes(|p| own(p, |s| s.in_spec = s.out_spec.clone())), ["E073"]);
    assert_eq!(codes(|p| own(p, |s| s.out_spec = "[1, 5]".into())), ["E010"]);
}

#[test]
fn ranges_are_not_empty() {
    let range =
        |min, max| move |p: &mut ProgramModel| p.range_constraints["s0"] = RangeConstraint { min, max };
    assert_eq!(codes(range(Some(3), Some(3))), [""; 0]);
    assert_eq!(codes(range(None, Some(-7))), [""; 0]);
    let size = |p: &mut ProgramModel| {
        let graph = &mut p.module.graph;
        Arc::make_mut(&mut graph.tensor_values["x"]).sizes[0] = graph.sym_int_values["size"].clone();
        range(None, Some(-7))(p);
    };
    assert_eq!(codes(size), ["E075"], "no size is negative");
    assert_eq!(codes(range(Some(4), Some(3))), ["E075"]);
}

#[test]
fn all_violations_are_listed_up_to_the_limit() {
    let mut program = valid();
    program.state_dict.clear();
    program.constants.clear();
    let found = |limit| violations(&program, &registry(), Strictness::Full, limit).len();
    assert_eq!((found(9), found(2)), (4, 2));
    let error = verify(&program, &registry()).expect_err("invalid");
    assert_eq!(
        error.to_string(),
        "E065: the parameter `w` is not in the state dict (field `graph_module.signature.input_specs`)"
    );
}
