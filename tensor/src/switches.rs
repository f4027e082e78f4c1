//! Switches for tests and measurements: environment variables, read once per process.
//!
//! | variable | values | meaning |
//! |---|---|---|
//! | `FLAMBEAU_ISA` | `avx512`, `avx2`, `baseline` | the instruction set that kernels use ([`crate::simd`]) |
//! | `FLAMBEAU_THREADS` | a number from 1 | threads for a loop where the caller of [`crate::threads::with`] sets no number |
//! | `FLAMBEAU_GUARD` | `end`, `begin` | guarded memory, in builds with debug assertions (`guard.rs`) |
//!
//! A variable that cannot be honoured is an error of [`check`] and never ignored: an unknown word, an instruction set
//! that the processor lacks, or guarded memory in a build without debug assertions. So a test run for AVX2 cannot
//! silently use another instruction set. Programs call [`check`] when they start; [`get`] panics with the same message.

use std::sync::OnceLock;

use crate::error::{Result, TensorError};
use crate::guard::BlockEnd;
use crate::simd::{self, Isa};

/// The settings from the environment; `None` for variables that are not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    pub(crate) isa: Option<Isa>,
    pub(crate) threads: Option<usize>,
    pub(crate) guard: Option<BlockEnd>,
}

static SWITCHES: OnceLock<Result<Switches>> = OnceLock::new();

fn read() -> &'static Result<Switches> {
    SWITCHES.get_or_init(|| {
        parse(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    })
}

/// Checks the variables in the environment.
///
/// # Errors
/// Returns [`TensorError::Value`] if a variable cannot be honoured; the message has the variable, its value and the
/// accepted values.
pub fn check() -> Result<()> {
    read().clone().map(|_| ())
}

/// Returns the settings.
///
/// # Panics
/// Panics if a variable cannot be honoured.
pub(crate) fn get() -> Switches {
    match read() {
        Ok(switches) => *switches,
        Err(error) => panic!("{error}"),
    }
}

fn parse(variable: impl Fn(&str) -> Option<String>) -> Result<Switches> {
    let isa = match variable("FLAMBEAU_ISA").as_deref() {
        None | Some("") => None,
        Some("baseline") => Some(Isa::Baseline),
        Some("avx2") => Some(Isa::Avx2),
        Some("avx512") => Some(Isa::Avx512),
        Some(other) => return Err(unknown("FLAMBEAU_ISA", other, "`avx512`, `avx2` or `baseline`")),
    };
    if let Some(wanted) = isa
        && wanted > simd::supported()
    {
        let best = simd::supported();
        let text = format!("FLAMBEAU_ISA requires {wanted:?}, but this processor supports at most {best:?}");
        return Err(TensorError::Value(text));
    }
    let threads = match variable("FLAMBEAU_THREADS") {
        Some(text) if !text.is_empty() => match text.parse() {
            Ok(count) if count > 0 => Some(count),
            _ => return Err(unknown("FLAMBEAU_THREADS", &text, "a number from 1")),
        },
        _ => None,
    };
    let guard = match variable("FLAMBEAU_GUARD").as_deref() {
        None | Some("") => None,
        Some("end") => Some(BlockEnd::End),
        Some("begin") => Some(BlockEnd::Begin),
        Some(other) => return Err(unknown("FLAMBEAU_GUARD", other, "`end` or `begin`")),
    };
    if guard.is_some() && !crate::guard::AVAILABLE {
        let text = "FLAMBEAU_GUARD requires a Unix build with debug assertions";
        return Err(TensorError::Value(text.to_owned()));
    }
    Ok(Switches { isa, threads, guard })
}

fn unknown(name: &str, value: &str, expected: &str) -> TensorError {
    TensorError::Value(format!("{name} is `{value}`; expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> Result<Switches> {
        parse(move |requested| (requested == name).then(|| value.to_owned()))
    }

    #[test]
    fn switches_apply_or_are_refused() {
        assert_eq!(parse(|_| None).unwrap(), Switches::default());
        assert_eq!(with("FLAMBEAU_ISA", "baseline").unwrap().isa, Some(Isa::Baseline));
        assert_eq!(with("FLAMBEAU_THREADS", "2").unwrap().threads, Some(2));
        for (name, value) in
            [("FLAMBEAU_ISA", "sse9"), ("FLAMBEAU_THREADS", "0"), ("FLAMBEAU_GUARD", "middle")]
        {
            let error = with(name, value).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }

    #[test]
    fn an_unsupported_instruction_set_is_an_error() {
        for (word, isa) in [("avx2", Isa::Avx2), ("avx512", Isa::Avx512)] {
            match with("FLAMBEAU_ISA", word) {
                Ok(switches) => assert!(switches.isa == Some(isa) && isa <= simd::supported()),
                Err(error) => {
                    assert!(isa > simd::supported() && error.to_string().contains("this processor"));
                }
            }
        }
    }
}
