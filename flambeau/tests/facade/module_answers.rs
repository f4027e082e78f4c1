//! Compares a module with all features of modules with recorded results of PyTorch.
//!
//! `archive/tests/oracle/modules.py` wrote the archive and the results. Intended differences are stated in the tests: a
//! state dict that does not match changes nothing.

use flambeau::{Fault, IValue, Module, Program, Session, Tensor};
use std::collections::BTreeMap;

const RECORDED: &str = include_str!("../../../archive/tests/data/modules.txt");
const ARCHIVE: &[u8] = include_bytes!("../../../archive/tests/data/modules.pt");

fn recorded() -> BTreeMap<&'static str, &'static str> {
    let answer = |line: &'static str| line.split_once(':').map(|(question, text)| (question, text.trim()));
    RECORDED.lines().filter_map(answer).collect()
}

fn names<T>(list: Vec<(String, T)>) -> String {
    list.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn load() -> Program {
    let session = Session::standard().expect("consistent");
    session.load_archive_bytes(ARCHIVE).expect("as PyTorch wrote it")
}

fn root(program: &Program) -> Module {
    program.module().expect("a module")
}

fn floats(values: &[f32], sizes: &[i64]) -> Tensor {
    Tensor::from_slice(values, sizes).expect("small")
}

/// The sum of the result, as recorded.
fn run(program: &Program) -> String {
    let x = floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3]);
    let result = program.entry("forward").expect("there").call(&[IValue::Tensor(x)], &[]).expect("runs");
    let result = result.as_tensor().expect("a tensor").to_vec::<f32>().expect("floats");
    format!("{:.3}", result.iter().sum::<f32>())
}

fn training(module: &Module) -> String {
    let all = module.named_modules().into_iter();
    names(all.filter(|(_, m)| m.is_training()).collect())
}

#[test]
fn names_come_in_the_same_order() {
    let answers = recorded();
    let module = root(&load());
    assert_eq!(names(module.named_parameters()), answers["parameters"]);
    assert_eq!(names(module.named_buffers()), answers["buffers"]);
    assert_eq!(names(module.named_modules()), answers["modules"]);
    assert_eq!(names(module.children()), answers["children"]);
    assert_eq!(names(module.methods()), answers["methods"]);
    let state = module.state_dict().expect("small");
    assert_eq!(state.keys().cloned().collect::<Vec<_>>().join(" "), answers["state"]);
    let parameters = module.named_parameters().into_iter();
    assert_eq!(names(parameters.filter(|(_, p)| p.requires_grad()).collect()), answers["trained"]);
    assert_eq!(training(&module), answers["training"]);
}

#[test]
fn modes_attributes_and_copies_agree() {
    let answers = recorded();
    let program = load();
    let module = root(&program);
    assert_eq!(run(&program), answers["run"]);
    module.eval();
    assert_eq!(training(&module), answers["eval"]);
    assert_eq!(run(&program), answers["run eval"]);
    module.submodule_at("first").expect("there").train(true);
    assert_eq!(training(&module), answers["part trained"]);
    assert_eq!(run(&program), answers["run again"]);
    let bumped = program.entry("bump").expect("there").call(&[IValue::Int(5)], &[]).expect("runs");
    assert_eq!(bumped.as_int().map(|n| n.to_string()).as_deref(), Some(answers["bumped"]));
    module.eval();
    assert_eq!(run(&program), answers["run bumped"]);
    module.set("maybe", IValue::Tensor(floats(&[1.0; 3], &[3]))).expect("of its type");
    module.set("first.scale", IValue::Float(3.0)).expect("of its type");
    assert_eq!(run(&program), answers["run set"]);
    for (path, value) in [("maybe", IValue::Int(1)), ("first.scale", IValue::None), ("first", IValue::None)] {
        assert_eq!(module.set(path, value).expect_err("of another type").fault, Fault::Misuse, "{path}");
    }
    let copy = program.deep_clone().expect("the memory suffices");
    let tensor = |path: &str| root(&copy).get(path).expect("there").as_tensor().expect("a tensor").clone();
    tensor("first.weight").copy_(&floats(&[2.0, 3.0, 4.0], &[3])).expect("fits");
    tensor("late.weight").copy_(&floats(&[0.0; 9], &[3, 3])).expect("fits");
    assert_eq!(run(&program), answers["copied"]);
    assert_eq!(run(&copy), answers["changed copy"]);
    // Tensors with a common storage keep it, as in copies by Python; PyTorch's copies of compiled modules separate
    // them.
    tensor("table").copy_(&floats(&[2.0; 6], &[2, 3])).expect("fits");
    assert_eq!(tensor("part").to_vec::<f32>().expect("floats"), [2.0; 3]);
    let part = root(&program).get("part").expect("there");
    assert_eq!(part.as_tensor().expect("a tensor").to_vec::<f32>().expect("floats"), [1.0; 3]);
}

