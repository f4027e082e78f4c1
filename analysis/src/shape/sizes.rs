//! Combinators for size rules: pointwise operators, reductions, matrix products, creation, joining and splitting.

use super::cx::wrap;
use super::fact::MAX_WEIGHT;
use super::{ArgRef, Dims, Fact, Range, ResultShapes, ShapeCx, Strides, Symbols, TensorFact};
use flambeau_ir::types::Dim;
use smallvec::smallvec;

fn collect<A: Into<ArgRef>>(args: impl IntoIterator<Item = A>) -> Vec<ArgRef> {
    args.into_iter().map(Into::into).collect()
}

/// Returns the broadcast of several size lists; `None` if they are incompatible.
pub fn broadcast_dims(all: &[&[Dim]], symbols: &mut Symbols) -> Option<Dims> {
    let rank = all.iter().map(|d| d.len()).max().unwrap_or(0);
    let mut result: Dims = smallvec![Dim::Known(1); rank];
    for dims in all {
        let lead = rank - dims.len();
        for (at, &dim) in dims.iter().enumerate() {
            result[lead + at] = symbols.broadcast(result[lead + at], dim)?;
        }
    }
    Some(result.into_iter().map(|d| if d == Dim::Unknown { symbols.fresh(Range::SIZE) } else { d }).collect())
}

impl ResultShapes {
    /// The sizes and strides of an operand. If the operator writes the operand, this also states that its sizes are
    /// kept (see [`ResultShapes::keeping`]).
    pub fn same_as(arg: impl Into<ArgRef>) -> ResultShapes {
        let arg = arg.into();
        ResultShapes::like(arg).keeping(arg)
    }

    /// The broadcast of the operands. Numbers and `None` do not take part; tensors in lists do. Contiguous operands
    /// have a contiguous result if one of them has all sizes of the result. If every operand is expanded, the strides
    /// of dimensions of size 1 determine the layout, and those are arbitrary.
    pub fn broadcast<A: Into<ArgRef>>(args: impl IntoIterator<Item = A>) -> ResultShapes {
        let args = collect(args);
        ResultShapes::from(move |cx| {
            let mut all: Vec<Dims> = Vec::with_capacity(args.len());
            let mut strides = Strides::Contiguous;
            for &arg in &args {
                if cx.is_number(arg) || cx.is_none(arg) == Some(true) {
                    continue;
                }
                for fact in cx.elements(arg).unwrap_or(std::slice::from_ref(cx.fact(arg))) {
                    let Some(t) = fact.as_tensor() else { return Some(Fact::any_tensor()) };
                    let Some(dims) = &t.dims else { return Some(Fact::any_tensor()) };
                    if t.strides != Strides::Contiguous {
                        strides = Strides::Unknown;
                    }
                    all.push(dims.clone());
                }
            }
            let views: Vec<&[Dim]> = all.iter().map(|d| d.as_slice()).collect();
            let dims = broadcast_dims(&views, cx.symbols)?;
            let whole = |own: &Dims| {
                own.len() == dims.len() && own.iter().zip(&dims).all(|(&a, &b)| cx.symbols.same(a, b))
            };
            if !all.iter().any(whole) {
                strides = Strides::Unknown;
            }
            Some(Fact::Tensor(TensorFact { dims: Some(dims), strides, ..TensorFact::default() }))
        })
    }

    /// A zero-dimensional tensor.
    pub fn scalar() -> ResultShapes {
        ResultShapes::from(|_| Some(TensorFact::contiguous([])))
    }

    /// A reduction of operand 0 over the dimensions in `dim` (an integer or a list; all of them if `None` or empty),
    /// which have size 1 in the result if `keepdim` is true.
    pub fn reduce(dim: impl Into<ArgRef>, keepdim: impl Into<ArgRef>) -> ResultShapes {
        ResultShapes::reduce_of(0, dim, keepdim)
    }

    /// Like [`ResultShapes::reduce`], for any operand.
    pub fn reduce_of(
        tensor: impl Into<ArgRef>,
        dim: impl Into<ArgRef>,
        keepdim: impl Into<ArgRef>,
    ) -> ResultShapes {
        let (tensor, dim, keepdim) = (tensor.into(), dim.into(), keepdim.into());
        ResultShapes::from(move |cx| {
            let Some(dims) = cx.dims_or_fresh(tensor) else { return Some(TensorFact::default()) };
            let keep = match cx.bool(keepdim) {
                Some(keep) => keep,
                None if cx.fact(keepdim) == &Fact::Unknown && cx.position(keepdim) >= Some(cx.len()) => false,
                None => return Some(TensorFact::default()),
            };
            let over = if cx.is_none(dim) == Some(true) { Some(Dims::new()) } else { cx.ints(dim) };
            let Some(over) = over else {
                return Some(if keep {
                    TensorFact::contiguous(cx.fresh_dims(dims.len()))
                } else {
                    TensorFact::default()
                });
            };
            reduced(cx, dims, &over, keep).map(TensorFact::contiguous)
        })
    }

