//! Combined matrix products: a sum of products, and products that share one operand.
//!
//! If all matrices have one size and dtype, they are concatenated and multiplied at once; otherwise each product is
//! computed separately.

use super::autograd::sum_gradients;
use crate::error::KernelError;
use crate::kernel::{KernelCx, KernelResult};
use flambeau_ir::Prim;
use flambeau_ir::attr::names;
use flambeau_tensor::{Tensor, matmul};

pub(super) fn run(prim: Prim, cx: &mut KernelCx<'_>) -> KernelResult {
    let operands = (0..cx.n_args()).map(|i| cx.tensor(i).cloned()).collect::<Result<Vec<Tensor>, _>>()?;
    if prim == Prim::MMTreeReduce {
        let (left, right) = operands.split_at(operands.len() / 2);
        if left.is_empty() || left.len() != right.len() {
            return Err(KernelError::misuse("prim::MMTreeReduce: expected as many left as right matrices"));
        }
        let sum = sum_of_products(left, right)?;
        cx.ret(sum);
        return Ok(());
    }
    let side = cx.attr(names::side()).and_then(|a| a.as_int());
    let (Some(side @ (0 | 1)), Some((shared, others))) = (side, operands.split_first()) else {
        return Err(KernelError::misuse(
            "prim::MMBatchSide: expected a shared matrix and an attribute `side` of 0 or 1",
        ));
    };
    for product in products_of_side(shared, others, side)? {
        cx.ret(product);
    }
    Ok(())
}

/// Returns the sum of the products `left[i] @ right[i]`.
fn sum_of_products(left: &[Tensor], right: &[Tensor]) -> Result<Tensor, KernelError> {
    if have_equal_sizes_and_dtype(left) && have_equal_sizes_and_dtype(right) {
        return Ok(matmul::mm(&concatenate(left, 1)?, &concatenate(right, 0)?)?);
    }
    let mut sum: Option<Tensor> = None;
    for (a, b) in left.iter().zip(right) {
        let product = matmul::mm(a, b)?;
        sum = Some(match sum {
            Some(sum) => sum_gradients(&sum, &product)?,
            None => product,
        });
    }
    sum.ok_or_else(|| KernelError::misuse("prim::MMTreeReduce: expected at least one product"))
}

/// Returns the products of one shared matrix, on side 0 (left) or 1 (right), with each of the others.
fn products_of_side(shared: &Tensor, others: &[Tensor], side: i64) -> Result<Vec<Tensor>, KernelError> {
    let each =
        |other: &Tensor| Ok(if side == 0 { matmul::mm(shared, other)? } else { matmul::mm(other, shared)? });
    if !have_equal_sizes_and_dtype(others) {
        return others.iter().map(each).collect();
    }
    let along = 1 - side;
    let whole = each(&concatenate(others, along)?)?;
    let size = others[0].sizes()[along as usize];
    let piece = |i: usize| Ok(whole.narrow(along, i as i64 * size, size)?.contiguous()?);
    (0..others.len()).map(piece).collect()
}

/// Whether all tensors are matrices of one size and dtype.
fn have_equal_sizes_and_dtype(matrices: &[Tensor]) -> bool {
    matrices.split_first().is_some_and(|(first, rest)| {
        first.rank() == 2 && rest.iter().all(|m| m.sizes() == first.sizes() && m.dtype() == first.dtype())
    })
}

/// Concatenates matrices of one size along a dimension.
fn concatenate(matrices: &[Tensor], dim: i64) -> Result<Tensor, KernelError> {
    let mut sizes = matrices[0].sizes().to_vec();
    let size = sizes[dim as usize];
    sizes[dim as usize] = size * matrices.len() as i64;
    let whole = Tensor::empty(&sizes, matrices[0].dtype())?;
    for (i, matrix) in matrices.iter().enumerate() {
        whole.narrow(dim, i as i64 * size, size)?.copy_(matrix)?;
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_tensor::{DType, Scalar, loops};

    fn matrix(rows: i64, columns: i64, seed: i64) -> Tensor {
        let values: Vec<Scalar> =
            (0..rows * columns).map(|i| Scalar::Int((i * 7 + seed * 3) % 5 - 2)).collect();
        Tensor::from_scalars(&values, &[rows, columns], DType::F64).unwrap()
    }

    fn elements(t: &Tensor) -> Vec<f64> {
        let flat = t.contiguous().unwrap().view(&[-1]).unwrap();
        (0..flat.numel() as i64).map(|i| flat.select(0, i).unwrap().item().unwrap().to_f64()).collect()
    }

    #[test]
    fn one_product_equals_separate_products() {
        for rows in [2, 1] {
            // Equal sizes, or a last product that is broadcast to the others.
            let left = [matrix(2, 3, 1), matrix(2, 3, 2), matrix(2, 3, 3), matrix(rows, 3, 4)];
            let right = [matrix(3, 4, 5), matrix(3, 4, 6), matrix(3, 4, 7), matrix(3, 4, 8)];
            let mut want = matmul::mm(&left[0], &right[0]).unwrap();
            for (a, b) in left.iter().zip(&right).skip(1) {
                let product = matmul::mm(a, b).unwrap();
                want = loops::binary::<f64, f64, f64>(&want, &product, |x, y| x + y).unwrap();
            }
            assert_eq!(elements(&sum_of_products(&left, &right).unwrap()), elements(&want));
            for side in [0, 1] {
                let (shared, others) =
                    if side == 0 { (matrix(5, 3, 9), &right[..]) } else { (matrix(3, 5, 9), &left[..]) };
                let all = products_of_side(&shared, others, side).unwrap();
                assert_eq!(all.len(), 4);
                for (product, other) in all.iter().zip(others) {
                    let (a, b) = if side == 0 { (&shared, other) } else { (other, &shared) };
                    assert_eq!(elements(product), elements(&matmul::mm(a, b).unwrap()));
                }
            }
        }
    }
}
