//! Kernels over contiguous blocks: the only code that is instantiated once per closure.
//!
//! Elements are processed in groups of a fixed width, which LLVM turns into whole vectors. The tail is padded to one
//! more group, so that sixteen elements cost one vector step instead of sixteen scalar ones. The padding repeats an
//! element of the data, so a closure never sees a value that does not occur there. Groups and tail share one loop: this
//! is the most instantiated code of the program, and a function with one call site is inlined.
//!
//! A [`BlockKernel`] is such a kernel with its types erased: it takes rows of bytes, checks their lengths once per call,
//! and calls the typed code.
#![allow(unsafe_code, reason = "passes rows of bytes to typed code as slices of elements")]

use std::hint::black_box;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use smallvec::SmallVec;

use crate::element::Element;
use crate::simd::{self, InstructionSets, Multiversioned};

/// Elements per group if an element has four or more bytes.
pub(super) const GROUP_LEN: usize = 16;
/// Elements per group for smaller elements.
pub(super) const NARROW: usize = 64;

/// A function of one element: a closure, or a type of its own, whose method is inlined into loops however large it is.
///
/// A function may have a cheaper version for most arguments ([`Map::near`]) and a measure of the argument that decides whether it applies
/// ([`Map::magnitude_bits`]). Loops evaluate the cheaper version and recompute a span of elements in full if one of them was out
/// of its range.
pub trait Map<A, R>: Copy + Sync {
    /// [`Map::near`] equals [`Map::at`] for arguments whose magnitude is below this limit; 0 if there is no cheaper
    /// version.
    const LIMIT: u32 = 0;
    /// Returns the function in the form that a loop calls: its constants are read from memory, so that the compiler
    /// cannot fold them.
    #[inline(always)]
    fn ready(self) -> Self {
        self
    }
    /// Returns the function's value at `a`.
    fn at(self, a: A) -> R;
    /// Returns a measure of the argument that is compared with [`Map::LIMIT`]. It is a number and not a `bool` because
    /// a running maximum vectorizes, whereas a conjunction of `bool`s is narrowed to bytes on the way.
    #[inline(always)]
    fn magnitude_bits(self, _: A) -> u32 {
        0
    }
    /// Returns the value for an argument whose magnitude is below [`Map::LIMIT`]; unspecified for other arguments.
    #[inline(always)]
    fn near(self, a: A) -> R {
        self.at(a)
    }
}

/// Elements that are recomputed together if one of them is out of range of [`Map::near`].
pub(super) const SPAN: usize = 256;

/// Applies `f` to rows span by span, with [`Map::near`] where all elements of a span are in its range.
#[inline(always)]
fn guarded<A: Element, R: Element, F: Map<A, R>>(out: &mut [MaybeUninit<R::Raw>], a: &[A::Raw], f: F) {
    for (out, a) in out.chunks_mut(SPAN).zip(a.chunks(SPAN)) {
        let mut furthest = 0;
        for (out, a) in out.iter_mut().zip(a) {
            let a = A::from_raw(*a);
            furthest = furthest.max(f.magnitude_bits(a));
            out.write(f.near(a).to_raw());
        }
        if furthest >= F::LIMIT {
            for (out, a) in out.iter_mut().zip(a) {
                out.write(f.at(A::from_raw(*a)).to_raw());
            }
        }
    }
}

/// A function of two elements.
pub(super) trait Map2<A, B, R>: Copy + Sync {
    fn at(self, a: A, b: B) -> R;
}

/// A function of three elements.
pub(super) trait Map3<A, B, C, R>: Copy + Sync {
    fn at(self, a: A, b: B, c: C) -> R;
}

/// Adapts a closure to [`Map`], `Map2` and `Map3`.
#[derive(Clone, Copy)]
pub(super) struct Closure<F>(pub(super) F);

impl<A, R, F: Fn(A) -> R + Copy + Sync> Map<A, R> for Closure<F> {
    #[inline(always)]
    fn at(self, a: A) -> R {
        (self.0)(a)
    }
}

impl<A, B, R, F: Fn(A, B) -> R + Copy + Sync> Map2<A, B, R> for Closure<F> {
    #[inline(always)]
    fn at(self, a: A, b: B) -> R {
        (self.0)(a, b)
    }
}

impl<A, B, C, R, F: Fn(A, B, C) -> R + Copy + Sync> Map3<A, B, C, R> for Closure<F> {
    #[inline(always)]
    fn at(self, a: A, b: B, c: C) -> R {
        (self.0)(a, b, c)
    }
}

