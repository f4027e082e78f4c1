//! Facets: kinds of fact about operators, each a Rust type owned by the crate whose mechanism consumes it.
//!
//! The registry stores one dense column per facet type. A consumer fetches a [`Column`] once and then pays one
//! indexed load per node.

use super::{Op, OpId};
use std::any::Any;

/// A kind of fact about an operator.
pub trait Facet: Any + Send + Sync {
    /// The facet's name, for listings and error messages.
    const NAME: &'static str;
}

/// What an operator computes, in one sentence (Markdown); further paragraphs may follow.
#[derive(Clone, Debug)]
pub struct Doc(pub &'static str);

impl Facet for Doc {
    const NAME: &'static str = "doc";
}

/// All facts of one kind, by operator row.
pub struct Column<'r, F> {
    pub(super) cells: &'r [Option<F>],
}

impl<F> Clone for Column<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Column<'_, F> {}

impl<'r, F> Column<'r, F> {
    /// The fact about a row, if it is stated.
    pub fn get(&self, op: OpId) -> Option<&'r F> {
        self.cells.get(op.index())?.as_ref()
    }

    /// The fact about a node's operator, if it has a row and the fact is stated.
    pub fn of(&self, op: Op) -> Option<&'r F> {
        self.get(op.row()?)
    }

    /// Rows that state the fact.
    pub fn iter(&self) -> impl Iterator<Item = (OpId, &'r F)> {
        self.cells.iter().enumerate().filter_map(|(i, f)| Some((OpId(i as u32), f.as_ref()?)))
    }
}
