//! Combinators for rules of views: the sizes after transposing, slicing, reshaping, expanding.

use super::cx::wrap;
use super::{ArgRef, Dims, Fact, Range, ResultShapes, ShapeCx, Strides, TensorFact};
use flambeau_ir::types::Dim;
use smallvec::SmallVec;

/// A rule that changes the sizes of operand 0. If its rank is unknown, so is that of the result.
fn change(rule: impl Fn(&mut ShapeCx<'_>, Dims) -> Option<Dims> + Send + Sync + 'static) -> ResultShapes {
    ResultShapes::from(move |cx| match cx.dims_or_fresh(0) {
        Some(dims) => rule(cx, dims).map(TensorFact::of_dims),
        None => Some(TensorFact::default()),
    })
}

impl ResultShapes {
    /// Operand 0 with two dimensions swapped.
    pub fn transpose(a: impl Into<ArgRef>, b: impl Into<ArgRef>) -> ResultShapes {
        let (a, b) = (a.into(), b.into());
        change(move |cx, mut dims| {
            if dims.is_empty() {
                return Some(dims);
            }
            match (cx.wrap(a, dims.len()), cx.wrap(b, dims.len())) {
                (Some(a), Some(b)) => {
                    dims.swap(a, b);
                    Some(dims)
                }
                _ => Some(cx.fresh_dims(dims.len())),
            }
        })
    }

    /// Operand 0 with its last two dimensions swapped; a vector is unchanged (`t`, `mT`).
    pub fn transpose_last() -> ResultShapes {
        change(|_, mut dims| {
            let rank = dims.len();
            if rank >= 2 {
                dims.swap(rank - 2, rank - 1);
            }
            Some(dims)
        })
    }

    /// Operand 0 with its dimensions in reverse order.
    pub fn reversed() -> ResultShapes {
        change(|_, mut dims| {
            dims.reverse();
            Some(dims)
        })
    }

    /// Operand 0 with the dimensions `from` (an integer or a list) at the positions `to`, and the others around them in
    /// their original order: `movedim`.
    pub fn moved(from: impl Into<ArgRef>, to: impl Into<ArgRef>) -> ResultShapes {
        let (from, to) = (from.into(), to.into());
        change(move |cx, dims| {
            let rank = dims.len();
            let (Some(from), Some(to)) = (cx.known_ints(from), cx.known_ints(to)) else {
                return Some(cx.fresh_dims(rank));
            };
            let places =
                |all: &[i64]| all.iter().map(|&d| wrap(d, rank)).collect::<Option<SmallVec<[usize; 4]>>>();
            let (from, to) = (places(&from)?, places(&to)?);
            let mut others = (0..rank).filter(|i| !from.contains(i));
            (0..rank)
                .map(|place| match to.iter().position(|&t| t == place) {
                    Some(i) => dims.get(*from.get(i)?).copied(),
                    None => dims.get(others.next()?).copied(),
                })
                .collect()
        })
    }

    /// Operand 0 with two dimensions replaced by their diagonal, shifted by `offset`, as the last dimension.
    pub fn diagonal(offset: impl Into<ArgRef>, a: impl Into<ArgRef>, b: impl Into<ArgRef>) -> ResultShapes {
        let (offset, a, b) = (offset.into(), a.into(), b.into());
        change(move |cx, mut dims| {
            let rank = dims.len();
            let (Some(a), Some(b)) = (cx.wrap(a, rank), cx.wrap(b, rank)) else {
                return Some(cx.fresh_dims(rank.checked_sub(1)?));
            };
            if a == b {
                return None;
            }
            let (rows, columns) = (*dims.get(a)?, *dims.get(b)?);
            let length = match (cx.known_int(offset), rows, columns) {
                (Some(0), rows, columns) => cx.symbols.min(rows, columns),
                (Some(by), Dim::Known(rows), Dim::Known(columns)) => {
                    let above = columns.saturating_sub(by.max(0));
                    let below = rows.saturating_add(by.min(0));
                    let left = above.min(below).min(rows).min(columns).max(0);
                    Dim::Known(left)
                }
                _ => cx.fresh_size(),
            };
            dims.remove(a.max(b));
            dims.remove(a.min(b));
            dims.push(length);
            Some(dims)
        })
    }

    /// Windows of `size` elements of operand 0 along `dim`, `step` apart; the elements of a window are the last
    /// dimension.
    pub fn windows(dim: impl Into<ArgRef>, size: impl Into<ArgRef>, step: impl Into<ArgRef>) -> ResultShapes {
        let (dim, size, step) = (dim.into(), size.into(), step.into());
        change(move |cx, mut dims| {
            let rank = dims.len();
            let (size, step) = (cx.known_int(size), cx.known_int(step));
            let Some(at) = cx.wrap(dim, rank) else { return Some(cx.fresh_dims(rank + 1)) };
            if let Some(length) = dims.get_mut(at) {
                *length = match (*length, size, step) {
                    (Dim::Known(n), Some(size), Some(step)) if step > 0 && (0..=n).contains(&size) => {
                        Dim::Known((n - size) / step + 1)
                    }
                    _ => cx.fresh_size(),
                };
            }
            dims.push(size.map_or_else(|| cx.fresh_size(), Dim::Known));
            Some(dims)
        })
    }

    /// Operand 0 with one dimension split into the sizes of a list, one of which may be -1.
    pub fn unflatten(dim: impl Into<ArgRef>, sizes: impl Into<ArgRef>) -> ResultShapes {
        let (dim, sizes) = (dim.into(), sizes.into());
        change(move |cx, mut dims| {
            let rank = dims.len();
            let wanted = cx.ints(sizes)?;
            let wanted = without_inferred(cx, &wanted);
            let Some(at) = cx.wrap(dim, rank).filter(|&at| at < rank) else {
                return Some(cx.fresh_dims((rank + wanted.len()).checked_sub(1)?));
            };
            let whole = dims.remove(at);
            let open = wanted.iter().position(|&d| d == Dim::Known(-1));
            let rest: Dims = wanted.iter().copied().filter(|&d| d != Dim::Known(-1)).collect();
            let mut parts: Dims = wanted.iter().map(|&d| cx.size_or_fresh(d)).collect();
            if let Some(open) = open {
                let known = rest.iter().all(|d| d.known().is_some_and(|n| n > 0));
                parts[open] = if known { cx.symbols.quotient(&[whole], &rest) } else { cx.fresh_size() };
            }
            dims.insert_many(at, parts);
            Some(dims)
        })
    }

    /// Operand 0 with its dimensions in the order of a list argument.
    pub fn permute(order: impl Into<ArgRef>) -> ResultShapes {
        let order = order.into();
        change(move |cx, dims| {
            let Some(order) = cx.known_ints(order) else { return Some(cx.fresh_dims(dims.len())) };
            if order.len() != dims.len() {
                return None;
            }
            order.iter().map(|&at| dims.get(wrap(at, dims.len())?).copied()).collect()
        })
    }

    /// Operand 0 with the sizes of a list argument, one of which may be -1: `view`, `reshape`.
    pub fn reshape(size: impl Into<ArgRef>) -> ResultShapes {
        let size = size.into();
        ResultShapes::from(move |cx| {
            let Some(wanted) = cx.ints(size) else { return Some(TensorFact::default()) };
            let strides = cx.tensor(0).map_or(Strides::Unknown, |t| t.strides);
            let dims = reshaped(cx, &wanted)?;
            Some(TensorFact { dims: Some(dims), strides, ..TensorFact::default() })
        })
    }

    /// Operand 0 with the dimensions from `start` to `end` merged into one: `flatten`.
    pub fn flatten(start: impl Into<ArgRef>, end: impl Into<ArgRef>) -> ResultShapes {
        let (start, end) = (start.into(), end.into());
        ResultShapes::from(move |cx| {
            let strides = cx.tensor(0).map_or(Strides::Unknown, |t| t.strides);
            let Some(dims) = cx.dims_or_fresh(0) else { return Some(TensorFact::default()) };
            if dims.is_empty() {
                return Some(TensorFact { strides, ..TensorFact::of_dims([Dim::Known(1)]) });
            }
            let (Some(start), Some(end)) = (cx.wrap(start, dims.len()), cx.wrap(end, dims.len())) else {
                return Some(TensorFact::default());
            };
            if start > end {
                return None;
            }
            let mut result = Dims::from_slice(&dims[..start]);
            result.push(cx.symbols.product(&dims[start..=end]));
            result.extend_from_slice(&dims[end + 1..]);
            Some(TensorFact { strides, ..TensorFact::of_dims(result) })
        })
    }

    /// Operand 0 expanded to the sizes of a list argument, where -1 keeps a size.
    pub fn expand(size: impl Into<ArgRef>) -> ResultShapes {
        let size = size.into();
        ResultShapes::from(move |cx| {
            let Some(wanted) = cx.ints(size) else { return Some(TensorFact::default()) };
            let dims = cx.dims_or_fresh(0);
            let lead = match &dims {
                Some(dims) => wanted.len().checked_sub(dims.len())?,
                None => 0,
            };
            let mut result = Dims::new();
            for (i, &want) in wanted.iter().enumerate() {
                let old = dims.as_ref().and_then(|d| i.checked_sub(lead).map(|i| d[i]));
                result.push(match want {
                    Dim::Known(-1) => old.unwrap_or(Dim::Unknown),
                    Dim::Sym(_) if cx.symbols.range(want).min < 0 => Dim::Unknown,
                    other => other,
                });
            }
            Some(TensorFact::of_dims(result.into_iter().map(|d| cx.size_or_fresh(d))))
        })
    }

    /// Operand 0 without its dimensions of size 1; with `dim` (an integer or a list), only those among them.
    pub fn squeeze(dim: Option<ArgRef>) -> ResultShapes {
        change(move |cx, dims| {
            let rank = dims.len();
            let chosen: Option<SmallVec<[usize; 4]>> = match dim {
                None => Some((0..rank).collect()),
                Some(dim) => {
                    cx.known_ints(dim).and_then(|list| list.iter().map(|&d| wrap(d, rank)).collect())
                }
            };
            let chosen = chosen?;
            let mut result = Dims::new();
            for (i, d) in dims.into_iter().enumerate() {
                if chosen.contains(&i) {
                    if d == Dim::Known(1) {
                        continue;
                    }
                    if cx.symbols.size_range(d).contains(1) {
                        // Whether the dimension is removed is unknown, so the rank is unknown too.
                        return None;
                    }
                }
                result.push(d);
            }
            Some(result)
        })
    }

    /// Operand 0 with a new dimension of size 1.
    pub fn unsqueeze(dim: impl Into<ArgRef>) -> ResultShapes {
        let dim = dim.into();
        ResultShapes::from(move |cx| {
            let strides = cx.tensor(0).map_or(Strides::Unknown, |t| t.strides);
            let Some(mut dims) = cx.dims_or_fresh(0) else { return Some(TensorFact::default()) };
            match cx.known_int(dim) {
                Some(at) => dims.insert(wrap(at, dims.len() + 1)?, Dim::Known(1)),
                None => dims = cx.fresh_dims(dims.len() + 1),
            }
            Some(TensorFact { strides, ..TensorFact::of_dims(dims) })
        })
    }

    /// Operand 0 at one index of a dimension, which is removed.
    pub fn select(dim: impl Into<ArgRef>) -> ResultShapes {
        let dim = dim.into();
        change(move |cx, mut dims| {
            let rank = dims.len().checked_sub(1)?;
            match cx.wrap(dim, dims.len()) {
                Some(at) => drop(dims.remove(at)),
                None => dims = cx.fresh_dims(rank),
            }
            Some(dims)
        })
    }

    /// Operand 0 from `start` to `end` by `step` along a dimension.
    pub fn slice(
        dim: impl Into<ArgRef>,
        start: impl Into<ArgRef>,
        end: impl Into<ArgRef>,
        step: impl Into<ArgRef>,
    ) -> ResultShapes {
        let (dim, start, end, step) = (dim.into(), start.into(), end.into(), step.into());
        change(move |cx, mut dims| {
            let Some(at) = cx.axis(dim, dims.len()) else {
                return Some(cx.fresh_dims(dims.len()));
            };
            let bound = |cx: &ShapeCx<'_>, arg: ArgRef, default: i64| {
                if cx.is_none(arg) == Some(true) { Some(default) } else { cx.known_int(arg) }
            };
            let (from, to) = (bound(cx, start, 0), bound(cx, end, i64::MAX));
            let size = dims[at];
            dims[at] = match (from, to, cx.known_int(step)) {
                (Some(from), Some(to), Some(step)) if step > 0 => sliced(cx, size, from, to, step),
                _ => {
                    let max = cx.symbols.size_range(size).max;
                    cx.symbols.fresh(Range { min: 0, max })
                }
            };
            Some(dims)
        })
    }

    /// `length` elements of operand 0 along a dimension: `narrow`.
    pub fn narrow(dim: impl Into<ArgRef>, length: impl Into<ArgRef>) -> ResultShapes {
        let (dim, length) = (dim.into(), length.into());
        change(move |cx, mut dims| {
            let Some(at) = cx.axis(dim, dims.len()) else {
                return Some(cx.fresh_dims(dims.len()));
            };
            let length = cx.int(length).unwrap_or(Dim::Unknown);
            dims[at] = cx.size_or_fresh(length);
            Some(dims)
        })
    }

    /// A tensor with the sizes of a list argument and arbitrary strides: `as_strided`.
    pub fn strided(size: impl Into<ArgRef>) -> ResultShapes {
        let size = size.into();
        ResultShapes::from(move |cx| {
            let Some(dims) = cx.ints(size) else { return Some(Fact::any_tensor()) };
            Some(Fact::Tensor(TensorFact::of_dims(dims.into_iter().map(|d| cx.size_or_fresh(d)))))
        })
    }
}

