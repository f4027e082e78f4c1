//! Histories and gradients of single operators, on the tape and by differentiated graphs.

use super::recording::{leaf, tensor, values};
use flambeau::exec::Host;
use flambeau::tensor::DType;
use flambeau::{IValue, Session, Tensor};

const OPERATORS: &str = "
def matrix_transposed(x):
    return x.mT * 2

def broadcast(x, y):
    a, b = torch.broadcast_tensors([x, y])
    return a * 2, b * 2

def stacked(x, y):
    return torch.stack([x, y], 0)

def masked(x, weight: bool):
    none: Optional[Tensor] = None
    return torch.native_batch_norm_backward(x, x, none, none, none, none, none, True, 1.5, [False, weight, False])

def weight_norm(v, g):
    return torch._weight_norm_interface(v, g, 0)

def converted(x, dtype: int):
    return torch.special.erfc(x.to(dtype))

def reduced(x, dtype: int):
    return torch.special.erfc(torch._autocast_to_reduced_precision(x, True, True, dtype, dtype))

def compared(x):
    y = torch.ones([2], dtype=torch.float64)
    return y.ge_(x)

def combined(x):
    y = torch.ones([2], dtype=torch.float64)
    return y.logical_or_(x)

def negated(x):
    y = x * 2
    y.logical_not_()
    m = x > 0
    m.logical_not_()
    return y, m

def rounded(x):
    y = torch.zeros([2], dtype=torch.int64)
    y.copy_(x)
    return y

def restrided(x):
    v = x * 1
    w = v.as_strided([2, 2], [1, 1])
    return w * w

def overwritten(x):
    z = (x * 2).exp()
    z.mul_(2)
    return z * 1.0

def scaled_least(x, y):
    return x.min() * y

def lifted(x):
    return torch.atleast_3d([x, x.detach()])

def lstm_workspace(gates, cell):
    return torch._thnn_fused_lstm_cell(gates, gates, cell)[2] * gates

def cell(x, w, b):
    gates = torch.mm(x, w.t()) + b
    i, g = gates.chunk(2, 1)
    return torch.sigmoid(i) * torch.tanh(g)

def chosen(x, i: int):
    return [torch.zeros_like(x), x * 2][i] + 1

def root_mean_square(x):
    return torch.rms_norm(x.half(), [2])

def quantile(x):
    return torch.quantile(x, 0.5)

def truncated(x):
    mantissa, exponent = torch.frexp(x)
    return torch.special.xlogy(mantissa.type_as(exponent), x)

def uncast(x, casts: bool):
    return torch._autocast_to_reduced_precision(x, casts, casts, 2, 1)

def layer_norm_of(grad, input, mean, rstd):
    one = torch.ones([3], dtype=torch.float64)
    return torch.native_layer_norm_backward(grad, input, [3], mean, rstd, one, one, [True, True, True])[0]

def layer_norm_backward(grad, input, mean, rstd, weight, bias):
    return torch.native_layer_norm_backward(grad, input, [4], mean, rstd, weight, bias, [True, True, True])
";

/// `mT` of a tensor without dimensions is the tensor itself, also in differentiated graphs.
#[test]
fn matrix_transposes_of_numbers_have_gradients() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let program = session.compile_source(OPERATORS, "operators.py").unwrap();
        let entry = program.entry("matrix_transposed").unwrap();
        let x = Tensor::from_element(3.0).unwrap();
        x.set_requires_grad(true);
        let result = tensor(&entry.call(&[IValue::Tensor(x.clone())], &[]).unwrap());
        let one = Tensor::from_element(1.0).unwrap();
        let found = session.gradients(&[(result, one)], &[x], &mut Host::quiet()).unwrap();
        assert_eq!(values(found[0].as_ref().unwrap()), [2.0]);
    }
}

/// Each result of an operator has a history if an operand has one, also where the body that differentiates the operator does
/// not read the operand, or does not compute the result from it.
#[test]
fn results_of_composite_operators_require_gradients_together() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let program = session.compile_source(OPERATORS, "operators.py").unwrap();
        let entry = program.entry("layer_norm_backward").unwrap();
        for requires in 0..6 {
            let args = [vec![3, 4], vec![3, 4], vec![3, 1], vec![3, 1], vec![4], vec![4]];
            let args = args.map(|sizes| Tensor::full(&sizes, 0.5.into(), DType::F32).unwrap());
            args[requires].set_requires_grad(true);
            let results = entry.call(&args.map(IValue::Tensor), &[]).unwrap();
            let IValue::Tuple(results) = &results else { panic!("three tensors") };
            let flags: Vec<bool> = results.items().iter().map(|v| tensor(v).requires_grad()).collect();
            assert_eq!(flags, [true; 3], "argument {requires}, graphs after {calls} calls");
        }
    }
}

