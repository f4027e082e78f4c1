//! Calls are recorded for gradients as in PyTorch: without a tape of the caller, to any order, and only if an argument
//! requires a gradient.

use flambeau::exec::Host;
use flambeau::exec::tape::{BackwardOptions, is_recorded};
use flambeau::tensor::DType;
use flambeau::{Entry, Execution, IValue, Session, Tensor};

const SOURCE: &str = "
def cube(x):
    return x * x * x

def write(x):
    x.add_(1)
    return x

def write_view(x):
    x[0].mul_(2)
    return x

def without(x):
    with torch.no_grad():
        y = x * 2
    return y, x * 2, (x > 0), x.detach()

def second(x):
    y = (x * x * x).sum()
    g = torch.autograd.grad([y], [x], create_graph=True)[0]
    assert g is not None
    (g * g).sum().backward()
    return y

def twice(x, retain: bool):
    y = (x * x).sum()
    y.backward(retain_graph=retain)
    y.backward()
    return y

def complex_sum(x):
    v = (x * x).sum()
    v.backward()

def leaf():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    return w * 2
";

const MODES: [Execution; 4] =
    [Execution::Reference, Execution::Machine, Execution::Optimized, Execution::Profiling];

fn session(execution: Execution) -> Session {
    Session::builder().standard().execution(execution).build().unwrap()
}

fn entry(session: &Session, name: &str) -> Entry {
    session.compile_source(SOURCE, "recording.py").unwrap().entry(name).unwrap()
}

pub(super) fn leaf(values: &[f64]) -> Tensor {
    let tensor = Tensor::from_slice(values, &[values.len() as i64]).unwrap();
    tensor.set_requires_grad(true);
    tensor
}

pub(super) fn tensor(value: &IValue) -> Tensor {
    value.as_tensor().unwrap().clone()
}

pub(super) fn values(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec().unwrap()
}

#[test]
fn a_call_records_if_an_argument_requires_a_gradient() {
    for execution in MODES {
        let session = session(execution);
        let cube = entry(&session, "cube");
        let plain = Tensor::from_slice(&[1.0, 2.0], &[2]).unwrap();
        for _ in 0..3 {
            let result = tensor(&cube.call(&[IValue::Tensor(plain.clone())], &[]).unwrap());
            assert!(!result.requires_grad() && !is_recorded(&result), "{execution:?}");
            let x = leaf(&[1.0, 2.0]);
            let result = tensor(&cube.call(&[IValue::Tensor(x.clone())], &[]).unwrap());
            assert!(result.requires_grad(), "{execution:?}");
            let found = session.gradients(&[(result, leaf(&[1.0, 1.0]))], &[x], &mut Host::quiet()).unwrap();
            assert_eq!(values(found[0].as_ref().unwrap()), [3.0, 12.0]);
        }
        let mut host = session.host();
        host.set_grad_enabled(false);
        let result = cube.call_on(&[IValue::Tensor(leaf(&[1.0]))], &[], &mut host).unwrap();
        assert!(!tensor(&result).requires_grad(), "{execution:?}");
        let made = tensor(&entry(&session, "leaf").call(&[], &[]).unwrap());
        assert!(made.requires_grad(), "{execution:?}");
    }
}

#[test]
fn results_require_gradients_as_in_pytorch() {
    let session = session(Execution::Optimized);
    let results = entry(&session, "without").call(&[IValue::Tensor(leaf(&[1.0]))], &[]).unwrap();
    let IValue::Tuple(results) = &results else { panic!("a tuple") };
    let flags: Vec<bool> = results.items().iter().map(|v| tensor(v).requires_grad()).collect();
    assert_eq!(flags, [false, true, false, false]);
}

