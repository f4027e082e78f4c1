//! Large products: both operands cut into strips ([`super::tile`]), block by block, so that what is multiplied lies in
//! caches.
//!
//! The side of the result that is longer is shared by threads; the operand of the other side is cut once for all. What
//! does not change from call to call need not be cut again: [`Panels`] are kept beside the bytes they were cut from
//! ([`crate::memo`]).
//!
//! Every element of the result is a sum in one order, whatever the parts: blocks of the depth one after the other.
#![allow(unsafe_code, reason = "hands pointers to strips to tiles")]

use std::ops::Range;
use std::sync::Arc;

use super::direct::is_small;
use super::product::{Matrix, Multiply, PART, PARTS, Product};
use super::tile::{Block, Job, Side, Tiling};
use crate::alloc::Charge;
use crate::layout::Layout;
use crate::memo::Kept;
use crate::room::Room;
use crate::storage::Storage;
use crate::threads;

/// Depth of a block at most: of a strip of either side, both of which the first cache holds.
const DEPTH: usize = 512;
/// Rows of a block: with the depth, what half of the second cache holds.
const ROWS: usize = 96;
/// Columns of a block that is cut as it is needed.
const COLUMNS: usize = 192;
/// What parts begin with a multiple of: whole strips, on every processor.
const WHOLE: usize = 96;
/// Multiplications from which on it is worth remembering that an operand was used.
const REMEMBERED: usize = 1 << 18;

/// The blocks of a depth: as deep as each other, but for the last.
fn blocks(depth: usize) -> impl Iterator<Item = Range<usize>> {
    let count = depth.div_ceil(DEPTH).max(1);
    let step = depth.div_ceil(count).next_multiple_of(16);
    (0..depth).step_by(step).map(move |start| start..depth.min(start + step))
}

/// An operand cut into strips, one block of the depth behind the other.
pub(crate) struct Panels<T> {
    room: Room<T>,
    /// Lanes, filled up to whole strips.
    lanes: usize,
    /// What holds of the budget of the one that made it.
    _charge: Option<Charge>,
}

impl<T: Multiply> Panels<T> {
    /// Cuts an operand.
    ///
    /// # Safety
    /// It is valid for so many lanes and depths.
    unsafe fn cut(t: Tiling<T>, from: Operand<'_, T>, side: Side, lanes: usize, depth: usize) -> Panels<T> {
        let strip = (t.strip)(side);
        let all = lanes.next_multiple_of(strip);
        let room = Room::new(all * depth);
        let to = room.start();
        for depth in blocks(depth) {
            let grain = threads::rows(strip * depth.len()) * strip;
            threads::split(lanes, grain, |lanes| {
                let to = to.at(all * depth.start + lanes.start * depth.len());
                // SAFETY: the caller's word; the room has a place for every strip, apart from the others'.
                unsafe { from.cut(t, side, lanes, depth.clone(), to) };
            });
        }
        Panels { room, lanes: all, _charge: None }
    }

    /// The strips from a lane on, the first of one, of a block of the depth.
    fn at(&self, lane: usize, depth: &Range<usize>) -> *const T {
        self.room.start().at(self.lanes * depth.start + lane * depth.len())
    }
}

/// Something that cuts itself into strips of columns.
pub(crate) trait Made<T>: Sync {
    /// Strips of some lanes, the first of which begins one, and of some of the depth, from `to` on.
    ///
    /// # Safety
    /// There is room for whole strips, which nobody else reaches.
    unsafe fn cut(&self, lanes: Range<usize>, depth: Range<usize>, to: *mut T);
}

/// What is cut into strips.
#[derive(Clone, Copy)]
enum Operand<'a, T> {
    /// A matrix, a row of which is a lane.
    Matrix(Matrix<T>),
    Made(&'a dyn Made<T>),
}

impl<T: Multiply> Operand<'_, T> {
    /// # Safety
    /// As [`Made::cut`]; a matrix has these lanes and depths.
    unsafe fn cut(self, t: Tiling<T>, side: Side, lanes: Range<usize>, depth: Range<usize>, to: *mut T) {
        // SAFETY: the caller's word.
        unsafe {
            match self {
                Operand::Matrix(from) => (t.run)(Job::Cut { from, side, lanes, depth, to }),
                Operand::Made(made) => made.cut(lanes, depth, to),
            }
        }
    }
}

/// What an operand is where products cut it: matrices of `lanes` by `depth`, `count` of them one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) side: Side,
    pub(crate) count: usize,
    pub(crate) lanes: usize,
    pub(crate) depth: usize,
    /// Elements from lane to lane, and along the depth.
    pub(crate) steps: [isize; 2],
}