/// The result of a conversion to integers requires no gradient, whichever argument states the dtype.
#[test]
fn conversions_to_a_dtype_of_integers_end_gradients() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let program = session.compile_source(OPERATORS, "operators.py").unwrap();
        for name in ["converted", "reduced"] {
            let entry = program.entry(name).unwrap();
            for (dtype, requires) in [(DType::U8, false), (DType::F16, true), (DType::U8, false)] {
                let dtype = IValue::Int(dtype.scalar_type());
                let x = Tensor::full(&[1], 0.5.into(), DType::F32).unwrap();
                x.set_requires_grad(true);
                let result = entry.call(&[IValue::Tensor(x), dtype], &[]).unwrap();
                assert_eq!(tensor(&result).requires_grad(), requires, "{name}, graphs after {calls} calls");
            }
        }
    }
}

/// A call that casts nothing returns its argument with its history, whatever dtypes it would cast to.
#[test]
fn autocast_without_a_cast_keeps_gradients() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("uncast").unwrap();
        let x = leaf(&[2.0, 3.0]);
        let result = entry.call(&[IValue::Tensor(x.clone()), IValue::Bool(false)], &[]).unwrap();
        assert!(tensor(&result).requires_grad(), "graphs after {calls} calls");
    }
}

/// An operator whose operands depend on an argument in some runs only, each on another condition.
#[test]
fn conditions_of_several_operands_are_computed_in_order() {
    let text = "graph(%x : Tensor, %y : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %a : Tensor, %b : Tensor = prim::Loop(%n, %true, %x, %y)
    block0(%i : int, %a.1 : Tensor, %b.1 : Tensor):
      -> (%true, %b.1, %a.1)
  %z : Tensor = prim::Loop(%n, %true, %a)
    block0(%j : int, %c : Tensor):
      %d : Tensor = aten::addmm(%a, %c, %b, %n, %n)
      -> (%true, %d)
  return (%z)
";
    let y = Tensor::full(&[2, 2], 2.into(), DType::F32).unwrap();
    let mut found: Vec<Vec<(bool, Vec<f32>)>> = Vec::new();
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.parse_ir(text).unwrap().entry("forward").unwrap();
        let run = |n: i64| {
            let x = Tensor::full(&[2, 2], 0.5.into(), DType::F32).unwrap();
            x.set_requires_grad(true);
            let args = [IValue::Tensor(x.clone()), IValue::Tensor(y.clone()), IValue::Int(n)];
            let result = tensor(&entry.call(&args, &[]).unwrap());
            let seed = Tensor::full(&[2, 2], 1.into(), DType::F32).unwrap();
            let gradients = session.gradients(&[(result.clone(), seed)], &[x], &mut Host::quiet());
            let gradient = gradients.ok().and_then(|found| found[0].clone());
            (result.requires_grad(), gradient.map_or(Vec::new(), |g| g.to_vec::<f32>().unwrap()))
        };
        found.push((0..3).map(run).collect());
        assert!(entry.gradient_refusals().is_empty(), "{:?}", entry.gradient_refusals());
    }
    assert_eq!(found[0], found[1]);
    assert!(found[0].iter().all(|(requires, gradient)| *requires && gradient.len() == 4));
}

/// Integers that are overwritten by a tensor with a history have none.
#[test]
fn integers_require_no_gradients() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("rounded").unwrap();
        let result = tensor(&entry.call(&[IValue::Tensor(leaf(&[1.5, 2.0]))], &[]).unwrap());
        assert!(!result.requires_grad(), "graphs after {calls} calls");
    }
}

/// The gradient of a tensor of integers that is computed from the argument does not reach the argument.
#[test]
fn gradients_end_at_tensors_of_integers() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("truncated").unwrap();
        let mut host = session.host();
        let x = leaf(&[2.6, 9.5]);
        let result = tensor(&entry.call_on(&[IValue::Tensor(x.clone())], &[], &mut host).unwrap());
        let seed = Tensor::from_slice(&[4.0, 8.0], &[2]).unwrap();
        let gradient = session.gradients(&[(result, seed)], &[x], &mut host).unwrap().remove(0).unwrap();
        assert_eq!(values(&gradient), [0.0, 0.0], "graphs after {calls} calls");
    }
}