/// `lacks [a, b] beyond [c]`, as recorded from PyTorch's lists, names sorted.
fn expected(text: &str) -> [Vec<String>; 2] {
    let list = |after: &str| {
        let from = text.split_once(after).expect("recorded").1;
        let inside = from[..from.find(']').expect("a list")].trim_start_matches('[');
        let mut names: Vec<String> =
            inside.split(", ").filter(|n| !n.is_empty()).map(|n| n.trim_matches('\'').to_owned()).collect();
        names.sort();
        names
    };
    [list("lacks "), list("beyond ")]
}

#[test]
fn state_dicts_are_accepted_and_refused_alike() {
    let answers = recorded();
    let program = load();
    let module = root(&program);
    let state = root(&load()).state_dict().expect("small");
    // The changes made to the module before these results were recorded.
    module.train(false);
    module.set("maybe", IValue::Tensor(floats(&[1.0; 3], &[3]))).expect("of its type");
    module.set("first.scale", IValue::Float(3.0)).expect("of its type");
    let result = |weights, strict| {
        module.load_state_dict(weights, strict).map(|m| {
            let mut lists = [m.missing, m.unexpected];
            lists.iter_mut().for_each(|list| list.sort());
            lists
        })
    };
    assert_eq!(result(&state, true).expect("fits"), expected(answers["restored"]));
    assert_eq!(run(&program), answers["run restored"]);
    let x = floats(&[0.0; 6], &[2, 3]);
    let mut more = state.clone();
    more.retain(|name, _| !name.contains("weight"));
    more.extend(["first.extra", "zzz", "nowhere.w"].map(|name| (name.to_owned(), x.clone())));
    // For a list of numbers where the module has one number, the first is taken.
    more.insert("gain".to_owned(), floats(&[5.0, 7.0], &[2]));
    let before = run(&program);
    assert_eq!(result(&more, true).expect_err("strict").code, "X0005");
    assert_eq!((answers["strict"], run(&program)), ("error", before));
    assert_eq!(result(&more, false).expect("what fits"), expected(answers["not strict"]));
    assert_eq!(run(&program), answers["run not strict"]);
    let mut other = state.clone();
    other.insert("row".to_owned(), floats(&[1.0; 4], &[4]));
    for (strict, question) in [(true, "sizes"), (false, "sizes not strict")] {
        assert_eq!(result(&other, strict).expect_err("sizes differ").code, "X0005");
        assert_eq!((answers[question], run(&program).as_str()), ("error", answers["run not strict"]));
    }
    let double = |t: &Tensor| t.to_dtype(flambeau::tensor::DType::F64).expect("the memory suffices");
    let doubles = state.iter().map(|(name, t)| (name.clone(), double(t))).collect();
    assert_eq!(result(&doubles, true).expect("converted"), expected(answers["doubles"]));
    assert_eq!(run(&program), answers["run doubles"]);
}

#[test]
fn frozen_modules_compute_the_same() {
    let program = load();
    root(&program).eval();
    let frozen = program.freeze(&[]).expect("frozen");
    assert_eq!(run(&frozen), recorded()["frozen"]);
    // The module writes only to intermediate results (`relu_`), never to attributes, so batch norm is folded into the
    // convolution.
    let text = frozen.entry("forward").expect("there").graph().to_string();
    assert!(!text.contains("batch_norm") && text.contains("aten::relu_"), "{text}");
    assert_eq!(names(root(&frozen).named_parameters()), "");
}
