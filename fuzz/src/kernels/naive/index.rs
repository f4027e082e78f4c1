//! Gather, scatter, concatenation, padding: operators that move elements.

use super::{Args, Array, Number, Reference};
use flambeau_ir::value::IValue;
use flambeau_tensor::DType;

pub(super) fn reference(name: &str) -> Option<Reference> {
    let run: fn(Args<'_>) -> Option<Vec<Array>> = match name {
        "aten::index_select" => |args| {
            let (x, index) = (args.array(0)?, args.array(2)?);
            let dim = args.dim(1, x.sizes.len())?;
            let mut sizes = x.sizes.clone();
            sizes[dim] = index.data.len();
            let n = x.sizes[dim];
            from(&sizes, &x, |at| {
                let mut own = at.to_vec();
                own[dim] = wrapped(index.data[at[dim]], n);
                own
            })
        },
        "aten::gather" => |args| {
            let (x, index) = (args.array(0)?, args.array(2)?);
            let dim = args.dim(1, x.sizes.len())?;
            from(&index.sizes, &x, |at| {
                let mut own = at.to_vec();
                own[dim] = wrapped(index.at(at), x.sizes[dim]);
                own
            })
        },
        "aten::scatter_add" => scatter_add,
        "aten::embedding" => |args| {
            let (weight, index) = (args.array(0)?, args.array(1)?);
            let mut sizes = index.sizes.clone();
            sizes.push(*weight.sizes.get(1)?);
            from(&sizes, &weight, |at| {
                let (lead, column) = at.split_at(at.len() - 1);
                vec![wrapped(index.at(lead), weight.sizes[0]), column[0]]
            })
        },
        "aten::index.Tensor" => indexed,
        "aten::cat" => cat,
        "aten::where.self" => |args| {
            let (c, a, b) = (args.array(0)?, args.array(1)?, args.array(2)?);
            let same = a.sizes == b.sizes && a.sizes == c.sizes;
            same.then(|| {
                vec![Array::from_fn(&a.sizes, |at| if c.at(at).re != 0.0 { a.at(at) } else { b.at(at) })]
            })
        },
        "aten::masked_fill.Scalar" => |args| {
            let (x, mask, value) = (args.array(0)?, args.array(1)?, args.number(2)?);
            let fill = |at: &[usize]| if mask.at(at).re != 0.0 { Number::from(value) } else { x.at(at) };
            (x.sizes == mask.sizes).then(|| vec![Array::from_fn(&x.sizes, fill)])
        },
        "aten::constant_pad_nd" => padded,
        "aten::roll" => |args| {
            let (x, shifts, dims) = (args.array(0)?, args.ints(1)?, args.ints(2)?);
            let ([shift], [dim]) = (&shifts[..], &dims[..]) else { return None };
            let dim = usize::try_from(*dim).ok()?;
            let n = *x.sizes.get(dim)? as i64;
            from(&x.sizes.clone(), &x, |at| {
                let mut own = at.to_vec();
                own[dim] = (own[dim] as i64 - shift).rem_euclid(n) as usize;
                own
            })
        },
        "aten::repeat" => |args| {
            let (x, repeats) = (args.array(0)?, args.ints(1)?);
            let lead = repeats.len().checked_sub(x.sizes.len())?;
            let sizes: Vec<usize> = (0..repeats.len())
                .map(|d| repeats[d] as usize * if d < lead { 1 } else { x.sizes[d - lead] })
                .collect();
            from(&sizes, &x, |at| (lead..at.len()).map(|d| at[d] % x.sizes[d - lead]).collect())
        },
        "aten::contiguous" | "aten::clone" | "aten::to.dtype" => |args| Some(vec![args.array(0)?]),
        "aten::copy_" => |args| {
            let (to, source) = (args.array(0)?, args.array(1)?);
            Some(vec![Array::from_fn(&to.sizes, |at| source.broadcast_at(at))])
        },
        _ => return None,
    };
    Some(Reference { run, exact: true })
}

/// Returns an index, counted from the front.
fn wrapped(index: Number, n: usize) -> usize {
    let index = index.re as i64;
    (if index < 0 { index + n as i64 } else { index }) as usize
}

/// Returns an array whose elements are picked from another.
fn from(sizes: &[usize], x: &Array, f: impl Fn(&[usize]) -> Vec<usize>) -> Option<Vec<Array>> {
    Some(vec![Array::from_fn(sizes, |at| x.at(&f(at)))])
}

/// Concatenates tensors along a dimension.
fn cat(args: Args<'_>) -> Option<Vec<Array>> {
    let IValue::List(list) = args.0.first()? else { return None };
    let all = list.to_tensors()?.iter().map(Array::of).collect::<Option<Vec<_>>>()?;
    let first = all.first()?;
    if all.iter().any(|a| a.sizes.len() != first.sizes.len()) {
        return None;
    }
    let dim = args.dim(1, first.sizes.len())?;
    let mut sizes = first.sizes.clone();
    sizes[dim] = all.iter().map(|a| a.sizes[dim]).sum();
    Some(vec![Array::from_fn(&sizes, |at| {
        let mut own = at.to_vec();
        for piece in &all {
            if own[dim] < piece.sizes[dim] {
                return piece.at(&own);
            }
            own[dim] -= piece.sizes[dim];
        }
        Number::default()
    })])
}

/// Pads a tensor; crops it where the padding is negative.
fn padded(args: Args<'_>) -> Option<Vec<Array>> {
    let (x, pad, value) = (args.array(0)?, args.ints(1)?, args.number(2)?);
    let rank = x.sizes.len();
    let of = |d: usize, end: usize| pad.get(2 * (rank - 1 - d) + end).copied().unwrap_or(0);
    let sizes = (0..rank)
        .map(|d| usize::try_from(x.sizes[d] as i64 + of(d, 0) + of(d, 1)).ok())
        .collect::<Option<Vec<_>>>()?;
    Some(vec![Array::from_fn(&sizes, |at| {
        let own: Option<Vec<usize>> = (0..rank)
            .map(|d| usize::try_from(at[d] as i64 - of(d, 0)).ok().filter(|&i| i < x.sizes[d]))
            .collect();
        own.map_or(Number::from(value), |own| x.at(&own))
    })])
}

/// Picks rows by one index of the leading dimension.
fn indexed(args: Args<'_>) -> Option<Vec<Array>> {
    let IValue::List(list) = args.0.get(1)? else { return None };
    let [IValue::Tensor(index)] = &list.to_vec()[..] else { return None };
    if !matches!(index.dtype(), DType::I64 | DType::I32) {
        return None;
    }
    let (x, index) = (args.array(0)?, Array::of(index)?);
    let mut sizes = index.sizes.clone();
    sizes.extend(&x.sizes[1..]);
    let lead = index.sizes.len();
    from(&sizes, &x, |at| {
        let mut own = vec![wrapped(index.at(&at[..lead]), x.sizes[0])];
        own.extend(&at[lead..]);
        own
    })
}

/// Adds elements at given indices.
fn scatter_add(args: Args<'_>) -> Option<Vec<Array>> {
    let (x, index, source) = (args.array(0)?, args.array(2)?, args.array(3)?);
    let dim = args.dim(1, x.sizes.len())?;
    let mut out = x.clone();
    Array::from_fn(&index.sizes, |at| {
        let mut own = at.to_vec();
        own[dim] = wrapped(index.at(at), x.sizes[dim]);
        let position = out.position(&own);
        out.data[position] += source.at(at);
        Number::default()
    });
    Some(vec![out])
}