/// A function of blocks with the types of its operands erased.
#[derive(Clone, Copy)]
pub(super) struct BlockKernel<'a> {
    /// Size and alignment of the elements of the result and of the inputs; the last are those of all further inputs.
    rows: &'static [(usize, usize)],
    f: &'a (dyn TypedCode + 'a),
}

/// The typed code of a [`BlockKernel`].
pub(super) trait TypedCode: Sync {
    /// Computes `n` elements of the result.
    ///
    /// # Safety
    /// Rows have the sizes of [`Typed::ROWS`]: `out` is valid for writes of `n` elements, each input has `n` elements,
    /// and all are aligned for their elements. `out` overlaps no input.
    unsafe fn run(&self, out: *mut u8, inputs: &[&[u8]], n: usize);
}

/// Typed code, with the sizes and alignments of its elements in bytes.
pub(super) trait Typed: TypedCode {
    /// Size and alignment of the elements of the result and of the inputs; the last are those of all further inputs.
    const ROWS: &'static [(usize, usize)];
}

/// Returns the size and the alignment of elements in memory.
const fn row_of<T: Element>() -> (usize, usize) {
    (size_of::<T::Raw>(), align_of::<T::Raw>())
}

impl<'a> BlockKernel<'a> {
    /// Erases the types of a kernel.
    #[inline(always)]
    pub(super) fn new<K: Typed>(kernel: &'a K) -> BlockKernel<'a> {
        BlockKernel { rows: K::ROWS, f: kernel }
    }

    /// Returns the bytes per element of the result (0) or of an input (from 1 on).
    #[inline(always)]
    pub(super) fn size(self, operand: usize) -> usize {
        self.row(operand).0
    }

    #[inline(always)]
    fn row(self, operand: usize) -> (usize, usize) {
        self.rows[operand.min(self.rows.len() - 1)]
    }

    /// Computes a row of `n` elements and returns its bytes, all of which were written.
    ///
    /// # Panics
    /// Panics if a row does not have `n` elements of the size that the kernel has for it, is not aligned for them, or
    /// an input is missing.
    #[inline]
    pub(super) fn run<'o>(self, n: usize, out: &'o mut [MaybeUninit<u8>], inputs: &[&[u8]]) -> &'o mut [u8] {
        self.check(n, out.as_ptr().cast(), out.len(), inputs);
        // SAFETY: pointers, lengths and alignment: checked above; any bytes are elements of any type of their size.
        // Aliasing: `out` is borrowed exclusively. The kernel writes all elements, which are all bytes of `out`.
        unsafe {
            self.f.run(out.as_mut_ptr().cast(), inputs, n);
            out.assume_init_mut()
        }
    }

    /// As [`BlockKernel::run`], over a row that has been written before.
    #[inline]
    pub(super) fn run_over(self, n: usize, out: &mut [u8], inputs: &[&[u8]]) {
        self.check(n, out.as_ptr(), out.len(), inputs);
        // SAFETY: as for `run`.
        unsafe { self.f.run(out.as_mut_ptr(), inputs, n) };
    }

    #[inline(always)]
    fn check(self, n: usize, out: *const u8, len: usize, inputs: &[&[u8]]) {
        let fits = |start: *const u8, len: usize, (size, align): (usize, usize)| {
            len == n.saturating_mul(size) && start.addr() & (align - 1) == 0
        };
        let mut all = fits(out, len, self.row(0));
        for (k, input) in inputs.iter().enumerate() {
            all &= fits(input.as_ptr(), input.len(), self.row(k + 1));
        }
        assert!(all, "invariant: rows have the elements that their kernel was made for");
    }
}

