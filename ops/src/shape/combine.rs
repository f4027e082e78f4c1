//! Combining several tensors: stacks, grids, products, combinations.

use super::{sample, tensors};
use crate::index::rows_of;
use crate::join::{at_least, cat, matrix_or_more, some_tensors, vector_or_more};
use crate::support::{Computed, Several, op};
use flambeau_analysis::shape::{Dim, Dims, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Tensor, broadcast_shapes, check_budget};

/// Concatenates along dimension 2 after extension to rank 3.
fn dstack(cx: &KernelCx<'_>) -> Computed {
    let all: Result<Vec<Tensor>, KernelError> = cx.tensors(0)?.iter().map(at_least_3d).collect();
    cat(some_tensors("dstack", &all?)?, 2)
}

/// Extends to at least three dimensions: a vector becomes the second of them.
fn at_least_3d(t: &Tensor) -> Computed {
    Ok(match t.rank() {
        0 => t.reshape(&[1, 1, 1])?,
        1 => t.unsqueeze(0)?.unsqueeze(-1)?,
        2 => t.unsqueeze(-1)?,
        _ => t.clone(),
    })
}

/// Returns the sizes of a [`at_least_3d`] result.
fn at_least_3d_sizes(dims: Dims) -> Dims {
    let mut dims = matrix_or_more(dims);
    if dims.len() == 2 {
        dims.push(Dim::Known(1));
    }
    dims
}

/// Returns the sizes of a vector as a column; other sizes stay.
fn column(dims: Dims) -> Dims {
    let mut dims = vector_or_more(dims);
    if dims.len() == 1 {
        dims.push(Dim::Known(1));
    }
    dims
}

/// Concatenates vectors as columns and matrices along dimension 1.
fn column_stack(cx: &KernelCx<'_>) -> Computed {
    let column = |t: &Tensor| -> Computed {
        Ok(if t.rank() <= 1 { t.reshape(&[t.numel() as i64, 1])? } else { t.clone() })
    };
    let all: Result<Vec<Tensor>, KernelError> = cx.tensors(0)?.iter().map(column).collect();
    cat(some_tensors("column_stack", &all?)?, 1)
}

/// Broadcasts vectors to a grid, each along its own dimension; with `swap`, the first two dimensions are exchanged.
fn grid(all: &[Tensor], swap: bool) -> Several {
    let mut vectors = Vec::with_capacity(all.len());
    for t in all {
        vectors.push(match t.rank() {
            0 => t.reshape(&[1])?,
            1 => t.clone(),
            rank => {
                return Err(KernelError::input(format!(
                    "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor of {rank} dimensions"
                )));
            }
        });
        if t.dtype() != all[0].dtype() {
            return Err(KernelError::input("meshgrid expects all tensors to have the same dtype"));
        }
    }
    if vectors.is_empty() {
        return Err(KernelError::input("meshgrid expects a non-empty TensorList"));
    }
    let swap = swap && vectors.len() > 1;
    if swap {
        vectors.swap(0, 1);
    }
    let shape: Vec<i64> = vectors.iter().map(|v| v.numel() as i64).collect();
    let mut grids = Vec::with_capacity(vectors.len());
    for (d, v) in vectors.iter().enumerate() {
        let mut sizes = vec![1; shape.len()];
        sizes[d] = shape[d];
        grids.push(v.reshape(&sizes)?.expand(&shape)?);
    }
    if swap {
        grids.swap(0, 1);
    }
    Ok(grids)
}

/// `(tensors, indexing)`.
fn meshgrid(cx: &KernelCx<'_>) -> Several {
    let swap = match cx.str_bytes(1)? {
        b"ij" => false,
        b"xy" => true,
        other => {
            return Err(KernelError::input(format!(
                "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {}",
                String::from_utf8_lossy(other)
            )));
        }
    };
    grid(&cx.tensors(0)?, swap)
}

fn broadcast(cx: &KernelCx<'_>) -> Several {
    let all = cx.tensors(0)?;
    let mut shape: Vec<i64> = Vec::new();
    for t in &all {
        shape = broadcast_shapes(&shape, t.sizes())?.to_vec();
    }
    Ok(all.iter().map(|t| t.expand(&shape)).collect::<Result<_, _>>()?)
}

