//! Constants whose memory the program writes: every later read sees the write, through any node with that memory.

use flambeau::ir::{Graph, Prim, Type, ValueId};
use flambeau::{Execution, IValue, Program, Session, Tensor};

const ALL: [Execution; 3] = [Execution::Reference, Execution::Machine, Execution::Optimized];

fn session(execution: Execution) -> Session {
    Session::builder().standard().execution(execution).build().expect("consistent")
}

fn tensor(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, &[values.len() as i64]).expect("small")
}

fn run(program: &Program, name: &str, args: &[IValue]) -> String {
    program.entry(name).expect("there").call(args, &[]).expect("runs").to_string()
}

/// The archive names one constant twice: in a branch, where a view of it is written, and after it, where it is summed.
/// PyTorch returns 30.
#[test]
fn a_constant_used_twice_and_written_in_a_branch() {
    let archive = include_bytes!("../../../tests/data/constant_written_in_branch.pt");
    let x = [IValue::Tensor(tensor(&[2.0]))];
    let run = |execution| {
        let program = session(execution).load_archive_bytes(archive).expect("loads");
        run(&program, "forward", &x)
    };
    assert!(run(Execution::Reference).contains("30"), "{}", run(Execution::Reference));
    for execution in ALL {
        assert_eq!(run(execution), run(Execution::Reference), "{execution:?}");
    }
}

/// Builds `write` on one constant and reads another one that shares memory with it.
fn shared(session: &Session, held: impl Fn(&Tensor) -> (IValue, Type), behind_call: bool) -> Program {
    let registry = session.registry();
    let op = |name: &str| registry.lookup(name).expect("standard");
    let storage = tensor(&[1.0, 2.0]);
    let mut graph = Graph::new(registry.clone());
    let mut e = graph.edit();
    let x = e.add_input(Type::TENSOR);
    let one = e.constant(IValue::Int(1));
    let (value, ty) = held(&storage);
    let other = e.constant_of(value, ty);
    let read: ValueId = match ty == Type::TENSOR {
        true => other,
        false => {
            let zero = e.constant(IValue::Int(0));
            e.value(Prim::TupleIndex, &[other, zero], Type::TENSOR)
        }
    };
    let written = if behind_call { x } else { e.constant(IValue::Tensor(storage.alias())) };
    let before = e.value(op("aten::mul.Tensor"), &[read, read], Type::TENSOR);
    e.value(op("aten::add_.Tensor"), &[written, written, one], Type::TENSOR);
    let after = e.value(op("aten::mul.Tensor"), &[read, read], Type::TENSOR);
    let sum = e.value(op("aten::sub.Tensor"), &[after, before, one], Type::TENSOR);
    e.add_output(sum);
    session.program_of(graph).expect("a program")
}

#[test]
fn constants_that_share_a_storage() {
    let plain = |t: &Tensor| (IValue::Tensor(t.clone()), Type::TENSOR);
    let tuple = |t: &Tensor| {
        let ty = Type::tuple(&[Type::TENSOR, Type::INT]);
        (IValue::tuple(vec![IValue::Tensor(t.clone()), IValue::Int(2)]), ty)
    };
    for execution in ALL {
        let session = session(execution);
        let unused = [IValue::Tensor(tensor(&[0.0]))];
        let expected = IValue::Tensor(tensor(&[3.0, 12.0])).to_string();
        assert_eq!(run(&shared(&session, plain, false), "forward", &unused), expected, "{execution:?}");
        assert_eq!(run(&shared(&session, tuple, false), "forward", &unused), expected, "{execution:?}");
    }
}

/// The caller passes the same tensor that the program has as a constant.
#[test]
fn an_argument_that_is_a_constant() {
    for execution in ALL {
        let session = session(execution);
        let held = std::cell::RefCell::new(None);
        let plain = |t: &Tensor| {
            *held.borrow_mut() = Some(t.clone());
            (IValue::Tensor(t.clone()), Type::TENSOR)
        };
        let program = shared(&session, plain, true);
        let argument = held.borrow().clone().expect("made");
        let expected = IValue::Tensor(tensor(&[3.0, 12.0])).to_string();
        assert_eq!(run(&program, "forward", &[IValue::Tensor(argument)]), expected, "{execution:?}");
    }
}

/// Dead code elimination keeps a write to a constant that only an argument reads.
#[test]
fn a_write_to_a_constant_that_an_argument_views() {
    for execution in ALL {
        let session = session(execution);
        let op = |name: &str| session.registry().lookup(name).expect("standard");
        let storage = tensor(&[1.0, 2.0]);
        let mut graph = Graph::new(session.registry().clone());
        let mut e = graph.edit();
        let x = e.add_input(Type::TENSOR);
        let one = e.constant(IValue::Int(1));
        let constant = e.constant(IValue::Tensor(storage.clone()));
        e.value(op("aten::add_.Tensor"), &[constant, constant, one], Type::TENSOR);
        let y = e.value(op("aten::mul.Tensor"), &[x, x], Type::TENSOR);
        e.add_output(y);
        let program = session.program_of(graph).expect("a program");
        let expected = IValue::Tensor(tensor(&[4.0, 16.0])).to_string();
        assert_eq!(run(&program, "forward", &[IValue::Tensor(storage)]), expected, "{execution:?}");
    }
}