/// Normalization in single precision has results of the dtype of its operand.
#[test]
fn normalized_halves_are_halves() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry =
            session.compile_source(OPERATORS, "operators.py").unwrap().entry("root_mean_square").unwrap();
        let result = tensor(&entry.call(&[IValue::Tensor(leaf(&[2.6, 9.5]))], &[]).unwrap());
        assert_eq!(result.dtype(), DType::F16, "graphs after {calls} calls");
    }
}

/// A composite operator checks dtypes that the operators it consists of need not check: the first call of a kind is recorded.
#[test]
fn composite_operators_check_each_kind_of_arguments() {
    let session = Session::standard().unwrap();
    let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("quantile").unwrap();
    for _ in 0..3 {
        entry.call(&[IValue::Tensor(leaf(&[2.6, 9.5]))], &[]).unwrap();
    }
    assert_eq!(entry.gradient_graphs().len(), 1);
    for _ in 0..2 {
        let half = Tensor::from_slice(&[2.5_f32, 9.5], &[2]).unwrap().to_dtype(DType::F16).unwrap();
        half.set_requires_grad(true);
        let error = entry.call(&[IValue::Tensor(half)], &[]).unwrap_err();
        assert!(error.message.contains("must be either float or double"), "{}", error.message);
    }
}

/// A product with one is new memory, which uses of its strides and offset observe.
#[test]
fn identities_are_kept_where_strides_are_read() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("restrided").unwrap();
        let base: Vec<f32> = (1..9).map(|n| n as f32).collect();
        let x = Tensor::from_vec(base, &[8]).unwrap().as_strided(&[3], &[2], Some(1)).unwrap().alias();
        x.set_requires_grad(true);
        let result = tensor(&entry.call(&[IValue::Tensor(x)], &[]).unwrap());
        let found = result.contiguous().unwrap().to_vec::<f32>().unwrap();
        assert_eq!(found, [4.0, 16.0, 16.0, 36.0], "graphs after {calls} calls");
    }
}

/// A write to memory that a derivative reads is an error of the backward pass, in every call.
#[test]
fn writes_to_memory_of_derivatives_are_refused() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("overwritten").unwrap();
        for _ in 0..3 {
            let x = leaf(&[0.5]);
            let result = tensor(&entry.call(&[IValue::Tensor(x.clone())], &[]).unwrap());
            let seed = Tensor::from_slice(&[1.0], &[1]).unwrap();
            let error = session.gradients(&[(result, seed)], &[x], &mut Host::quiet()).unwrap_err();
            let is_refused = error.to_string().contains("modified by an inplace operation");
            assert!(is_refused, "{error}, graphs after {calls} calls");
        }
    }
}

/// Elements other than the least have no gradient, also where it is infinite.
#[test]
fn infinite_gradients_reach_extremes_only() {
    let session = Session::standard().unwrap();
    let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("scaled_least").unwrap();
    let x = leaf(&[2.0, 1.0]);
    let y = Tensor::from_element(f64::INFINITY).unwrap();
    let result = tensor(&entry.call(&[IValue::Tensor(x.clone()), IValue::Tensor(y)], &[]).unwrap());
    let seed = Tensor::from_element(1.0).unwrap();
    let found = session.gradients(&[(result, seed)], &[x], &mut Host::quiet()).unwrap();
    assert_eq!(values(found[0].as_ref().unwrap()), [0.0, f64::INFINITY]);
}

/// A logical operator in place leaves the history of its operand, as in PyTorch.
#[test]
fn logical_operators_in_place_keep_histories() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("negated").unwrap();
        let x = leaf(&[2.0, 0.0]);
        let results = entry.call(&[IValue::Tensor(x.clone())], &[]).unwrap();
        let IValue::Tuple(results) = &results else { panic!("two results") };
        let result = tensor(&results.items()[0]);
        assert_eq!(values(&result), [0.0, 1.0]);
        let seed = Tensor::from_slice(&[1.0, 1.0], &[2]).unwrap();
        let found = session.gradients(&[(result, seed)], &[x], &mut Host::quiet()).unwrap();
        assert_eq!(values(found[0].as_ref().unwrap()), [2.0, 2.0], "graphs after {calls} calls");
    }
}

