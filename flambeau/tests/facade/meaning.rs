//! The meaning of a program is in its graph: the reference evaluator runs the loaded graph, and loading makes its
//! meaning explicit.

use flambeau::tensor::DType;
use flambeau::{Error, Execution, Fault, IValue, Session, Tensor};

const WAYS: [Execution; 3] = [Execution::Reference, Execution::Machine, Execution::Optimized];

fn session(execution: Execution) -> Session {
    Session::standard().expect("consistent").with_execution(execution)
}

/// `x / 2.5` and similar operations, traced: the archive has a constant tensor without dimensions instead of the
/// number.
const NUMBERS: &[u8] = include_bytes!("../../../archive/tests/data/numbers.pt");

fn dtypes(result: &IValue) -> Vec<DType> {
    let IValue::Tuple(results) = result else { panic!("a tuple") };
    results.items().iter().filter_map(IValue::as_tensor).map(Tensor::dtype).collect()
}

#[test]
fn loading_restores_numbers_of_traces() {
    for execution in WAYS {
        let session = session(execution);
        let entry = session.load_archive_bytes(NUMBERS).expect("loads").entry("forward").expect("there");
        let text = entry.graph().to_string();
        assert!(text.contains("float = prim::Constant[value=2.5]()"), "{text}");
        for (dtype, first) in [(DType::I64, DType::F32), (DType::F32, DType::F32), (DType::F16, DType::F16)] {
            let x = Tensor::zeros(&[2], dtype).expect("small");
            let result = entry.call(&[IValue::Tensor(x)], &[]).expect("runs");
            assert_eq!(dtypes(&result), [first, DType::F64], "{execution:?} {dtype:?}");
        }
    }
}

#[test]
fn constant_tensors_of_ir_text_stay_tensors() {
    let text = "graph(%x : Tensor):
  %c : Double() = prim::Constant[value={2.5}]()
  %q : Tensor = aten::div(%x, %c)
  %p : (Tensor, Tensor) = prim::TupleConstruct(%q, %q)
  return (%p)
";
    for execution in WAYS {
        let program = session(execution).parse_ir(text).expect("reads");
        let x = IValue::Tensor(Tensor::zeros(&[2], DType::I64).expect("small"));
        let result = program.entry("forward").expect("there").call(&[x], &[]).expect("runs");
        assert_eq!(dtypes(&result), [DType::F64; 2], "{execution:?}");
    }
}

const CONJUGATES: &str = "
def operand_written(x):
    y = torch.conj(x)
    x.mul_(2)
    return y

def result_written(x):
    y = x.conj()
    y.add_(1)
    return x

def view_of_result_written(x):
    x.conj()[0].zero_()
    return x

def gives(x):
    return torch.conj(x)

def written_by_the_caller(x):
    y = gives(x)
    y.add_(1)
    return y

def written_in_a_loop(x, n: int):
    y = x
    for i in range(n):
        x.mul_(2)
        y = x.conj()
    return y

def only_read(x, n: int):
    y = x
    for i in range(n):
        y = x.conj() + y.conj()
    x = y + 1
    x.mul_(2)
    return x
";

#[test]
fn writes_to_conjugated_tensors_are_refused() {
    let complex = || Tensor::zeros(&[2], DType::C64).expect("small");
    for execution in WAYS {
        let program = session(execution).compile_source(CONJUGATES, "conjugates.py").expect("compiles");
        let call = |name: &str, x: &Tensor, n: &[i64]| -> Result<IValue, Error> {
            let mut args = vec![IValue::Tensor(x.clone())];
            args.extend(n.iter().map(|&n| IValue::Int(n)));
            program.entry(name)?.call(&args, &[])
        };
        let refused =
            ["operand_written", "result_written", "view_of_result_written", "written_by_the_caller"];
        for name in refused {
            let x = complex();
            let error = call(name, &x, &[]).expect_err(name);
            assert_eq!(error.fault, Fault::Unsupported, "{execution:?} {name}: {error}");
            assert!(error.message.contains("conj_physical"), "{error}");
            // After the call, the tensor may be written.
            assert!(x.fill_(1.0.into()).is_ok(), "{execution:?} {name}");
            let real = Tensor::zeros(&[2], DType::F32).expect("small");
            assert!(call(name, &real, &[]).is_ok(), "{execution:?} {name} of a real tensor");
        }
        assert!(call("written_in_a_loop", &complex(), &[1]).is_ok(), "{execution:?}");
        assert!(call("written_in_a_loop", &complex(), &[2]).is_err(), "{execution:?}");
        assert!(call("only_read", &complex(), &[40]).is_ok(), "{execution:?}");
    }
}

#[test]
fn the_reference_runs_the_loaded_graph() {
    let source = "def g(x: int) -> int:\n    return x + 1\ndef f(x: int) -> int:\n    return g(x) * 2\n";
    let session = session(Execution::Reference);
    let entry = session.compile_source(source, "f.py").expect("compiles").entry("f").expect("there");
    let before = entry.graph().to_string();
    assert!(before.contains("prim::CallFunction"), "{before}");
    assert_eq!(entry.call(&[IValue::Int(3)], &[]).expect("runs").as_int(), Some(8));
    assert_eq!(entry.graph().to_string(), before);
}
