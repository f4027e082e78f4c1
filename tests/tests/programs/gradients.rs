//! Gradients of small programs, compared with analytically known values.

use flambeau::{IValue, Session, Tensor};

/// Returns the gradients of the sum of the result of `f` with respect to the inputs.
fn gradients(source: &str, inputs: &[Tensor], more: &[IValue]) -> Vec<Option<Vec<f64>>> {
    let session = Session::standard().unwrap();
    let entry = session.compile_source(source, "f.py").unwrap().entry("f").unwrap();
    let mut host = session.host();
    host.set_tape(Some(session.tape().unwrap()));
    let args: Vec<IValue> = inputs.iter().cloned().map(IValue::Tensor).chain(more.iter().cloned()).collect();
    let result = entry.call_on(&args, &[], &mut host).unwrap();
    let result = result.as_tensor().unwrap().clone();
    let ones = Tensor::full(result.sizes(), 1.0.into(), result.dtype()).unwrap();
    let found = session.gradients(&[(result, ones)], inputs, &mut host).unwrap();
    found.into_iter().map(|grad| grad.map(|t| t.to_vec::<f64>().unwrap())).collect()
}

fn input(values: &[f64]) -> Tensor {
    let tensor = Tensor::from_slice(values, &[values.len() as i64]).unwrap();
    tensor.set_requires_grad(true);
    tensor
}

#[test]
fn broadcast_operands_get_sums() {
    let source = "def f(x, y):\n    return x + y + y\n";
    let found = gradients(source, &[input(&[1.0, 2.0, 3.0]), input(&[5.0])], &[]);
    assert_eq!(found, [Some(vec![1.0; 3]), Some(vec![6.0])]);
}

#[test]
fn unused_inputs_have_no_gradient() {
    let found = gradients("def f(x, y):\n    return x + x\n", &[input(&[1.0]), input(&[5.0])], &[]);
    assert_eq!(found, [Some(vec![2.0]), None]);
}

#[test]
fn writes_through_views_change_the_base() {
    // y = (x0, 3 x2, x2): the write through the view is part of y's history.
    let source = "def f(x):\n    y = x + 0\n    y[1] = y[2] + y[2] + y[2]\n    return y\n";
    let found = gradients(source, &[input(&[1.0, 2.0, 3.0])], &[]);
    assert_eq!(found, [Some(vec![1.0, 0.0, 4.0])]);
}

#[test]
fn earlier_views_see_later_writes() {
    let source = "def f(x):\n    y = x + 0\n    v = y[0]\n    y.add_(x)\n    return v + v\n";
    let found = gradients(source, &[input(&[1.0, 2.0])], &[]);
    assert_eq!(found, [Some(vec![4.0, 0.0])]);
}

#[test]
fn gradients_of_repeated_elements_are_summed() {
    let found = gradients("def f(x):\n    return x.expand([3, 2]) + 1\n", &[input(&[1.0, 2.0])], &[]);
    assert_eq!(found, [Some(vec![3.0, 3.0])]);
    let found = gradients("def f(x):\n    return x.unfold(0, 2, 1) + 1\n", &[input(&[1.0, 2.0, 3.0])], &[]);
    assert_eq!(found, [Some(vec![1.0, 2.0, 1.0])]);
}

#[test]
fn a_long_history_is_walked_and_freed_without_recursion() {
    let source = "def f(x, n: int):\n    y = x\n    for i in range(n):\n        y = y + x\n    return y\n";
    let found = gradients(source, &[input(&[1.0])], &[IValue::Int(20_000)]);
    assert_eq!(found, [Some(vec![20_001.0])]);
}

/// Returns the error message of taking the gradient of a recorded function's result.
fn refusal(source: &str) -> String {
    let session = Session::standard().unwrap();
    let entry = session.compile_source(source, "f.py").unwrap().entry("f").unwrap();
    let mut host = session.host();
    host.set_tape(Some(session.tape().unwrap()));
    let x = input(&[1.0]);
    let result = entry.call_on(&[IValue::Tensor(x.clone())], &[], &mut host).unwrap();
    let pair = (result.as_tensor().unwrap().clone(), input(&[1.0]));
    session.gradients(&[pair], &[x], &mut host).unwrap_err().message
}

#[test]
fn saved_tensors_may_not_be_written() {
    let message = refusal("def f(x):\n    y = x.sqrt()\n    y.add_(1)\n    return y\n");
    assert!(message.contains("modified by an inplace operation"), "{message}");
}

#[test]
fn memory_that_is_replaced_has_no_derivative() {
    let message =
        refusal("def f(x):\n    y = x * 2\n    y.set_(torch.zeros(1, dtype=torch.float64))\n    return y\n");
    assert!(message.contains("the derivative of `aten::set_.source_Tensor`"), "{message}");
}

