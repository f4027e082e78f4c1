//! Numbers of executions of the instructions that a run executes, by code.
//!
//! The host of a run owns the table ([`Host::set_instruction_counts`](crate::Host::set_instruction_counts)). Unlike timing, counting
//! does not change what the machine executes, except that tasks run at their forks. Counting is a separate instance of the
//! interpreter loop, so a run without it pays a test of a pointer per entry of a frame.

use crate::bytecode::Code;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// The counts of one code.
#[derive(Clone)]
pub struct CodeCounts {
    /// The code.
    pub code: Arc<Code>,
    /// Per instruction, the number of executions.
    pub counts: Vec<u64>,
}

/// Counts by code, in the order of the first execution. See the [module](self).
#[derive(Default)]
pub struct InstructionCounts {
    entries: Vec<CodeCounts>,
    /// Positions in `entries`, by the address of the code, which the entry keeps alive.
    by_code: HashMap<usize, usize, FxBuildHasher>,
}

impl InstructionCounts {
    /// Creates an empty table.
    #[must_use]
    pub fn new() -> InstructionCounts {
        InstructionCounts::default()
    }

    /// Returns the counts.
    #[must_use]
    pub fn entries(&self) -> &[CodeCounts] {
        &self.entries
    }

    /// Takes the counts of a code out of the table while its instructions run.
    pub(crate) fn take(&mut self, code: &Arc<Code>) -> Vec<u64> {
        let at = *self.by_code.entry(Arc::as_ptr(code) as usize).or_insert_with(|| {
            self.entries.push(CodeCounts { code: Arc::clone(code), counts: Vec::new() });
            self.entries.len() - 1
        });
        let mut counts = std::mem::take(&mut self.entries[at].counts);
        counts.resize(code.instrs.len(), 0);
        counts
    }

    /// Adds counts to those of a code. While they were taken out, the host may have run the code again.
    pub(crate) fn add(&mut self, code: &Arc<Code>, mut counts: Vec<u64>) {
        let Some(&at) = self.by_code.get(&(Arc::as_ptr(code) as usize)) else { return };
        let entry = &mut self.entries[at];
        counts.iter_mut().zip(&entry.counts).for_each(|(count, more)| *count += more);
        entry.counts = counts;
    }
}