/// Each tensor of a list has a history of its own, also if it has no elements.
#[test]
fn empty_tensors_of_lists_are_recorded_one_by_one() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("lifted").unwrap();
        for size in [0, 2] {
            let x = Tensor::full(&[size], 0.5.into(), DType::F32).unwrap();
            x.set_requires_grad(true);
            let results = entry.call(&[IValue::Tensor(x)], &[]).unwrap();
            let results: Vec<IValue> = results.as_list().unwrap().read().iter().collect();
            let requires: Vec<bool> = results.iter().map(|t| tensor(t).requires_grad()).collect();
            assert_eq!(requires, [true, false], "size {size}, graphs after {calls} calls");
        }
    }
}

/// The gradient of the gradient of layer normalization with a mean and a (negative) scale that are not the input's, as
/// PyTorch 2.6 computes it.
#[test]
fn statistics_of_other_tensors_have_gradients() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry =
            session.compile_source(OPERATORS, "operators.py").unwrap().entry("layer_norm_of").unwrap();
        let row = |values: &[f64]| Tensor::from_slice(values, &[1, values.len() as i64]).unwrap();
        let (grad, input) = (row(&[1.0, 2.0, -1.0]), row(&[0.5, 1.0, 3.0]));
        grad.set_requires_grad(true);
        input.set_requires_grad(true);
        let args = [grad.clone(), input.clone(), row(&[0.25]), row(&[-2.0])].map(IValue::Tensor);
        let result = tensor(&entry.call(&args, &[]).unwrap());
        let seed = row(&[1.0, 2.0, 4.0]);
        let found = session.gradients(&[(result.clone(), seed)], &[grad, input], &mut Host::quiet()).unwrap();
        let found = found.iter().flat_map(|t| values(t.as_ref().unwrap()));
        let found: Vec<f64> = values(&result).into_iter().chain(found).collect();
        let third = |values: [f64; 3]| values.map(|v| v / 3.0);
        let wanted =
            [third([-4.0, -14.0, -12.0]), third([33.5, 78.5, 270.5]), [418.0 / 9.0, 1268.0 / 9.0, 286.0]];
        for (found, wanted) in found.iter().zip(wanted.concat()) {
            assert!((found - wanted).abs() < 1e-9, "{found} instead of {wanted}, graphs after {calls} calls");
        }
    }
}

/// A result that `output_mask` leaves out is not a tensor, also in differentiated graphs.
#[test]
fn results_that_a_mask_leaves_out_are_no_tensors() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("masked").unwrap();
        for weight in [true, false] {
            let x = Tensor::full(&[3, 2], 0.5.into(), DType::F32).unwrap();
            x.set_requires_grad(true);
            let results = entry.call(&[IValue::Tensor(x), IValue::Bool(weight)], &[]).unwrap();
            let IValue::Tuple(results) = &results else { panic!("three results") };
            let found: Vec<bool> = results.items().iter().map(IValue::is_tensor).collect();
            assert_eq!(found, [false, weight, false], "graphs after {calls} calls");
        }
    }
}

/// The norms that `_weight_norm_interface` returns have no gradient, as in PyTorch.
#[test]
fn norms_of_weights_are_constants() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("weight_norm").unwrap();
        let v = Tensor::from_slice(&[3.0, 4.0], &[1, 2]).unwrap();
        let g = Tensor::from_slice(&[2.0], &[1, 1]).unwrap();
        v.set_requires_grad(true);
        g.set_requires_grad(true);
        let results = entry.call(&[IValue::Tensor(v.clone()), IValue::Tensor(g.clone())], &[]).unwrap();
        let IValue::Tuple(results) = &results else { panic!("two results") };
        let (weight, norms) = (tensor(&results.items()[0]), tensor(&results.items()[1]));
        assert!(weight.requires_grad() && !norms.requires_grad(), "graphs after {calls} calls");
        let seed = Tensor::from_slice(&[1.0, 0.0], &[1, 2]).unwrap();
        let found = session.gradients(&[(weight, seed)], &[v, g], &mut Host::quiet()).unwrap();
        let found: Vec<Vec<f64>> = found.iter().map(|t| values(t.as_ref().unwrap())).collect();
        // 2 / 5 * (1 - 9 / 25), 2 / 5 * (0 - 12 / 25); 3 / 5.
        for (found, want) in found.concat().iter().zip([0.256, -0.192, 0.6]) {
            assert!((found - want).abs() < 1e-12, "{found} instead of {want}");
        }
    }
}