    /// The matrix product of two operands, for vectors, matrices and batches as in `matmul`.
    pub fn matmul(a: impl Into<ArgRef>, b: impl Into<ArgRef>) -> ResultShapes {
        let (a, b) = (a.into(), b.into());
        ResultShapes::from(move |cx| {
            let (Some(x), Some(y)) = (cx.dims_or_fresh(a), cx.dims_or_fresh(b)) else {
                return Some(TensorFact::default());
            };
            let strides =
                if x.len() >= y.len() && y.len() <= 2 { Strides::Contiguous } else { Strides::Unknown };
            let dims = matmul_dims(&x, &y, cx.symbols)?;
            Some(TensorFact { dims: Some(dims), strides, ..TensorFact::default() })
        })
    }

    /// `input @ weight.T`: replaces the last size of `input` by the first of `weight`; removes it if `weight` has one
    /// dimension.
    pub fn linear(input: impl Into<ArgRef>, weight: impl Into<ArgRef>) -> ResultShapes {
        let (input, weight) = (input.into(), weight.into());
        ResultShapes::from(move |cx| {
            let (Some(mut x), Some(w)) = (cx.dims_or_fresh(input), cx.dims_or_fresh(weight)) else {
                return Some(TensorFact::default());
            };
            x.pop()?;
            if let [out, _] = w[..] {
                x.push(out);
            }
            Some(TensorFact::of_dims(x))
        })
    }

    /// A new contiguous tensor with the sizes of a list argument.
    pub fn of_size(size: impl Into<ArgRef>) -> ResultShapes {
        let size = size.into();
        ResultShapes::from(move |cx| {
            let Some(dims) = cx.ints(size) else { return Some(TensorFact::default()) };
            Some(TensorFact::contiguous(dims.into_iter().map(|d| cx.size_or_fresh(d))))
        })
    }

    /// A tensor with the sizes of a list argument, which may be an operand.
    pub fn to_size(size: impl Into<ArgRef>) -> ResultShapes {
        let size = size.into();
        ResultShapes::from(move |cx| {
            let Some(dims) = cx.ints(size) else { return Some(TensorFact::default()) };
            Some(TensorFact::of_dims(dims.into_iter().map(|d| cx.size_or_fresh(d))))
        })
    }

    /// A new tensor with the sizes of an operand (`*_like`). Dense operands keep their strides, so the result of a
    /// contiguous operand is contiguous, unless another memory format is requested.
    pub fn like(arg: impl Into<ArgRef>) -> ResultShapes {
        let arg = arg.into();
        ResultShapes::from(move |cx| {
            let t = cx.tensor(arg)?;
            let strides = if keeps_format(cx) { t.strides } else { Strides::Unknown };
            Some(TensorFact { dims: t.dims.clone(), strides, ..TensorFact::default() })
        })
    }

    /// The concatenation of the tensors of a list along an existing dimension.
    pub fn cat(tensors: impl Into<ArgRef>, dim: impl Into<ArgRef>) -> ResultShapes {
        let (tensors, dim) = (tensors.into(), dim.into());
        ResultShapes::from(move |cx| {
            let all: Option<Vec<Dims>> =
                cx.elements(tensors).and_then(|e| e.iter().map(|f| f.as_tensor()?.dims.clone()).collect());
            let Some(all) = all else { return Some(TensorFact::default()) };
            joined(cx, all, |cx, rank| cx.wrap(dim, rank))
        })
    }

    /// The concatenation of the tensors of a list along dimension `along(rank)`, after `lift` has changed the sizes of
    /// each.
    pub fn cat_lifted(
        tensors: impl Into<ArgRef>,
        lift: fn(Dims) -> Dims,
        along: fn(usize) -> usize,
    ) -> ResultShapes {
        let tensors = tensors.into();
        ResultShapes::from(move |cx| {
            let elements = cx.elements(tensors)?.iter();
            let all: Option<Vec<Dims>> = elements.map(|f| Some(lift(f.as_tensor()?.dims.clone()?))).collect();
            joined(cx, all?, |_, rank| Some(along(rank)))
        })
    }

