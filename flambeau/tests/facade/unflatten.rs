//! Exported programs as modules with the submodules that they were exported with.

use flambeau::{ExportedProgram, IValue, Program, Session, Tensor};
use std::collections::BTreeMap;

fn loaded(name: &str) -> (Session, ExportedProgram) {
    let session = Session::builder().standard().build().unwrap();
    let path = format!("{}/../export/tests/data/{name}.pt2", env!("CARGO_MANIFEST_DIR"));
    let program = session.load_exported(path).unwrap();
    (session, program)
}

fn input() -> IValue {
    IValue::Tensor(Tensor::from_vec(vec![1.0f32, -2.0, 3.0, 0.5, 0.0, -1.0], &[2, 3]).unwrap())
}

fn floats(result: &IValue) -> Vec<f64> {
    let items = result.as_tuple().unwrap().items().to_vec();
    let tensors = items.iter().map(|item| item.as_tensor().unwrap().to_scalars().unwrap());
    tensors.flatten().map(|x| x.to_f64()).collect()
}

/// Paths and classes of all modules.
fn modules(program: &Program) -> BTreeMap<String, String> {
    let modules = program.module().unwrap().named_modules().into_iter();
    modules.map(|(path, module)| (path, module.class_name())).collect()
}

/// The methods of the module at a path.
fn methods(program: &Program, path: &str) -> Vec<String> {
    let modules = program.module().unwrap().named_modules();
    let (_, module) = modules.into_iter().find(|(own, _)| own == path).unwrap();
    module.methods().into_iter().map(|(name, schema)| format!("{name}: {}", schema.unwrap())).collect()
}

#[test]
fn modules_have_the_paths_and_classes_of_the_program() {
    let (_, program) = loaded("modules");
    let module = program.unflatten().unwrap();
    let all = modules(&module);
    let paths: Vec<&str> = all.keys().map(String::as_str).collect();
    assert_eq!(paths, ["", "head", "head.0", "head.1", "head.2", "norm", "scaled", "scaled.linear"]);
    assert_eq!(all["norm"], "__torch__.torch.nn.modules.batchnorm.BatchNorm1d");
    assert_eq!(all["scaled"], "__torch__.__main__.Scaled");
    let linear: Vec<&String> = ["head.0", "scaled.linear"].iter().map(|path| &all[*path]).collect();
    assert!(linear.iter().all(|class| class.starts_with("__torch__.torch.nn.modules.linear.")), "{linear:?}");
    assert_ne!(linear[0], linear[1], "each module has a class of its own");
}

#[test]
fn calls_with_equal_nodes_share_a_method() {
    let (_, program) = loaded("modules");
    let module = program.unflatten().unwrap();
    assert_eq!(methods(&module, "scaled").len(), 1, "{:?}", methods(&module, "scaled"));
    assert_eq!(methods(&module, "head.0").len(), 1, "called by `head` and by the program");
    let graph = module.entry("forward").unwrap().graph().to_string();
    assert_eq!(graph.matches("prim::CallMethod").count(), 5, "{graph}");
    assert!(!graph.contains("aten::linear"), "{graph}");
}

#[test]
fn modules_give_the_results_of_the_program_and_share_its_tensors() {
    for name in ["modules", "modules_kept", "modules_renamed", "layers"] {
        let (session, program) = loaded(name);
        let module = program.unflatten().unwrap();
        let saved = session.load_archive_bytes(&module.to_archive("m").unwrap()).unwrap();
        let wanted = floats(&program.call(&[input()], &[]).unwrap());
        assert_eq!(floats(&saved.entry("forward").unwrap().call(&[input()], &[]).unwrap()), wanted, "{name}");
        if matches!(name, "modules" | "modules_kept") {
            let calls = program.tensor("scaled.calls").unwrap().clone();
            assert_eq!(calls.item().unwrap().to_f64(), 2.0);
            module.entry("forward").unwrap().call(&[input()], &[]).unwrap();
            assert_eq!(calls.item().unwrap().to_f64(), 4.0, "the module writes the buffer of the program");
        }
    }
}

#[test]
fn tied_weights_are_one_tensor_that_each_module_reads_by_its_own_name() {
    let (_, program) = loaded("modules");
    let module = program.unflatten().unwrap();
    let weights = module.module().unwrap().state_dict().unwrap();
    let names: Vec<&String> = weights.keys().collect();
    assert_eq!(weights.len(), program.state_dict().len(), "{names:?}");
    assert!(weights["head.0.weight"].shares_storage(&weights["scaled.linear.weight"]));
    let linear = methods(&module, "head.0");
    assert!(!linear[0].contains("weight"), "the weight is no argument: {linear:?}");
    assert_eq!(module.module().unwrap().named_parameters().len(), 5, "a tied weight counts once");
}

#[test]
fn kept_signatures_have_their_containers() {
    let (_, program) = loaded("modules_kept");
    let module = program.unflatten().unwrap();
    let scaled = methods(&module, "scaled");
    assert_eq!(scaled.len(), 1, "{scaled:?}");
    assert!(scaled[0].contains("Dict(str, Tensor)"), "{scaled:?}");
    assert!(scaled[0].contains("options"), "{scaled:?}");
    assert!(scaled[0].ends_with("-> Dict(str, Tensor)"), "{scaled:?}");
}

/// The program's modules have paths relative to the receiver, and a class with the name of converted programs. A buffer over
/// the memory of a parameter has no gradient.
#[test]
fn classes_and_tensors_keep_apart() {
    let (_, program) = loaded("modules_renamed");
    let module = program.unflatten().unwrap();
    let all = modules(&module);
    assert_eq!(all.keys().collect::<Vec<_>>(), ["", "inner"]);
    assert_ne!(all[""], all["inner"]);
    let weights = module.module().unwrap().state_dict().unwrap();
    assert!(weights["inner.weight"].shares_storage(&weights["inner.start"]));
    assert!(weights["inner.weight"].requires_grad() && !weights["inner.start"].requires_grad());
}

/// The callers of a module pass every argument of its signature, also those that are computed for the call only and those that
/// the caller itself only passes on.
#[test]
fn kept_signatures_have_arguments_that_the_module_does_not_use() {
    let (session, program) = loaded("modules_unused");
    let module = program.unflatten().unwrap();
    for path in ["chosen", "between.chosen"] {
        let own = methods(&module, path);
        assert_eq!(own.len(), 1, "{own:?}");
        assert!(own[0].contains("Tensor arg0, Tensor arg1"), "{own:?}");
    }
    let between = methods(&module, "between");
    assert_eq!(between[0].matches("Tensor").count(), 3, "two arguments and a result: {between:?}");
    let saved = session.load_archive_bytes(&module.to_archive("m").unwrap()).unwrap();
    let wanted = floats(&program.call(&[input(), input()], &[]).unwrap());
    assert_eq!(floats(&saved.entry("forward").unwrap().call(&[input(), input()], &[]).unwrap()), wanted);
}
