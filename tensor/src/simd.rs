//! One body, compiled for several instruction sets, chosen once per process.
//!
//! A [`Kernel`]'s `run` is `#[inline(always)]`, so its loops are compiled inside functions that enable AVX2 with FMA,
//! or AVX-512, and LLVM vectorizes them for those. Nothing else changes: floating-point results are the same on
//! every instruction set, because Rust never fuses a multiplication and an addition by itself.
//!
//! Compiling a body again for each set is only worth its size where it computes: [`Sets::of`] says where that is.
//!
//! What a body calls must be inlined into it to be vectorized. A closure is called from every instruction set's function,
//! so LLVM leaves a large one outside; a method that is `#[inline(always)]` is not left.
#![allow(unsafe_code, reason = "calls functions compiled for detected processor features")]

use std::sync::atomic::{AtomicU8, Ordering};

use crate::dtype::DType;
use crate::switches;

/// A piece of work whose body is compiled per instruction set.
pub trait Kernel {
    /// What it gives back.
    type Output;
    /// The instruction sets it is compiled for.
    const SETS: Sets;
    /// The body; implement it `#[inline(always)]`.
    fn run(self) -> Self::Output;
    /// The body for processors that have none of the sets it is compiled for beside the architecture's own: few, so that
    /// code that is small serves them better than code that is fast. The same results; `#[inline(always)]` too.
    #[inline(always)]
    fn run_small(self) -> Self::Output
    where
        Self: Sized,
    {
        self.run()
    }
}

/// Which instruction sets a body is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sets {
    /// That of the architecture: for what moves, sorts or branches more than it computes.
    One,
    /// AVX2 too: for loops that memory bounds once they are vectorized, and gathers.
    Two,
    /// AVX-512 too: for arithmetic on floats.
    All,
    /// This set alone: for what has the shape of its registers. Run where [`isa`] gives no other.
    Only(Isa),
}

impl Sets {
    /// The sets that pay for loops over elements of these dtypes: all for f32 and f64, as which halves are
    /// computed; two for integers and truth values; one where anything else takes part, which the compiler hardly
    /// vectorizes.
    pub const fn of(dtypes: &[DType]) -> Sets {
        let mut sets = Sets::All;
        let mut i = 0;
        while i < dtypes.len() {
            match dtypes[i] {
                DType::F32 | DType::F64 => {}
                DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                    sets = Sets::Two
                }
                _ => return Sets::One,
            }
            i += 1;
        }
        sets
    }

    /// As [`Sets::of`], where memory bounds the loops.
    pub const fn two(dtype: DType) -> Sets {
        match Sets::of(&[dtype]) {
            Sets::All => Sets::Two,
            fewer => fewer,
        }
    }
}

/// Instruction sets the bodies are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Isa {
    /// What every processor of the architecture has.
    Baseline = 1,
    /// AVX2 and FMA.
    Avx2 = 2,
    /// AVX-512 F, BW, CD, DQ, VL.
    Avx512 = 3,
}

static ISA: AtomicU8 = AtomicU8::new(0);

/// The instruction set in use.
#[inline]
pub fn isa() -> Isa {
    match ISA.load(Ordering::Relaxed) {
        3 => Isa::Avx512,
        2 => Isa::Avx2,
        1 => Isa::Baseline,
        _ => detect(),
    }
}

/// # Panics
/// If the environment asks for a set that the processor lacks ([`crate::switches::check`] says so without a panic).
#[cold]
fn detect() -> Isa {
    let isa = allowed();
    ISA.store(isa as u8, Ordering::Relaxed);
    isa
}

/// The best set that may be used: the one `FLAMBEAU_ISA` names, else the processor's best.
fn allowed() -> Isa {
    switches::get().isa.unwrap_or_else(supported)
}

/// The best set that the processor has. Features are detected here and nowhere else.
#[cfg(target_arch = "x86_64")]
pub(crate) fn supported() -> Isa {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi2");
    let avx512 = avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx512, avx2) {
        (true, _) => Isa::Avx512,
        (false, true) => Isa::Avx2,
        (false, false) => Isa::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn supported() -> Isa {
    Isa::Baseline
}

/// Uses at most this instruction set from now on, and at most the one that `FLAMBEAU_ISA` names (for tests and
/// measurements); returns what is in use.
pub fn limit_isa(isa: Isa) -> Isa {
    let isa = isa.min(allowed());
    ISA.store(isa as u8, Ordering::Relaxed);
    isa
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[inline(never)]
fn run_baseline<K: Kernel>(kernel: K) -> K::Output {
    // Other architectures have vectors in every processor.
    if const { cfg!(target_arch = "x86_64") && !matches!(K::SETS, Sets::One) } {
        kernel.run_small()
    } else {
        kernel.run()
    }
}

/// Runs a kernel compiled for the best instruction set there is.
#[inline]
pub fn run<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    match isa() {
        Isa::Avx512 if matches!(K::SETS, Sets::All | Sets::Only(Isa::Avx512)) => {
            // SAFETY: `isa` gives this only where the features were detected.
            return unsafe { run_avx512(kernel) };
        }
        Isa::Avx512 | Isa::Avx2 if matches!(K::SETS, Sets::All | Sets::Two | Sets::Only(Isa::Avx2)) => {
            // SAFETY: as above.
            return unsafe { run_avx2(kernel) };
        }
        _ => {}
    }
    if const { matches!(K::SETS, Sets::Only(Isa::Avx2 | Isa::Avx512)) } {
        unreachable!("invariant: what has the shape of an instruction set's registers runs with that set");
    }
    run_baseline(kernel)
}