    /// The tensors of a list, all with equal sizes, stacked along a new dimension.
    pub fn stack(tensors: impl Into<ArgRef>, dim: impl Into<ArgRef>) -> ResultShapes {
        let (tensors, dim) = (tensors.into(), dim.into());
        ResultShapes::from(move |cx| {
            let all: Option<Vec<Dims>> =
                cx.elements(tensors).and_then(|e| e.iter().map(|f| f.as_tensor()?.dims.clone()).collect());
            let Some(all) = all else { return Some(TensorFact::default()) };
            let rank = all.first()?.len();
            if all.iter().any(|d| d.len() != rank) {
                return None;
            }
            let mut result: Dims = (0..rank).map(|i| common_size(&all, i)).collect();
            match cx.wrap(dim, rank + 1) {
                Some(at) => result.insert(at, Dim::Known(all.len() as i64)),
                None => result = cx.fresh_dims(rank + 1),
            }
            // Images and volumes may be stacked in channels-last strides.
            let is_contiguous =
                |fact: &Fact| fact.as_tensor().is_some_and(|t| t.strides == Strides::Contiguous);
            let may_be_other = matches!(rank, 4 | 5) && !cx.elements(tensors)?.iter().all(is_contiguous);
            let strides = if may_be_other { Strides::Unknown } else { Strides::Contiguous };
            let sizes: Dims = result.into_iter().map(|d| cx.size_or_fresh(d)).collect();
            Some(TensorFact { strides, ..TensorFact::of_dims(sizes) })
        })
    }

    /// A list of tensors of unknown number and sizes.
    pub fn tensors() -> ResultShapes {
        ResultShapes::from(|_| Some(list_of_tensors(None)))
    }

    /// A list of tensors of unknown sizes: as many as an integer argument states, or one more than a list argument has
    /// elements.
    pub fn sections(sections: impl Into<ArgRef>) -> ResultShapes {
        let sections = sections.into();
        ResultShapes::from(move |cx| {
            let listed = || cx.elements(sections).map(|positions| positions.len() + 1);
            let count = cx.known_int(sections).and_then(|n| usize::try_from(n).ok()).or_else(listed);
            Some(list_of_unknown(count))
        })
    }

    /// A list of tensors of unknown sizes, as many as a list argument has elements.
    pub fn as_many_as(list: impl Into<ArgRef>) -> ResultShapes {
        let list = list.into();
        ResultShapes::from(move |cx| Some(list_of_unknown(cx.elements(list).map(<[Fact]>::len))))
    }

    /// A list of at most `chunks` parts of operand 0 along a dimension, each of size `ceil(size / chunks)` except the
    /// last.
    pub fn chunk(chunks: impl Into<ArgRef>, dim: impl Into<ArgRef>) -> ResultShapes {
        let (chunks, dim) = (chunks.into(), dim.into());
        ResultShapes::from(move |cx| {
            let parts = cx.known_int(chunks).filter(|&n| n > 0);
            let dims = cx.dims_or_fresh(0);
            let (Some(parts), Some(dims)) = (parts, dims) else { return Some(list_of_tensors(None)) };
            let at = cx.axis(dim, dims.len());
            let Some(at) = at else { return Some(list_of_tensors(Some(dims.len()))) };
            let Some(size) = dims[at].known() else { return Some(list_along(&dims, at)) };
            if size == 0 {
                return Some(pieces(
                    &dims,
                    at,
                    std::iter::repeat_n(0, usize::try_from(parts).ok()?.min(1 << 12)),
                ));
            }
            let each = (size - 1) / parts + 1;
            Some(split_evenly(&dims, at, size, each))
        })
    }

    /// A list of parts of operand 0 along a dimension: of size `size` except the last (an integer argument), or of the
    /// sizes in a list argument.
    pub fn split(size: impl Into<ArgRef>, dim: impl Into<ArgRef>) -> ResultShapes {
        let (size, dim) = (size.into(), dim.into());
        ResultShapes::from(move |cx| {
            let Some(dims) = cx.dims_or_fresh(0) else { return Some(list_of_tensors(None)) };
            let at = cx.axis(dim, dims.len());
            let Some(at) = at else { return Some(list_of_tensors(Some(dims.len()))) };
            if let Fact::Int(each) = *cx.fact(size) {
                let (Some(total), Some(each)) = (dims[at].known(), each.known()) else {
                    return Some(list_along(&dims, at));
                };
                if each <= 0 {
                    return None;
                }
                return Some(split_evenly(&dims, at, total, each));
            }
            let Some(sizes) = cx.ints(size) else { return Some(list_along(&dims, at)) };
            let parts = sizes.into_iter().map(|d| {
                let mut part = dims.clone();
                part[at] = cx.size_or_fresh(d);
                Fact::Tensor(TensorFact::of_dims(part))
            });
            Some(Fact::list(parts.collect()))
        })
    }

