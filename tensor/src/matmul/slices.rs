//! Products of matrices that lie in slices: what convolutions are made of.
#![allow(unsafe_code, reason = "hands checked slices on as pointers")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

use super::packed::{self, Cut, Made, Panels, Shape};
use super::product::{Matrix, Multiply, Product, Target, product};
use super::tile::Side;
use crate::access::ReadGuards;
use crate::tensor::Tensor;
use crate::threads::{self, Apart};

/// What a product is of on the right.
pub(crate) enum Right<'a, T> {
    Part(Part<'a, T>),
    Made(&'a dyn Made<T>),
}

/// A matrix within a slice: the slice from the first element on, row step, column step.
pub(crate) type Part<'a, T> = (&'a [T], usize, usize);

/// Columns of a row-major matrix, borrowed alone: where products go.
pub(crate) struct Columns<'a, T> {
    at: Apart<T>,
    rows: usize,
    columns: usize,
    width: usize,
    borrowed: PhantomData<&'a mut [MaybeUninit<T>]>,
}

impl<'a, T: Send> Columns<'a, T> {
    /// All of a matrix with rows of `width` elements.
    pub(crate) fn of(matrix: &'a mut [MaybeUninit<T>], width: usize) -> Self {
        let rows = matrix.len() / width.max(1);
        Columns { at: Apart(matrix.as_mut_ptr().cast()), rows, columns: width, width, borrowed: PhantomData }
    }

    /// As [`threads::split`], of the columns.
    pub(crate) fn split(self, grain: usize, part: impl Fn(Range<usize>, Columns<'_, T>) + Sync) {
        let Columns { at, rows, columns, width, .. } = self;
        threads::split(columns, grain, |range| {
            // Ranges of a split are apart from each other, and so are the columns.
            let own = Columns {
                at: Apart(at.at(range.start)),
                rows,
                columns: range.len(),
                width,
                borrowed: PhantomData,
            };
            part(range, own);
        });
    }
}

/// `c = start + a b`; `a` is m by k, which may be cut already, `b` k by n, `c` m by n. The start is one element for each
/// row, or nothing.
pub(crate) fn put_product<T: Multiply>(
    (m, k, n): (usize, usize, usize),
    (a, left): (Part<'_, T>, Option<&Panels<T>>),
    b: Right<'_, T>,
    start: Option<&[T]>,
    c: Columns<'_, T>,
) {
    if m == 0 || n == 0 {
        return;
    }
    assert!(k > 0, "invariant: there is something to multiply");
    let end = |rows: usize, columns: usize, (row, column): (usize, usize)| {
        (rows - 1) * row + (columns - 1) * column
    };
    assert!(end(m, k, (a.1, a.2)) < a.0.len(), "invariant: the left matrix lies within its slice");
    let (b, made) = match b {
        Right::Part(b) => (b, None),
        Right::Made(made) => ((&[] as &[T], 0, 0), Some(made)),
    };
    let inside = made.is_some() || end(k, n, (b.1, b.2)) < b.0.len();
    assert!(inside, "invariant: the right matrix lies within its slice");
    assert!(n <= c.columns && m <= c.rows, "invariant: the result lies within its columns");
    let matrix = |part: Part<'_, T>| Matrix {
        at: part.0.as_ptr().cast_mut(),
        rows: part.1 as isize,
        columns: part.2 as isize,
    };
    assert!(start.is_none_or(|start| start.len() >= m), "invariant: every row has its start");
    let c = Target::fresh(Matrix { at: c.at.0, rows: c.width as isize, columns: 1 });
    let to = start.map_or(c, |start| {
        let start = Matrix { at: start.as_ptr().cast_mut(), rows: 1, columns: 0 };
        Target { start, keep: T::ONE, ..c }
    });
    // SAFETY: all were just checked against what they lie in, and the result is borrowed alone; what else there is is only
    // read.
    unsafe { product(Product { m, k, n, a: matrix(a), b: matrix(b), to }, &Cut { left, right: None, made }) }
}

/// The strips of `count` matrices that lie in a row-major tensor one behind the other, a row of each a lane, if they were
/// asked for before and have not changed since.
pub(crate) fn kept<T: Multiply>(t: &Tensor, side: Side, count: usize) -> Option<Arc<Vec<Panels<T>>>> {
    let meta = t.meta();
    let rows = *meta.layout.sizes().first()? as usize / count.max(1);
    let lanes = rows * usize::from(meta.layout.is_contiguous() && t.dtype() == T::DTYPE);
    let depth = meta.layout.numel().checked_div(lanes * count)?;
    let shape = Shape { side, count, lanes, depth, steps: [depth as isize, 1] };
    let _guards = ReadGuards::one(&meta.storage);
    // SAFETY: locked; the layout holds the matrices, one behind the other.
    unsafe { packed::kept(&meta.storage, &meta.layout, shape) }
}
