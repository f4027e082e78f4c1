//! Kernels over contiguous blocks: the only code that is instantiated once per closure.
//!
//! Elements are processed in groups of a fixed width, which LLVM turns into whole vectors. The last elements of a row are
//! computed in a group with those before them, some of which are computed twice. A row that is shorter than a group is padded to
//! one, so that fifteen elements cost one vector step instead of fifteen scalar ones. The padding repeats an
//! element of the data, so a closure never sees a value that does not occur there.
//!
//! A [`BlockKernel`] is such a kernel with its types erased: it takes rows of bytes, checks their lengths once per call,
//! divides them into groups, and calls the typed code. Typed code is a loop over whole groups and nothing else, because it is the
//! most instantiated code of the program.
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
    /// Returns the function's value at `a`. Loops may call it several times for an element, in any order.
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
    form: &'static Form,
    f: &'a (dyn TypedCode + 'a),
}

/// What is known of typed code whose types are erased.
pub(super) struct Form {
    /// Size and alignment of the elements of the result and of the inputs; the last are those of all further inputs.
    rows: &'static [(usize, usize)],
    /// The least number of inputs.
    inputs: usize,
    /// The code computes multiples of this number of elements, a power of two.
    group: usize,
    /// Bytes of a group of the largest elements.
    group_bytes: usize,
}

impl Form {
    /// Returns the form of code with these sizes.
    ///
    /// # Panics
    /// Panics, while constants are evaluated, if `group` is not a power of two, or if [`BlockKernel::compute_few`] has no room for it.
    const fn new(rows: &'static [(usize, usize)], inputs: usize, group: usize) -> Form {
        let (mut largest, mut k) = (0, 0);
        while k < rows.len() {
            if rows[k].0 > largest {
                largest = rows[k].0;
            }
            k += 1;
        }
        let group_bytes = group * largest;
        assert!(group.is_power_of_two());
        assert!(group == 1 || inputs <= MAX_INPUTS && group_bytes <= MAX_WORDS * size_of::<u128>());
        Form { rows, inputs, group, group_bytes }
    }
}

/// The largest number of inputs of code that computes groups of several elements.
const MAX_INPUTS: usize = 3;
/// Words of the longest group.
const MAX_WORDS: usize = GROUP_LEN;

/// Writes the first `n` elements of a row, at least one, and repeats the first of them behind them. The words are written in place:
/// copying what was just written in other sizes would stall on store forwarding.
#[inline(always)]
fn pad<const N: usize>(words: &mut [u128; N], row: &[u8], size: usize, n: usize) {
    *words = [repeated(&row[..size]); N];
    bytemuck::cast_slice_mut(words)[..n * size].copy_from_slice(&row[..n * size]);
}

/// Returns an element, repeated as often as it fits.
#[inline(always)]
fn repeated(element: &[u8]) -> u128 {
    use bytemuck::pod_read_unaligned as read;
    match element.len() {
        1 => u128::from(element[0]) * (u128::MAX / u128::from(u8::MAX)),
        2 => u128::from(read::<u16>(element)) * (u128::MAX / u128::from(u16::MAX)),
        4 => u128::from(read::<u32>(element)) * (u128::MAX / u128::from(u32::MAX)),
        8 => u128::from(read::<u64>(element)) * (u128::MAX / u128::from(u64::MAX)),
        _ => read(element),
    }
}

/// The typed code of a [`BlockKernel`].
pub(super) trait TypedCode: Sync {
    /// Computes the first `n` elements of the result, a multiple of the group of [`Typed::FORM`].
    ///
    /// # Safety
    /// Rows have the sizes of [`Typed::FORM`]: `out` is valid for writes of `n` elements, each input has at least `n` elements,
    /// and all are aligned for their elements. `out` overlaps no input.
    unsafe fn run(&self, out: *mut u8, inputs: &[&[u8]], n: usize);
}

/// Typed code, with what erased code has to know of it.
pub(super) trait Typed: TypedCode {
    /// The sizes of its elements and groups.
    const FORM: &'static Form;
}

/// Returns the size and the alignment of elements in memory.
const fn row_of<T: Element>() -> (usize, usize) {
    (size_of::<T::Raw>(), align_of::<T::Raw>())
}