/// The panels of matrices in a storage, if its bytes were multiplied before as they are, and are worth it: for every matrix
/// those that it is cut into.
///
/// # Safety
/// This caller holds a shared lock of the storage, in which the matrices lie from the layout's offset on.
pub(super) unsafe fn kept<T: Multiply>(
    storage: &Storage,
    layout: &Layout,
    s: Shape,
) -> Option<Arc<Vec<Panels<T>>>> {
    let t = T::TILING?;
    let strip = (t.strip)(s.side);
    let (size, offset) = (size_of::<T>(), layout.offset() as usize);
    let side = s.side as usize;
    let [lane, along] = s.steps.map(|step| step as usize);
    let key = [size * 2 + side, strip, offset, s.count, s.lanes, s.depth, lane, along];
    let make = || -> Option<Kept> {
        let bytes = s.lanes.next_multiple_of(strip).checked_mul(s.depth)?.checked_mul(size)?;
        let mut all = Vec::with_capacity(s.count);
        for i in 0..s.count {
            let charge = Charge::take(bytes).ok()?;
            // SAFETY: the caller's word.
            let panels = unsafe {
                let at = storage.data().cast::<T>().add(offset + i * s.lanes * s.depth);
                let from = Operand::Matrix(Matrix { at, rows: s.steps[0], columns: s.steps[1] });
                Panels::cut(t, from, s.side, s.lanes, s.depth)
            };
            all.push(Panels { _charge: Some(charge), ..panels });
        }
        Some(Arc::new(all))
    };
    // SAFETY: the caller's word.
    unsafe { storage.remembered()? }.get((storage.version(), key), make)?.downcast().ok()
}

/// Whether it is worth remembering that the operands of a product were used.
pub(super) fn is_remembered<T>(p: &Product<T>) -> bool {
    let work = p.m.saturating_mul(p.n).saturating_mul(p.k);
    work >= REMEMBERED && p.m > 1 && p.n > 1 && !is_small(p, work)
}

/// Operands that are cut already.
pub(crate) struct Cut<'a, T> {
    pub(crate) left: Option<&'a Panels<T>>,
    pub(crate) right: Option<&'a Panels<T>>,
    /// What the right operand is in place of a matrix.
    pub(crate) made: Option<&'a dyn Made<T>>,
}

impl<T: Multiply> Cut<'_, T> {
    /// Neither.
    pub(super) const NONE: Cut<'static, T> = Cut { left: None, right: None, made: None };
}

/// A product by strips.
///
/// # Safety
/// As [`super::product`]; what is cut was cut from the operands.
pub(super) unsafe fn packed<T: Multiply>(t: Tiling<T>, p: Product<T>, cut: &Cut<'_, T>) {
    let by_rows = p.m >= p.n;
    let a = Operand::Matrix(p.a);
    let b = cut.made.map_or(Operand::Matrix(p.b.turned()), Operand::Made);
    // SAFETY: the caller's word.
    let (left, right) = unsafe {
        (
            (!by_rows && cut.left.is_none()).then(|| Panels::cut(t, a, Side::Left, p.m, p.k)),
            (by_rows && cut.right.is_none()).then(|| Panels::cut(t, b, Side::Right, p.n, p.k)),
        )
    };
    let cut = Cut { left: cut.left.or(left.as_ref()), right: cut.right.or(right.as_ref()), made: None };
    let side = p.m.max(p.n);
    let parts = (p.m.saturating_mul(p.n).saturating_mul(p.k) / PART).clamp(1, PARTS);
    threads::split(side, side.div_ceil(parts).next_multiple_of(WHOLE), |own| {
        let (rows, columns) = if by_rows { (own, 0..p.n) } else { (0..p.m, own) };
        // SAFETY: the caller's word; parts of the result are apart.
        unsafe { part(t, &p, [a, b], &cut, rows, columns) };
    });
}

