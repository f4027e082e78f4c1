//! Runs of bytes set or copied.
//!
//! The system's functions do it best, with one exception: from some size on (two KiB of glibc) they turn to instructions for
//! strings, which pay for long runs only. What lies in the nearest memory goes by pieces below that: a third less time for
//! 16 KiB.
#![allow(unsafe_code, reason = "writes raw memory")]

use std::hint::black_box;
use std::mem::MaybeUninit;

/// Runs up to this size go by pieces: with what they are copied from they lie in the nearest memory.
pub(crate) const NEAR: usize = 16 << 10;
/// The pieces: whole lines of the cache.
pub(crate) const PIECE: usize = 1536;

/// Does something for the pieces of a run: for where each begins, and its length.
#[inline(always)]
fn by_pieces(bytes: usize, each: impl Fn(usize, usize)) {
    if bytes <= PIECE || bytes > NEAR {
        return each(0, bytes);
    }
    // Hidden from LLVM, which would make one run of them again.
    let piece = black_box(PIECE);
    let mut at = 0;
    while at < bytes {
        each(at, piece.min(bytes - at));
        at += piece;
    }
}

/// Zeros a run.
///
/// # Safety
/// So many bytes from `to` on lie in one allocation, and may be written.
#[inline]
pub(crate) unsafe fn zero(to: *mut u8, bytes: usize) {
    // SAFETY: pieces lie within the run, `at + piece <= bytes`; the rest is the caller's word.
    by_pieces(bytes, |at, piece| unsafe { to.add(at).write_bytes(0, piece) });
}

/// Copies a run to one as long. Panics if it is not.
#[inline]
pub(crate) fn copy(from: &[u8], to: &mut [MaybeUninit<u8>]) {
    assert!(from.len() == to.len(), "invariant: both runs are as long as each other");
    let (bytes, from, to) = (from.len(), from.as_ptr(), to.as_mut_ptr().cast::<u8>());
    // SAFETY: pieces lie within both runs, which are borrowed, the second exclusively.
    by_pieces(bytes, |at, piece| unsafe { from.add(at).copy_to_nonoverlapping(to.add(at), piece) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_all_lengths_are_whole() {
        for n in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7, NEAR, NEAR + 1] {
            let from: Vec<u8> = (0..n).map(|i| (i % 251) as u8).collect();
            let mut buffer = vec![MaybeUninit::new(255); n + 1];
            copy(&from, &mut buffer[..n]);
            // SAFETY: all were there before.
            let mut to: Vec<u8> = buffer.iter().map(|byte| unsafe { byte.assume_init() }).collect();
            assert!(to[..n] == from && to[n] == 255, "{n}");
            // SAFETY: as many bytes as there are.
            unsafe { zero(to.as_mut_ptr(), n) };
            assert!(to[..n].iter().all(|b| *b == 0) && to[n] == 255, "{n}");
        }
    }
}
