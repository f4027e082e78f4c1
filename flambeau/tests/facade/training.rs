//! Derivatives of entries as functions, and optimizers, compared with known values and with PyTorch's.

use flambeau::exec::tape::BackwardOptions;
use flambeau::{Entry, IValue, Optimizer, Session, Tensor, UpdateRule};

const SOURCE: &str = "
def loss(p):
    return (p * p * p).sum() + p.sum()

def product(x, y, n: int):
    return x * x * y, y.sum() * n
";

fn entry(session: &Session, name: &str) -> Entry {
    session.compile_source(SOURCE, "training.py").unwrap().entry(name).unwrap()
}

fn tensor(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, &[values.len() as i64]).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec().unwrap()
}

fn args(tensors: &[&Tensor]) -> Vec<IValue> {
    tensors.iter().map(|t| IValue::Tensor((*t).clone())).collect()
}

#[test]
fn derivatives_of_an_entry() {
    let session = Session::standard().unwrap();
    let loss = entry(&session, "loss");
    let p = tensor(&[1.0, -2.0]);
    let (value, grads) = loss.value_and_grad(&args(&[&p]), &[0]).unwrap();
    assert_eq!((values(&value), values(&grads[0])), (vec![-8.0], vec![4.0, 13.0]));
    assert!(!p.requires_grad() && !value.requires_grad(), "the caller's tensors stay as they are");
    let (_, found) = loss.hessian_vector(&args(&[&p]), &[0], &[tensor(&[1.0, 2.0])]).unwrap();
    assert_eq!(values(&found[0]), [6.0, -24.0]);

    let product = entry(&session, "product");
    let (x, y) = (tensor(&[1.0, 2.0]), tensor(&[3.0, 5.0]));
    let inputs = [args(&[&x, &y]), vec![IValue::Int(10)]].concat();
    let weights = [tensor(&[1.0, 0.5]), Tensor::from_element(2.0).unwrap()];
    let (_, grads) = product.vjp(&inputs, &[0, 1], &weights).unwrap();
    assert_eq!((values(&grads[0]), values(&grads[1])), (vec![6.0, 10.0], vec![21.0, 22.0]));
    let (_, found) = product.jvp(&inputs, &[0, 1], &[tensor(&[1.0, 1.0]), tensor(&[0.0, 1.0])]).unwrap();
    assert_eq!((values(&found[0]), values(&found[1])), (vec![6.0, 24.0], vec![10.0]));
}

#[test]
fn derivatives_that_do_not_exist_are_refused() {
    let session = Session::standard().unwrap();
    let (loss, product) = (entry(&session, "loss"), entry(&session, "product"));
    let p = tensor(&[1.0]);
    let whole = IValue::Tensor(Tensor::from_slice(&[1_i64], &[1]).unwrap());
    let inputs = [args(&[&p, &p]), vec![IValue::Int(1)]].concat();
    let errors = [
        loss.grad(&args(&[&p]), &[1]).unwrap_err().message,
        loss.grad(&[whole], &[0]).unwrap_err().message,
        product.grad(&inputs, &[0]).unwrap_err().message,
        product.vjp(&inputs, &[0], &[]).unwrap_err().message,
        loss.hessian_vector(&args(&[&p]), &[0], &[tensor(&[1.0, 2.0])]).unwrap_err().message,
    ];
    assert_eq!(
        errors,
        [
            "input 1 is not a tensor",
            "input 0 is a tensor of int64; only tensors of floating point and complex dtype can require gradients",
            "grad can be implicitly created only for scalar outputs",
            "0 gradients were given for 2 results",
            "expected one vector per input, of sizes [[1]]",
        ]
    );
}

/// Takes three steps on `loss` and returns the parameter.
fn trained(update: UpdateRule) -> Vec<f64> {
    let session = Session::standard().unwrap();
    let loss = entry(&session, "loss");
    let p = tensor(&[1.0, -2.0, 0.5]);
    p.set_requires_grad(true);
    let new = || Optimizer::new(&session, [("p".to_owned(), p.clone())], update).unwrap();
    let mut optimizer = new();
    for step in 0..3 {
        if step == 2 {
            // A new optimizer continues from a saved state.
            let state = optimizer.state_dict().unwrap();
            optimizer = new();
            optimizer.load_state_dict(&state).unwrap();
        }
        optimizer.zero_grad();
        let mut host = session.host();
        let value = loss.call_on(&args(&[&p]), &[], &mut host).unwrap().as_tensor().unwrap().clone();
        let one = Tensor::from_element(1.0).unwrap();
        session.backward(&[(value, one)], BackwardOptions::default(), &mut host).unwrap();
        optimizer.step().unwrap();
    }
    values(&p)
}

/// Recorded from PyTorch 2.6: `torch.optim.SGD`, `Adam` and `AdamW` with the same settings.
#[test]
fn optimizers_step_as_in_pytorch() {
    let momentum = |momentum, dampening, weight_decay, nesterov| UpdateRule::Sgd {
        lr: 0.01,
        momentum,
        dampening,
        weight_decay,
        nesterov,
    };
    let decayed = match UpdateRule::adam(0.1) {
        UpdateRule::Adam { lr, betas, eps, decoupled, .. } => {
            UpdateRule::Adam { lr, betas, eps, decoupled, weight_decay: 0.01 }
        }
        other => other,
    };
    for (update, expected) in [
        (UpdateRule::sgd(0.1), [0.2459008, -20.10166670000001, 0.08210158320312498]),
        (momentum(0.9, 0.0, 0.1, true), [0.7014216980213657, -3.284089140705916, 0.36229457689788486]),
        (momentum(0.9, 0.5, 0.0, false), [0.8385442461353599, -2.5768413736429334, 0.4282900172453905]),
        (decayed, [0.7025649634864021, -2.3004865648098174, 0.2027245380225357]),
        (UpdateRule::adamw(0.1), [0.6999060127249124, -2.2941898825968705, 0.20153650239307586]),
    ] {
        for (found, expected) in trained(update).into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{update:?}: {found} where {expected} was recorded");
        }
    }
}
