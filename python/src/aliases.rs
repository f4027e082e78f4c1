//! The alias analysis of a graph for Python.
//!
//! The analysis is built when it is first asked and again after an edit of the graph, so that queries without edits in between take
//! no longer than a look-up.

use std::sync::{Arc, Mutex, PoisonError};

use flambeau::Graph;
use flambeau::analysis::AliasDb;
use pyo3::prelude::*;

use crate::graph::{PyGraph, PyNode, PyValue, Shared};

/// Answers which values of a graph may share memory, for the graph as it is at the time of the question.
#[pyclass(name = "AliasDb", module = "flambeau", frozen)]
pub(crate) struct PyAliasDb {
    graph: Arc<Shared>,
    db: Mutex<Option<AliasDb>>,
}

impl PyAliasDb {
    pub(crate) fn new(graph: Arc<Shared>) -> PyAliasDb {
        PyAliasDb { graph, db: Mutex::new(None) }
    }

    fn ask<T>(&self, question: impl FnOnce(&Graph, &AliasDb) -> T) -> T {
        let graph = self.graph.lock();
        let mut known = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        let revision = graph.journal().revision();
        let current = known.take().filter(|db| db.revision() == revision);
        question(&graph, known.insert(current.unwrap_or_else(|| AliasDb::new(&graph))))
    }

    fn own(&self, py: Python<'_>, value: &Bound<'_, PyValue>) -> PyResult<flambeau::ir::ValueId> {
        PyGraph::of(&self.graph).own(py, value.get())
    }
}

#[pymethods]
impl PyAliasDb {
    /// Whether two values may share memory.
    fn may_alias(&self, py: Python<'_>, a: &Bound<'_, PyValue>, b: &Bound<'_, PyValue>) -> PyResult<bool> {
        let (a, b) = (self.own(py, a)?, self.own(py, b)?);
        Ok(self.ask(|_, db| db.may_alias(a, b)))
    }

    /// Whether two values, or values that they contain, may share memory.
    fn may_contain_alias(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyValue>,
        b: &Bound<'_, PyValue>,
    ) -> PyResult<bool> {
        let (a, b) = (self.own(py, a)?, self.own(py, b)?);
        Ok(self.ask(|_, db| db.may_contain_alias(a, b)))
    }

    /// Whether a node may write the memory of a value.
    fn has_writers(&self, py: Python<'_>, value: &Bound<'_, PyValue>) -> PyResult<bool> {
        let value = self.own(py, value)?;
        Ok(self.ask(|_, db| db.has_writers(value)))
    }

    /// Whether a value may be memory from outside of the graph.
    fn may_be_wildcard(&self, py: Python<'_>, value: &Bound<'_, PyValue>) -> PyResult<bool> {
        let value = self.own(py, value)?;
        Ok(self.ask(|_, db| db.may_be_wildcard(value)))
    }

    /// Whether a node may write the memory of one of some values.
    fn writes_to(
        &self,
        py: Python<'_>,
        node: &Bound<'_, PyNode>,
        values: Vec<Bound<'_, PyValue>>,
    ) -> PyResult<bool> {
        let values: Vec<_> = values.iter().map(|value| self.own(py, value)).collect::<PyResult<_>>()?;
        let node = PyGraph::of(&self.graph).own_node(py, node.get())?;
        Ok(self.ask(|graph, db| db.writes_to(graph, node, &values)))
    }

    /// The analysis in the language of Graphviz.
    fn to_graphviz_str(&self) -> String {
        self.ask(|graph, db| db.to_dot(graph))
    }

    fn __str__(&self) -> String {
        self.ask(|graph, db| db.dump(graph))
    }

    fn __repr__(&self) -> String {
        self.__str__()
    }
}
