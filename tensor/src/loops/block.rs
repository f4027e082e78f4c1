//! Kernels over contiguous blocks: the only code that is instantiated once per closure.
//!
//! Elements are processed in groups of a fixed width, which LLVM turns into whole vectors. The tail is padded to one
//! more group, so that sixteen elements cost one vector step instead of sixteen scalar ones. The padding repeats an
//! element of the data, so a closure never sees a value that does not occur there. Groups and tail share one loop: this
//! is the most instantiated code of the program, and a function with one call site is inlined.
#![allow(unsafe_code, reason = "slices over memory that the loops have locked")]

use std::hint::black_box;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::element::Element;
use crate::simd::{self, Kernel, Sets};

/// Elements per group if an element has four or more bytes.
pub(super) const WIDE: usize = 16;
/// Elements per group for smaller elements.
pub(super) const NARROW: usize = 64;

/// A function of one element: a closure, or a type of its own, whose method is inlined into loops however large it is.
///
/// A function may have a cheaper version for most arguments ([`Map::near`]) and a measure that tells whether it applies
/// ([`Map::reach`]). Loops evaluate the cheaper version and recompute a span of elements in full if one of them was out
/// of its range.
pub trait Map<A, R>: Copy + Sync {
    /// [`Map::near`] equals [`Map::at`] for arguments whose reach is below this limit; 0 if there is no cheaper
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
    fn reach(self, _: A) -> u32 {
        0
    }
    /// Returns the value for an argument whose reach is below [`Map::LIMIT`]; unspecified for other arguments.
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
            furthest = furthest.max(f.reach(a));
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

/// Writes the kernel of one, two or three inputs. `block_kernel! { binary, Binary, Map2, a: A / xs, x; b: B / ys, y }` expands
/// to
///
/// ```text
/// struct Binary<'a, A: Element, B: Element, R: Element, F> { operands: &'a [*mut u8], n: usize, f: F, … }
///
/// impl<A: Element, B: Element, R: Element, F: Map2<A, B, R>> Binary<'_, A, B, R, F> {
///     fn plain(out: &mut [MaybeUninit<R::Raw>], a: &[A::Raw], b: &[B::Raw], f: F) {
///         let n = out.len();
///         let (a, b) = (&a[..n], &b[..n]);
///         for i in 0..n {
///             out[i].write(f.at(A::from_raw(a[i]), B::from_raw(b[i])).to_raw());
///         }
///     }
///     // `groups` calls `plain` for whole groups, and once more for the rest, padded in `xs` and `ys`
/// }
///
/// impl<…> Kernel for Binary<'_, A, B, R, F> { … }
///
/// pub(super) unsafe fn binary<A: Element, B: Element, R: Element>(
///     operands: &[*mut u8],
///     n: usize,
///     f: impl Map2<A, B, R>,
/// ) {
///     simd::run(Binary { operands, n, f, elements: PhantomData });
/// }
/// ```
macro_rules! block_kernel {
    ($(#[$doc:meta])* $name:ident, $kernel:ident, $map:ident, $($input:ident: $type:ident / $array:ident, $from:ident);+
        $(, $guarded:ident of $only:ident)?) => {
        struct $kernel<'a, $($type: Element,)+ R: Element, F> {
            /// Pointers to the output and the inputs. The slice is kept as it is: the compiler would copy the pointers
            /// in pairs, and such wide loads stall on the narrow stores that have just written them.
            operands: &'a [*mut u8],
            n: usize,
            f: F,
            elements: PhantomData<fn($($type),+) -> R>,
        }

        impl<$($type: Element,)+ R: Element, F: $map<$($type,)+ R>> $kernel<'_, $($type,)+ R, F> {
            /// The loop that LLVM vectorizes. Slices as arguments carry the information that nothing overlaps.
            #[inline(always)]
            fn plain(out: &mut [MaybeUninit<R::Raw>], $($input: &[$type::Raw],)+ f: F) {
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

            /// Pointers to the result and the arguments.
            #[inline(always)]
            fn pointers(&self) -> (*mut R::Raw, $(*const $type::Raw),+) {
                let &[out, $($input,)+ ..] = self.operands else {
                    unreachable!("invariant: an operand for the result and one for each argument")
                };
                (out.cast(), $($input.cast()),+)
            }

            /// # Safety
            /// As for the function that this macro defines.
            #[inline(always)]
            unsafe fn groups<const W: usize>(self) {
                let ((out, $($input),+), n, f) = (self.pointers(), self.n, self.f);
                let whole = n & !(W - 1);
                let rest = n - whole;
                let mut results = [const { MaybeUninit::<R::Raw>::uninit() }; W];
                $(let mut $array = [const { MaybeUninit::<$type::Raw>::uninit() }; W];)+
                let (mut at, mut len, mut padded) = (out, whole, whole == 0);
                $(let mut $from = $input;)+
                // SAFETY: `n` elements are in bounds of every pointer, and the output overlaps no input (the caller's
                // contract). `whole + rest == n`, and `rest < W`, the length of the arrays. The arrays are filled
                // before they are read.
                unsafe {
                    loop {
                        if padded {
                            if rest == 0 {
                                break;
                            }
                            $($array.fill(MaybeUninit::new(*$input.add(whole)));
                            std::ptr::copy_nonoverlapping($input.add(whole), $array.as_mut_ptr().cast(), rest);
                            $from = $array.as_ptr().cast();)+
                            (at, len) = (results.as_mut_ptr().cast(), W);
                        }
                        Self::plain(
                            std::slice::from_raw_parts_mut(at.cast(), len),
                            $(std::slice::from_raw_parts($from, len),)+
                            f,
                        );
                        if padded {
                            std::ptr::copy_nonoverlapping(results.as_ptr().cast(), out.add(whole), rest);
                            break;
                        }
                        padded = true;
                    }
                }
            }
        }

        impl<$($type: Element,)+ R: Element, F: $map<$($type,)+ R>> Kernel for $kernel<'_, $($type,)+ R, F> {
            type Output = ();
            const SETS: Sets = Sets::of(&[$($type::DTYPE),+]);

            #[inline(always)]
            fn run(self) {
                let wide = size_of::<R>() >= 4 $(|| size_of::<$type>() >= 4)+;
                // SAFETY: the contract of the function that made this kernel.
                unsafe {
                    if wide { self.groups::<WIDE>() } else { self.groups::<NARROW>() }
                }
            }

            #[inline(always)]
            fn run_small(self) {
                let (out, $($input),+) = self.pointers();
                for i in 0..self.n {
                    // Not vectorized: `black_box` makes the index opaque to the compiler.
                    let i = black_box(i);
                    // SAFETY: as above; `i < n`.
                    unsafe {
                        let result = self.f.at($($type::from_raw(*$input.add(i))),+);
                        out.add(i).write(result.to_raw());
                    }
                }
            }
        }

        $(#[$doc])*
        ///
        /// # Safety
        /// `operands` has a pointer for the output and one for each input. Each pointer is aligned for its element type
        /// and valid for `n` contiguous elements during the call: inputs for reads, the output for writes. The output
        /// overlaps no input, and no other thread accesses it.
        #[inline]
        pub(super) unsafe fn $name<$($type: Element,)+ R: Element>(
            operands: &[*mut u8],
            n: usize,
            f: impl $map<$($type,)+ R>,
        ) {
            simd::run($kernel { operands, n, f, elements: PhantomData::<fn($($type),+) -> R> });
        }
    };
}

block_kernel! {
    /// `out[i] = f(a[i])`.
    unary, Unary, Map, a: A / xs, x, guarded of a
}
block_kernel! {
    /// `out[i] = f(a[i], b[i])`.
    binary, Binary, Map2, a: A / xs, x; b: B / ys, y
}
block_kernel! {
    /// `out[i] = f(a[i], b[i], c[i])`.
    ternary, Ternary, Map3, a: A / xs, x; b: B / ys, y; c: C / zs, z
}
