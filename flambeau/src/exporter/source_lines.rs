//! Source lines of nodes, for the `stack_trace` of nodes of an exported program.
//!
//! A trace has one line per active call, and calls in a loop or from several nodes have the same lines, so each is
//! computed once. Starts of lines are indexed per source: finding a line takes logarithmic time.

use flambeau_ir::{Source, SourceRange};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// The lines that have been computed.
#[derive(Default)]
pub(super) struct SourceLines {
    /// By the address of the source and the offset in it. `sources` keeps the sources alive.
    known: HashMap<(usize, u32), SourceLine, FxBuildHasher>,
    sources: HashMap<usize, LineStarts, FxBuildHasher>,
}

/// A line of a file.
#[derive(Clone)]
pub(super) struct SourceLine {
    file: String,
    line: u32,
    code: String,
}

struct LineStarts {
    source: Arc<Source>,
    /// Byte offsets of the starts of lines.
    starts: Vec<u32>,
}

impl SourceLines {
    /// Returns the line of a range, in the original source if the text was generated from one.
    pub(super) fn of(&mut self, range: &SourceRange) -> &SourceLine {
        let key = (Arc::as_ptr(&range.source) as usize, range.range.start);
        let sources = &mut self.sources;
        self.known.entry(key).or_insert_with(|| {
            let own = sources.entry(key.0).or_insert_with(|| LineStarts::of(&range.source));
            match range.original() {
                Some(original) => LineStarts::of(&original.source).line_at(original.range.start),
                None => own.line_at(range.range.start),
            }
        })
    }
}

impl LineStarts {
    fn of(source: &Arc<Source>) -> LineStarts {
        let newlines = source.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at as u32 + 1)).collect();
        LineStarts { source: Arc::clone(source), starts }
    }

    fn line_at(&self, offset: u32) -> SourceLine {
        let index = self.starts.partition_point(|&start| start <= offset).saturating_sub(1);
        let start = self.starts.get(index).map_or(0, |&start| start as usize);
        let rest = self.source.text.get(start..).unwrap_or_default();
        let code = rest.lines().next().unwrap_or_default().trim().to_owned();
        SourceLine { file: self.source.name.clone(), line: self.source.first_line + index as u32, code }
    }
}

impl SourceLine {
    /// Returns the line as an entry of a Python traceback.
    pub(super) fn entry(&self, function: &str) -> String {
        let SourceLine { file, line, code } = self;
        format!("  File \"{file}\", line {line}, in {function}\n    {code}\n")
    }
}