impl<'a> BlockKernel<'a> {
    /// Erases the types of a kernel.
    #[inline(always)]
    pub(super) fn new<K: Typed>(kernel: &'a K) -> BlockKernel<'a> {
        BlockKernel { form: K::FORM, f: kernel }
    }

    /// Returns the bytes per element of the result (0) or of an input (from 1 on).
    #[inline(always)]
    pub(super) fn size(self, operand: usize) -> usize {
        self.row(operand).0
    }

    #[inline(always)]
    fn row(self, operand: usize) -> (usize, usize) {
        self.form.rows[operand.min(self.form.rows.len() - 1)]
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
            self.compute(out.as_mut_ptr().cast(), inputs, n);
            out.assume_init_mut()
        }
    }

    /// As [`BlockKernel::run`], over a row that has been written before.
    #[inline]
    pub(super) fn run_over(self, n: usize, out: &mut [u8], inputs: &[&[u8]]) {
        self.check(n, out.as_ptr(), out.len(), inputs);
        // SAFETY: as for `run`.
        unsafe { self.compute(out.as_mut_ptr(), inputs, n) };
    }

    /// Computes any number of elements.
    ///
    /// # Safety
    /// As for [`TypedCode::run`], for any `n`.
    #[inline(always)]
    unsafe fn compute(self, out: *mut u8, inputs: &[&[u8]], n: usize) {
        let whole = n & !(self.form.group - 1);
        // SAFETY: the caller's contract for `n` elements. The whole groups and the last group lie within them; `compute_few` is called
        // with 1 to `group - 1` elements.
        unsafe {
            if whole == n {
                self.f.run(out, inputs, n);
            } else if whole > 0 {
                self.f.run(out, inputs, whole);
                self.compute_last(out, inputs, n - self.form.group);
            } else {
                match self.form.group_bytes {
                    ..=64 => self.compute_few::<4>(out, inputs, n),
                    65..=128 => self.compute_few::<8>(out, inputs, n),
                    _ => self.compute_few::<MAX_WORDS>(out, inputs, n),
                }
            }
        }
    }

    /// Computes the group of elements that begins at `start`, the last one of a row.
    ///
    /// # Safety
    /// As for [`TypedCode::run`], if `n` is the end of the group.
    #[inline]
    unsafe fn compute_last(self, out: *mut u8, inputs: &[&[u8]], start: usize) {
        let mut rows = [&[][..]; MAX_INPUTS];
        for (k, (row, input)) in rows.iter_mut().zip(inputs).enumerate() {
            *row = &input[start * self.size(k + 1)..];
        }
        // SAFETY: the caller's contract. Addresses of elements are aligned as the first one's.
        unsafe { self.f.run(out.add(start * self.size(0)), &rows, self.form.group) };
    }

    /// Computes at least one element, and fewer than a group, which has at most `N` words.
    ///
    /// # Safety
    /// As for [`TypedCode::run`], for such an `n`.
    #[inline(never)]
    #[allow(clippy::needless_range_loop, reason = "the constant number of rows is unrolled")]
    unsafe fn compute_few<const N: usize>(self, out: *mut u8, inputs: &[&[u8]], n: usize) {
        assert!(self.form.group_bytes <= size_of::<[u128; N]>(), "invariant: a group has at most `N` words");
        let mut groups = [[0_u128; N]; MAX_INPUTS];
        for k in 0..MAX_INPUTS {
            if let Some(input) = inputs.get(k) {
                pad(&mut groups[k], input, self.size(k + 1), n);
            }
        }
        let rows: [&[u8]; MAX_INPUTS] = [
            bytemuck::cast_slice(&groups[0]),
            bytemuck::cast_slice(&groups[1]),
            bytemuck::cast_slice(&groups[2]),
        ];
        let mut results = [0_u128; N];
        let results: &mut [u8] = bytemuck::cast_slice_mut(&mut results);
        // SAFETY: results and rows have at least the bytes of a group of their elements (asserted), are aligned for any element, and are
        // apart. `out` is valid for writes of `n` elements (the caller's contract) and overlaps no local variable; `results` has them,
        // because `n` is less than the group.
        unsafe {
            self.f.run(results.as_mut_ptr(), &rows, self.form.group);
            let results = &results[..n * self.size(0)];
            out.copy_from_nonoverlapping(results.as_ptr(), results.len());
        }
    }

    #[inline(always)]
    fn check(self, n: usize, out: *const u8, len: usize, inputs: &[&[u8]]) {
        let fits = |start: *const u8, len: usize, (size, align): (usize, usize)| {
            len == n.saturating_mul(size) && start.addr() & (align - 1) == 0
        };
        let mut all = inputs.len() >= self.form.inputs && fits(out, len, self.row(0));
        for (k, input) in inputs.iter().enumerate() {
            all &= fits(input.as_ptr(), input.len(), self.row(k + 1));
        }
        assert!(all, "invariant: rows have the elements that their kernel was made for");
    }
}