    /// A list of the slices of operand 0 along a dimension, which is removed.
    pub fn unbind(dim: impl Into<ArgRef>) -> ResultShapes {
        let dim = dim.into();
        ResultShapes::from(move |cx| {
            let Some(mut dims) = cx.dims_or_fresh(0) else { return Some(list_of_tensors(None)) };
            let at = cx.axis(dim, dims.len());
            let Some(at) = at else { return Some(list_of_tensors(None)) };
            let slice = |dims: Dims| Fact::Tensor(TensorFact::of_dims(dims));
            match dims.remove(at).known().and_then(|n| usize::try_from(n).ok()).filter(|&n| n <= MAX_WEIGHT) {
                Some(n) => Some(Fact::list(vec![slice(dims); n])),
                None => Some(Fact::ListOf(Box::new(slice(dims)))),
            }
        })
    }

    /// The rows of `table` (its sizes without the first) for every index in `indices`: embedding lookups.
    pub fn lookup(table: impl Into<ArgRef>, indices: impl Into<ArgRef>) -> ResultShapes {
        let (table, indices) = (table.into(), indices.into());
        ResultShapes::from(move |cx| {
            let (Some(rows), Some(mut dims)) = (cx.dims_or_fresh(table), cx.dims_or_fresh(indices)) else {
                return Some(TensorFact::default());
            };
            dims.extend(rows.into_iter().skip(1));
            Some(TensorFact::contiguous(dims))
        })
    }