#[test]
fn writes_to_leaves_are_refused_before_they_happen() {
    for execution in MODES {
        let session = session(execution);
        for (name, message) in [
            ("write", "a leaf Variable that requires grad is being used in an in-place operation."),
            (
                "write_view",
                "a view of a leaf Variable that requires grad is being used in an in-place operation.",
            ),
        ] {
            let x = leaf(&[1.0, 2.0]);
            let error = entry(&session, name).call(&[IValue::Tensor(x.clone())], &[]).unwrap_err();
            assert_eq!((error.message.as_str(), values(&x)), (message, vec![1.0, 2.0]), "{execution:?}");
            let mut host = session.host();
            host.set_grad_enabled(false);
            assert!(entry(&session, name).call_on(&[IValue::Tensor(x)], &[], &mut host).is_ok());
        }
    }
}

#[test]
fn gradients_have_gradients_to_any_order() {
    let session = session(Execution::Optimized);
    let x = leaf(&[2.0]);
    let mut host = session.host();
    let mut value = tensor(&entry(&session, "cube").call(&[IValue::Tensor(x.clone())], &[]).unwrap());
    let mode = BackwardOptions { retain_graph: true, create_graph: true };
    for expected in [12.0, 12.0, 6.0] {
        let one = Tensor::from_slice(&[1.0], &[1]).unwrap();
        let found = session.gradients_with(&[(value, one)], std::slice::from_ref(&x), mode, &mut host);
        value = found.unwrap().remove(0).unwrap();
        assert_eq!(values(&value), [expected]);
    }
}

#[test]
fn a_program_differentiates_its_own_gradients() {
    let x = leaf(&[1.0, 2.0]);
    entry(&session(Execution::Optimized), "second").call(&[IValue::Tensor(x.clone())], &[]).unwrap();
    // The gradient of the sum of (3 x^2)^2.
    assert_eq!(values(&Session::accumulated_gradient(&x).unwrap()), [36.0, 288.0]);
}

#[test]
fn a_released_graph_is_not_walked_again() {
    let session = session(Execution::Optimized);
    let twice = entry(&session, "twice");
    let x = leaf(&[3.0]);
    twice.call(&[IValue::Tensor(x.clone()), IValue::Bool(true)], &[]).unwrap();
    assert_eq!(values(&Session::accumulated_gradient(&x).unwrap()), [12.0]);
    let error = twice.call(&[IValue::Tensor(x), IValue::Bool(false)], &[]).unwrap_err();
    assert!(
        error.message.starts_with("Trying to backward through the graph a second time"),
        "{}",
        error.message
    );
}

const CHECKED: &str = "
def cell(x, w, b):
    return torch.tanh(x @ w + b) * torch.sigmoid(x @ w)

def branches(x, w):
    if bool(x.sum() > 0):
        y = (x * w).exp()
    else:
        y = x.tanh() * 2
    return y * x

def repeated(h, w, n: int):
    out: List[Tensor] = []
    for i in range(n):
        h = (h * w).tanh() + h
        if i % 2 == 0:
            h = h * w.sum()
    return h

def until(x):
    n = 0
    while n < 3:
        x = (x + 2 / x) * 0.5
        n += 1
    return x.log()
";