/// Cartesian product of vectors, one combination per row.
fn cartesian_prod(cx: &KernelCx<'_>) -> Computed {
    let all = cx.tensors(0)?;
    if let Some(t) = all.iter().find(|t| t.rank() != 1) {
        return Err(KernelError::input(format!("Expect a 1D vector, but got shape {:?}", t.sizes())));
    }
    if all.is_empty() {
        return Err(KernelError::input("meshgrid expects a non-empty TensorList"));
    }
    if let [only] = &all[..] {
        return Ok(only.clone_data()?);
    }
    let columns: Result<Vec<Tensor>, KernelError> =
        grid(&all, false)?.iter().map(|g| Ok(g.reshape(&[-1, 1])?)).collect();
    cat(&columns?, 1)
}

/// Returns the number of combinations of `r` of `n` elements, or a smaller number that exceeds any memory.
fn combination_count(n: usize, r: usize) -> usize {
    const SIZE_CAP: usize = 1 << 62;
    if r > n {
        return 0;
    }
    let mut count: u128 = 1;
    for i in 0..r.min(n - r) {
        count = count * (n - i) as u128 / (i + 1) as u128;
        if count >= SIZE_CAP as u128 {
            return SIZE_CAP;
        }
    }
    count as usize
}

/// `(self, r, with_replacement)`: all combinations of `r` elements in order, one per row.
fn combinations(cx: &KernelCx<'_>) -> Computed {
    let (x, r, again) = (cx.tensor(0)?, cx.int(1)?, cx.boolean(2)?);
    if x.rank() != 1 {
        return Err(KernelError::input(format!("Expect a 1D vector, but got shape {:?}", x.sizes())));
    }
    if r < 0 {
        return Err(KernelError::input(format!("Expect a non-negative number, but got {r}")));
    }
    if r == 0 {
        return Ok(Tensor::empty(&[0], x.dtype())?);
    }
    let (n, r) = (x.numel(), r as usize);
    let next_least = usize::from(!again);
    let from = if again { n.saturating_add(r - 1) } else { n };
    check_budget(r.saturating_mul(16).saturating_mul(combination_count(from, r).max(1)))?;
    let mut rows: Vec<i64> = Vec::new();
    // The current combination, as a counter whose digits never decrease.
    let mut choice: Vec<usize> = (0..r).map(|i| i * next_least).collect();
    let highest = |i: usize| n.checked_sub(1 + (r - 1 - i) * next_least);
    let mut going = choice.iter().enumerate().all(|(i, &c)| highest(i).is_some_and(|h| c <= h));
    while going {
        rows.extend(choice.iter().map(|&i| i as i64));
        let Some(i) = (0..r).rev().find(|&i| highest(i).is_some_and(|h| choice[i] < h)) else { break };
        choice[i] += 1;
        for j in i + 1..r {
            choice[j] = choice[j - 1] + next_least;
        }
        going = true;
    }
    let count = rows.len() / r;
    let index = Tensor::from_vec(rows, &[(count * r) as i64])?;
    Ok(rows_of(x, 0, &index)?.reshape(&[count as i64, r as i64])?)
}

/// Extends to at least `rank` dimensions like `atleast_1d` and its variants.
fn at_least_rank(t: &Tensor, rank: usize) -> Computed {
    if rank == 3 { at_least_3d(t) } else { at_least(t, rank) }
}

fn flatten_all(cx: &KernelCx<'_>) -> Computed {
    let flat: Result<Vec<Tensor>, KernelError> =
        cx.tensors(0)?.iter().map(|t| Ok(t.reshape(&[-1])?)).collect();
    cat(&flat?, 0)
}

/// `(flat, tensors)`: splits a vector into pieces with the sizes of the tensors.
fn unflatten_all(cx: &KernelCx<'_>) -> Several {
    let (flat, all) = (cx.tensor(0)?, cx.tensors(1)?);
    let mut at = 0;
    let mut pieces = Vec::with_capacity(all.len());
    for t in &all {
        let n = t.numel() as i64;
        pieces.push(flat.narrow(0, at, n)?.clone_contiguous()?.view(t.sizes())?);
        at += n;
    }
    Ok(pieces)
}

