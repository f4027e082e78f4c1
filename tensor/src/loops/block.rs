//! The kernels over contiguous blocks: the only code that exists once per closure.
//!
//! Elements go in groups of a fixed width, which LLVM turns into whole vectors; the rest is padded (with
//! elements that occur, so a closure never sees a value that is not in the data) and done as one more group, so
//! that sixteen elements cost one vector step instead of sixteen scalar ones.
#![allow(unsafe_code, reason = "slices over memory that the loops have locked")]

use std::mem::MaybeUninit;

use crate::element::Element;
use crate::simd::{self, Kernel};

/// Elements of a group if an element has four or more bytes.
const WIDE: usize = 16;
/// Elements of a group of smaller elements.
const NARROW: usize = 64;

macro_rules! block_kernel {
    ($(#[$doc:meta])* $name:ident, $kernel:ident, $($input:ident: $type:ident / $array:ident),+) => {
        struct $kernel<$($type: Element,)+ R: Element, F> {
            out: *mut R::Raw,
            $($input: *const $type::Raw,)+
            n: usize,
            f: F,
        }

        impl<$($type: Element,)+ R: Element, F: Fn($($type),+) -> R + Copy> $kernel<$($type,)+ R, F> {
            /// The loop that LLVM vectorizes. References as arguments say that nothing overlaps.
            #[inline(always)]
            fn plain(out: &mut [MaybeUninit<R::Raw>], $($input: &[$type::Raw],)+ f: F) {
                let n = out.len();
                $(let $input = &$input[..n];)+
                for i in 0..n {
                    out[i].write(f($($type::from_raw($input[i])),+).to_raw());
                }
            }

            /// # Safety
            /// As for the function.
            #[inline(always)]
            unsafe fn groups<const W: usize>(self) {
                let $kernel { out, $($input,)+ n, f } = self;
                let whole = n & !(W - 1);
                let rest = n - whole;
                // SAFETY: `n` elements are in bounds; the output overlaps no input, by the caller's word.
                unsafe {
                    if whole > 0 {
                        Self::plain(
                            std::slice::from_raw_parts_mut(out.cast(), whole),
                            $(std::slice::from_raw_parts($input, whole),)+
                            f,
                        );
                    }
                    if rest > 0 {
                        $(let mut $array = [*$input.add(whole); W];
                        std::ptr::copy_nonoverlapping($input.add(whole), $array.as_mut_ptr(), rest);)+
                        let mut results = [const { MaybeUninit::<R::Raw>::uninit() }; W];
                        Self::plain(&mut results, $(&$array,)+ f);
                        std::ptr::copy_nonoverlapping(results.as_ptr().cast(), out.add(whole), rest);
                    }
                }
            }
        }

        impl<$($type: Element,)+ R: Element, F: Fn($($type),+) -> R + Copy> Kernel for $kernel<$($type,)+ R, F> {
            type Output = ();

            #[inline(always)]
            fn run(self) {
                let wide = size_of::<R>() >= 4 $(|| size_of::<$type>() >= 4)+;
                // SAFETY: the word given to the function that made this kernel.
                unsafe {
                    if wide { self.groups::<WIDE>() } else { self.groups::<NARROW>() }
                }
            }
        }

        $(#[$doc])*
        ///
        /// # Safety
        /// All pointers are valid for `n` elements, the inputs for reads, the output for writes; the output
        /// overlaps no input.
        #[inline]
        pub(super) unsafe fn $name<$($type: Element,)+ R: Element>(
            out: *mut R::Raw,
            $($input: *const $type::Raw,)+
            n: usize,
            f: impl Fn($($type),+) -> R + Copy,
        ) {
            simd::run($kernel { out, $($input,)+ n, f });
        }
    };
}

block_kernel! {
    /// `out[i] = f(a[i])`.
    unary, Unary, a: A / xs
}
block_kernel! {
    /// `out[i] = f(a[i], b[i])`.
    binary, Binary, a: A / xs, b: B / ys
}
block_kernel! {
    /// `out[i] = f(a[i], b[i], c[i])`.
    ternary, Ternary, a: A / xs, b: B / ys, c: C / zs
}
