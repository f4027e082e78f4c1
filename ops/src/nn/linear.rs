//! Bilinear form.

use super::{no_args, sized};
use crate::support::{Computed, op, same_dtypes};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::OpDef;
use flambeau_tensor::{Scalar, Tensor, matmul};

/// `x1 W x2 + b` with a matrix `W` per element of the result: `(input1, input2, weight, bias)`.
fn bilinear(cx: &KernelCx<'_>) -> Computed {
    let (a, b, weight, bias) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?, cx.opt_tensor(3)?);
    let refuse = |text: &str| Err(KernelError::input(format!("bilinear(): {text}")));
    same_dtypes(&[a, b, weight])?;
    if a.rank() != b.rank() || a.rank() == 0 {
        return refuse("input dimensions do not match");
    }
    let lead = a.rank() - 1;
    if a.sizes()[..lead] != b.sizes()[..lead] {
        return refuse("input batch dimensions do not match");
    }
    let [out, m, n] = *weight.sizes() else { return refuse("weight must have three dimensions") };
    if a.sizes()[lead] != m || b.sizes()[lead] != n {
        return refuse("input sizes do not match weight size");
    }
    if bias.is_some_and(|bias| bias.sizes() != [out]) {
        return refuse("bias size does not match weight size");
    }
    let rows: i64 = a.sizes()[..lead].iter().product();
    let flat = |x: &Tensor, width: i64| x.reshape(&[rows, width]);
    // [rows, out, n]: the first input times all matrices, followed by the product with the second input.
    let permuted = weight.permute(&[1, 0, 2])?.reshape(&[m, out * n])?;
    let through = matmul::mm(&flat(a, m)?, &permuted)?.view(&[rows, out, n])?;
    let second = flat(b, n)?.unsqueeze(2)?;
    let result = match bias {
        Some(bias) => {
            matmul::baddbmm(&bias.view(&[1, out, 1])?, &through, &second, Scalar::Int(1), Scalar::Int(1))?
        }
        None => matmul::bmm(&through, &second)?,
    };
    let mut sizes = a.sizes()[..lead].to_vec();
    sizes.push(out);
    Ok(result.reshape(&sizes)?)
}

pub(super) fn family() -> Vec<OpDef> {
    op("bilinear", "", "`x1 W x2 + b`, a matrix per element of the result.")
        .facts(|d| {
            let sample = sized(&[&[2, 3], &[2, 4], &[5, 3, 4], &[5]], no_args());
            let shape = ResultShapes::dims(|cx| {
                let mut dims = cx.lead(0, 1)?;
                dims.push(cx.size(2, 0));
                Some(dims)
            });
            d.with(shape).with(Dtype::same_as(0)).with(sample.tolerance(1e-4, 1e-4))
        })
        .one(bilinear)
}