#[test]
fn derivatives_are_checked() {
    use flambeau::{AdCheck, AdProblem};
    let session = Session::standard().unwrap();
    let program = session.compile_source(CHECKED, "checked.py").unwrap();
    let tensor = |values: &[f64], sizes: &[i64]| IValue::Tensor(Tensor::from_slice(values, sizes).unwrap());
    let (x, w) = (tensor(&[0.3, -0.2, 0.5, 0.9], &[2, 2]), tensor(&[0.7, -0.4, 0.2, 1.1], &[2, 2]));
    let b = tensor(&[0.1, 0.2], &[2]);
    let cell = program.entry("cell").unwrap();
    let mut check = AdCheck::of(&[0, 1, 2]);
    check.differentiable = ["aten::matmul", "aten::tanh"].map(str::to_owned).to_vec();
    check.fused = vec!["aten::sigmoid".to_owned()];
    let report = cell.check_ad(&[x.clone(), w.clone(), b.clone()], &check).unwrap();
    assert_eq!(report.refused, None);
    check.differentiable.push("aten::log".to_owned());
    let found = cell.check_ad(&[x.clone(), w.clone(), b], &check);
    assert!(matches!(found, Err(AdProblem::Wrong(why)) if why.contains("contains aten::log")));
    for (name, wrt, args) in [
        ("branches", vec![0, 1], vec![x.clone(), w.clone()]),
        ("branches", vec![0, 1], vec![tensor(&[-0.3, -0.2, -0.5, 0.9], &[4]), tensor(&[0.5], &[1])]),
        ("repeated", vec![0, 1], vec![x.clone(), w.clone(), IValue::Int(3)]),
        ("repeated", vec![0, 1], vec![x, tensor(&[0.5, 0.25], &[2]), IValue::Int(1)]),
        ("until", vec![0], vec![w]),
    ] {
        let args = if name == "until" { vec![tensor(&[0.7, 1.4], &[2])] } else { args };
        let report = program.entry(name).unwrap().check_ad(&args, &AdCheck::of(&wrt));
        let report = report.unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_eq!(report.refused, None, "{name}");
    }
}

const LOOPS: &str = "
def powers(x, n: int):
    a, b = x, x * 2
    for i in range(n):
        a, b = b * x, a + b * i
    return a + b

def detaches(x, n: int):
    h = x
    for i in range(n):
        h = (h * x).detach() + x * i if i % 2 == 0 else h * x
    return h
";

/// Where the number of iterations is an argument, the derivative of the derivative has a graph for each number.
#[test]
fn loops_have_second_derivatives_as_graphs() {
    let session = Session::builder().standard().differentiated_after(0).build().unwrap();
    let program = session.compile_source(LOOPS, "loops.py").unwrap();
    for (name, is_graph) in [("powers", true), ("detaches", false)] {
        let entry = program.entry(name).unwrap();
        for n in [4, 3, 4] {
            let mut host = session.host();
            let second = |host: &mut Host, taped: bool| {
                if taped {
                    host.set_tape(Some(session.tape().unwrap()));
                }
                let x = leaf(&[0.5, -2.0]);
                let args = [IValue::Tensor(x.clone()), IValue::Int(n)];
                let result = tensor(&entry.call_on(&args, &[], host).unwrap());
                let ones = |t: &Tensor| Tensor::full(t.sizes(), 1.0.into(), t.dtype()).unwrap();
                let mode = BackwardOptions { retain_graph: true, create_graph: true };
                let seed = ones(&result);
                let wrt = [x];
                let grad =
                    session.gradients_with(&[(result, seed)], &wrt, mode, host).unwrap().remove(0).unwrap();
                if !grad.requires_grad() {
                    return None;
                }
                let seed = ones(&grad);
                session.gradients(&[(grad, seed)], &wrt, host).unwrap().remove(0).map(|t| values(&t))
            };
            let expected = second(&mut session.host(), true);
            assert_eq!(second(&mut host, false), expected, "{name}, {n} iterations");
        }
        assert_eq!(entry.gradient_refusals().is_empty(), is_graph, "{name}: {:?}", entry.gradient_refusals());
    }
}

const WRITES: &str = "
def counts(x, mean, n):
    n.add_(1)
    with torch.no_grad():
        mean.mul_(0.5).add_(x.mean(0), alpha=0.5)
    return (x - mean) * x * n

def normalizes(x, mean, var):
    return F.batch_norm(x, mean, var, None, None, True, 0.25).tanh() * x

def pair(x, mean, n):
    n.add_(1)
    return x * n, x * x * n

def ties(x, m, n):
    m.add_(1)
    return x * n

def narrow_dtype(x, y):
    z = torch.zeros([2], dtype=torch.int64)
    z.add_(x)
    return z * y

def narrow_size(x, y):
    z = torch.zeros([1, 2])
    z[0].mul_(y)
    return z[0] * x

