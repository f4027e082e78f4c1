//! Guarded memory: every block is a separate mapping that ends, or begins, at an inaccessible page.
//!
//! A read or write one byte past that edge ends the process with SIGSEGV, however it was compiled (inline assembly,
//! vector intrinsics, foreign code). The bytes on the block's other side, up to the border of its page, hold a pattern
//! that is checked when the block is released, so writes past that side are found as well. Fresh blocks are filled with
//! a pattern, so that a read before the first write yields a wrong value. Released blocks become inaccessible, and
//! their addresses are not reused for a while, so that a use after release faults.
//!
//! The mode is off unless `FLAMBEAU_GUARD` is `end` or `begin`. It exists only in builds with debug assertions; a
//! release build contains none of this code. It is not a cargo feature, because a feature would need a second build of
//! every crate for each run of the tests.
//!
//! A block of n bytes is aligned to the largest power of two that divides n, up to 64. So elements of any type whose
//! size divides n are aligned, and no byte is between the block and its edge.
#![allow(unsafe_code, reason = "maps memory and makes pages inaccessible")]

/// The border of a block that is at an inaccessible page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockEnd {
    /// The byte behind the last.
    End,
    /// The byte before the first.
    Begin,
}

/// Whether this build has guarded memory.
pub(crate) const AVAILABLE: bool = cfg!(all(debug_assertions, unix));

#[cfg(all(debug_assertions, unix))]
pub(crate) use mapped::{edge, map, unmap};

/// The guarded edge of blocks; always `None` in this build.
#[cfg(not(all(debug_assertions, unix)))]
#[inline(always)]
pub(crate) const fn edge() -> Option<BlockEnd> {
    None
}

/// Maps no block.
#[cfg(not(all(debug_assertions, unix)))]
#[inline(always)]
pub(crate) const fn map(_: BlockEnd, _: usize, _: bool) -> Option<std::ptr::NonNull<u8>> {
    None
}

/// Releases no block, because this build has none.
///
/// # Safety
/// There are no requirements.
#[cfg(not(all(debug_assertions, unix)))]
#[inline(always)]
pub(crate) const unsafe fn unmap(_: std::ptr::NonNull<u8>) {}

#[cfg(all(debug_assertions, unix))]
mod mapped {
    use std::collections::{BTreeMap, VecDeque};
    use std::ptr::NonNull;
    use std::sync::OnceLock;

    use parking_lot::Mutex;

    use super::BlockEnd;
    use crate::switches;

    /// Maximum number of guarded blocks at one time. A mapping takes two entries in the kernel's table of at most
    /// 65,530 (Linux); further blocks are ordinary ones.
    const MAX_GUARDED_BLOCKS: usize = 24_000;
    /// Number of released mappings that stay inaccessible before their addresses may be reused.
    const QUARANTINED_MAPPINGS: usize = 1024;
    /// Bytes at either end of a block that are filled with the pattern: all bytes, except for huge blocks.
    const FILLED_BYTES: usize = 32 << 20;
    /// The byte around a block within its pages.
    const CANARY: u8 = 0xC5;

    /// Returns the byte that fills fresh blocks. With one edge it is NaN in every float type. With the other it is a
    /// large finite number in every type, which is not hidden by comparisons that treat NaN as equal.
    fn pattern(edge: BlockEnd) -> u8 {
        match edge {
            BlockEnd::End => 0xFF,
            BlockEnd::Begin => 0x7B,
        }
    }

    /// The mapping of a block.
    #[derive(Clone, Copy)]
    struct Region {
        base: usize,
        /// Mapped bytes, including the inaccessible page.
        mapped: usize,
        /// Bytes of the block.
        bytes: usize,
    }

    #[derive(Default)]
    struct Regions {
        /// Regions in use, by the address of the block.
        live: BTreeMap<usize, Region>,
        released: VecDeque<Region>,
    }

    static REGIONS: Mutex<Regions> = Mutex::new(Regions { live: BTreeMap::new(), released: VecDeque::new() });

    /// Returns the edge at which blocks are guarded, if they are.
    #[inline]
    pub(crate) fn edge() -> Option<BlockEnd> {
        static EDGE: OnceLock<Option<BlockEnd>> = OnceLock::new();
        *EDGE.get_or_init(|| switches::get().guard)
    }