    /// An integer computed by the rule.
    pub fn int(rule: impl Fn(&mut ShapeCx<'_>) -> Option<Dim> + Send + Sync + 'static) -> ResultShapes {
        ResultShapes::from(move |cx| rule(cx).map(Fact::Int))
    }

    /// The sizes of a tensor operand as a list of integers: `size()`.
    pub fn sizes_of(arg: impl Into<ArgRef>) -> ResultShapes {
        let arg = arg.into();
        ResultShapes::from(move |cx| {
            Some(Fact::list(cx.dims_or_fresh(arg)?.into_iter().map(Fact::Int).collect()))
        })
    }

    /// One size of a tensor operand: `size(dim)`.
    pub fn size_of(arg: impl Into<ArgRef>, dim: impl Into<ArgRef>) -> ResultShapes {
        let (arg, dim) = (arg.into(), dim.into());
        ResultShapes::int(move |cx| {
            let dims = cx.dims_or_fresh(arg);
            let at = dims.as_ref().and_then(|d| cx.wrap(dim, d.len()));
            match (dims, at) {
                (Some(dims), Some(at)) => dims.get(at).copied(),
                _ => Some(cx.fresh_size()),
            }
        })
    }

    /// The length of a list operand: `len`.
    pub fn length_of(arg: impl Into<ArgRef>) -> ResultShapes {
        let arg = arg.into();
        ResultShapes::int(move |cx| match cx.elements(arg) {
            Some(elements) => i64::try_from(elements.len()).ok().map(Dim::Known),
            None => Some(cx.fresh_size()),
        })
    }

    /// The number of elements of a tensor: `numel`.
    pub fn numel_of(arg: impl Into<ArgRef>) -> ResultShapes {
        let arg = arg.into();
        ResultShapes::int(move |cx| match cx.dims_or_fresh(arg) {
            Some(dims) => Some(cx.symbols.product(&dims)),
            None => Some(cx.fresh_size()),
        })
    }
}

/// Whether no argument requests a memory format other than contiguous (0) or preserve (1).
fn keeps_format(cx: &ShapeCx<'_>) -> bool {
    let format = "memory_format";
    cx.position(format).is_none()
        || cx.is_none(format) == Some(true)
        || cx.known_int(format).is_some_and(|format| matches!(format, 0 | 1))
}

fn reduced(cx: &mut ShapeCx<'_>, dims: Dims, over: &[Dim], keep: bool) -> Option<Dims> {
    let rank = dims.len();
    let mut is_reduced = vec![over.is_empty(); rank];
    for &d in over {
        let Some(d) = d.known() else {
            // The dimensions are unknown, but their number is known.
            let left = if keep { rank } else { rank.checked_sub(over.len())? };
            return Some(cx.fresh_dims(left));
        };
        let at = wrap(d, rank)?;
        if at < rank {
            is_reduced[at] = true;
        }
    }
    let all = dims.into_iter().zip(is_reduced);
    Some(if keep {
        all.map(|(d, is_reduced)| if is_reduced { Dim::Known(1) } else { d }).collect()
    } else {
        all.filter(|(_, is_reduced)| !is_reduced).map(|(d, _)| d).collect()
    })
}

fn matmul_dims(x: &[Dim], y: &[Dim], symbols: &mut Symbols) -> Option<Dims> {
    let inner_fits = |a: Dim, b: Dim| a.known().is_none() || b.known().is_none() || a == b;
    let (rows, k) = match x {
        [] => return None,
        [k] => (None, *k),
        [.., m, k] => (Some(*m), *k),
    };
    let (k2, columns) = match y {
        [] => return None,
        [k] => (*k, None),
        [.., k, n] => (*k, Some(*n)),
    };
    if !inner_fits(k, k2) {
        return None;
    }
    let batch = |d: &[Dim]| d[..d.len().saturating_sub(2)].to_vec();
    let mut dims = broadcast_dims(&[&batch(x), &batch(y)], symbols)?;
    dims.extend(rows);
    dims.extend(columns);
    Some(dims)
}

/// The concatenation of tensors with these sizes along a dimension.
fn joined(
    cx: &mut ShapeCx<'_>,
    mut all: Vec<Dims>,
    along: impl Fn(&ShapeCx<'_>, usize) -> Option<usize>,
) -> Option<TensorFact> {
    // A one-dimensional empty tensor can be concatenated with any tensor.
    if all.iter().any(|d| d.len() > 1) {
        all.retain(|d| d[..] != [Dim::Known(0)]);
    }
    let rank = all.first()?.len();
    if all.iter().any(|d| d.len() != rank) {
        // A one-dimensional tensor of symbolic size may be empty.
        return Some(TensorFact::default());
    }
    let Some(at) = along(cx, rank).filter(|&at| at < rank) else {
        return Some(TensorFact::of_dims(cx.fresh_dims(rank)));
    };
    let mut result: Dims = (0..rank).map(|i| common_size(&all, i)).collect();
    result[at] = all.iter().fold(Dim::Known(0), |sum, d| cx.symbols.add(sum, d[at]));
    Some(TensorFact::of_dims(result.into_iter().map(|d| cx.size_or_fresh(d))))
}

/// The most precise known size at `at` among tensors that must agree there.
fn common_size(all: &[Dims], at: usize) -> Dim {
    let mut size = all[0][at];
    for dims in &all[1..] {
        // The sizes must be equal at run time, so the most precise one holds for all.
        if size.known().is_none()
            && dims[at] != Dim::Unknown
            && (size == Dim::Unknown || dims[at].known().is_some())
        {
            size = dims[at];
        }
    }
    size
}

fn list_of_unknown(count: Option<usize>) -> Fact {
    match count.filter(|count| *count <= MAX_WEIGHT) {
        Some(count) => Fact::list(vec![Fact::Tensor(TensorFact::default()); count]),
        None => list_of_tensors(None),
    }
}

fn list_of_tensors(rank: Option<usize>) -> Fact {
    let dims = rank.map(|rank| smallvec![Dim::Unknown; rank]);
    Fact::ListOf(Box::new(Fact::Tensor(TensorFact { dims, ..TensorFact::default() })))
}

/// A list of parts that differ only along `at`, with unknown sizes there.
fn list_along(dims: &Dims, at: usize) -> Fact {
    let mut part = dims.clone();
    part[at] = Dim::Unknown;
    Fact::ListOf(Box::new(Fact::Tensor(TensorFact::of_dims(part))))
}

fn pieces(dims: &Dims, at: usize, sizes: impl Iterator<Item = i64>) -> Fact {
    Fact::list(
        sizes
            .map(|n| {
                let mut part = dims.clone();
                part[at] = Dim::Known(n);
                Fact::Tensor(TensorFact::of_dims(part))
            })
            .collect(),
    )
}

fn split_evenly(dims: &Dims, at: usize, total: i64, each: i64) -> Fact {
    let count = if total == 0 { 1 } else { (total - 1) / each + 1 };
    if count > MAX_WEIGHT as i64 {
        let mut part = dims.clone();
        part[at] = if total % each == 0 { Dim::Known(each) } else { Dim::Unknown };
        return Fact::ListOf(Box::new(Fact::Tensor(TensorFact::of_dims(part))));
    }
    pieces(dims, at, (0..count).map(|i| each.min(total - i * each)))
}