def draws(x, buf):
    y = torch.dropout(x, 0.5, True)
    buf.copy_(y)
    return y * 3
";

/// Calls an entry of [`WRITES`] three times, on one random state; returns results and written arguments.
fn three_calls(taped: bool, name: &str, args: &dyn Fn(usize) -> Vec<Tensor>) -> Vec<Vec<f64>> {
    let calls = if taped { u32::MAX } else { 0 };
    let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
    let entry = session.compile_source(WRITES, "writes.py").unwrap().entry(name).unwrap();
    let mut host = session.host();
    let mut found = Vec::new();
    for call in 0..3 {
        let args = args(call);
        args[0].set_requires_grad(true);
        let values_of: Vec<IValue> = args.iter().map(|t| IValue::Tensor(t.clone())).collect();
        let result = tensor(&entry.call_on(&values_of, &[], &mut host).unwrap());
        found.push(values(&result));
        found.extend(args.iter().map(values));
    }
    found
}

/// A tensor that is two arguments is written for both, and a call that turns out to need the tape draws its random numbers
/// once.
#[test]
fn calls_that_graphs_cannot_take_run_as_on_the_tape() {
    let plain = |values: &[f64]| Tensor::from_slice(values, &[values.len() as i64]).unwrap();
    // The first call makes a plan for two tensors.
    let tied = |call: usize| {
        let b = plain(&[1.0, 2.0]);
        vec![plain(&[3.0, 5.0]), b.clone(), if call == 0 { plain(&[1.0, 2.0]) } else { b }]
    };
    assert_eq!(three_calls(false, "ties", &tied), three_calls(true, "ties", &tied));
    let buffer = |_| vec![plain(&[1.0; 16]), plain(&[0.0; 16])];
    assert_eq!(three_calls(false, "draws", &buffer), three_calls(true, "draws", &buffer));
}

/// Functional variants would return results of another dtype or size.
#[test]
fn writes_that_do_not_fit_raise_in_graphs() {
    for (name, y, message) in [
        ("narrow_dtype", &[2][..], "result type Float can't be cast to the desired output type Long"),
        ("narrow_size", &[3, 2], "output with shape [2] doesn't match the broadcast shape [3, 2]"),
    ] {
        let session = Session::builder().standard().differentiated_after(0).build().unwrap();
        let entry = session.compile_source(WRITES, "writes.py").unwrap().entry(name).unwrap();
        for _ in 0..3 {
            let x = Tensor::from_slice(&[3.0_f32, 5.0], &[2]).unwrap();
            x.set_requires_grad(true);
            let count: i64 = y.iter().product();
            let y = Tensor::from_slice(&vec![1.0_f32; count as usize], y).unwrap();
            let error = entry.call(&[IValue::Tensor(x), IValue::Tensor(y)], &[]).unwrap_err();
            assert!(error.message.contains(message), "{name}: {}", error.message);
        }
    }
}

/// A backward pass without a gradient of each output calls the function again, on the elements from before the call.
#[test]
fn passes_that_call_a_writing_function_again_repeat() {
    let session = Session::builder().standard().differentiated_after(0).build().unwrap();
    let entry = session.compile_source(WRITES, "writes.py").unwrap().entry("pair").unwrap();
    let plain = |values: &[f64]| Tensor::from_slice(values, &[values.len() as i64]).unwrap();
    let (mean, n) = (plain(&[1.0, 2.0]), plain(&[3.0, 4.0]));
    let x = plain(&[0.5, -2.0]);
    x.set_requires_grad(true);
    let mut host = session.host();
    let args = [&x, &mean, &n].map(|t| IValue::Tensor(t.clone()));
    let results = entry.call_on(&args, &[], &mut host).unwrap();
    assert_eq!(entry.gradient_graphs().len(), 1, "{:?}", entry.gradient_refusals());
    let IValue::Tuple(results) = &results else { panic!("a pair") };
    let first = tensor(&results.items()[0]);
    for create_graph in [false, false, true, true] {
        let mode = BackwardOptions { retain_graph: true, create_graph };
        let seed = Tensor::full(first.sizes(), 1.0.into(), first.dtype()).unwrap();
        let found =
            session.gradients_with(&[(first.clone(), seed)], std::slice::from_ref(&x), mode, &mut host);
        assert_eq!(values(&found.unwrap().remove(0).unwrap()), [4.0, 5.0], "{create_graph}");
        assert_eq!(values(&n), [4.0, 5.0]);
    }
}

