//! Graphs of programs as objects: `Graph`, `Node`, `Value`, `Block`.
//!
//! A graph is shared by its handles, under one lock. A handle names a node, value or block by its id; every operation checks that
//! the entity still exists and belongs to the graph, so a handle of something erased raises an exception. Edits whose
//! preconditions the editor asserts are checked here first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flambeau::analysis::{Analyses, Shapes};
use flambeau::ir::text::PrintOptions;
use flambeau::ir::verify::verify_with;
use flambeau::ir::{At, BlockId, CallArg, NodeId, Prim, ValueId};
use flambeau::{Error, Graph, Session, Type};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::aliases::PyAliasDb;
use crate::errors::{misuse, raise};
use crate::extend::session;
use crate::function::PyFunction;
use crate::host::Hosted;
use crate::values::{Call, Failure, or_raise};

/// A graph with the program whose functions and classes it may use.
pub(crate) struct Shared {
    graph: Mutex<Graph>,
    program: Hosted,
    /// The number of edits of the graphs in whose place this one is.
    replaced: AtomicU64,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A graph. A pass changes it in place.
#[pyclass(name = "Graph", module = "flambeau", frozen, weakref)]
pub(crate) struct PyGraph(Arc<Shared>);

/// A node of a graph: an operator with its operands and results.
#[pyclass(name = "Node", module = "flambeau", frozen)]
pub(crate) struct PyNode(Arc<Shared>, NodeId);

/// A value of a graph: a result of a node, or an input of a block.
#[pyclass(name = "Value", module = "flambeau", frozen)]
pub(crate) struct PyValue(Arc<Shared>, ValueId);

/// A block of a graph: nodes in order, with inputs and outputs.
#[pyclass(name = "Block", module = "flambeau", frozen)]
pub(crate) struct PyBlock(Arc<Shared>, BlockId);

fn gone(py: Python<'_>, what: &str) -> PyErr {
    misuse(py, format!("the {what} was erased from its graph"))
}

impl PyGraph {
    pub(crate) fn new(graph: Graph, program: Hosted) -> PyGraph {
        PyGraph(Arc::new(Shared { graph: Mutex::new(graph), program, replaced: AtomicU64::new(0) }))
    }

    /// Runs a pipeline of a session on this graph.
    ///
    /// # Errors
    /// The error of the pipeline; the graph is unchanged.
    pub(crate) fn run_in(&self, py: Python<'_>, session: &Session, pipeline: &str) -> PyResult<()> {
        let optimized = py.detach(|| {
            let copy = self.0.lock().clone();
            let program = session.program_with(copy, Arc::clone(self.0.program.unit()))?;
            program.entry("forward")?.optimized(pipeline)
        });
        let optimized = or_raise(py, optimized)?;
        let mut graph = self.0.lock();
        // The revisions of the new graph start anew.
        let edits = graph.journal().revision().edits() + 1;
        self.0.replaced.fetch_add(edits, Ordering::Relaxed);
        *graph = optimized;
        Ok(())
    }

    /// Returns a copy of the graph as it is now.
    #[cfg(feature = "fuzz")]
    pub(crate) fn snapshot(&self) -> Graph {
        self.0.lock().clone()
    }

    fn nodes_of(&self, ids: impl IntoIterator<Item = NodeId>) -> Vec<PyNode> {
        ids.into_iter().map(|id| PyNode(Arc::clone(&self.0), id)).collect()
    }

    pub(crate) fn of(shared: &Arc<Shared>) -> PyGraph {
        PyGraph(Arc::clone(shared))
    }

    /// Returns a node that is an argument of a method.
    pub(crate) fn own_node(&self, py: Python<'_>, node: &PyNode) -> PyResult<NodeId> {
        if !Arc::ptr_eq(&self.0, &node.0) {
            return Err(misuse(py, "the node is one of another graph".to_owned()));
        }
        if !self.0.lock().has_node(node.1) {
            return Err(gone(py, "node"));
        }
        Ok(node.1)
    }

    /// Returns a value that is an argument of a method.
    pub(crate) fn own(&self, py: Python<'_>, value: &PyValue) -> PyResult<ValueId> {
        if !Arc::ptr_eq(&self.0, &value.0) {
            return Err(misuse(py, "the value is one of another graph".to_owned()));
        }
        if !self.0.lock().has_value(value.1) {
            return Err(gone(py, "value"));
        }
        Ok(value.1)
    }