#[test]
fn operands_used_only_for_sizes_may_be_written() {
    let source =
        "def f(x):\n    y = x + 0\n    z = y[torch.tensor([0, 0])]\n    y.mul_(3)\n    return z + y\n";
    let found = gradients(source, &[input(&[1.0, 2.0])], &[]);
    assert_eq!(found, [Some(vec![5.0, 3.0])]);
}

#[test]
fn gradients_flow_through_changed_lists() {
    let source =
        "def f(x):\n    l = [x, x * 2]\n    l.append(x * 3)\n    y = l.pop(0)\n    return l[1] * y\n";
    let found = gradients(source, &[input(&[1.0, 2.0])], &[]);
    assert_eq!(found, [Some(vec![6.0, 12.0])]);
}

#[test]
fn overwritten_elements_get_no_gradient() {
    let source = "def f(x):\n    y = x * 2\n    y.gt_(1.0)\n    return y * x\n";
    let found = gradients(source, &[input(&[1.0, 0.25])], &[]);
    assert_eq!(found, [Some(vec![1.0, 0.0])]);
}

#[test]
fn a_body_repeats_the_drawn_numbers() {
    // The result is linear in `v`, and the backward pass uses the same weights.
    let session = Session::standard().unwrap();
    let source = "def f(q, v):\n    w = torch.rand(3)\n    return F.scaled_dot_product_attention(q, q, v, dropout_p=0.4)\n";
    let entry = session.compile_source(source, "f.py").unwrap().entry("f").unwrap();
    let mut host = session.host();
    host.set_tape(Some(session.tape().unwrap()));
    let values: Vec<f64> = (1..=40).map(f64::from).collect();
    let tensor = |scale: f64| {
        let scaled: Vec<f64> = values.iter().map(|x| x * scale).collect();
        Tensor::from_slice(&scaled, &[1, 8, 5]).unwrap()
    };
    let (q, v) = (tensor(0.01), tensor(1.0));
    v.set_requires_grad(true);
    let result = entry.call_on(&[IValue::Tensor(q), IValue::Tensor(v.clone())], &[], &mut host).unwrap();
    let result = result.as_tensor().unwrap().clone();
    let total: f64 = result.to_vec::<f64>().unwrap().iter().sum();
    let ones = Tensor::full(result.sizes(), 1.0.into(), result.dtype()).unwrap();
    let found = session.gradients(&[(result, ones)], &[v], &mut host).unwrap();
    let grad = found[0].as_ref().unwrap().to_vec::<f64>().unwrap();
    let along: f64 = grad.iter().zip(&values).map(|(g, v)| g * v).sum();
    assert!((along - total).abs() < 1e-9 * total.abs(), "{along} where {total} is expected");
}

/// Second derivatives, as PyTorch has them: `tests/oracle/piecewise.py`.
#[test]
fn gradients_that_are_constant_in_pieces_have_gradients() {
    use flambeau::exec::tape::BackwardOptions;
    let session = Session::standard().unwrap();
    let mode = BackwardOptions { retain_graph: true, create_graph: true };
    let mut wrong = Vec::new();
    for line in include_str!("../../oracle/piecewise.txt").lines() {
        let mut fields = line.split('\t');
        let (expression, requires, exists) =
            (fields.next().unwrap(), fields.next() == Some("True"), fields.next() == Some("True"));
        let source = format!("def f(x):\n    return {expression}\n");
        let entry = session.compile_source(&source, "f.py").unwrap().entry("f").unwrap();
        let mut host = session.host();
        // The first call is recorded operator by operator, the second runs a differentiated graph.
        for _ in 0..2 {
            let x = input(&[-2.0, -0.5, 0.25, 0.75, 2.0, 7.0]);
            let result = entry.call_on(&[IValue::Tensor(x.clone())], &[], &mut host).unwrap();
            let result = result.as_tensor().unwrap().clone();
            let ones = Tensor::full(result.sizes(), 1.0.into(), result.dtype()).unwrap();
            let wrt = [x.clone()];
            let found = session.gradients_with(&[(result, ones)], &wrt, mode, &mut host).unwrap();
            let grad = found[0].clone().unwrap();
            if grad.requires_grad() != requires {
                wrong.push(format!("the gradient of {expression} requires a gradient: {}", !requires));
            } else if requires {
                let ones = Tensor::full(grad.sizes(), 1.0.into(), grad.dtype()).unwrap();
                let second = session.gradients(&[(grad, ones)], &wrt, &mut host).unwrap();
                if second[0].is_some() != exists {
                    wrong.push(format!("the second gradient of {expression} exists: {}", !exists));
                }
                assert!(second[0].iter().all(|t| t.to_vec::<f64>().unwrap() == [0.0; 6]), "{expression}");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