/// A differentiated graph writes arguments that require no gradient once per call, also if the call is differentiated twice.
#[test]
fn calls_of_graphs_write_their_arguments_once() {
    let run = |taped: bool, name: &str, twice: bool| {
        let calls = if taped { u32::MAX } else { 0 };
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.compile_source(WRITES, "writes.py").unwrap().entry(name).unwrap();
        let plain = |values: &[f64]| Tensor::from_slice(values, &[values.len() as i64]).unwrap();
        let (mean, other) = (plain(&[1.0, 2.0]), plain(&[3.0, 4.0]));
        let mut found = Vec::new();
        for _ in 0..3 {
            let mut host = session.host();
            let x = Tensor::from_slice(&[0.5, -2.0, 1.5, 0.25], &[2, 2]).unwrap();
            x.set_requires_grad(true);
            let args = [&x, &mean, &other].map(|t| IValue::Tensor(t.clone()));
            let result = tensor(&entry.call_on(&args, &[], &mut host).unwrap());
            let ones = |t: &Tensor| Tensor::full(t.sizes(), 1.0.into(), t.dtype()).unwrap();
            let mode = BackwardOptions { retain_graph: true, create_graph: twice };
            let seed = ones(&result);
            let outputs = [(result.clone(), seed)];
            let wrt = [x];
            let mut grad =
                session.gradients_with(&outputs, &wrt, mode, &mut host).unwrap().remove(0).unwrap();
            if twice && grad.requires_grad() {
                let seed = ones(&grad);
                grad = session.gradients(&[(grad, seed)], &wrt, &mut host).unwrap().remove(0).unwrap();
            }
            found.extend([&result, &grad, &mean, &other].map(values));
        }
        if !taped {
            assert_eq!(entry.gradient_refusals(), Vec::<String>::new(), "{name}");
        }
        found
    };
    for name in ["counts", "normalizes"] {
        for twice in [false, true] {
            let (graph, tape) = (run(false, name, twice), run(true, name, twice));
            for (a, b) in graph.iter().flatten().zip(tape.iter().flatten()) {
                assert!((a - b).abs() < 1e-9, "{name}, {twice}: {graph:?} where the tape has {tape:?}");
            }
        }
    }
}

/// PyTorch differentiates no view of another dtype, also if it is floating or that of the argument.
#[test]
fn views_of_a_dtype_require_no_gradient() {
    let text = "graph(%x : Tensor, %dtype : int):\n  %y : Tensor = aten::view(%x, %dtype)\n  return (%y)\n";
    for execution in [Execution::Reference, Execution::Optimized] {
        let session = Session::standard().unwrap().with_execution(execution);
        let entry = session.parse_ir(text).unwrap().entry("forward").unwrap();
        for dtype in [3, 5, 6] {
            let x = Tensor::from_vec(vec![1.0_f32, 2.0], &[2]).unwrap();
            x.set_requires_grad(true);
            let y = entry.call(&[IValue::Tensor(x), IValue::Int(dtype)], &[]).unwrap();
            assert!(!y.as_tensor().unwrap().requires_grad(), "dtype {dtype}");
        }
    }
}