    fn position(&self, py: Python<'_>, before: Option<&PyNode>) -> PyResult<At> {
        let graph = self.0.lock();
        let Some(node) = before else { return Ok(At::end(graph.root())) };
        if !Arc::ptr_eq(&self.0, &node.0) {
            return Err(misuse(py, "the node is one of another graph".to_owned()));
        }
        if !graph.has_node(node.1) {
            return Err(gone(py, "node"));
        }
        if graph.is_prim(node.1, Prim::Param) {
            return Err(misuse(py, "nothing can be before the inputs of a block".to_owned()));
        }
        Ok(At::before(node.1))
    }

    fn argument<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<CallArg> {
        let py = object.py();
        if let Ok(value) = object.cast::<PyValue>() {
            return Ok(CallArg::Value(self.own(py, value.get())?));
        }
        constant(object).map(CallArg::Constant)
    }
}

fn constant(object: &Bound<'_, PyAny>) -> PyResult<flambeau::IValue> {
    let py = object.py();
    Call::new(py).value(object, Type::ANY, 0).map_err(|failure| match failure {
        Failure::Raised(error) => error,
        Failure::Type => misuse(py, format!("{object} cannot be a constant of a graph")),
    })
}

#[pymethods]
impl PyGraph {
    fn __str__(&self) -> String {
        self.0.lock().to_text(PrintOptions { locations: true, ..PrintOptions::default() })
    }

    fn __repr__(&self) -> String {
        self.__str__()
    }

    /// The text without positions in files.
    fn text(&self) -> String {
        self.0.lock().to_text(PrintOptions::default())
    }

    /// The graph in the language of Graphviz.
    fn dot(&self) -> String {
        self.0.lock().to_dot()
    }

    /// The nodes of the outermost block, in order; with `nested` those of all blocks.
    #[pyo3(signature = (nested=false))]
    fn nodes(&self, nested: bool) -> Vec<PyNode> {
        let graph = self.0.lock();
        let ids: Vec<NodeId> =
            if nested { graph.nodes_deep().collect() } else { graph.nodes(graph.root()).collect() };
        self.nodes_of(ids)
    }

    /// The inputs, in order.
    fn inputs(&self) -> Vec<PyValue> {
        self.0.lock().inputs().map(|id| PyValue(Arc::clone(&self.0), id)).collect()
    }

    /// The outputs, in order.
    fn outputs(&self) -> Vec<PyValue> {
        self.0.lock().outputs().map(|id| PyValue(Arc::clone(&self.0), id)).collect()
    }

    /// The node whose results are the inputs.
    fn param_node(&self) -> PyNode {
        let graph = self.0.lock();
        PyNode(Arc::clone(&self.0), graph.param(graph.root()))
    }

    /// The node whose operands are the outputs.
    fn return_node(&self) -> PyNode {
        let graph = self.0.lock();
        PyNode(Arc::clone(&self.0), graph.ret(graph.root()))
    }

    /// The outermost block.
    fn block(&self) -> PyBlock {
        PyBlock(Arc::clone(&self.0), self.0.lock().root())
    }

    /// An independent graph with the same nodes.
    fn copy(&self) -> PyGraph {
        PyGraph::new(self.0.lock().clone(), self.0.program.clone())
    }

    /// Inserts a call of an operator, before a node or at the end, and returns its result.
    #[pyo3(signature = (operator, *args, before=None, **kwargs))]
    fn insert(
        &self,
        py: Python<'_>,
        operator: &str,
        args: &Bound<'_, PyTuple>,
        before: Option<&Bound<'_, PyNode>>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyValue> {
        let at = self.position(py, before.map(Bound::get))?;
        let args: PyResult<Vec<CallArg>> = args.iter().map(|arg| self.argument(&arg)).collect();
        let args = args?;
        let mut named: Vec<(String, CallArg)> = Vec::new();
        for (name, arg) in kwargs.into_iter().flat_map(|kwargs| kwargs.iter()) {
            named.push((name.extract()?, self.argument(&arg)?));
        }
        let named: Vec<(&str, CallArg)> =
            named.iter().map(|(name, arg)| (name.as_str(), arg.clone())).collect();
        let mut graph = self.0.lock();
        let mut edit = graph.edit();
        let node = edit.at(at).call_with(operator, &args, &named);
        let node = node.map_err(|error| misuse(py, error.to_string()))?;
        let results: Vec<ValueId> = edit.graph().results(node).collect();
        let value = match results.as_slice() {
            [one] => *one,
            several => edit.tuple(several),
        };
        Ok(PyValue(Arc::clone(&self.0), value))
    }