/// Writes the kernel of one, two or three inputs. `block_kernel! { binary, Binary, BinaryCall, Map2, a: A, b: B }`
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
///     fn vectorized_loop(out: &mut [MaybeUninit<R::Raw>], a: &[A::Raw], b: &[B::Raw], f: F) {
///         let n = out.len();
///         let (a, b) = (&a[..n], &b[..n]);
///         for i in 0..n {
///             out[i].write(f.at(A::from_raw(a[i]), B::from_raw(b[i])).to_raw());
///         }
///     }
/// }
///
/// impl<…> Multiversioned for BinaryCall<'_, A, B, R, F> { … }
/// ```
macro_rules! block_kernel {
    ($(#[$doc:meta])* $name:ident, $kernel:ident, $call:ident, $map:ident, $($input:ident: $type:ident),+
        $(; $guarded:ident of $only:ident)?) => {
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
            const FORM: &'static Form =
                &Form::new(&[row_of::<R>() $(, row_of::<$type>())+], [$(row_of::<$type>()),+].len(), Self::GROUP);
        }

        impl<$($type: Element,)+ R: Element, F: $map<$($type,)+ R>> $kernel<$($type,)+ R, F> {
            /// Elements per group.
            const GROUP: usize =
                if size_of::<R::Raw>() >= 4 $(|| size_of::<$type::Raw>() >= 4)+ { GROUP_LEN } else { NARROW };
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
                $(if const { F::LIMIT > 0 } {
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
        }

        impl<$($type: Element,)+ R: Element, F: $map<$($type,)+ R>> Multiversioned for $call<'_, $($type,)+ R, F> {
            type Output = ();
            const SETS: InstructionSets = InstructionSets::of(&[$($type::DTYPE),+]);

            #[inline(always)]
            fn run(mut self) {
                let f = self.f;
                let (out, $($input),+) = self.rows();
                // The length is a multiple already. So LLVM knows it, and generates no code for single elements.
                let n = out.len() & !(const { $kernel::<$($type,)+ R, F>::GROUP } - 1);
                Self::vectorized_loop(&mut out[..n], $(&$input[..n],)+ f);
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
    unary, Unary, UnaryCall, Map, a: A; guarded of a
}
block_kernel! {
    /// `out[i] = f(a[i], b[i])`.
    binary, Binary, BinaryCall, Map2, a: A, b: B
}
block_kernel! {
    /// `out[i] = f(a[i], b[i], c[i])`.
    ternary, Ternary, TernaryCall, Map3, a: A, b: B, c: C
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
    const FORM: &'static Form = &Form::new(&[row_of::<R>(), row_of::<T>()], 0, 1);
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
    use num_complex::Complex;

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

    /// Copies rows of all lengths up to three groups, by a kernel that must not see other elements than theirs, which are not zero.
    fn copies_rows<T: Element>() {
        let kernel = unary::<T, T, _>(Closure(|a: T| {
            assert!(a.is_nonzero(), "the kernel got an element that the row does not have");
            a
        }));
        for n in 0..=3 * NARROW {
            let mut row: Vec<T::Raw> = (0..n).map(|i| T::from_i64(i as i64 % 100 + 1).to_raw()).collect();
            let mut to = vec![T::ZERO.to_raw(); n + 1];
            let out = &mut bytemuck::cast_slice_mut(&mut to)[..n * size_of::<T>()];
            BlockKernel::new(&kernel).run_over(n, out, &[bytemuck::cast_slice(&row)]);
            row.push(T::ZERO.to_raw());
            assert_eq!(row, to, "{n} elements");
        }
    }

    #[test]
    fn padding_repeats_elements_of_all_sizes() {
        copies_rows::<u8>();
        copies_rows::<i16>();
        copies_rows::<f32>();
        copies_rows::<i64>();
        copies_rows::<Complex<f64>>();
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

    #[test]
    fn missing_rows_are_refused() {
        let kernel = binary::<f32, f32, f32, _>(Closure(|a, b| a + b));
        let run = |rows: &[&[u8]], to: &mut [u8]| BlockKernel::new(&kernel).run_over(to.len() / 4, to, rows);
        for n in [5, 16, 17] {
            let (row, mut to) = (vec![1.0f32; n], vec![0.0f32; n]);
            let rows = [bytemuck::cast_slice(&row)];
            let result = std::panic::catch_unwind(move || run(&rows, bytemuck::cast_slice_mut(&mut to)));
            assert!(result.is_err(), "one row of {n} elements");
        }
    }
}