fn sliced(cx: &mut ShapeCx<'_>, size: Dim, from: i64, to: i64, step: i64) -> Dim {
    if let Some(n) = size.known() {
        let at = |x: i64| if x < 0 { x.saturating_add(n).max(0) } else { x.min(n) };
        let (from, to) = (at(from), at(to));
        return Dim::Known(if to <= from { 0 } else { (to - from - 1) / step + 1 });
    }
    let range = cx.symbols.size_range(size);
    if from == 0 && to >= range.max {
        return if step == 1 { size } else { cx.symbols.ceil_div(size, Dim::Known(step)) };
    }
    if (0..=to).contains(&from) && to <= range.min && range.min > 0 {
        return Dim::Known(if to == from { 0 } else { (to - from - 1) / step + 1 });
    }
    let most = if from >= 0 && to >= 0 { to.saturating_sub(from).max(0) } else { i64::MAX };
    cx.symbols.fresh(Range { min: 0, max: range.max.min(most) })
}

/// The requested sizes, with symbols replaced by unknown if they may be -1, which denotes an inferred size.
fn without_inferred(cx: &ShapeCx<'_>, wanted: &[Dim]) -> Dims {
    let certain = |&d: &Dim| match d {
        Dim::Sym(_) if cx.symbols.range(d).min < 0 => Dim::Unknown,
        other => other,
    };
    wanted.iter().map(certain).collect()
}

fn reshaped(cx: &mut ShapeCx<'_>, wanted: &[Dim]) -> Option<Dims> {
    let infers = wanted.iter().filter(|&&d| d == Dim::Known(-1)).count();
    if infers > 1 {
        return None;
    }
    let mut dims = without_inferred(cx, wanted);
    if infers == 1 {
        let at = dims.iter().position(|&d| d == Dim::Known(-1)).expect("invariant: one is -1");
        let others: Vec<Dim> = dims.iter().copied().filter(|&d| d != Dim::Known(-1)).collect();
        let certain = !others.contains(&Dim::Unknown);
        dims[at] = match cx.dims_or_fresh(0) {
            Some(old) if certain => cx.symbols.quotient(&old, &others),
            _ => Dim::Unknown,
        };
    }
    Some(dims.into_iter().map(|d| cx.size_or_fresh(d)).collect())
}
