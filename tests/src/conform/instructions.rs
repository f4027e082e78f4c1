//! Executed instructions by opcode and by pair in sequence, over the cases of a suite. Combinations of instructions are chosen from
//! these counts.
//!
//! A case has the weight 1: what counts is the share of an opcode or pair among the instructions that the calls of the case
//! execute, so that one long loop does not decide.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use flambeau::exec::{CodeCounts, InstructionCounts};

/// Executions by opcode (`IAdd`) and by pair (`ListGetI IAdd`).
#[derive(Default)]
pub struct Executions(BTreeMap<String, u64>);

impl Executions {
    /// Adds the counts of calls.
    pub fn add(&mut self, counts: &InstructionCounts) {
        counts.entries().iter().for_each(|code| self.add_code(code));
    }

    fn add_code(&mut self, code: &CodeCounts) {
        let mut executed = code.code.instrs().iter().zip(&code.counts).peekable();
        while let Some((instr, &count)) = executed.next() {
            *self.0.entry(format!("{:?}", instr.op)).or_default() += count;
            // The second of two instructions may also be the target of a jump: the pair is executed at most as often as either.
            if let Some(&(next, &next_count)) = executed.peek()
                && instr.op.falls_through()
            {
                *self.0.entry(format!("{:?} {:?}", instr.op, next.op)).or_default() += count.min(next_count);
            }
        }
    }

    /// Returns the counts as the text that [`Executions::parse`] reads.
    pub fn to_text(&self) -> String {
        let executed = self.0.iter().filter(|(_, count)| **count > 0);
        executed.map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>().join(";")
    }

    /// Parses a text made by [`Executions::to_text`].
    pub fn parse(text: &str) -> Executions {
        let counts = text.split(';').filter_map(|entry| {
            let (name, count) = entry.split_once('=')?;
            Some((name.to_string(), count.parse().ok()?))
        });
        Executions(counts.collect())
    }
}

/// The executions of several cases.
#[derive(Default)]
pub struct Shares {
    cases: usize,
    sums: BTreeMap<String, Sum>,
}

/// The sum over cases for one opcode or pair.
#[derive(Clone, Copy, Default)]
struct Sum {
    shares: f64,
    cases: usize,
    executions: u64,
}

impl Shares {
    /// Adds the executions of a case.
    pub fn add(&mut self, executions: &Executions) {
        let singles = executions.0.iter().filter(|(name, _)| !name.contains(' '));
        let all: u64 = singles.map(|(_, count)| count).sum();
        self.cases += usize::from(all > 0);
        for (name, &count) in &executions.0 {
            let sum = self.sums.entry(name.clone()).or_default();
            sum.shares += count as f64 / all.max(1) as f64;
            sum.cases += 1;
            sum.executions += count;
        }
    }

    /// Appends the opcodes and pairs with the largest shares.
    pub fn write(&self, rows: usize, text: &mut String) {
        for (title, is_pair) in [("instruction", false), ("pair", true)] {
            let mut sums: Vec<_> =
                self.sums.iter().filter(|(name, _)| name.contains(' ') == is_pair).collect();
            sums.sort_by(|a, b| b.1.shares.total_cmp(&a.1.shares));
            if !sums.is_empty() {
                let _ = writeln!(text, "  {:>7} {:>7} {:>11}  {title}", "share %", "cases", "executions");
            }
            for (name, Sum { shares, cases, executions }) in sums.into_iter().take(rows) {
                let share = 100.0 * shares / self.cases.max(1) as f64;
                let _ = writeln!(text, "  {share:7.2} {cases:7} {executions:11}  {name}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_have_equal_weight() {
        let mut shares = Shares::default();
        shares.add(&Executions::parse("IAdd=3;Ret=1;IAdd Ret=1"));
        shares.add(&Executions::parse("Ret=1000"));
        let mut text = String::new();
        shares.write(9, &mut text);
        assert!(text.contains("62.50       2        1001  Ret"), "{text}");
        assert!(text.contains("37.50       1           3  IAdd"), "{text}");
        assert!(text.contains("12.50       1           1  IAdd Ret"), "{text}");
    }

    #[test]
    fn counts_round_trip() {
        let text = "IAdd=3;IAdd Ret=1;Ret=1";
        assert_eq!(Executions::parse(text).to_text(), text);
    }
}