    /// Inserts a constant, before a node or at the end.
    #[pyo3(signature = (value, before=None))]
    fn constant(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        before: Option<&Bound<'_, PyNode>>,
    ) -> PyResult<PyValue> {
        let at = self.position(py, before.map(Bound::get))?;
        let value = constant(value)?;
        let id = self.0.lock().edit().at(at).constant(value);
        Ok(PyValue(Arc::clone(&self.0), id))
    }

    /// Runs a pipeline, such as `cse,dce` or `default`, on this graph.
    fn run(&self, py: Python<'_>, pipeline: &str) -> PyResult<()> {
        self.run_in(py, self.0.program.session(), pipeline)
    }

    /// The number of edits so far: equal numbers mean that the graph did not change in between.
    #[getter]
    fn revision(&self) -> u64 {
        self.0.lock().journal().revision().edits() + self.0.replaced.load(Ordering::Relaxed)
    }

    /// Raises an exception if the graph breaks a rule of the representation.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        let checked = verify_with(&self.0.lock(), &**self.0.program.unit()).map(|_| ());
        checked.map_err(|errors| raise(py, &Error::from(errors)))
    }

    /// A function that runs a copy of the graph as it is now.
    fn function(&self, py: Python<'_>) -> PyResult<PyFunction> {
        let copy = self.0.lock().clone();
        let session = self.0.program.session();
        let program = or_raise(py, session.program_with(copy, Arc::clone(self.0.program.unit())))?;
        PyFunction::of(py, self.0.program.with(program), "forward")
    }

    /// The alias analysis. PyTorch's options have no effect: calls are followed where functions are known.
    #[pyo3(signature = (_is_frozen=false, _descend_function_calls=false))]
    fn alias_db(&self, _is_frozen: bool, _descend_function_calls: bool) -> PyAliasDb {
        PyAliasDb::new(Arc::clone(&self.0))
    }

    /// The types of the values, by name, with the properties that shape analysis infers.
    fn shapes(&self) -> Vec<(String, String)> {
        // Shape functions in Python release the interpreter lock, so the graph is not locked while they run.
        let graph = self.0.lock().clone();
        let mut analyses = Analyses::new();
        let shapes = analyses.get::<Shapes>(&graph);
        let fact =
            |value: ValueId| (graph.name(value).to_string(), shapes.refined_type(&graph, value).to_string());
        graph.values_in_order().map(fact).collect()
    }
}

impl PyNode {
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Graph>> {
        let graph = self.0.lock();
        if graph.has_node(self.1) { Ok(graph) } else { Err(gone(py, "node")) }
    }

    fn value(&self, id: ValueId) -> PyValue {
        PyValue(Arc::clone(&self.0), id)
    }

    /// Refuses edits of the inputs and outputs of blocks.
    fn movable(&self, py: Python<'_>, graph: &Graph) -> PyResult<()> {
        if graph.is_prim(self.1, Prim::Param) || graph.is_prim(self.1, Prim::Return) {
            return Err(misuse(py, "the inputs and outputs of a block cannot be erased or moved".to_owned()));
        }
        Ok(())
    }
}

