//! Exported programs through the library: calls, state, gradients, saving.

use flambeau::export::model::{Argument, NamedArgument, NodeMetadata, SymInt};
use flambeau::export::{FileVersion, GraphBuilder, ValueMeta};
use flambeau::{Execution, ExportedProgram, IValue, Session, Tensor};

fn path(name: &str) -> String {
    format!("{}/../export/tests/data/{name}.pt2", env!("CARGO_MANIFEST_DIR"))
}

fn loaded(name: &str, execution: Execution) -> (Session, ExportedProgram) {
    let session = Session::builder().standard().execution(execution).build().unwrap();
    let program = session.load_exported(path(name)).unwrap();
    (session, program)
}

fn input() -> IValue {
    IValue::Tensor(Tensor::from_vec(vec![1.0f32, -2.0, 3.0, 0.5, 0.0, -1.0], &[2, 3]).unwrap())
}

/// The elements of both results of the program `layers`.
fn results(program: &ExportedProgram) -> (Vec<f64>, i64) {
    let result = program.call(&[input()], &[]).unwrap();
    let items = result.as_tuple().unwrap().items().to_vec();
    let count = items[1].as_tensor().unwrap().item().unwrap().to_i64();
    let floats = items[0].as_tensor().unwrap().to_scalars().unwrap();
    (floats.into_iter().map(|x| x.to_f64()).collect(), count)
}

/// The programs `layers` (in-place operators) and `layers_core` (functional, with a mutation as an output) agree, in every
/// mode of execution, and count their calls in a buffer.
#[test]
fn buffers_are_updated_by_calls() {
    let (_, reference) = loaded("layers", Execution::Reference);
    let (values, first) = results(&reference);
    assert_eq!(first, 2);
    assert_eq!(results(&reference), (values.clone(), 4));
    for execution in [Execution::Machine, Execution::Optimized, Execution::Profiling] {
        let (_, program) = loaded("layers", execution);
        for call in 1..=4 {
            assert_eq!(results(&program), (values.clone(), 2 * call), "{execution:?}");
        }
        let count = program.tensor("count").unwrap().item().unwrap().to_i64();
        assert_eq!(count, 4);
    }
}

#[test]
fn a_saved_program_has_the_state_of_the_program() {
    let (session, program) = loaded("layers", Execution::Optimized);
    let (values, _) = results(&program);
    for version in FileVersion::ALL {
        let again = session.load_exported_bytes(&program.to_bytes(version).unwrap()).unwrap();
        assert_eq!(results(&again), (values.clone(), 4), "{version:?}");
        assert_eq!(again.version(), version);
        let mut names: Vec<String> = again.state_dict().keys().cloned().collect();
        names.sort();
        assert_eq!(names, ["count", "first.bias", "first.weight", "second.bias", "second.weight"]);
    }
}

/// A builder of a graph that exists gives no name twice.
#[test]
fn a_changed_graph_has_new_names() {
    let (session, program) = loaded("layers", Execution::Optimized);
    let mut model = program.model().clone();
    let Some(Argument::Tensor(first)) = model.module.graph.nodes[0].outputs.first().cloned() else {
        panic!("a tensor");
    };
    let mut builder = GraphBuilder::of(model.module.graph);
    let name = builder.node_name(&first);
    assert_ne!(name, first);
    let meta = builder.graph.tensor_values[&first].clone();
    builder.define(&name, meta);
    let node = builder.graph.nodes[0].clone();
    let result = vec![Argument::Tensor(name.clone())];
    builder.node(Some(name.clone()), &node.target, node.inputs, result, NodeMetadata::default());
    let last = builder.graph.nodes.pop().unwrap();
    builder.graph.nodes.insert(1, last);
    model.module.graph = builder.graph;
    let changed = ExportedProgram::new(&session, model).unwrap();
    assert!(changed.model().module.graph.tensor_values.contains_key(&name));
}

#[test]
fn metadata_describes_values_of_the_graph() {
    let (_, program) = loaded("branches", Execution::Optimized);
    let graph = program.graph();
    let inputs: Vec<_> = graph.inputs().collect();
    assert!(
        matches!(program.metadata().meta(inputs[0]), Some(ValueMeta::Tensor(meta)) if meta.sizes.len() == 2)
    );
    let described = graph.nodes_deep().filter(|&node| program.metadata().origin(node).is_some()).count();
    assert!(described > 5, "{described}");
}

