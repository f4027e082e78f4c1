//! Kernels compiled for several instruction sets; the set is chosen once per process.
//!
//! A [`Multiversioned`]'s `run` is `#[inline(always)]`, so its loops are compiled inside functions that enable AVX2 with FMA,
//! or AVX-512, and LLVM vectorizes them for those. Floating-point results of such a body are the same bits on every
//! instruction set, because Rust never contracts a multiplication and an addition by itself. This does not hold for kernels
//! that are written for the registers of one set ([`InstructionSets::Exactly`]): matrix products round once per multiplication and
//! addition where the set has a fused instruction, and select their loops by the width of the registers.
//!
//! Each additional instruction set costs code size, which pays only for kernels that compute: [`InstructionSets::of`] makes the
//! choice by dtype.
//!
//! A function that a body calls must be inlined to be vectorized with it. A closure has a call site in the function of
//! every instruction set, so LLVM does not inline a large one; a method that is `#[inline(always)]` is always inlined.
#![allow(unsafe_code, reason = "calls functions compiled for detected processor features")]

use std::sync::atomic::{AtomicU8, Ordering};

use crate::dtype::DType;
use crate::switches;

/// A computation whose body is compiled per instruction set.
pub trait Multiversioned {
    /// The result type.
    type Output;
    /// The instruction sets that the body is compiled for.
    const SETS: InstructionSets;
    /// Runs the body; implementations are `#[inline(always)]`.
    fn run(self) -> Self::Output;
    /// Runs the body on processors without any of the extensions that it is compiled for. Such processors are rare, so
    /// this version is for small code, not for speed. It returns the same results and is `#[inline(always)]` too.
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
pub enum InstructionSets {
    /// The baseline of the architecture only: for kernels that move, sort or branch more than they compute.
    Baseline,
    /// Also AVX2: for gathers, and for loops that are limited by memory bandwidth once they are vectorized.
    UpToAvx2,
    /// Also AVX-512: for floating-point arithmetic.
    UpToAvx512,
    /// This set only: for kernels written for the shape of its registers. They run only if [`isa`] returns this set.
    Exactly(Isa),
}

impl InstructionSets {
    /// Returns the sets that pay for loops over elements of these dtypes. `UpToAvx512` for f32 and f64 (f16 and bf16 are
    /// computed as f32), `UpToAvx2` for integers and `bool`, `Baseline` if another dtype takes part, because the compiler hardly
    /// vectorizes such loops.
    pub const fn of(dtypes: &[DType]) -> InstructionSets {
        let mut sets = InstructionSets::UpToAvx512;
        let mut i = 0;
        while i < dtypes.len() {
            match dtypes[i] {
                DType::F32 | DType::F64 => {}
                DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                    sets = InstructionSets::UpToAvx2
                }
                _ => return InstructionSets::Baseline,
            }
            i += 1;
        }
        sets
    }

    /// As [`InstructionSets::of`], for loops that are limited by memory bandwidth.
    pub const fn at_most_avx2(dtype: DType) -> InstructionSets {
        match InstructionSets::of(&[dtype]) {
            InstructionSets::UpToAvx512 => InstructionSets::UpToAvx2,
            fewer => fewer,
        }
    }
}

/// Instruction sets the bodies are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Isa {
    /// The features that every processor of the architecture has.
    Baseline = 1,
    /// AVX2 and FMA.
    Avx2 = 2,
    /// AVX-512 F, BW, CD, DQ, VL.
    Avx512 = 3,
}

static ISA: AtomicU8 = AtomicU8::new(0);

/// Returns the instruction set in use.
///
/// # Panics
/// Panics on the first call if `FLAMBEAU_ISA` names a set that the processor lacks ([`crate::switches::check`] returns
/// an error instead).
#[inline]
pub fn isa() -> Isa {
    match ISA.load(Ordering::Relaxed) {
        3 => Isa::Avx512,
        2 => Isa::Avx2,
        1 => Isa::Baseline,
        _ => detect(),
    }
}

/// Detects the instruction set and stores it.
///
/// # Panics
/// Panics if the environment names a set that the processor lacks ([`crate::switches::check`] returns an error
/// instead).
#[cold]
fn detect() -> Isa {
    let isa = allowed();
    ISA.store(isa as u8, Ordering::Relaxed);
    isa
}

/// Returns the best set that may be used: the one that `FLAMBEAU_ISA` names, else the processor's best.
fn allowed() -> Isa {
    switches::get().isa.unwrap_or_else(supported)
}

/// Returns the best set that the processor has. This is the only place where features are detected.
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

/// Limits the instruction set from now on (for tests and measurements) and returns the set in use. The limit that
/// `FLAMBEAU_ISA` names still applies.
pub fn limit_isa(isa: Isa) -> Isa {
    let isa = isa.min(allowed());
    ISA.store(isa as u8, Ordering::Relaxed);
    isa
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx512<K: Multiversioned>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2<K: Multiversioned>(kernel: K) -> K::Output {
    kernel.run()
}

#[inline(never)]
fn run_baseline<K: Multiversioned>(kernel: K) -> K::Output {
    // Vector instructions belong to the baseline of the other architectures.
    if const { cfg!(target_arch = "x86_64") && !matches!(K::SETS, InstructionSets::Baseline) } {
        kernel.run_small()
    } else {
        kernel.run()
    }
}

/// Runs a kernel compiled for the best available instruction set.
///
/// Conditions on [`Multiversioned::SETS`] are `const` blocks: rustc then generates no code for the sets that a kernel is not
/// compiled for, instead of code that LLVM has to remove.
#[inline]
pub fn run<K: Multiversioned>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if const { matches!(K::SETS, InstructionSets::UpToAvx512 | InstructionSets::Exactly(Isa::Avx512)) }
            && isa() == Isa::Avx512
        {
            // SAFETY: `isa` returns this set only if all features that the function enables were detected.
            return unsafe { run_avx512(kernel) };
        }
        if const {
            !matches!(
                K::SETS,
                InstructionSets::Baseline | InstructionSets::Exactly(Isa::Baseline | Isa::Avx512)
            )
        } && isa() >= Isa::Avx2
        {
            // SAFETY: as above.
            return unsafe { run_avx2(kernel) };
        }
    }
    if const { matches!(K::SETS, InstructionSets::Exactly(Isa::Avx2 | Isa::Avx512)) } {
        unreachable!("invariant: a kernel for a single instruction set runs only with that set");
    }
    run_baseline(kernel)
}