/// Gradients of the elements of a list have their elements' dtypes.
#[test]
fn gradients_of_lists_have_the_dtypes_of_the_elements() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("stacked").unwrap();
        let args = [DType::F64, DType::BF16].map(|dtype| Tensor::full(&[2], 0.5.into(), dtype).unwrap());
        args.iter().for_each(|t| t.set_requires_grad(true));
        let result = tensor(&entry.call(&args.clone().map(IValue::Tensor), &[]).unwrap());
        let seed = Tensor::full(&[2, 2], 1.0.into(), DType::F64).unwrap();
        let found = session.gradients(&[(result, seed)], &args, &mut Host::quiet()).unwrap();
        let dtypes: Vec<DType> = found.iter().map(|t| t.as_ref().unwrap().dtype()).collect();
        assert_eq!(dtypes, [DType::F64, DType::BF16], "graphs after {calls} calls");
    }
}

/// Each of the tensors that are broadcast together has the history of its own operand.
#[test]
fn broadcast_tensors_are_recorded_one_by_one() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("broadcast").unwrap();
        let x = leaf(&[1.0]);
        let y = Tensor::full(&[2, 3], 0.5.into(), DType::F64).unwrap();
        let results = entry.call(&[IValue::Tensor(x.clone()), IValue::Tensor(y)], &[]).unwrap();
        let IValue::Tuple(results) = &results else { panic!("two results") };
        let (own, other) = (tensor(&results.items()[0]), tensor(&results.items()[1]));
        assert!(own.requires_grad() && !other.requires_grad(), "graphs after {calls} calls");
        let seed = Tensor::full(&[2, 3], 1.0.into(), DType::F64).unwrap();
        let found = session.gradients(&[(own, seed)], &[x], &mut Host::quiet()).unwrap();
        assert_eq!(values(found[0].as_ref().unwrap()), [12.0]);
        assert!(entry.gradient_refusals().is_empty(), "{:?}", entry.gradient_refusals());
    }
}

/// A comparison in place has a history, of gradients that are zero; logical operators in place have none.
#[test]
fn comparisons_in_place_require_gradients() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let program = session.compile_source(OPERATORS, "operators.py").unwrap();
        for (name, requires) in [("compared", true), ("combined", false)] {
            let x = leaf(&[1.0, 2.0]);
            let result = program.entry(name).unwrap().call(&[IValue::Tensor(x.clone())], &[]).unwrap();
            let result = tensor(&result);
            assert_eq!(result.requires_grad(), requires, "`{name}`, graphs after {calls} calls");
            if requires {
                let seed = Tensor::from_slice(&[1.0, 1.0], &[2]).unwrap();
                let found = session.gradients(&[(result, seed)], &[x], &mut Host::quiet()).unwrap();
                assert_eq!(values(found[0].as_ref().unwrap()), [0.0, 0.0]);
            }
        }
    }
}

/// The third result of the LSTM step holds the gates, also where the operator is replaced by its body.
#[test]
fn workspaces_are_constants_with_the_same_elements() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry =
            session.compile_source(OPERATORS, "operators.py").unwrap().entry("lstm_workspace").unwrap();
        let gates = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0], &[1, 4]).unwrap();
        gates.set_requires_grad(true);
        let cell = Tensor::from_slice(&[0.5], &[1, 1]).unwrap();
        let result =
            tensor(&entry.call(&[IValue::Tensor(gates.clone()), IValue::Tensor(cell)], &[]).unwrap());
        assert_eq!(values(&result), [2.0, 8.0, 18.0, 32.0], "graphs after {calls} calls");
        let seed = Tensor::full(&[1, 4], 1.0.into(), DType::F64).unwrap();
        let found = session.gradients(&[(result, seed)], &[gates], &mut Host::quiet()).unwrap();
        assert_eq!(values(found[0].as_ref().unwrap()), [2.0, 4.0, 6.0, 8.0], "graphs after {calls} calls");
    }
}