/// A step of gradient descent on the parameters, of which two are one tensor, reduces the loss.
#[test]
fn parameters_are_trained() {
    let (session, program) = loaded("layers", Execution::Optimized);
    let state = program.state_dict();
    let parameters: Vec<Tensor> =
        ["first.bias", "second.weight", "second.bias"].iter().map(|name| state[*name].clone()).collect();
    parameters.iter().for_each(|parameter| parameter.set_requires_grad(true));
    let mut losses = Vec::new();
    for _ in 0..3 {
        let mut host = session.host();
        host.set_tape(Some(session.tape().unwrap()));
        let result = program.call_on(&[input()], &[], &mut host).unwrap();
        let out = result.as_tuple().unwrap().items()[0].as_tensor().unwrap().clone();
        // The loss is half the sum of squares, whose gradient is the result itself.
        let squares = out.to_vec::<f32>().unwrap().into_iter().map(|x| x * x).sum::<f32>();
        losses.push(squares / 2.0);
        let seed = Tensor::from_vec(out.to_vec::<f32>().unwrap(), out.sizes()).unwrap();
        let gradients = session.gradients(&[(out, seed)], &parameters, &mut host).unwrap();
        for (parameter, gradient) in parameters.iter().zip(gradients) {
            let gradient = gradient.expect("the result depends on every parameter").to_vec::<f32>().unwrap();
            let own = parameter.to_vec::<f32>().unwrap();
            let next: Vec<f32> = own.iter().zip(&gradient).map(|(p, g)| p - 0.02 * g).collect();
            parameter.copy_(&Tensor::from_vec(next, parameter.sizes()).unwrap()).unwrap();
        }
    }
    assert!(losses[1] < losses[0] && losses[2] < losses[1], "{losses:?}");
    let (first, second) = (&state["first.weight"], &state["second.weight"]);
    assert!(first.shares_storage(second), "the tied weight is trained under both names");
}

/// A program as a TorchScript module has the same results, also after it was saved and loaded.
#[test]
fn a_program_becomes_a_module() {
    let (session, program) = loaded("layers", Execution::Optimized);
    let (values, _) = results(&program);
    let module = program.to_module().unwrap();
    let saved = session.load_archive_bytes(&module.to_archive("layers").unwrap()).unwrap();
    let result = saved.entry("forward").unwrap().call(&[input()], &[]).unwrap();
    let items = result.as_tuple().unwrap().items().to_vec();
    let floats: Vec<f64> =
        items[0].as_tensor().unwrap().to_scalars().unwrap().into_iter().map(|x| x.to_f64()).collect();
    assert_eq!(floats, values);
    assert_eq!(
        items[1].as_tensor().unwrap().item().unwrap().to_i64(),
        4,
        "the module has the program's buffer"
    );
    let names: Vec<String> = saved.module().unwrap().state_dict().unwrap().keys().cloned().collect();
    assert!(names.contains(&"first.weight".to_owned()) && names.contains(&"count".to_owned()), "{names:?}");
}

/// A container of values of several types has elements of a union type.
#[test]
fn containers_of_several_types_are_unions() {
    let (session, program) = loaded("values", Execution::Optimized);
    let module = program.to_module().unwrap();
    let returned = module.entry("forward").unwrap().schema().returns[0].ty.to_string();
    assert!(returned.contains("Dict(str, Union(Tensor, (Tensor, Tensor)))"), "{returned}");
    session.load_archive_bytes(&module.to_archive("values").unwrap()).unwrap();
}

/// Every call in the code of a module has operands that the operator's schema accepts: `Scalar` admits no bool.
#[test]
fn bools_become_integers_or_tensors() {
    let (_, program) = loaded("booleans", Execution::Optimized);
    let module = program.to_module().unwrap();
    let code = module.entry("forward").unwrap().code().unwrap();
    assert!(!code.contains("number"), "{code}");
    for line in [
        "torch.masked_fill(m, bitwise_not, 1)",
        "torch.__xor__(m, torch.tensor(True))",
        "torch.full([2], 1, dtype=11,",
        "torch.add(x, 1)",
    ] {
        assert!(code.contains(line), "{line} is not in {code}");
    }
}

/// Branches and symbolic sizes are part of the module.
#[test]
fn modules_have_the_control_flow_of_programs() {
    let (_, program) = loaded("branches", Execution::Optimized);
    let entry = program.to_module().unwrap().entry("forward").unwrap();
    for rows in [3, 6] {
        let rows_of = |scale: f32| {
            let items: Vec<f32> = (0..2 * rows).map(|i| scale * i as f32).collect();
            IValue::Tensor(Tensor::from_vec(items, &[rows, 2]).unwrap())
        };
        let args = [rows_of(1.0), rows_of(-0.5)];
        let (want, got) = (program.call(&args, &[]).unwrap(), entry.call(&args, &[]).unwrap());
        assert_eq!(format!("{got:?}"), format!("{want:?}"));
    }
}

