//! Traces: what a run called, as a program.

use flambeau::ir::value::List;
use flambeau::tensor::{DType, Scalar};
use flambeau::{IValue, Session, Tensor, Type};

fn tensor(values: &[f64]) -> IValue {
    let values: Vec<Scalar> = values.iter().map(|&x| Scalar::Float(x)).collect();
    IValue::Tensor(Tensor::from_scalars(&values, &[values.len() as i64], DType::F32).unwrap())
}

fn values(value: &IValue) -> Vec<f64> {
    value.as_tensor().unwrap().to_scalars().unwrap().iter().map(|s| s.to_f64()).collect()
}

fn session() -> Session {
    Session::standard().unwrap()
}

#[test]
fn sizes_are_those_of_the_call() {
    let program = session()
        .trace(&[tensor(&[1.0, 2.0])], |tracer, inputs| {
            let n = tracer.size(&inputs[0], 0)?;
            let sum = tracer.call("aten::sum", &[inputs[0].clone()])?;
            tracer.call("aten::div", &[sum, n])
        })
        .unwrap();
    let entry = program.entry("forward").unwrap();
    assert!(entry.graph().to_string().contains("prim::NumToTensor"), "{}", entry.graph());
    assert_eq!(values(&entry.call(&[tensor(&[1.0, 2.0, 9.0])], &[]).unwrap()), [4.0]);
}

#[test]
fn writes_to_views_are_writes_to_their_bases() {
    let program = session()
        .trace(&[tensor(&[1.0, 2.0, 3.0])], |tracer, inputs| {
            let copy = tracer.call("aten::clone", &[inputs[0].clone()])?;
            let part = tracer.call("aten::slice", &[copy.clone(), 0.into(), 1.into(), 3.into()])?;
            tracer.call("aten::mul_", &[part, IValue::Int(10)])?;
            Ok(copy)
        })
        .unwrap();
    let result = program.entry("forward").unwrap().call(&[tensor(&[4.0, 5.0, 6.0])], &[]).unwrap();
    assert_eq!(values(&result), [4.0, 50.0, 60.0]);
}

#[test]
fn containers_are_made_of_recorded_values() {
    let program = session()
        .trace(&[tensor(&[1.0, 2.0])], |tracer, inputs| {
            let parts = tracer.call("aten::chunk", &[inputs[0].clone(), 2.into(), 0.into()])?;
            let IValue::List(parts) = parts else { panic!("chunk returns a list") };
            let (first, second) = (parts.get(0).unwrap(), parts.get(1).unwrap());
            let swapped = List::from_values(Type::TENSOR, vec![second, first]);
            tracer.call("aten::cat", &[IValue::List(swapped), 0.into()])
        })
        .unwrap();
    let result = program.entry("forward").unwrap().call(&[tensor(&[7.0, 8.0])], &[]).unwrap();
    assert_eq!(values(&result), [8.0, 7.0]);
}

#[test]
fn functions_keep_their_control_flow() {
    let session = session();
    let source = "def f(x):\n    if bool(x.sum() > 0):\n        return x\n    return -x\n";
    let callee = session.compile_source(source, "f.py").unwrap().entry("f").unwrap();
    let program = session
        .trace(&[tensor(&[1.0])], |tracer, inputs| {
            let y = tracer.call_entry(&callee, inputs)?;
            tracer.call("aten::add", &[y, 1.into()])
        })
        .unwrap();
    let entry = program.entry("forward").unwrap();
    assert!(entry.graph().to_string().contains("prim::If"));
    assert_eq!(values(&entry.call(&[tensor(&[-3.0])], &[]).unwrap()), [4.0]);
}

#[test]
fn errors_end_the_trace() {
    let session = session();
    let unknown = session.trace(&[tensor(&[1.0])], |tracer, inputs| tracer.call("aten::absent", inputs));
    assert_eq!(unknown.err().unwrap().code, "X0003");
    let failing = session.trace(&[tensor(&[1.0])], |tracer, inputs| {
        tracer.call("aten::view", &[inputs[0].clone(), IValue::List(List::from_ints(vec![7]))])
    });
    assert_eq!(failing.err().unwrap().code, "X0002");
    let weight = Tensor::full(&[1], Scalar::Int(0), DType::F32).unwrap();
    weight.set_requires_grad(true);
    let constant = session.trace(&[tensor(&[1.0])], |tracer, inputs| {
        tracer.call("aten::add", &[inputs[0].clone(), IValue::Tensor(weight.clone())])
    });
    let error = constant.err().unwrap();
    assert!(error.message.contains("requires a gradient"), "{error}");
}