/// A part of a result, block by block.
///
/// # Safety
/// As [`packed`]; rows and columns begin with whole strips, and one of the operands is cut.
unsafe fn part<T: Multiply>(
    t: Tiling<T>,
    p: &Product<T>,
    operands: [Operand<'_, T>; 2],
    cut: &Cut<'_, T>,
    rows: Range<usize>,
    columns: Range<usize>,
) {
    // What is cut is not cut again for every block of the other side.
    let wide = if cut.right.is_some() { columns.len() } else { COLUMNS };
    let deepest = blocks(p.k).next().map_or(0, |block| block.len());
    let room = |side: Side, lanes: usize| Room::<T>::new(lanes.next_multiple_of((t.strip)(side)) * deepest);
    let left = cut.left.is_none().then(|| room(Side::Left, ROWS.min(rows.len())));
    let right = cut.right.is_none().then(|| room(Side::Right, wide.min(columns.len())));
    for j in columns.clone().step_by(wide.max(1)) {
        let columns = j..columns.end.min(j + wide);
        for depth in blocks(p.k) {
            let to = if depth.start == 0 { p.to } else { p.to.onward() };
            // SAFETY: as `strips`.
            let right = unsafe {
                strips(t, operands[1], Side::Right, cut.right, right.as_ref(), columns.clone(), &depth)
            };
            for i in rows.clone().step_by(ROWS) {
                let rows = i..rows.end.min(i + ROWS);
                // SAFETY: the caller's word; strips are whole, and blocks of the result within it.
                unsafe {
                    let left =
                        strips(t, operands[0], Side::Left, cut.left, left.as_ref(), rows.clone(), &depth);
                    let to = to.part(i, j);
                    let (rows, columns, depth) = (rows.len(), columns.len(), depth.len());
                    (t.run)(Job::Multiply(Block { left, right, depth, rows, columns, to }));
                }
            }
        }
    }
}

/// Strips of an operand: those that are cut, or cut now into the room.
///
/// # Safety
/// As [`packed`]; the room is the caller's, and has place for the lanes.
unsafe fn strips<T: Multiply>(
    t: Tiling<T>,
    from: Operand<'_, T>,
    side: Side,
    cut: Option<&Panels<T>>,
    room: Option<&Room<T>>,
    lanes: Range<usize>,
    depth: &Range<usize>,
) -> *const T {
    if let Some(panels) = cut {
        return panels.at(lanes.start, depth);
    }
    let Some(room) = room else { unreachable!("invariant: there is a room for what is not cut") };
    let to = room.start().0;
    // SAFETY: the caller's word.
    unsafe { from.cut(t, side, lanes, depth.clone(), to) };
    to
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::matmul::{addmm, mm};
    use crate::scalar::Scalar;
    use crate::tensor::Tensor;

    fn matrix(rows: i64, columns: i64, seed: i64) -> Tensor {
        let values = (0..rows * columns).map(|i| ((i * 37 + seed) % 17 - 8) as f32).collect();
        Tensor::from_vec(values, &[rows, columns]).unwrap()
    }

    /// The definition, exact as all sums are small integers.
    fn plain(a: &Tensor, b: &Tensor) -> Vec<f32> {
        let (m, k, n) = (a.sizes()[0] as usize, a.sizes()[1] as usize, b.sizes()[1] as usize);
        let (a, b) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
        (0..m * n).map(|at| (0..k).map(|d| a[at / n * k + d] * b[d * n + at % n]).sum()).collect()
    }

    #[test]
    fn operands_that_are_kept_give_what_they_gave() {
        // More than one block of the depth, and edges on all sides.
        let (a, b) = (matrix(101, 700, 3), matrix(53, 700, 5).t().unwrap());
        for round in 0..3 {
            let wanted = plain(&a, &b);
            for _ in 0..3 {
                assert_eq!(mm(&a, &b).unwrap().to_vec::<f32>().unwrap(), wanted);
            }
            let operand = if round == 0 { &a } else { &b };
            operand.fill_(Scalar::Int(round + 2)).unwrap();
        }
    }

    #[test]
    fn starts_may_have_any_strides() {
        let (a, b) = (matrix(60, 90, 3), matrix(90, 70, 5));
        let product = plain(&a, &b);
        let starts = [
            matrix(1, 70, 7),
            matrix(60, 1, 7),
            matrix(60, 70, 7),
            matrix(70, 60, 7).t().unwrap(),
            matrix(1, 1, 7),
        ];
        for start in &starts {
            for (beta, alpha) in [(1, 1), (0, 1), (2, -1)] {
                let got = addmm(start, &a, &b, Scalar::Int(beta), Scalar::Int(alpha)).unwrap();
                let start = start.expand(&[60, 70]).unwrap().to_vec::<f32>().unwrap();
                let wanted: Vec<f32> =
                    product.iter().zip(start).map(|(p, s)| beta as f32 * s + alpha as f32 * p).collect();
                assert_eq!(got.to_vec::<f32>().unwrap(), wanted);
                assert_eq!(got.dtype(), DType::F32);
            }
        }
    }
}
