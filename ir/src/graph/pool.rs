//! Pool allocator for runs of rows in one flat vector: slabs by size class, with a free list per class.
//!
//! A [`Run`] has eight bytes: the start of the slab, the number of rows in use and the size class. A freed slab is
//! reused by the next run of its class, so replacing and erasing rows does not leak slabs and never moves other runs.

use super::arena::{NONE, grow};

/// Slab sizes: exact up to 4 rows, then growing by factors of 4/3 and 3/2 in turn.
const CLASS_SIZE: [u32; 53] = class_sizes();

const fn class_sizes() -> [u32; 53] {
    let mut sizes = [0u32; 53];
    let mut i = 1;
    while i < 53 {
        sizes[i] = if i <= 4 {
            i as u32
        } else if i % 2 == 1 {
            3 << ((i - 3) / 2)
        } else {
            4 << ((i - 4) / 2)
        };
        i += 1;
    }
    sizes
}

fn class_for(len: u32) -> u8 {
    if len <= 4 {
        return len as u8;
    }
    CLASS_SIZE.partition_point(|&s| s < len) as u8
}

const LEN_BITS: u32 = 26;
const LEN_MASK: u32 = (1 << LEN_BITS) - 1;

/// A slab of a [`Pool`]: start, rows in use, size class.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    start: u32,
    meta: u32,
}

impl Run {
    pub(crate) const EMPTY: Run = Run { start: 0, meta: 0 };

    /// Creates a run of one row that is stored in the run itself, not in a pool: see [`SlabLists`](super::links::SlabLists).
    pub(crate) fn of_one(item: u32) -> Run {
        Run { start: item, meta: 1 }
    }

    /// Returns the row of a run made by [`Run::of_one`].
    pub(crate) fn item(&self) -> &u32 {
        &self.start
    }

    pub(crate) fn len(self) -> u32 {
        self.meta & LEN_MASK
    }

    pub(crate) fn start(self) -> u32 {
        self.start
    }

    pub(crate) fn capacity(self) -> u32 {
        CLASS_SIZE[self.class() as usize]
    }

    fn class(self) -> u8 {
        (self.meta >> LEN_BITS) as u8
    }

    pub(crate) fn with_len(self, len: u32) -> Run {
        debug_assert!(len <= self.capacity());
        Run { start: self.start, meta: (self.meta & !LEN_MASK) | len }
    }

    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len()) as usize
    }
}

/// Flat storage of runs.
#[derive(Clone)]
pub(crate) struct Pool<T> {
    rows: Vec<T>,
    free: Vec<Vec<u32>>,
}

impl<T: Copy> Pool<T> {
    pub(crate) fn new() -> Self {
        Pool { rows: Vec::new(), free: Vec::new() }
    }

    /// Reserves capacity for `rows` more rows.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.rows.reserve_exact(rows);
    }

    /// Allocates a slab for `len` rows and sets them to `fill`.
    pub(crate) fn take(&mut self, len: u32, fill: T) -> Run {
        if len == 0 {
            return Run::EMPTY;
        }
        assert!(len <= LEN_MASK, "a node has at most 2^26 - 1 operands or results");
        let class = class_for(len);
        let start = match self.free.get_mut(class as usize).and_then(Vec::pop) {
            Some(start) => start,
            None => {
                let start = self.rows.len();
                let end = start + CLASS_SIZE[class as usize] as usize;
                assert!(end < NONE as usize, "graph too large: 2^32 - 1 operands");
                while self.rows.capacity() < end {
                    grow(&mut self.rows);
                }
                self.rows.resize(end, fill);
                start as u32
            }
        };
        let run = Run { start, meta: u32::from(class) << LEN_BITS | len };
        self.rows[run.range()].fill(fill);
        run
    }

    /// Frees a slab.
    pub(crate) fn release(&mut self, run: Run) {
        let class = run.class() as usize;
        if class == 0 {
            return;
        }
        if self.free.len() <= class {
            self.free.resize_with(class + 1, Vec::new);
        }
        self.free[class].push(run.start);
    }

    pub(crate) fn slice(&self, run: Run) -> &[T] {
        &self.rows[run.range()]
    }

    pub(crate) fn slice_mut(&mut self, run: Run) -> &mut [T] {
        &mut self.rows[run.range()]
    }

    pub(crate) fn at(&self, index: u32) -> &T {
        &self.rows[index as usize]
    }

    pub(crate) fn at_mut(&mut self, index: u32) -> &mut T {
        &mut self.rows[index as usize]
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<T>()
            + self.free.iter().map(|f| f.capacity() * size_of::<u32>()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_grow_and_fit_their_length() {
        assert!(CLASS_SIZE.windows(2).all(|w| w[0] < w[1]));
        for len in 1..2000 {
            assert!(CLASS_SIZE[class_for(len) as usize] >= len);
        }
        assert!(CLASS_SIZE[52] > LEN_MASK);
    }

    #[test]
    fn a_wide_run_fits_into_a_small_pool() {
        let mut p = Pool::new();
        let wide = p.take(1 << 16, 7u32);
        assert_eq!(p.slice(wide).len(), 1 << 16);
    }

    #[test]
    fn freed_slabs_are_reused() {
        let mut p = Pool::new();
        let a = p.take(3, 7u32);
        p.release(a);
        let b = p.take(3, 9);
        assert_eq!(a.start(), b.start());
        assert_eq!(p.slice(b), [9, 9, 9]);
    }
}