/// Writes the kernel of one, two or three inputs. `block_kernel! { binary, Binary, BinaryCall, Map2, a: A / xs, x; b: B / ys, y }`
/// expands to
///
/// ```text
/// pub(super) struct Binary<A, B, R, F> { f: F, elements: PhantomData<fn(A, B) -> R> }
///
/// pub(super) fn binary<A: Element, B: Element, R: Element, F: Map2<A, B, R>>(f: F) -> Binary<A, B, R, F> { … }
///
/// impl<…> Typed for Binary<A, B, R, F> { … }
///
/// impl<…> TypedCode for Binary<A, B, R, F> {
///     unsafe fn run(&self, out: *mut u8, inputs: &[&[u8]], n: usize) {
///         simd::run(BinaryCall { out, inputs, n, f: self.f, elements: PhantomData });
///     }
/// }
///
/// struct BinaryCall<'a, A, B, R, F> { out: *mut u8, inputs: &'a [&'a [u8]], n: usize, f: F, … }
///
/// impl<…> BinaryCall<'_, A, B, R, F> {
///     fn plain(out: &mut [MaybeUninit<R::Raw>], a: &[A::Raw], b: &[B::Raw], f: F) {
///         let n = out.len();
///         let (a, b) = (&a[..n], &b[..n]);
///         for i in 0..n {
///             out[i].write(f.at(A::from_raw(a[i]), B::from_raw(b[i])).to_raw());
///         }
///     }
///     // `groups` calls `vectorized_loop` for whole groups, and once more for the rest, padded in `xs` and `ys`
/// }
///
/// impl<…> Multiversioned for BinaryCall<'_, A, B, R, F> { … }
/// ```
macro_rules! block_kernel {
    ($(#[$doc:meta])* $name:ident, $kernel:ident, $call:ident, $map:ident, $($input:ident: $type:ident / $array:ident, $from:ident);+
        $(, $guarded:ident of $only:ident)?) => {
        /// The kernel that the function below makes.
        pub(super) struct $kernel<$($type,)+ R, F> {
            f: F,
            elements: PhantomData<fn($($type),+) -> R>,
        }

        $(#[$doc])*
        #[inline(always)]
        pub(super) fn $name<$($type: Element,)+ R: Element, F: $map<$($type,)+ R>>(
            f: F,
        ) -> $kernel<$($type,)+ R, F> {
            $kernel { f, elements: PhantomData }
        }

        impl<$($type: Element,)+ R: Element, F: $map<$($type,)+ R>> Typed for $kernel<$($type,)+ R, F> {
            const ROWS: &'static [(usize, usize)] = &[row_of::<R>() $(, row_of::<$type>())+];
        }

        impl<$($type: Element,)+ R: Element, F: $map<$($type,)+ R>> TypedCode for $kernel<$($type,)+ R, F> {
            unsafe fn run(&self, out: *mut u8, inputs: &[&[u8]], n: usize) {
                simd::run($call { out, inputs, n, f: self.f, elements: PhantomData::<fn($($type),+) -> R> });
            }
        }

        /// A call of the kernel, made under the contract of [`TypedCode::run`].
        struct $call<'a, $($type,)+ R, F> {
            out: *mut u8,
            /// The slice is kept as it is: the compiler would copy the pointers in pairs, and such wide loads stall on
            /// the narrow stores that have just written them.
            inputs: &'a [&'a [u8]],
            n: usize,
            f: F,
            elements: PhantomData<fn($($type),+) -> R>,
        }

        impl<$($type: Element,)+ R: Element, F: $map<$($type,)+ R>> $call<'_, $($type,)+ R, F> {
            /// The loop that LLVM vectorizes. Slices as arguments carry the information that nothing overlaps.
            #[inline(always)]
            fn vectorized_loop(out: &mut [MaybeUninit<R::Raw>], $($input: &[$type::Raw],)+ f: F) {
                $(if F::LIMIT > 0 {
                    return $guarded(out, $only, f);
                }
                let f = f.ready();)?
                let n = out.len();
                $(let $input = &$input[..n];)+
                for i in 0..n {
                    out[i].write(f.at($($type::from_raw($input[i])),+).to_raw());
                }
            }

            /// Returns the rows as slices of elements.
            #[inline(always)]
            fn rows(&mut self) -> (&mut [MaybeUninit<R::Raw>], $(&[$type::Raw]),+) {
                let &[$($input,)+ ..] = self.inputs else {
                    unreachable!("invariant: a kernel gets a row for each argument")
                };
                // SAFETY: pointers, lengths, alignment and aliasing: the contract under which this value was made.
                // Lifetime: the rows outlive this value, which the slices borrow.
                unsafe {
                    (
                        std::slice::from_raw_parts_mut(self.out.cast(), self.n),
                        $(std::slice::from_raw_parts($input.as_ptr().cast(), self.n)),+
                    )
                }
            }

            #[inline(always)]
            fn groups<const W: usize>(mut self) {
                let f = self.f;
                let (out, $($input),+) = self.rows();
                let whole = out.len() & !(W - 1);
                let (out, last) = out.split_at_mut(whole);
                let mut results = [const { MaybeUninit::<R::Raw>::uninit() }; W];
                let mut padded = whole == 0;
                loop {
                    $(let mut $array: [$type::Raw; W];)+
                    let (to, $($from),+) = if padded {
                        if last.is_empty() {
                            break;
                        }
                        $(let $from = &$input[whole..];
                        $array = [$from[0]; W];
                        $array[..$from.len()].copy_from_slice($from);)+
                        (&mut results[..], $(&$array[..]),+)
                    } else {
                        (&mut *out, $(&$input[..whole]),+)
                    };
                    Self::vectorized_loop(to, $($from,)+ f);
                    if padded {
                        last.copy_from_slice(&results[..last.len()]);
                        break;
                    }
                    padded = true;
                }
            }
        }

        impl<$($type: Element,)+ R: Element, F: $map<$($type,)+ R>> Multiversioned for $call<'_, $($type,)+ R, F> {
            type Output = ();
            const SETS: InstructionSets = InstructionSets::of(&[$($type::DTYPE),+]);

            #[inline(always)]
            fn run(self) {
                let wide = size_of::<R>() >= 4 $(|| size_of::<$type>() >= 4)+;
                if wide { self.groups::<GROUP_LEN>() } else { self.groups::<NARROW>() }
            }

            #[inline(always)]
            fn run_small(mut self) {
                let (f, n) = (self.f, self.n);
                let (out, $($input),+) = self.rows();
                for i in 0..n {
                    // Not vectorized: `black_box` is opaque to the compiler.
                    black_box(());
                    out[i].write(f.at($($type::from_raw($input[i])),+).to_raw());
                }
            }
        }
    };
}