#[pymethods]
impl PyNode {
    /// The qualified name of the operator.
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.lock(py)?.op_name(self.1).to_string())
    }

    /// The operands, in order.
    fn inputs(&self, py: Python<'_>) -> PyResult<Vec<PyValue>> {
        Ok(self.lock(py)?.operands(self.1).map(|id| self.value(id)).collect())
    }

    /// The results, in order.
    fn outputs(&self, py: Python<'_>) -> PyResult<Vec<PyValue>> {
        Ok(self.lock(py)?.results(self.1).map(|id| self.value(id)).collect())
    }

    /// The blocks: the branches of `prim::If`, the body of `prim::Loop`.
    fn blocks(&self, py: Python<'_>) -> PyResult<Vec<PyBlock>> {
        Ok(self.lock(py)?.blocks(self.1).map(|id| PyBlock(Arc::clone(&self.0), id)).collect())
    }

    /// The effects of running the node, as text.
    #[getter]
    fn effects(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.lock(py)?.effects(self.1).to_string())
    }

    /// The schema of the operator, `None` for nodes without one.
    #[getter]
    fn schema(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let graph = self.lock(py)?;
        Ok(graph.registry().schema_of(graph.op(self.1)).map(ToString::to_string))
    }

    /// Whether the node comes before another one in the order of the program.
    fn is_before(&self, py: Python<'_>, other: &Bound<'_, PyNode>) -> PyResult<bool> {
        let other = PyGraph(Arc::clone(&self.0)).own_node(py, other.get())?;
        Ok(self.lock(py)?.is_before(self.1, other))
    }

    /// Whether the node still exists.
    #[getter]
    fn is_valid(&self) -> bool {
        self.0.lock().has_node(self.1)
    }

    /// Erases the node. Its results must not have uses.
    fn erase(&self, py: Python<'_>) -> PyResult<()> {
        let mut graph = self.lock(py)?;
        self.movable(py, &graph)?;
        if let Some(used) = graph.results(self.1).find(|&value| graph.use_count(value) > 0) {
            return Err(misuse(py, format!("the result %{} of the node has uses", graph.name(used))));
        }
        graph.edit().erase(self.1);
        Ok(())
    }

    /// Moves the node before another one of its block.
    fn move_before(&self, py: Python<'_>, next: &Bound<'_, PyNode>) -> PyResult<()> {
        let next = next.get();
        if !Arc::ptr_eq(&self.0, &next.0) {
            return Err(misuse(py, "the node is one of another graph".to_owned()));
        }
        let mut graph = self.lock(py)?;
        self.movable(py, &graph)?;
        if !graph.has_node(next.1) {
            return Err(gone(py, "node"));
        }
        if graph.is_prim(next.1, Prim::Param) || graph.parent(next.1) != graph.parent(self.1) {
            return Err(misuse(py, "a node moves before a node of its own block".to_owned()));
        }
        graph.edit().move_before(self.1, next.1);
        Ok(())
    }

    /// Replaces an operand.
    fn replace_input(&self, py: Python<'_>, index: usize, value: &Bound<'_, PyValue>) -> PyResult<()> {
        let value = PyGraph(Arc::clone(&self.0)).own(py, value.get())?;
        let mut graph = self.lock(py)?;
        if index >= graph.operand_count(self.1) {
            return Err(misuse(py, format!("the node has {} operands", graph.operand_count(self.1))));
        }
        graph.edit().set_operand(self.1, index, value);
        Ok(())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyNode>().is_ok_and(|o| Arc::ptr_eq(&self.0, &o.get().0) && self.1 == o.get().1)
    }

    fn __hash__(&self) -> u64 {
        hash(&self.1)
    }

    fn __repr__(&self) -> String {
        let graph = self.0.lock();
        if !graph.has_node(self.1) {
            return "<Node (erased)>".to_owned();
        }
        let names = |values: Vec<ValueId>| -> String {
            values.iter().map(|&v| format!("%{}", graph.name(v))).collect::<Vec<_>>().join(", ")
        };
        let results = names(graph.results(self.1).collect());
        let operands = names(graph.operands(self.1).collect());
        format!("<Node {results} = {}({operands})>", graph.op_name(self.1))
    }
}

impl PyValue {
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Graph>> {
        let graph = self.0.lock();
        if graph.has_value(self.1) { Ok(graph) } else { Err(gone(py, "value")) }
    }
}

