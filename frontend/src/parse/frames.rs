//! The stack of unfinished constructs of the expression parser.

use super::brackets::{Comprehension, Index};
use super::expr::{Mode, TERNARY};
use crate::tree::{NameId, SyntaxOp, TreeId};

/// An unfinished construct. `items` is the start of its elements in `Parser::scratch`.
pub(super) enum Frame {
    Base {
        mode: Mode,
        items: usize,
        comma: bool,
    },
    Prefix {
        op: SyntaxOp,
        start: u32,
        bp: u8,
    },
    Star {
        start: u32,
    },
    Infix {
        op: SyntaxOp,
        negated: bool,
        lhs: TreeId,
        bp: u8,
    },
    TernaryCond {
        then: TreeId,
    },
    TernaryElse {
        then: TreeId,
        cond: TreeId,
    },
    Paren {
        start: u32,
        items: usize,
        comma: bool,
    },
    List {
        start: u32,
        items: usize,
    },
    Dict {
        start: u32,
        items: usize,
        has_key: bool,
    },
    Call {
        callee: TreeId,
        items: usize,
        keywords: usize,
        keyword: Option<(NameId, u32)>,
    },
    Index(Index),
    Comp(Comprehension),
    /// `raw`: the f-string being read has the prefix `r`.
    Format {
        start: u32,
        items: usize,
        raw: bool,
    },
}

impl Frame {
    /// Returns the binding power of a frame that lacks its last operand, or `None` for a bracket.
    pub(super) fn power(&self) -> Option<u8> {
        match *self {
            Frame::Star { .. } => Some(0),
            Frame::TernaryElse { .. } => Some(TERNARY),
            Frame::Prefix { bp, .. } | Frame::Infix { bp, .. } => Some(bp),
            _ => None,
        }
    }
}

/// The stack. It keeps the positions of its brackets, because operators query the innermost one, and any number of
/// frames with a binding power may be above it.
#[derive(Default)]
pub(super) struct Frames {
    frames: Vec<Frame>,
    /// Positions of the frames without a binding power, in ascending order.
    brackets: Vec<usize>,
}

impl Frames {
    pub(super) fn push(&mut self, frame: Frame) {
        if frame.power().is_none() {
            self.brackets.push(self.frames.len());
        }
        self.frames.push(frame);
    }

    pub(super) fn pop(&mut self) -> Option<Frame> {
        let frame = self.frames.pop();
        self.forget_brackets();
        frame
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.frames.truncate(len);
        self.forget_brackets();
    }

    fn forget_brackets(&mut self) {
        while self.brackets.last().is_some_and(|&at| at >= self.frames.len()) {
            self.brackets.pop();
        }
    }

    pub(super) fn last(&self) -> Option<&Frame> {
        self.frames.last()
    }

    /// Returns the frame on top, which must keep its variant.
    pub(super) fn last_mut(&mut self) -> Option<&mut Frame> {
        self.frames.last_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns the innermost bracket, or the base frame, around the cursor.
    pub(super) fn bracket(&self) -> Option<&Frame> {
        self.brackets.last().and_then(|&at| self.frames.get(at))
    }
}
