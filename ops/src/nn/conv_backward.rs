//! `convolution_backward`: the gradients of a convolution's operands, as an operator.
//!
//! The gradient of the input is the transposed convolution of the gradient with the same weights. That of the weights is a
//! sum of products of gradient and patches.

use crate::nn::{selected_dtype, selected_like};
use crate::support::kernel;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, KernelResult, Sample};
use flambeau_ir::{Doc, IValue, OpDef, Type};
use flambeau_tensor::conv::{ConvSpec, convolution, weight_gradient};
use flambeau_tensor::{DType, Tensor, TensorError, reduce};

/// The operands: gradient of the result, input and weights, and the convolution's parameters.
struct Convolved<'a> {
    grad: &'a Tensor,
    input: &'a Tensor,
    weight: &'a Tensor,
    spec: ConvSpec,
}

impl Convolved<'_> {
    fn space(&self) -> usize {
        self.weight.rank() - 2
    }

    /// Returns the gradient of the input.
    fn of_input(&self) -> Result<Tensor, KernelError> {
        let mut spec = ConvSpec { transposed: !self.spec.transposed, ..self.spec.clone() };
        spec.output_padding = vec![0; self.space()];
        if self.spec.transposed {
            // Rows added by the output padding depend on no input.
            let mut back = convolution(self.grad, self.weight, None, &spec)?;
            for d in 2..back.rank() {
                back = back.narrow(d as i64, 0, self.input.sizes()[d])?;
            }
            return Ok(back.contiguous()?);
        }
        for (d, extra) in spec.output_padding.iter_mut().enumerate() {
            let reach = spec.dilation[d] * (self.weight.sizes()[d + 2] - 1) + 1;
            let back = (self.grad.sizes()[d + 2] - 1) * spec.stride[d] - 2 * spec.padding[d] + reach;
            *extra = self.input.sizes()[d + 2] - back;
        }
        Ok(convolution(self.grad, self.weight, None, &spec)?)
    }

    /// Returns the gradient of the weights.
    fn of_weight(&self) -> Result<Tensor, KernelError> {
        // The roles of input and gradient are exchanged by transposition.
        let (input, grad) = match self.spec.transposed {
            true => (self.grad, self.input),
            false => (self.input, self.grad),
        };
        let spec = ConvSpec { transposed: false, output_padding: vec![0; self.space()], ..self.spec.clone() };
        Ok(weight_gradient(input, grad, self.weight.sizes(), &spec)?)
    }

    /// Returns the gradient of the bias: sums over all dimensions but the channels.
    fn of_bias(&self) -> Result<Tensor, KernelError> {
        let dims: Vec<i64> = (0..self.grad.rank() as i64).filter(|d| *d != 1).collect();
        Ok(reduce::sum(self.grad, Some(&dims), false, None)?)
    }

    /// Returns an error unless dtypes and shapes of the operands agree.
    fn check(&self) -> Result<(), KernelError> {
        let (grad, input, weight) = (self.grad, self.input, self.weight);
        if input.dtype().is_complex() {
            return Err(TensorError::DType { op: "convolution_backward", dtype: input.dtype() }.into());
        }
        if [grad, weight].iter().any(|t| t.dtype() != input.dtype()) {
            return Err(KernelError::input(
                "expected the gradient, the input and the weight to have one dtype",
            ));
        }
        let wanted = self.spec.output_sizes(input.sizes(), weight.sizes(), None)?;
        if wanted != grad.sizes() {
            return Err(KernelError::input(format!(
                "Expected the gradient to have the size {wanted:?} of the convolution's result, but got {:?}",
                grad.sizes()
            )));
        }
        Ok(())
    }
}

/// Expands a single value to all spatial dimensions.
fn each(values: &[i64], space: usize) -> Vec<i64> {
    if let [one] = values { vec![*one; space] } else { values.to_vec() }
}

/// `(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
/// output_mask)`; the variant `convolution_backward_overrideable` has no `bias_sizes`.
fn backward(cx: &mut KernelCx<'_>, first: usize) -> KernelResult {
    let weight = cx.tensor(2)?;
    let Some(space) = weight.rank().checked_sub(2).filter(|space| (1..=3).contains(space)) else {
        return Err(KernelError::input("weight should have three to five dimensions"));
    };
    let list = |i: usize| Ok::<_, KernelError>(each(&cx.ints(i)?, space));
    let spec = ConvSpec {
        stride: list(first)?,
        padding: list(first + 1)?,
        dilation: list(first + 2)?,
        transposed: cx.boolean(first + 3)?,
        output_padding: list(first + 4)?,
        groups: cx.int(first + 5)?,
    };
    let call = Convolved { grad: cx.tensor(0)?, input: cx.tensor(1)?, weight, spec };
    if call.input.rank() == space + 2 && call.input.sizes()[..2].contains(&0) {
        // The result has no elements, so the gradients are zeros, each in the dtype of its operand.
        call.spec.output_sizes(call.input.sizes(), call.weight.sizes(), None)?;
        let bias_sizes = if first > 3 { cx.opt_ints(3)?.map(|sizes| sizes.to_vec()) } else { None };
        let bias_sizes = bias_sizes.unwrap_or_else(|| call.weight.sizes()[..1].to_vec());
        let zeros = [
            Tensor::zeros(call.input.sizes(), call.input.dtype()),
            Tensor::zeros(call.weight.sizes(), call.weight.dtype()),
            Tensor::zeros(&bias_sizes, call.weight.dtype()),
        ];
        for (gradient, is_wanted) in zeros.into_iter().zip(cx.booleans::<3>(first + 6)?) {
            cx.ret_opt(is_wanted.then_some(gradient).transpose()?);
        }
        return Ok(());
    }
    call.check()?;
    let mask: [bool; 3] = cx.booleans(first + 6)?;
    let input = mask[0].then(|| call.of_input()).transpose()?;
    let weight = mask[1].then(|| call.of_weight()).transpose()?;
    let bias = mask[2].then(|| call.of_bias()).transpose()?;
    for gradient in [input, weight, bias] {
        cx.ret_opt(gradient);
    }
    Ok(())
}

fn sample(sizes: bool) -> Sample {
    Sample::args(move |g| {
        let mut of =
            |s: &[i64]| IValue::Tensor(flambeau_exec::sample::tensor(g, s, DType::F32, &Default::default()));
        let mut args = vec![of(&[2, 4, 6, 5]), of(&[2, 3, 6, 5]), of(&[4, 3, 3, 3])];
        args.extend(sizes.then(|| IValue::ints(vec![4])));
        let one = || IValue::ints(vec![1, 1]);
        args.extend([one(), one(), one(), IValue::Bool(false), IValue::ints(vec![0, 0]), IValue::Int(1)]);
        args.push(IValue::list(Type::BOOL, vec![IValue::Bool(true); 3]));
        args
    })
    .tolerance(1e-4, 1e-4)
}

pub(super) fn family() -> Vec<OpDef> {
    let def = |name: &str, sizes: bool| {
        let mask = 9 + usize::from(sizes);
        OpDef::named(name)
            .with(Doc("The gradients of a convolution's input, weights and bias, as selected by the mask."))
            .with(ResultShapes::results([selected_like(1, mask, 0), selected_like(2, mask, 1)]))
            .with(Dtype::results(
                [(1, 0), (2, 1), (2, 2)].map(|(arg, result)| selected_dtype(arg, mask, result)),
            ))
            .with(sample(sizes))
            .with(kernel(move |cx| backward(cx, 3 + usize::from(sizes))))
    };
    vec![def("aten::convolution_backward", true), def("aten::convolution_backward_overrideable", false)]
}