#[pymethods]
impl PyValue {
    /// The name without `%`, unique in the graph.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        let graph = self.lock(py)?;
        Ok(graph.name(self.1).to_string())
    }

    /// Sets the name. Another value with the name gets a numbered one.
    fn set_name(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
        if !is_word || name.chars().all(|c| c.is_ascii_digit()) {
            return Err(misuse(py, format!("`{name}` cannot be the name of a value")));
        }
        self.lock(py)?.edit().set_name(self.1, name);
        Ok(())
    }

    /// The type, as graphs print it.
    #[getter]
    fn r#type(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.lock(py)?.ty(self.1).to_string())
    }

    /// Sets the type, as graphs print it. The verifier checks it against the uses; the facts of a wrong type, such as sizes, make
    /// wrong programs.
    fn set_type(&self, py: Python<'_>, text: &str) -> PyResult<()> {
        let session = self.0.program.session();
        let read = session.parse_ir_named(&format!("graph(%x : {text}):\n  return (%x)\n"), "<type>");
        let program = or_raise(py, read)?;
        let graph = or_raise(py, program.entry("forward"))?;
        let ty = graph.graph().inputs().next().map(|value| graph.graph().ty(value));
        let ty = ty.ok_or_else(|| misuse(py, format!("`{text}` is not a type")))?;
        self.lock(py)?.edit().set_type(self.1, ty);
        Ok(())
    }

    /// The node whose result the value is.
    #[getter]
    fn node(&self, py: Python<'_>) -> PyResult<PyNode> {
        let id = self.lock(py)?.def(self.1);
        Ok(PyNode(Arc::clone(&self.0), id))
    }

    /// The uses: nodes with the numbers of their operands.
    fn uses(&self, py: Python<'_>) -> PyResult<Vec<(PyNode, usize)>> {
        let graph = self.lock(py)?;
        Ok(graph.uses(self.1).map(|u| (PyNode(Arc::clone(&self.0), u.user), u.index as usize)).collect())
    }

    /// The value of a constant, `None` for other values.
    fn constant<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let constant = self.lock(py)?.constant(self.1);
        constant.map(|value| Call::new(py).result(&value, &self.0.program, 0)).transpose()
    }

    /// Makes every use of this value a use of another.
    fn replace_all_uses_with(&self, py: Python<'_>, value: &Bound<'_, PyValue>) -> PyResult<()> {
        let value = PyGraph(Arc::clone(&self.0)).own(py, value.get())?;
        self.lock(py)?.edit().replace_all_uses(self.1, value);
        Ok(())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyValue>().is_ok_and(|o| Arc::ptr_eq(&self.0, &o.get().0) && self.1 == o.get().1)
    }

    fn __hash__(&self) -> u64 {
        hash(&self.1)
    }

    fn __repr__(&self) -> String {
        let graph = self.0.lock();
        if !graph.has_value(self.1) {
            return "<Value (erased)>".to_owned();
        }
        format!("<Value %{} : {}>", graph.name(self.1), graph.ty(self.1))
    }
}

#[pymethods]
impl PyBlock {
    /// The nodes, in order, without those of inner blocks.
    fn nodes(&self, py: Python<'_>) -> PyResult<Vec<PyNode>> {
        let graph = self.lock(py)?;
        Ok(graph.nodes(self.1).map(|id| PyNode(Arc::clone(&self.0), id)).collect())
    }

    /// The inputs: the iteration number and the carried values of a loop.
    fn inputs(&self, py: Python<'_>) -> PyResult<Vec<PyValue>> {
        let graph = self.lock(py)?;
        Ok(graph.block_inputs(self.1).map(|id| PyValue(Arc::clone(&self.0), id)).collect())
    }

    /// The outputs: the results of a branch, the condition and the carried values of a loop.
    fn outputs(&self, py: Python<'_>) -> PyResult<Vec<PyValue>> {
        let graph = self.lock(py)?;
        Ok(graph.block_outputs(self.1).map(|id| PyValue(Arc::clone(&self.0), id)).collect())
    }

    /// The node that ends the block, before which nodes can be inserted.
    fn return_node(&self, py: Python<'_>) -> PyResult<PyNode> {
        let id = self.lock(py)?.ret(self.1);
        Ok(PyNode(Arc::clone(&self.0), id))
    }

    fn __repr__(&self) -> String {
        let graph = self.0.lock();
        if !graph.has_block(self.1) {
            return "<Block (erased)>".to_owned();
        }
        let inputs: Vec<String> = graph
            .block_inputs(self.1)
            .map(|input| format!("%{} : {}", graph.name(input), graph.ty(input)))
            .collect();
        let outputs: Vec<String> =
            graph.block_outputs(self.1).map(|output| format!("%{}", graph.name(output))).collect();
        let nodes = graph.nodes(self.1).count();
        format!("<Block ({}) -> ({}), {nodes} nodes>", inputs.join(", "), outputs.join(", "))
    }
}

impl PyBlock {
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Graph>> {
        let graph = self.0.lock();
        if graph.has_block(self.1) { Ok(graph) } else { Err(gone(py, "block")) }
    }
}

fn hash(id: &impl std::hash::Hash) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// Reads a graph from text.
#[pyfunction]
#[pyo3(signature = (text, name="<string>"))]
pub(crate) fn parse_graph(py: Python<'_>, text: &str, name: &str) -> PyResult<PyGraph> {
    let session = session(py)?;
    let program = or_raise(py, session.parse_ir_named(text, name))?;
    let graph = Graph::clone(or_raise(py, program.entry("forward"))?.graph());
    Ok(PyGraph::new(graph, program.into()))
}

/// The names of the passes, with a description of each.
#[pyfunction]
pub(crate) fn passes(py: Python<'_>) -> PyResult<Vec<(String, String)>> {
    let session = session(py)?;
    Ok(session.passes().passes().map(|entry| (entry.name.to_owned(), entry.doc.to_owned())).collect())
}