    fn page() -> usize {
        static PAGE: OnceLock<usize> = OnceLock::new();
        // SAFETY: `sysconf` has no preconditions.
        *PAGE.get_or_init(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize)
    }

    /// Maps a guarded block of `bytes` bytes, zeroed or filled with the pattern. Returns `None` if the system refuses
    /// or too many blocks are guarded already.
    pub(crate) fn map(edge: BlockEnd, bytes: usize, zeroed: bool) -> Option<NonNull<u8>> {
        if REGIONS.lock().live.len() >= MAX_GUARDED_BLOCKS {
            return None;
        }
        let page = page();
        let usable = bytes.checked_next_multiple_of(page)?;
        let mapped = usable.checked_add(page)?;
        // SAFETY: a fresh anonymous mapping at an address that the system chooses; it replaces no other mapping.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return None;
        }
        let base = base.cast::<u8>();
        let (first, start) = match edge {
            BlockEnd::End => (0, usable - bytes),
            BlockEnd::Begin => (page, page),
        };
        // SAFETY: `first..first + usable` and the block `start..start + bytes` are within the mapping, and this
        // function has the only pointers to it. Pages are made writable before they are written.
        unsafe {
            if usable > 0
                && libc::mprotect(base.add(first).cast(), usable, libc::PROT_READ | libc::PROT_WRITE) != 0
            {
                libc::munmap(base.cast(), mapped);
                return None;
            }
            base.add(first).write_bytes(CANARY, start - first);
            base.add(start + bytes).write_bytes(CANARY, first + usable - start - bytes);
            if !zeroed {
                base.add(start).write_bytes(pattern(edge), bytes.min(FILLED_BYTES));
                let rest = bytes.saturating_sub(FILLED_BYTES).min(FILLED_BYTES);
                base.add(start + bytes - rest).write_bytes(pattern(edge), rest);
            }
            let block = NonNull::new_unchecked(base.add(start));
            let region = Region { base: base as usize, mapped, bytes };
            REGIONS.lock().live.insert(block.as_ptr() as usize, region);
            Some(block)
        }
    }

    /// Releases a block of [`map`]: its pages become inaccessible.
    ///
    /// Aborts the process if there is no such block (released twice, or not from [`map`]), or if the bytes around it
    /// were written.
    ///
    /// # Safety
    /// No reference into the block is used afterwards.
    pub(crate) unsafe fn unmap(block: NonNull<u8>) {
        let start = block.as_ptr() as usize;
        let region = REGIONS.lock().live.remove(&start);
        let Some(region) = region else {
            abort_on_overrun(&format!("block {start:#x} is released but not live"))
        };
        let Region { base, mapped, bytes } = region;
        let page = page();
        let first = if start == base + page { start } else { base };
        let last = first + mapped - page;
        let intact = |from: usize, to: usize| {
            // SAFETY: `from..to` are readable pages of the mapping, which is still in place.
            (from..to).all(|at| unsafe { (at as *const u8).read() } == CANARY)
        };
        if !intact(first, start) {
            abort_on_overrun(&format!("a write before the block of {bytes} bytes at {start:#x}"));
        }
        if !intact(start + bytes, last) {
            abort_on_overrun(&format!("a write behind the block of {bytes} bytes at {start:#x}"));
        }
        // SAFETY: replaces the block's own pages, which are not used any more, with inaccessible ones.
        unsafe {
            libc::mmap(
                base as *mut libc::c_void,
                mapped,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            );
        }
        let mut regions = REGIONS.lock();
        regions.released.push_back(region);
        if regions.released.len() > QUARANTINED_MAPPINGS
            && let Some(oldest) = regions.released.pop_front()
        {
            // SAFETY: a mapping of this module without a live block.
            unsafe { libc::munmap(oldest.base as *mut libc::c_void, oldest.mapped) };
        }
    }

    /// Aborts the process: memory that was written out of bounds cannot be trusted, and a panic could be caught.
    fn abort_on_overrun(what: &str) -> ! {
        eprintln!("guarded memory: {what}\n{}", std::backtrace::Backtrace::force_capture());
        std::process::abort()
    }

    #[cfg(test)]
    mod tests {
        use std::process::Command;

        use super::*;

        /// Set in the process that a test starts to provoke the fault.
        const FAULT: &str = "FLAMBEAU_TEST_FAULT";

        /// Runs this test in a child process that provokes the fault `fault`; returns whether it succeeded, and its
        /// output.
        fn ended_by(test: &str, fault: &str) -> (bool, String) {
            let name = format!("guard::mapped::tests::{test}");
            let exe = std::env::current_exe().unwrap();
            let output = Command::new(exe)
                .args([name.as_str(), "--exact", "--nocapture"])
                .env(FAULT, fault)
                .env("FLAMBEAU_GUARD", "end")
                .output()
                .unwrap();
            (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
        }

        #[test]
        fn an_out_of_bounds_read_ends_the_process() {
            for (fault, edge) in [("end", BlockEnd::End), ("begin", BlockEnd::Begin)] {
                if std::env::var(FAULT).is_ok_and(|f| f == fault) {
                    let block = map(edge, 12, true).unwrap().cast::<f32>();
                    let at = if edge == BlockEnd::End {
                        block.as_ptr().wrapping_add(3)
                    } else {
                        block.as_ptr().wrapping_sub(1)
                    };
                    // SAFETY: none. The read is out of bounds on purpose: the page is inaccessible, so the read faults
                    // and does not return.
                    let read = unsafe { at.read_volatile() };
                    println!("read {read}");
                    return;
                }
            }
            for fault in ["end", "begin"] {
                let (success, text) = ended_by("an_out_of_bounds_read_ends_the_process", fault);
                assert!(!success, "{fault}: {text}");
            }
        }

        #[test]
        fn an_out_of_bounds_vector_read_ends_the_process() {
            let fault = std::env::var(FAULT).unwrap_or_default();
            let scratch = crate::scratch::Scratch::<f32>::new(7);
            let storage = crate::Storage::from_bytes(&[0; 28]).unwrap();
            // A strip of seven elements read as a vector of eight, as by a kernel without a loop for the tail.
            let strip = match fault.as_str() {
                "scratch" => scratch.start().at(0).cast_const(),
                // SAFETY: `storage` is the only handle.
                "storage" => unsafe { storage.data() }.cast::<f32>().cast_const(),
                _ => {
                    for fault in ["scratch", "storage"] {
                        let test = "an_out_of_bounds_vector_read_ends_the_process";
                        let (success, text) = ended_by(test, fault);
                        assert!(!success, "{fault}: {text}");
                    }
                    return;
                }
            };
            // SAFETY: none. The eighth element is out of bounds on purpose, on an inaccessible page.
            let sum: f32 = unsafe { strip.cast::<[f32; 8]>().read_unaligned() }.iter().sum();
            println!("read {sum}");
        }

        #[test]
        fn a_write_outside_the_block_is_detected_at_release() {
            if std::env::var_os(FAULT).is_some() {
                let block = map(BlockEnd::Begin, 12, true).unwrap().cast::<f32>();
                // SAFETY: none. The write is out of bounds on purpose, within the block's own page.
                unsafe {
                    block.as_ptr().wrapping_add(3).write_volatile(1.0);
                    unmap(block.cast());
                }
                return;
            }
            let (success, text) = ended_by("a_write_outside_the_block_is_detected_at_release", "write");
            assert!(!success && text.contains("a write behind the block of 12 bytes"), "{text}");
        }

        #[test]
        fn a_block_is_aligned_to_its_edge_and_filled() {
            for edge in [BlockEnd::End, BlockEnd::Begin] {
                for bytes in [0, 1, 2, 12, 48, 4095, 4096, 4100, 70_000] {
                    let block = map(edge, bytes, false).unwrap();
                    let start = block.as_ptr() as usize;
                    match edge {
                        BlockEnd::End => assert_eq!((start + bytes) % page(), 0),
                        BlockEnd::Begin => assert_eq!(start % page(), 0),
                    }
                    let power = if bytes == 0 { 64 } else { 1 << bytes.trailing_zeros().min(6) };
                    assert_eq!(start % power, 0, "{bytes} bytes");
                    // SAFETY: the block has `bytes` bytes, all initialized, and is not used after the release.
                    unsafe {
                        let all = std::slice::from_raw_parts(block.as_ptr(), bytes);
                        assert!(all.iter().all(|b| *b == pattern(edge)));
                        unmap(block);
                    }
                }
                let block = map(edge, 100, true).unwrap();
                // SAFETY: as above.
                unsafe {
                    assert!(std::slice::from_raw_parts(block.as_ptr(), 100).iter().all(|b| *b == 0));
                    unmap(block);
                }
            }
        }
    }
}