pub(super) fn family() -> Vec<OpDef> {
    let elements = |d: OpDef| d.with(Dtype::from(|cx| crate::join::joined_dtype(cx.elements(0)?)));
    let flat = || ResultShapes::from(|cx| Some(TensorFact::of_dims([cx.fresh_size()])));
    // A row per combination, with one element of every vector.
    let choices = || {
        ResultShapes::from(|cx| match cx.elements(0)?.len() {
            1 => Some(TensorFact::of_dims([cx.fresh_size()])),
            n => Some(TensorFact::of_dims([cx.fresh_size(), Dim::Known(n as i64)])),
        })
    };
    let rows = || {
        ResultShapes::from(|cx| match cx.known_int(1)? {
            0 => Some(TensorFact::of_dims([Dim::Known(0)])),
            n => Some(TensorFact::of_dims([cx.fresh_size(), Dim::Known(n)])),
        })
    };
    let pair = || tensors(&[&[2, 3], &[2, 3]]);
    let vectors = || tensors(&[&[2], &[3]]);
    let mut defs = op("dstack", "", "Tensors concatenated along the third dimension.")
        .facts(|d| elements(d).with(ResultShapes::cat_lifted(0, at_least_3d_sizes, |_| 2)).with(pair()))
        .one(dstack);
    defs.extend(
        op("column_stack", "", "Vectors as columns and matrices, concatenated horizontally.")
            .facts(|d| elements(d).with(ResultShapes::cat_lifted(0, column, |_| 1)).with(pair()))
            .one(column_stack),
    );
    let many = |d: OpDef| d.with(ResultShapes::as_many_as(0));
    let doc = "Vectors broadcast to a grid, each along its own dimension.";
    defs.extend(
        op("meshgrid", "", doc).facts(|d| many(d).with(vectors())).list(|cx| grid(&cx.tensors(0)?, false)),
    );
    let indexed = || vectors().then([IValue::str("xy")]);
    defs.extend(op("meshgrid", "indexing", doc).facts(|d| many(d).with(indexed())).list(meshgrid));
    let doc = "Tensors broadcast to their common size.";
    let sample_of = || tensors(&[&[2, 1], &[3]]);
    defs.extend(op("broadcast_tensors", "", doc).facts(|d| many(d).with(sample_of())).list(broadcast));
    defs.extend(
        op("cartesian_prod", "", "The Cartesian product of vectors, one combination per row.")
            .facts(|d| elements(d).with(choices()).with(vectors()))
            .one(cartesian_prod),
    );
    defs.extend(
        op("combinations", "", "All combinations of `r` elements of a vector, one per row.")
            .facts(|d| d.with(rows()).with(Dtype::same_as(0)).with(sample(1, vec![])))
            .one(combinations),
    );
    for (name, rank) in [("atleast_1d", 1usize), ("atleast_2d", 2), ("atleast_3d", 3)] {
        let doc = "The tensor with dimensions of size 1 added, up to one, two or three.";
        let lift = [vector_or_more, matrix_or_more, at_least_3d_sizes][rank - 1];
        let shape =
            move || ResultShapes::from(move |cx| Some(TensorFact::of_dims(lift(cx.dims_or_fresh(0)?))));
        let facts = |d: OpDef| d.with(shape()).with(Dtype::same_as(0)).with(sample(1, vec![]));
        defs.extend(op(name, "", doc).facts(facts).one(move |cx| at_least_rank(cx.tensor(0)?, rank)));
        let facts = |d: OpDef| d.with(tensors(&[&[2, 1], &[3], &[]]));
        let all = move |cx: &KernelCx<'_>| -> Several {
            cx.tensors(0)?.iter().map(|t| at_least_rank(t, rank)).collect()
        };
        defs.extend(op(name, "Sequence", doc).facts(facts).list(all));
    }
    defs.extend(
        op("flatten_dense_tensors", "", "All elements of tensors concatenated into one vector.")
            .facts(|d| elements(d).with(flat()).with(pair()))
            .one(flatten_all),
    );
    let pieces = || {
        Sample::args(|g| {
            let like = vectors_of(g);
            let flat = Tensor::zeros(&[5], DType::F32).expect("invariant: five zeros can be made");
            [vec![IValue::Tensor(flat)], like].concat()
        })
        .exact()
        .not_differentiable()
    };
    defs.extend(
        op("unflatten_dense_tensors", "", "A vector split into pieces with the sizes of tensors.")
            .facts(|d| d.with(pieces()))
            .list(unflatten_all),
    );
    defs
}

/// Draws a list of two vectors, of sizes 2 and 3.
fn vectors_of(g: &mut flambeau_exec::Gen<'_>) -> Vec<IValue> {
    let elements = flambeau_exec::sample::ElementDistribution::default();
    let one =
        |g: &mut flambeau_exec::Gen<'_>, n| flambeau_exec::sample::tensor(g, &[n], DType::F32, &elements);
    vec![IValue::List(flambeau_ir::value::List::from_tensors(vec![one(g, 2), one(g, 3)]))]
}