/// Calls accept sizes up to the upper bound of a dimension, and from 0 on if the lower bound is the default one. The graph
/// states this of its inputs, so that analyses know it, and a call of the graph itself checks it.
#[test]
fn sizes_of_arguments_are_those_that_the_program_states() {
    for execution in [Execution::Reference, Execution::Machine, Execution::Optimized] {
        let (_, program) = loaded("layers", execution);
        let text = program.graph().to_string();
        assert!(text.contains("Tensor(*, 3)") && text.contains(") where SS(-2) in [0, 64]:"), "{text}");
        let rows = |n: usize| IValue::Tensor(Tensor::from_vec(vec![1.0f32; n * 3], &[n as i64, 3]).unwrap());
        for n in [0, 1, 64] {
            program.call(&[rows(n)], &[]).unwrap();
        }
        assert_eq!(program.call(&[rows(65)], &[]).unwrap_err().code, "E013");
        let mut state: Vec<IValue> = Vec::new();
        for value in program.graph().inputs() {
            let name = program.graph().name(value).to_string();
            let weights = program.state_dict();
            let own = weights.iter().find(|(own, _)| name.ends_with(&own.replace('.', "_")));
            state.push(
                own.map_or_else(|| rows(65), |(_, tensor)| IValue::Tensor(tensor.clone_data().unwrap())),
            );
        }
        let error = program.entry().call(&state, &[]).unwrap_err();
        assert!(error.to_string().contains("SS(-2) in [0, 64]"), "{error}");
    }
}

/// An argument is given once, by position or by name, and a name that the program does not have is reported before an
/// argument that is missing.
#[test]
fn arguments_are_given_once() {
    let source = "def f(x, y):\n    return x + y\n";
    let session = Session::standard().unwrap();
    let entry = session.compile_source(source, "f.py").unwrap().entry("f").unwrap();
    let program = ExportedProgram::from_entry(&entry, &[input(), input()], &[]).unwrap();
    let names = [("two", vec![input(); 2], vec![("x", input())]), ("other", vec![], vec![("z", input())])];
    let wanted = ["multiple values are given for the argument `x`", "the program has no argument `z`"];
    for ((name, args, kwargs), wanted) in names.into_iter().zip(wanted) {
        let error = program.call(&args, &kwargs).unwrap_err();
        assert_eq!(error.code, "E013", "{name}");
        assert!(error.message.contains(wanted), "{name}: {}", error.message);
    }
    assert!(program.call(&[input()], &[("y", input())]).is_ok());
}

/// Files of 2.6 state dimension and direction of a scan, later files do not. The data are what PyTorch 2.9 saved for
/// `scan(lambda c, x: (c + x, (c * x).sin()), init, xs)`.
#[test]
fn scans_have_the_arguments_of_each_version() {
    let (session, program) = loaded("scan", Execution::Optimized);
    let arguments = |program: &ExportedProgram| {
        let nodes = &program.model().module.graph.nodes;
        nodes.iter().find(|node| node.target.ends_with(".scan")).unwrap().inputs.len()
    };
    let counts = FileVersion::ALL.map(|version| {
        let again = session.load_exported_bytes(&program.to_bytes(version).unwrap()).unwrap();
        // And back.
        let newest = session.load_exported_bytes(&again.to_bytes(FileVersion::Torch215).unwrap()).unwrap();
        assert_eq!(arguments(&newest), 4, "{version:?}");
        arguments(&again)
    });
    assert_eq!(counts, [6, 4, 4, 4]);
}

/// Files of 2.8 and later have no scan in reverse: they flip the tensors outside of the scan.
#[test]
fn scans_in_reverse_are_flipped_for_later_versions() {
    let (session, program) = loaded("scan", Execution::Optimized);
    let mut model = program.model().clone();
    let scan = model.module.graph.nodes.iter_mut().find(|node| node.target.ends_with(".scan")).unwrap();
    let order = [Argument::Int(0), Argument::Bool(true)];
    scan.inputs.splice(3..3, order.map(|arg| NamedArgument { name: String::new(), arg, kind: None }));
    let program = ExportedProgram::new(&session, model).unwrap();
    let graph = &program.model().module.graph;
    let args = graph.inputs.iter().map(|input| {
        let meta = &graph.tensor_values[input.name().unwrap()];
        let sizes = meta.sizes.iter().map(|size| if let SymInt::Int(n) = size { *n } else { 1 });
        let sizes: Vec<i64> = sizes.collect();
        let values = (0..sizes.iter().product()).map(|n: i64| n as f32 * 0.5 - 1.0);
        IValue::Tensor(Tensor::from_vec(values.collect(), &sizes).unwrap())
    });
    let args: Vec<IValue> = args.collect();
    let want = program.call(&args, &[]).unwrap();
    for version in FileVersion::ALL {
        let again = session.load_exported_bytes(&program.to_bytes(version).unwrap()).unwrap();
        let nodes = &again.model().module.graph.nodes;
        let flips = nodes.iter().filter(|node| node.target == "torch.ops.aten.flip.default").count();
        assert_eq!(flips, if version == FileVersion::Torch26 { 0 } else { 2 }, "{version:?}");
        assert_eq!(format!("{:?}", again.call(&args, &[]).unwrap()), format!("{want:?}"), "{version:?}");
    }
}