/// The integral over no samples has the dtype of the samples, and no gradient if these are integers.
#[test]
fn integrals_over_no_samples_have_the_dtype_of_samples() {
    let text = "
def f(y, x):
    return torch.trapezoid(y, x), torch.trapezoid(y, dx=2.0), torch.cumulative_trapezoid(y, x)
";
    for calls in [0, u32::MAX] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.compile_source(text, "integrals.py").unwrap().entry("f").unwrap();
        for (n, y_dtype) in
            [(3, DType::F64), (0, DType::F64), (3, DType::I32), (0, DType::I32), (0, DType::F64)]
        {
            let y = Tensor::full(&[n], 1.0.into(), y_dtype).unwrap();
            let x = Tensor::full(&[n], 1.0.into(), DType::F64).unwrap();
            x.set_requires_grad(true);
            y.set_requires_grad(y_dtype == DType::F64);
            let found = entry.call(&[IValue::Tensor(y), IValue::Tensor(x)], &[]).unwrap();
            let IValue::Tuple(found) = &found else { panic!("three tensors") };
            let flags: Vec<_> =
                found.items().iter().map(|t| t.as_tensor().unwrap().requires_grad()).collect();
            let real = y_dtype == DType::F64;
            assert_eq!(flags, [n > 0 || real, real, true], "{n} samples of {y_dtype:?}, {calls}");
            let dtypes: Vec<_> = found.items().iter().map(|t| t.as_tensor().unwrap().dtype()).collect();
            let of_sum = if n > 0 { DType::F64 } else { y_dtype };
            let even = if n > 0 && y_dtype == DType::I32 { DType::F32 } else { y_dtype };
            assert_eq!(dtypes, [of_sum, even, DType::F64], "{n} samples of {y_dtype:?}, {calls}");
        }
    }
}

const BRANCHES: &str = "
def f(x, n: int):
    y = torch.dropout(x, 0.5, True) * n
    if n > 3:
        with torch.no_grad():
            y.mul_(2)
    return y * x
";

/// A branch that cannot be differentiated does not prevent a plan. A call that takes it is recorded, with the random numbers
/// of the run that it ends.
#[test]
fn branches_without_derivatives_are_recorded_when_they_are_taken() {
    let call = |session: &Session, numbers: &[i64]| {
        let entry = session.compile_source(BRANCHES, "branches.py").unwrap().entry("f").unwrap();
        let mut host = session.host();
        let mut found = Vec::new();
        for n in numbers {
            let x = leaf(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
            let args = [IValue::Tensor(x.clone()), IValue::Int(*n)];
            let result = tensor(&entry.call_on(&args, &[], &mut host).unwrap());
            let ones = Tensor::full(result.sizes(), 1.0.into(), result.dtype()).unwrap();
            found.push(values(&result));
            let grad = session.gradients(&[(result, ones)], &[x], &mut host).unwrap().remove(0).unwrap();
            found.push(values(&grad));
        }
        (found, entry)
    };
    let with = |calls| Session::builder().standard().differentiated_after(calls).build().unwrap();
    let (graphs, tape) = (with(0), with(u32::MAX));
    let (_, entry) = call(&graphs, &[1, 2]);
    assert_eq!(entry.gradient_refusals(), Vec::<String>::new());
    assert_eq!(entry.gradient_graphs().len(), 1);
    let numbers = [1, 5, 2, 6];
    let (found, entry) = call(&graphs, &numbers);
    assert_eq!(found, call(&tape, &numbers).0);
    let reason = "takes a branch that cannot be differentiated: `aten::mul_`: writes memory where gradients are not enabled";
    assert_eq!(entry.gradient_refusals(), [reason]);
}

#[test]
fn complex_results_need_a_gradient() {
    let session = Session::standard().unwrap();
    let entry = entry(&session, "complex_sum");
    let x = Tensor::full(&[2], 1.into(), DType::C128).unwrap();
    x.set_requires_grad(true);
    let error = entry.call(&[IValue::Tensor(x)], &[]).unwrap_err();
    assert!(error.to_string().contains("grad can be computed only for real scalar outputs"), "{error}");
}
