//! Fills, copies and casts of memory, of which parts may be uninitialized.
//!
//! The C library's functions are the fastest, with one exception: from 2 KiB on, glibc uses string instructions
//! (`rep movsb`, `rep stosb`), which pay only for long ranges. Ranges that fit the L1 cache are therefore processed in
//! pieces below that limit, which takes a third less time for 16 KiB.
#![allow(unsafe_code, reason = "writes raw memory")]

use std::hint::black_box;
use std::mem::MaybeUninit;

use bytemuck::Pod;

/// Ranges up to this size in bytes are processed in pieces: source and target together fit the L1 cache.
pub(crate) const CACHED_COPY_BYTES: usize = 16 << 10;
/// Bytes per piece: a multiple of the cache line.
pub(crate) const PIECE: usize = 1536;

/// Calls `each` with the offset and the length of every piece of a range.
#[inline(always)]
fn by_pieces(bytes: usize, each: impl Fn(usize, usize)) {
    if bytes <= PIECE || bytes > CACHED_COPY_BYTES {
        return each(0, bytes);
    }
    // Hidden from LLVM, which would merge the pieces into one call again.
    let piece = black_box(PIECE);
    let mut at = 0;
    while at < bytes {
        each(at, piece.min(bytes - at));
        at += piece;
    }
}

/// Zeroes `bytes` bytes from `to` on.
///
/// # Safety
/// `to` is valid for writes of `bytes` bytes, all of one allocation.
#[inline]
pub(crate) unsafe fn zero(to: *mut u8, bytes: usize) {
    // SAFETY: pieces are within the range: `at + piece <= bytes`. The rest is the caller's contract.
    by_pieces(bytes, |at, piece| unsafe { to.add(at).write_bytes(0, piece) });
}

/// Copies `from` to `to`, which must have the same length.
///
/// # Panics
/// Panics if the lengths differ.
#[inline]
pub(crate) fn copy(from: &[u8], to: &mut [MaybeUninit<u8>]) {
    assert!(from.len() == to.len(), "invariant: both ranges have the same length");
    let (bytes, from, to) = (from.len(), from.as_ptr(), to.as_mut_ptr().cast::<u8>());
    // SAFETY: pieces are within both ranges, which have equal lengths; `to` is borrowed exclusively, so they do not
    // overlap.
    by_pieces(bytes, |at, piece| unsafe { from.add(at).copy_to_nonoverlapping(to.add(at), piece) });
}

/// Returns memory that may be uninitialized as elements of another type.
///
/// # Panics
/// Panics if the memory is not aligned for them, or not whole elements.
#[inline(always)]
pub(crate) fn cast_uninit<A: Pod, B: Pod>(memory: &mut [MaybeUninit<A>]) -> &mut [MaybeUninit<B>] {
    let (start, bytes) = (memory.as_mut_ptr().cast::<MaybeUninit<B>>(), size_of_val(memory));
    let whole = start.is_aligned() && bytes.is_multiple_of(size_of::<B>());
    assert!(whole, "invariant: memory consists of aligned elements");
    // SAFETY: pointer, length and alignment: asserted above, in memory that is borrowed exclusively for the result's
    // lifetime. Elements of either type may be uninitialized.
    unsafe { std::slice::from_raw_parts_mut(start, bytes / size_of::<B>()) }
}

/// Writes zeros to all elements and returns them.
#[inline(always)]
pub(crate) fn zeroed<T: Pod>(elements: &mut [MaybeUninit<T>]) -> &mut [T] {
    elements.fill(MaybeUninit::zeroed());
    // SAFETY: every element was just written, and zero bytes are a value of any plain type.
    unsafe { elements.assume_init_mut() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_all_lengths_are_copied() {
        for n in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7, CACHED_COPY_BYTES, CACHED_COPY_BYTES + 1]
        {
            let from: Vec<u8> = (0..n).map(|i| (i % 251) as u8).collect();
            let mut buffer = vec![MaybeUninit::new(255); n + 1];
            copy(&from, &mut buffer[..n]);
            // SAFETY: all bytes were initialized by `vec!`.
            let mut to: Vec<u8> = buffer.iter().map(|byte| unsafe { byte.assume_init() }).collect();
            assert!(to[..n] == from && to[n] == 255, "{n}");
            // SAFETY: `n` is within the vector's length.
            unsafe { zero(to.as_mut_ptr(), n) };
            assert!(to[..n].iter().all(|b| *b == 0) && to[n] == 255, "{n}");
        }
    }
    #[test]
    fn casts_are_of_whole_aligned_elements() {
        let mut array = [MaybeUninit::<u64>::uninit(); 3];
        assert_eq!(zeroed(cast_uninit::<u64, u16>(&mut array)), [0; 12]);
        let bytes = cast_uninit::<u64, u8>(&mut array);
        assert_eq!(cast_uninit::<u8, u32>(&mut bytes[4..20]).len(), 4);
        for range in [1..5, 0..6] {
            let mut bytes = [MaybeUninit::new(0u64); 1];
            let cast = std::panic::catch_unwind(move || {
                cast_uninit::<u8, u32>(&mut cast_uninit::<u64, u8>(&mut bytes)[range]).len()
            });
            assert!(cast.is_err());
        }
    }
}
