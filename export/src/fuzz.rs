//! Entry points for fuzzing: total functions of bytes that must not panic, hang or use excessive memory.

use std::sync::Arc;

use flambeau_ir::Registry;

use crate::call::CallSpec;
use crate::container::Limits;
use crate::lower::lower;
use crate::model::ProgramModel;
use crate::print::{Style, dot_text, graph_text, program_text};
use crate::read::{ReadOptions, read, read_program};
use crate::verify::{Strictness, violations};

/// Reads `data` as a file with default limits and uses the program. Returns true if it is valid.
pub fn fuzz_file(data: &[u8], registry: &Arc<Registry>) -> bool {
    read(data, &ReadOptions::default()).is_ok_and(|program| use_program(&program, registry))
}

/// As [`fuzz_file`], with `data` as the JSON text of a program without weights.
pub fn fuzz_program(data: &[u8], registry: &Arc<Registry>) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    read_program(text, &Limits::default()).is_ok_and(|program| use_program(&program, registry))
}

/// Verifies and prints a program and lowers it. Returns true if it is valid.
///
/// # Panics
/// Panics if a valid program cannot be printed, which is a defect that fuzzing must find.
pub fn use_program(program: &ProgramModel, registry: &Arc<Registry>) -> bool {
    /// Number of violations that are listed.
    const LISTED: usize = 16;
    let valid = violations(program, registry, Strictness::Full, LISTED).is_empty();
    let texts = [
        graph_text(program, registry),
        program_text(program, Style::of(program.schema_version), registry),
        dot_text(program, registry),
    ];
    assert!(!valid || texts.iter().all(Result::is_ok), "a valid program has texts");
    let call = CallSpec::new(program);
    lower(program, registry, &|_| Ok(None)).is_ok() && call.is_ok() && valid
}