/// The backward graph knows the dtypes and sizes of forward values: it conjugates and converts nothing, sums only what was
/// broadcast, and reads tensors alone.
#[test]
fn backward_graphs_are_specialized_to_the_arguments() {
    let session = Session::builder().standard().differentiated_after(0).build().unwrap();
    let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("cell").unwrap();
    let args = [[3, 2], [8, 2]].map(|sizes| Tensor::full(&sizes, 0.5.into(), DType::F32).unwrap());
    let bias = Tensor::full(&[8], 0.5.into(), DType::F32).unwrap();
    let args: Vec<Tensor> = args.into_iter().chain([bias]).collect();
    args.iter().for_each(|t| t.set_requires_grad(true));
    let given: Vec<IValue> = args.iter().cloned().map(IValue::Tensor).collect();
    entry.call(&given, &[]).unwrap();
    let (_, backward) = entry.gradient_graphs().pop().unwrap();
    let text = backward.to_string();
    assert!(!text.contains("aten::conj") && !text.contains("aten::to("), "{text}");
    assert_eq!(text.matches("aten::sum_to_size").count(), 1, "{text}");
    assert!(backward.inputs().all(|v| backward.ty(v).is_tensor()), "{text}");
}

/// Whether an element of a list requires a gradient may depend on its index.
#[test]
fn elements_of_lists_require_gradients_one_by_one() {
    for calls in [u32::MAX, 0] {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.compile_source(OPERATORS, "operators.py").unwrap().entry("chosen").unwrap();
        for (index, requires) in [(0, false), (1, true), (-1, true)] {
            let x = leaf(&[1.0, 2.0]);
            let result = tensor(&entry.call(&[IValue::Tensor(x), IValue::Int(index)], &[]).unwrap());
            assert_eq!(result.requires_grad(), requires, "element {index}, graphs after {calls} calls");
        }
    }
}

/// The gradient of a spectrum as pairs of numbers begins at an odd element of the memory of another gradient.
#[test]
fn pairs_at_odd_positions_become_complex() {
    let text = "graph(%n : int, %x : Tensor):
  %size : int = prim::Constant[value=8]()
  %none : int? = prim::Constant()
  %window : Tensor? = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %onesided : bool? = prim::Constant()
  %as_complex : bool? = prim::Constant[value=0]()
  %pairs : Tensor = aten::stft(%x, %size, %none, %none, %window, %no, %onesided, %as_complex)
  %counts : int[] = prim::ListConstruct(%n, %n)
  %tiled : Tensor = aten::tile(%pairs, %counts)
  return (%tiled)
";
    let values: Vec<f32> = (0..48).map(|i| (i % 7) as f32).collect();
    let gradients = [u32::MAX, 0].map(|calls| {
        let session = Session::builder().standard().differentiated_after(calls).build().unwrap();
        let entry = session.parse_ir(text).unwrap().entry("forward").unwrap();
        let x = Tensor::from_slice(&values, &[2, 24]).unwrap();
        x.set_requires_grad(true);
        let result = tensor(&entry.call(&[IValue::Int(2), IValue::Tensor(x.clone())], &[]).unwrap());
        let seed = Tensor::full(result.sizes(), 1.into(), DType::F32).unwrap();
        let gradients = session.gradients(&[(result, seed)], &[x], &mut Host::quiet()).unwrap();
        gradients[0].clone().unwrap().to_vec::<f32>().unwrap()
    });
    assert!(gradients[0].iter().zip(&gradients[1]).all(|(a, b)| (a - b).abs() < 1e-3));
}

/// The conditions under which two values that a loop carries require gradients meet in one branch.
#[test]
fn values_that_leave_a_loop_by_break_require_gradients() {
    let source = "
def f(x, y, n: int, flag: bool):
    z = x
    l: List[int] = []
    i = 0
    while i < 1:
        i = i + 1
        if flag == False:
            if n == 4:
                break
            l.append(y.dim())
        else:
            x = z[:4]
            z = y.clone()
        y = z + 1
    return z[:4], l
";
    let session = Session::standard().unwrap();
    let entry = session.compile_source(source, "f.py").unwrap().entry("f").unwrap();
    let args = [IValue::Tensor(leaf(&[0.75, -0.25])), IValue::Tensor(leaf(&[1.0, 2.0])), IValue::Int(4)];
    for call in 0..3 {
        let result = entry.call(&[&args[..], &[IValue::Bool(false)]].concat(), &[]).unwrap();
        let IValue::Tuple(results) = &result else { panic!("two results") };
        assert!(tensor(&results.items()[0]).requires_grad(), "call {call}");
    }
    assert_eq!(entry.gradient_graphs().len(), 1);
}