/// PyTorch's JIT removes calls of operators without results, so a module has branches that raise instead.
#[test]
fn modules_keep_assertions() {
    let session = Session::standard().unwrap();
    let source = "def f(x: Tensor):\n    n = int(x.sum())\n    if n < 3:\n        raise ValueError('too small')\n    return x + n\n";
    let entry = session.compile_source(source, "model.py").unwrap().entry("f").unwrap();
    let example = IValue::Tensor(Tensor::from_vec(vec![4.0f32, 2.0], &[2]).unwrap());
    let program = ExportedProgram::from_entry(&entry, std::slice::from_ref(&example), &[]).unwrap();
    let module = program.to_module().unwrap().entry("forward").unwrap();
    let code = module.code().unwrap();
    assert!(code.contains("RaiseException") && !code.contains("_assert"), "{code}");
    let wanted = format!("{:?}", program.call(std::slice::from_ref(&example), &[]).unwrap());
    assert_eq!(format!("{:?}", module.call(&[example], &[]).unwrap()), wanted);
    let small = [IValue::Tensor(Tensor::from_vec(vec![1.0f32, 0.5], &[2]).unwrap())];
    for result in [module.call(&small, &[]), program.call(&small, &[])] {
        let error = result.unwrap_err();
        assert!(error.message.contains("too small"), "{error}");
    }
}

/// A branch may return an operand whose sizes are known, and the other branch a tensor of which nothing is known.
#[test]
fn results_of_branches_have_the_type_that_both_have() {
    let session = Session::standard().unwrap();
    let source = "def f(x: Tensor):\n    if bool(x.sum() > 0):\n        y = x + 1\n    else:\n        y = x * 2\n    return y * 3\n";
    let entry = session.compile_source(source, "model.py").unwrap().entry("f").unwrap();
    let exported = ExportedProgram::from_entry(&entry, &[input()], &[]).unwrap();
    for position in [1, 2] {
        let mut model = exported.model().clone();
        let nodes = &mut model.module.graph.nodes;
        let cond = nodes.iter_mut().find(|node| node.target.ends_with(".cond")).unwrap();
        let Argument::Graph { graph: branch, .. } = &mut cond.inputs[position].arg else {
            panic!("a branch")
        };
        branch.outputs = branch.inputs.clone();
        let program = ExportedProgram::new(&session, model).unwrap();
        let graph = program.graph();
        let branch = graph.nodes_deep().find(|&node| graph.is_prim(node, flambeau::ir::Prim::If)).unwrap();
        assert!(graph.ty(graph.result(branch, 0)).is_tensor());
        program.call(&[input()], &[]).unwrap();
    }
}

/// An argument that breaks a condition is named as PyTorch names it: by the guard, if the file has guards.
#[test]
fn errors_of_calls_name_argument_and_dimension() {
    let (session, program) = loaded("layers", Execution::Reference);
    let wide = [IValue::Tensor(Tensor::from_vec(vec![0.0f32; 8], &[2, 4]).unwrap())];
    let deep = [IValue::Tensor(Tensor::from_vec(vec![0.0f32; 6], &[2, 3, 1]).unwrap())];
    let message = |program: &ExportedProgram, args: &[IValue]| program.call(args, &[]).unwrap_err().message;
    let wrong_size = "Expected input at *args[0].shape[1] to be equal to 3, but got 4";
    assert_eq!(message(&program, &wide), wrong_size);
    let wrong_rank = "Unexpected number of dimensions in input at *args[0].shape (expected torch.Size([s0, 3]), got torch.Size([2, 3, 1]))";
    assert_eq!(message(&program, &deep), wrong_rank);
    let mut model = program.model().clone();
    model.guards_code = vec!["L['x'].size()[1] == 3".to_owned(), "L['x'].size()[2] == 5".to_owned()];
    let guarded = ExportedProgram::new(&session, model).unwrap();
    assert_eq!(message(&guarded, &wide), "Guard failed: x.size()[1] == 3");
    assert_eq!(message(&guarded, &deep), "Guard failed: x.size()[2] == 5");
    // A guard on a dimension that the argument does not have is checked last.
    assert_eq!(message(&guarded, &[input()]), "Guard failed: x.size()[2] == 5");
}
