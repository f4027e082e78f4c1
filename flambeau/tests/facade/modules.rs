//! Loaded modules: attributes, calls, and errors for missing operators.

use flambeau::exec::Kernel;
use flambeau::ir::OpDef;
use flambeau::tensor::Scalar;
use flambeau::{Fault, IValue, Program, Session, Tensor};
use std::path::PathBuf;

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../archive/tests/data").join(name)
}

fn load(session: &Session, name: &str) -> Program {
    session.load_archive(data(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn floats(value: &IValue) -> Vec<f32> {
    value.as_tensor().expect("a tensor").to_vec::<f32>().expect("floats")
}

fn tensor(values: &[f32]) -> IValue {
    IValue::Tensor(Tensor::from_slice(values, &[values.len() as i64]).expect("small"))
}

#[test]
fn a_missing_operator_fails_only_methods_that_reach_it() {
    let session = Session::standard().expect("consistent");
    let program = load(&session, "foreign.pt");
    let x = tensor(&[1.0, 2.0]);
    let known = program.entry("known").expect("needs nothing").call(std::slice::from_ref(&x), &[]);
    assert_eq!(floats(&known.expect("the identity")), [1.0, 2.0]);
    let error = program.entry("forward").err().expect("needs the operator");
    assert_eq!((error.fault, error.code), (Fault::Unsupported, "F0108"));
    let text = error.render();
    for part in ["stranger::wave", "archives.py:", "code/__torch__.py:", "OpDef::new(\"stranger::wave"] {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
    // The suggestion works: an operator of that schema is accepted.
    let schema = text.split("OpDef::new(\"").nth(1).and_then(|t| t.split('"').next()).expect("a schema");
    assert_eq!(schema, "stranger::wave(Tensor a0, int a1) -> Tensor");
    let wave = OpDef::new(schema).with(Kernel::new(|cx| {
        let x = cx.tensor(0)?.clone();
        cx.ret(x);
        Ok(())
    }));
    let given = Session::builder().standard().ops([wave]).build().expect("consistent");
    assert_eq!(load(&given, "foreign.pt").missing().count(), 0);
    let missing: Vec<String> = program.missing().map(|(name, _)| name.to_string()).collect();
    assert_eq!(missing, ["__torch__.Foreign.forward", "__torch__.Foreign.step"]);
}

#[test]
fn registering_an_operator_makes_methods_available() {
    let wave = OpDef::new("stranger::wave(Tensor x, int n) -> Tensor").with(Kernel::new(|cx| {
        let x = cx.tensor(0)?.clone();
        cx.ret(x);
        Ok(())
    }));
    let session = Session::builder().standard().ops([wave]).build().expect("consistent");
    let program = load(&session, "foreign.pt");
    assert_eq!(program.missing().count(), 0);
    let result = program.entry("forward").expect("all there").call(&[tensor(&[3.0])], &[]);
    assert_eq!(floats(&result.expect("runs")), [3.0]);
}

#[test]
fn calling_a_module_runs_its_hooks() {
    let session = Session::standard().expect("consistent");
    let program = load(&session, "hooked.pt");
    let args = [tensor(&[1.0, 2.0]), IValue::Float(3.0)];
    let call = |name| program.entry(name).expect("there").call(&args, &[]).expect("runs");
    // Recorded with PyTorch: `m.forward(x, 3.)` and `m(x, 3.)`.
    assert_eq!(floats(&call("forward")), [6.0, 12.0]);
    assert_eq!(floats(&call("__call__")), [18.0, 36.0]);
    assert!(program.has_hooks());
    let plain = load(&session, "nested.pt");
    assert!(!plain.has_hooks() && plain.entry("__call__").is_ok());
    assert!(program.extra_files().is_empty(), "no extra files were requested");
    let mut options = flambeau::archive::LoadOptions::default();
    options.extra_files = true;
    let session = Session::builder().standard().load_options(options).build().expect("consistent");
    let program = load(&session, "hooked.pt");
    let files: Vec<_> = program.extra_files().iter().map(|(name, b)| (name.as_str(), b.len())).collect();
    assert_eq!(files, [("more/config.json", 2), ("notes.txt", 6)]);
}

#[test]
fn a_default_may_be_a_member_of_an_enum() {
    let session = Session::standard().expect("consistent");
    let program = load(&session, "defaults.pt");
    let result = program.entry("forward").expect("compiles").call(&[tensor(&[1.0, 2.0])], &[]);
    // Recorded with PyTorch.
    assert_eq!(floats(&result.expect("runs")), [3.0, 6.0]);
}

#[test]
fn modules_list_their_contents() {
    let session = Session::standard().expect("consistent");
    let module = load(&session, "nested.pt").module().expect("a module");
    let names = |tensors: Vec<(String, Tensor)>| tensors.into_iter().map(|(n, _)| n).collect::<Vec<_>>();
    assert_eq!(names(module.named_parameters()), ["a.lin.weight", "b.lin.weight"]);
    assert_eq!(names(module.named_buffers()), ["count"]);
    let modules: Vec<_> = module.named_modules().into_iter().map(|(name, _)| name).collect();
    // Scripting turns one module with two paths into two modules; their parameters stay shared.
    assert_eq!(modules, ["", "a", "a.lin", "b", "b.lin", "again", "again.lin"]);
    let state: Vec<_> = module.state_dict().expect("small").into_keys().collect();
    assert_eq!(state, ["count", "a.lin.weight", "b.lin.weight", "again.lin.weight"]);
    assert!(module.methods().iter().any(|(name, schema)| name == "helper" && schema.is_some()));
    assert_eq!(module.get("a.scale").expect("there").as_float(), Some(0.5));
    module.set("a.scale", IValue::Float(0.25)).expect("a float");
    assert_eq!(module.get("a.scale").expect("there").as_float(), Some(0.25));
    assert_eq!(module.get("again.scale").expect("there").as_float(), Some(0.5));
    for (path, value) in [("a.scale", IValue::Int(1)), ("a.nope", IValue::Int(1)), ("count.x", IValue::None)]
    {
        assert_eq!(module.set(path, value).expect_err("refused").fault, Fault::Misuse, "{path}");
    }
    assert!(module.is_training());
    module.eval();
    assert!(!module.submodule_at("b.lin").expect("a module").is_training());
}

#[test]
fn state_dicts_load_and_save() {
    let session = Session::standard().expect("consistent");
    let program = load(&session, "nested.pt");
    let module = program.module().expect("a module");
    let copy = program.deep_clone().expect("the memory suffices").module().expect("a module");
    let weights = session.load_weights(data("nested.weights.pt")).expect("a state dict");
    let mismatch = module.load_state_dict(&weights, true).expect("the same names");
    assert!(mismatch.is_empty());
    let value = |m: &flambeau::Module| floats(&m.get("a.lin.weight").expect("there"));
    assert_eq!(value(&module), weights["a.lin.weight"].to_vec::<f32>().expect("floats"));
    assert_ne!(value(&module), value(&copy), "a clone shares nothing");
    let clone = copy.state_dict().expect("small");
    assert!(
        clone["a.lin.weight"].ptr_eq(&clone["again.lin.weight"]),
        "the clone shares memory as the original does"
    );
    let mut fewer = weights.clone();
    fewer.shift_remove("count");
    assert_eq!(module.load_state_dict(&fewer, true).expect_err("strict").code, "X0005");
    assert_eq!(module.load_state_dict(&fewer, false).expect("lenient").missing, ["count"]);
    fewer["a.lin.weight"] = Tensor::full(&[3], Scalar::Int(1), flambeau::tensor::DType::F32).expect("small");
    assert_eq!(module.load_state_dict(&fewer, false).expect_err("sizes").code, "X0005");
    let of_archive = session.load_weights(data("nested.pt")).expect("its module's");
    assert_eq!(of_archive.len(), 4);
}

#[test]
fn freezing_keeps_changing_attributes() {
    let session = Session::standard().expect("consistent");
    let program = load(&session, "nested.pt");
    assert_eq!(program.freeze(&[]).err().expect("it is training").fault, Fault::Misuse);
    let module = program.module().expect("a module");
    module.eval();
    let frozen = program.freeze(&[]).expect("frozen");
    let x = IValue::Tensor(Tensor::from_slice(&[1.0_f32, -2.0], &[1, 2]).expect("small"));
    let run = |p: &Program| {
        floats(&p.entry("forward").expect("there").call(std::slice::from_ref(&x), &[]).expect("runs"))
    };
    assert_eq!(run(&frozen), run(&program));
    let left = frozen.module().expect("a module");
    assert!(left.attributes().is_empty(), "{:?}", left.attributes().len());
    assert_eq!(frozen.entries(), ["forward"]);
    let text = frozen.entry("forward").expect("there").graph().to_string();
    assert!(!text.contains("prim::GetAttr") && !text.contains("prim::CallMethod"), "{text}");
    let more = program.freeze(&["helper", "b.lin"]).expect("frozen");
    assert_eq!(more.entries(), ["forward", "helper"]);
    assert!(more.module().expect("a module").get("b.lin.weight").is_ok());
    assert_eq!(run(&more), run(&program));
    assert_eq!(program.freeze(&["nope"]).err().expect("no such thing").fault, Fault::Misuse);
}

#[test]
fn attributes_changed_only_in_training_are_frozen() {
    let session = Session::standard().expect("consistent");
    let program = load(&session, "normed.pt");
    let frozen = program.freeze(&[]).expect("frozen");
    let x: Vec<f32> = (0..8).map(|i| i as f32 * 0.5 - 2.0).collect();
    let x = IValue::Tensor(Tensor::from_slice(&x, &[1, 2, 4]).expect("small"));
    let run = |p: &Program| {
        floats(&p.entry("forward").expect("there").call(std::slice::from_ref(&x), &[]).expect("runs"))
    };
    assert_eq!(run(&frozen), run(&program));
    let left = frozen.module().expect("a module");
    assert!(left.attributes().is_empty(), "{:?} attributes are left", left.attributes().len());
}

/// Tasks keep tensors that they write, and fold those that no code writes; normalization is folded in both, also in
/// f16.
#[test]
fn tasks_and_half_floats_are_frozen() {
    let session = Session::standard().expect("consistent");
    let program = load(&session, "tasks.pt");
    let frozen = program.freeze(&[]).expect("frozen");
    let left: Vec<_> = frozen
        .module()
        .expect("a module")
        .attributes()
        .into_iter()
        .map(|(a, _)| a.name.to_string())
        .collect();
    assert_eq!(left, ["seen"]);
    let text = frozen.entry("forward").expect("there").code().expect("it can be written");
    assert_eq!(text.matches("def __forked_function").count(), 3, "{text}");
    assert!(!text.contains("batch_norm") && !text.contains("getattr"), "{text}");
    let again = session.load_archive_bytes(&frozen.to_archive("tasks").expect("saved")).expect("as written");
    // Recorded with PyTorch: the first and the second call. The program shares the remaining part of `seen`.
    let fresh = load(&session, "tasks.pt");
    for (program, wants) in
        [(&fresh, [[20.0, -52.0], [21.0, -51.0]]), (&again, [[20.0, -52.0], [21.0, -51.0]])]
    {
        for want in wants {
            let call = program.entry("forward").expect("there").call(&[tensor(&[1.0, -2.0])], &[]);
            let result = call.expect("runs");
            let parts = result.as_tuple().expect("a pair").items().to_vec();
            assert_eq!(floats(&parts[0]), want);
            let near = |got: f32, want: f32| (got - want).abs() < 1e-3;
            let normed =
                if want[0] == 20.0 { [-4.6516, -22.5138, -8.7919] } else { [-4.2348, -22.6549, -9.1223] };
            assert!(
                floats(&parts[1]).iter().zip(normed).all(|(&g, w)| near(g, w)),
                "{:?}",
                floats(&parts[1])
            );
        }
    }
    let half = load(&session, "half.pt");
    let frozen = half.freeze(&[]).expect("frozen").entry("forward").expect("there");
    assert!(!frozen.code().expect("it can be written").contains("batch_norm"));
    let x: Vec<f32> = (0..8).map(|i| i as f32 * 0.5 - 2.0).collect();
    let x = Tensor::from_slice(&x, &[1, 2, 4]).and_then(|x| x.to_dtype(flambeau::tensor::DType::F16));
    let result = frozen.call(&[IValue::Tensor(x.expect("small"))], &[]).expect("runs");
    let result = result.as_tensor().expect("a tensor").to_vec::<f64>().expect("floats");
    let want = [0.1140, 0.1862, 0.2583, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert!(result.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-3), "{result:?}");
}

#[test]
fn frozen_modules_keep_hooks() {
    let session = Session::standard().expect("consistent");
    let program = load(&session, "hooked.pt");
    program.module().expect("a module").eval();
    let frozen = program.freeze(&[]).expect("frozen");
    let again = session.load_archive_bytes(&frozen.to_archive("hooked").expect("saved")).expect("as written");
    let args = [tensor(&[1.0, 2.0]), IValue::Float(3.0)];
    for program in [&frozen, &again] {
        assert!(program.has_hooks() && program.module().expect("a module").attributes().is_empty());
        let call = |name| program.entry(name).expect("there").call(&args, &[]).expect("runs");
        assert_eq!(floats(&call("forward")), [6.0, 12.0]);
        assert_eq!(floats(&call("__call__")), [18.0, 36.0]);
    }
}

#[test]
fn saved_programs_are_equal() {
    let session = Session::standard().expect("consistent");
    let names =
        ["lstm", "nested", "shared", "containers", "classes", "function", "constants", "traced", "hooked"];
    for name in names {
        let program = load(&session, &format!("{name}.pt"));
        let bytes = program.to_archive(name).unwrap_or_else(|e| panic!("{name}: {e}"));
        let again = session.load_archive_bytes(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(again.to_archive(name).expect("as before"), bytes, "{name}: the same bytes again");
        for entry in program.entries() {
            let code = |p: &Program| p.entry(&entry).expect("there").code().expect("it was printed");
            assert_eq!(code(&again), code(&program), "{name}.{entry}");
        }
        let state = |p: &Program| p.module().expect("a module").state_dict().expect("small");
        let (old, new) = (state(&program), state(&again));
        assert!(old.keys().eq(new.keys()), "{name}");
        for (key, tensor) in &old {
            assert_eq!(
                new[key].to_bytes().expect("readable"),
                tensor.to_bytes().expect("readable"),
                "{name}.{key}"
            );
        }
        assert_eq!(again.has_hooks(), program.has_hooks());
    }
    let program = load(&session, "nested.pt");
    program.module().expect("a module").eval();
    let frozen = program.freeze(&[]).expect("frozen").to_archive("frozen").expect("saved");
    let x = IValue::Tensor(Tensor::from_slice(&[1.0_f32, -2.0], &[1, 2]).expect("small"));
    let run = |p: &Program| {
        floats(&p.entry("forward").expect("there").call(std::slice::from_ref(&x), &[]).expect("runs"))
    };
    assert_eq!(run(&session.load_archive_bytes(&frozen).expect("as written")), run(&program));
}

/// Returns the functions that were active when a call failed, with their source lines, outermost first.
fn levels(program: &Program, entry: &str, args: &[IValue]) -> Vec<(String, String)> {
    let error = program.entry(entry).expect("there").call(args, &[]).expect_err("it raises");
    let level = |entry: &flambeau::exec::TraceEntry| {
        let original = entry.range.as_ref().and_then(|range| range.original());
        let line =
            original.map(|at| at.source.text[at.range.start as usize..at.range.end as usize].to_owned());
        (entry.function.to_string(), line.unwrap_or_default())
    };
    error.trace.iter().map(level).collect()
}

/// Traces contain every call with its source line, for calls of any depth, inlined or not; an error of a task has the
/// task's calls.
#[test]
fn tracebacks_have_every_call() {
    use flambeau::Execution;
    let pair = |(function, text): (&str, &str)| (function.to_owned(), text.to_owned());
    let three = IValue::Tensor(Tensor::from_slice(&[1.0_f32, -2.0, 0.5], &[1, 3]).expect("small"));
    let calls = [
        ("__torch__.Nested.forward", "self.helper"),
        ("__torch__.Nested.helper", "self.b"),
        ("__torch__.Block.forward", "self.lin"),
        ("__torch__.torch.nn.modules.linear.Linear.forward", "F.linear"),
    ]
    .map(pair);
    let tasks = [
        ("__torch__.Tasks.forward", "torch.jit.wait"),
        ("<forked function>", "torch.jit.fork(self.deep, x"),
        ("__torch__.Tasks.deep", "torch.jit.wait"),
        ("__torch__.Tasks.deep", "torch.jit.fork(self.shifted, x * self.inner.by"),
        ("__torch__.Tasks.shifted", "self.inner"),
        ("__torch__.Scaled.forward", "x * self.weight"),
    ]
    .map(pair);
    for execution in [Execution::Reference, Execution::Machine, Execution::Optimized] {
        let session = Session::builder().standard().execution(execution).build().expect("consistent");
        let args = std::slice::from_ref(&three);
        assert_eq!(levels(&load(&session, "nested.pt"), "forward", args), calls, "{execution:?}");
        let args = [tensor(&[1.0, 2.0, 3.0])];
        assert_eq!(levels(&load(&session, "tasks.pt"), "forward", &args), tasks, "{execution:?}");
    }
}

#[test]
fn saved_programs_keep_source_positions() {
    let session = Session::standard().expect("consistent");
    let program = load(&session, "nested.pt");
    program.module().expect("a module").eval();
    let three = IValue::Tensor(Tensor::from_slice(&[1.0_f32, -2.0, 0.5], &[1, 3]).expect("small"));
    let failure = |p: &Program| {
        let entry = p.entry("forward").expect("there");
        entry.call(std::slice::from_ref(&three), &[]).expect_err("sizes do not fit").render()
    };
    let line = |text: &str| {
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let at = lines.iter().rposition(|line| line.contains("original source"));
        let at = at.unwrap_or_else(|| panic!("no line of people's in {text}"));
        lines[at..at + 3].to_vec()
    };
    let again = |p: &Program| {
        session.load_archive_bytes(&p.to_archive("nested").expect("saved")).expect("as written")
    };
    let want = line(&failure(&program));
    assert_eq!(line(&failure(&again(&program))), want);
    assert_eq!(line(&failure(&again(&again(&program)))), want);
    let frozen = program.freeze(&[]).expect("frozen");
    assert_eq!(line(&failure(&again(&frozen))), line(&failure(&frozen)), "inlined code too");
}