block_kernel! {
    /// `out[i] = f(a[i])`.
    unary, Unary, UnaryCall, Map, a: A / xs, x, guarded of a
}
block_kernel! {
    /// `out[i] = f(a[i], b[i])`.
    binary, Binary, BinaryCall, Map2, a: A / xs, x; b: B / ys, y
}
block_kernel! {
    /// `out[i] = f(a[i], b[i], c[i])`.
    ternary, Ternary, TernaryCall, Map3, a: A / xs, x; b: B / ys, y; c: C / zs, z
}

/// The kernel that [`nary`] makes.
pub(super) struct Nary<T, R, F> {
    f: F,
    elements: PhantomData<fn(T) -> R>,
}

/// Any number of inputs of one type: `f` gets a slice for each, and one to fill, which is zeroed.
pub(super) fn nary<T: Element, R: Element, F: Fn(&[&[T::Raw]], &mut [R::Raw]) + Sync>(f: F) -> Nary<T, R, F> {
    Nary { f, elements: PhantomData }
}

impl<T: Element, R: Element, F: Fn(&[&[T::Raw]], &mut [R::Raw]) + Sync> Typed for Nary<T, R, F> {
    const ROWS: &'static [(usize, usize)] = &[row_of::<R>(), row_of::<T>()];
}

impl<T: Element, R: Element, F: Fn(&[&[T::Raw]], &mut [R::Raw]) + Sync> TypedCode for Nary<T, R, F> {
    unsafe fn run(&self, out: *mut u8, inputs: &[&[u8]], n: usize) {
        let inputs: SmallVec<[&[T::Raw]; 8]> = inputs.iter().map(|row| bytemuck::cast_slice(row)).collect();
        let out = out.cast::<R::Raw>();
        // SAFETY: pointer, length, alignment and aliasing: the caller's contract. Zero bytes are an element of any type.
        let out = unsafe {
            out.write_bytes(0, n);
            std::slice::from_raw_parts_mut(out, n)
        };
        (self.f)(&inputs, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a sum of `f32` and `i32` over rows of these numbers of bytes.
    fn run(n: usize, out: usize, inputs: [usize; 2]) -> Vec<f32> {
        let kernel = binary::<f32, i32, f32, _>(Closure(|a: f32, b: i32| a + b as f32));
        let (a, b): (Vec<f32>, Vec<i32>) = (0..40).map(|i| (i as f32, 100 * i)).unzip();
        let mut to = vec![-1.0f32; 40];
        let inputs = [&bytemuck::cast_slice(&a)[..inputs[0]], &bytemuck::cast_slice(&b)[..inputs[1]]];
        BlockKernel::new(&kernel).run_over(n, &mut bytemuck::cast_slice_mut(&mut to)[..out], &inputs);
        to
    }

    #[test]
    fn rows_of_all_lengths_are_computed_alone() {
        for n in [0, 1, 15, 16, 17, 32, 33, 39] {
            let to = run(n, 4 * n, [4 * n; 2]);
            for (i, x) in to.into_iter().enumerate() {
                assert_eq!(x, if i < n { 101.0 * i as f32 } else { -1.0 }, "element {i} of {n}");
            }
        }
    }

    #[test]
    fn rows_of_other_lengths_are_refused() {
        for (n, out, inputs) in [
            (8, 28, [32, 32]),
            (8, 32, [28, 32]),
            (8, 32, [32, 36]),
            (8, 36, [32, 32]),
            (usize::MAX, 0, [0, 0]),
        ] {
            let run = std::panic::catch_unwind(|| run(n, out, inputs));
            assert!(run.is_err(), "{n} elements in rows of {out} and {inputs:?} bytes");
        }
    }
}
