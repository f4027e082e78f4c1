//! Facets: kinds of facts about operators. Each is a Rust type owned by the crate that consumes it.
//!
//! The registry stores one column per facet type: an index by row, and a dense vector of the stated facts, since most
//! rows state few. A consumer fetches a [`Column`] once; then a lookup is three indexed loads.

use super::{Op, OpId};
use std::any::Any;

/// A kind of fact about an operator.
pub trait Facet: Any + Send + Sync {
    /// The name of the facet, for listings and error messages.
    const NAME: &'static str;
}

/// Documentation of an operator: one sentence (Markdown) that states the computed value; further paragraphs may follow.
#[derive(Clone, Debug)]
pub struct Doc(pub &'static str);

impl Facet for Doc {
    const NAME: &'static str = "doc";
}

/// All facts of one kind, by operator row.
pub struct Column<'r, F> {
    pub(super) cells: Option<&'r Cells<F>>,
}

/// Number of rows whose places are allocated together. Most kinds of facts are about few rows, of few families.
const CHUNK: usize = 128;

/// The storage of a column.
pub(super) struct Cells<F> {
    /// By row, in chunks: index of the fact plus 1, or 0 if no fact is stated. A chunk without facts is absent. May be shorter
    /// than the registry.
    places: Vec<Option<Box<[u32; CHUNK]>>>,
    facts: Vec<F>,
}

impl<F> Cells<F> {
    pub(super) fn new() -> Self {
        Cells { places: Vec::new(), facts: Vec::new() }
    }

    /// States a fact, replacing an earlier one about the same row.
    pub(super) fn put(&mut self, row: usize, fact: F) {
        if self.places.len() <= row / CHUNK {
            self.places.resize(row / CHUNK + 1, None);
        }
        let place = &mut self.places[row / CHUNK].get_or_insert_with(|| Box::new([0; CHUNK]))[row % CHUNK];
        match place.checked_sub(1) {
            Some(place) => self.facts[place as usize] = fact,
            None => {
                self.facts.push(fact);
                *place = self.facts.len() as u32;
            }
        }
    }

    /// Returns the number of rows up to the last one that may have a fact.
    fn rows(&self) -> usize {
        self.places.len() * CHUNK
    }

    pub(super) fn get(&self, row: usize) -> Option<&F> {
        let chunk = self.places.get(row / CHUNK)?.as_ref()?;
        self.facts.get(chunk[row % CHUNK].checked_sub(1)? as usize)
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
        let rows = self.cells.map_or(0, |cells| cells.rows() as u32);
        (0..rows).map(OpId).filter_map(move |op| Some((op, self.get(op)?)))
    }
}