#[test]
fn a_tensor_that_is_two_arguments_is_two_values() {
    let x = tensor(&[1.0, 2.0]);
    let pair = IValue::tuple(vec![x.clone(), x.clone()]);
    let program = session()
        .trace(&[x.clone(), x, pair], |tracer, inputs| {
            let IValue::Tuple(pair) = &inputs[2] else { panic!("a tuple is an argument") };
            let first = tracer.call("aten::sub", &[inputs[0].clone(), inputs[1].clone()])?;
            let second = tracer.call("aten::sub", pair.items())?;
            tracer.call("aten::mul", &[first, second])
        })
        .unwrap();
    let pair = IValue::tuple(vec![tensor(&[7.0, 9.0]), tensor(&[1.0, 2.0])]);
    let args = [tensor(&[5.0, 5.0]), tensor(&[2.0, 1.0]), pair];
    assert_eq!(values(&program.entry("forward").unwrap().call(&args, &[]).unwrap()), [18.0, 28.0]);
}

#[test]
fn values_of_dictionaries_and_several_results_are_recorded() {
    let session = session();
    let source = "def f(x: Tensor) -> Dict[str, Tensor]:\n    return {'a': x * 2, 'b': x}\n";
    let maker = session.compile_source(source, "f.py").unwrap().entry("f").unwrap();
    let text = "graph(%x : Tensor):\n  %a : Tensor = aten::neg(%x)\n  %b : Tensor = aten::abs(%x)\n  return (%a, %b)\n";
    let two = session.parse_ir(text).unwrap().entry("forward").unwrap();
    let program = session
        .trace(&[tensor(&[1.0])], |tracer, inputs| {
            let IValue::Dict(made) = tracer.call_entry(&maker, inputs)? else { panic!("a dictionary") };
            let a = made.get(&IValue::str("a")).unwrap().unwrap();
            let IValue::Tuple(pair) = tracer.call_entry(&two, &[a])? else { panic!("two results") };
            tracer.call("aten::sub", pair.items())
        })
        .unwrap();
    let result = program.entry("forward").unwrap().call(&[tensor(&[3.0])], &[]).unwrap();
    assert_eq!(values(&result), [-12.0]);
}

#[test]
fn calls_of_functions_are_kept_with_their_callees() {
    let session = session();
    let program = |factor: i32| {
        let text = format!(
            "def inner(x):\n    return x * {factor}\n\ndef f(x):\n    if bool(x.sum() > 0):\n        return inner(x)\n    return x\n"
        );
        session.compile_source(&text, "f.py").unwrap()
    };
    let (one, two) = (program(2), program(5));
    let (one, two) = (one.entry("f").unwrap(), two.entry("f").unwrap());
    let mut recorder = flambeau::trace::Recorder::new(&session);
    let x = recorder.input("x", Type::TENSOR);
    let mut sum = recorder.call_function(&one, "f", &[x.into()]).unwrap();
    // The callees of the second have the name of those of the first: it is inlined.
    for entry in [&one, &two] {
        let next = recorder.call_function(entry, "f", &[x.into()]).unwrap();
        sum = recorder.call("aten::add.Tensor", &[sum.into(), next.into()]).unwrap()[0];
    }
    let program = recorder.finish(&sum.into()).unwrap();
    let entry = program.entry("forward").unwrap();
    let text = entry.graph().to_string();
    assert_eq!(text.matches("prim::CallFunction").count(), 2, "{text}");
    assert_eq!(values(&entry.call(&[tensor(&[1.0, 2.0])], &[]).unwrap()), [9.0, 18.0]);
    assert_eq!(values(&entry.call(&[tensor(&[-1.0, -2.0])], &[]).unwrap()), [-3.0, -6.0]);
}
