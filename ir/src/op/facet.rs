//! Facets: kinds of facts about operators. Each is a Rust type owned by the crate that consumes it.
//!
//! The registry stores one column per facet type: an index by row, and a dense vector of the stated facts, since most
//! rows state few. A consumer fetches a [`Column`] once; then a lookup is two indexed loads.

use super::{Op, OpId};
use std::any::Any;

/// A kind of fact about an operator.
pub trait Facet: Any + Send + Sync {
    /// The name of the facet, for listings and error messages.
    const NAME: &'static str;
}

/// Documentation of an operator: one sentence (Markdown) on what it computes; further paragraphs may follow.
#[derive(Clone, Debug)]
pub struct Doc(pub &'static str);

impl Facet for Doc {
    const NAME: &'static str = "doc";
}

/// All facts of one kind, by operator row.
pub struct Column<'r, F> {
    pub(super) cells: Option<&'r Cells<F>>,
}

/// The storage of a column.
pub(super) struct Cells<F> {
    /// By row: index of the fact plus 1, or 0 if no fact is stated. May be shorter than the registry.
    places: Vec<u32>,
    facts: Vec<F>,
}

impl<F> Cells<F> {
    pub(super) fn new() -> Self {
        Cells { places: Vec::new(), facts: Vec::new() }
    }

    /// States a fact, replacing an earlier one about the same row.
    pub(super) fn put(&mut self, row: usize, fact: F) {
        if self.places.len() <= row {
            self.places.resize(row + 1, 0);
        }
        match self.places[row].checked_sub(1) {
            Some(place) => self.facts[place as usize] = fact,
            None => {
                self.facts.push(fact);
                self.places[row] = self.facts.len() as u32;
            }
        }
    }

    pub(super) fn get(&self, row: usize) -> Option<&F> {
        let place = self.places.get(row)?.checked_sub(1)?;
        self.facts.get(place as usize)
    }
}

impl<F> Clone for Column<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Column<'_, F> {}

impl<'r, F> Column<'r, F> {
    /// Returns the fact about a row, if it is stated.
    pub fn get(&self, op: OpId) -> Option<&'r F> {
        self.cells?.get(op.index())
    }

    /// Returns the fact about a node's operator, if the operator is a row and the fact is stated.
    pub fn of(&self, op: Op) -> Option<&'r F> {
        self.get(op.row()?)
    }

    /// Returns the rows that state the fact, with the fact, in row order.
    pub fn iter(&self) -> impl Iterator<Item = (OpId, &'r F)> {
        let rows = self.cells.map_or(0, |cells| cells.places.len() as u32);
        (0..rows).map(OpId).filter_map(move |op| Some((op, self.get(op)?)))
    }
}
