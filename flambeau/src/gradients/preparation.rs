//! Preparation of functions for differentiation: inlines calls and context managers, folds grad-mode and `requires_grad`
//! queries, functionalizes writes, expands composite operators, and replaces branches that cannot be differentiated by errors.

use super::library::FormulaLibrary;
use super::memory::{Outside, attribute, path_of};
use super::versions::{ModifiedOperand, Source, modified_operands};
use crate::engine::Engine;
use crate::error::Error;
use crate::session::Session;
use flambeau_analysis::shape::Fact;
use flambeau_analysis::{AliasDb, Shapes};
use flambeau_exec::tape::{ReadsHistory, RecordingQuery};
use flambeau_ir::types::{TensorType, TypeKind};
use flambeau_ir::{
    CompilationUnit, Effects, Fault, Graph, IValue, NodeId, OpId, Prim, Symbol, Type, ValueId,
};
use flambeau_rewrite::autodiff::{self, Gradient, NotDifferentiable};
use std::collections::BTreeMap;

/// Limit of the branches of a function that are not differentiated.
pub(crate) const MAX_BRANCHES: usize = 64;

/// The beginning of the error of a run that takes such a branch; the reason follows.
pub(crate) const LEFT_GRAPH: &str = "takes a branch that cannot be differentiated: ";

/// Rounds of expanding bodies of composite operators: their bodies may contain such operators.
const ROUNDS: usize = 4;

/// Functionalizes writes of a function to its own lists, and those to its own tensors that certainly fit, so that the error of
/// one that does not is preserved; and unrolls loops with constant trip counts. [`autodiff::functionalize`] does the others.
const PREPARE: &str = "simplify,loop_unrolling{constant},remove_mutation{lists},remove_mutation{tensors,exact},simplify,\
                       container_replacement,remove_mutation{lists},remove_mutation{tensors,exact},simplify";

/// Folds queries of the metadata that a plan assumes, unrolls the loops whose trip counts become constant, and functionalizes
/// writes that certainly fit.
pub(crate) const SPECIALIZE: &str = "fix{4}(peephole,constant_propagation),\
                          fix{8}(loop_unrolling{constant},container_replacement,scalar_replacement,\
                          lower_simple_tuples,peephole,constant_propagation,dce),\
                          remove_mutation{lists},remove_mutation{tensors,exact},fix{2}(peephole,constant_propagation),\
                          remove_mutation{lists},remove_mutation{tensors,exact},cse,dce";

/// The graph of an entry, with calls inlined.
pub(crate) struct Prepared {
    pub(crate) graph: Graph,
    /// Tensor attributes of the receiver that the root block reads.
    pub(crate) attributes: Vec<Attribute>,
    /// Operators whose derivatives read memory that may be written later.
    modified: Vec<ModifiedOperand>,
}

/// A tensor attribute: the value in the graph, and the path of slots from the receiver.
pub(crate) struct Attribute {
    pub(crate) value: ValueId,
    path: Vec<Symbol>,
    /// Whether it is a tensor, and not an optional one or a container of tensors.
    is_tensor: bool,
}

/// Which of the tensors of an attribute require gradients: the attribute itself, or the elements of a list.
pub(crate) type Required = Vec<bool>;

impl Attribute {
    /// Returns the list that the attribute of a receiver is; `None` for other attributes than lists of tensors.
    pub(crate) fn elements(&self, engine: &Engine, graph: &Graph, receiver: &IValue) -> Option<Vec<IValue>> {
        let is_list = graph.ty(self.value).list_elem().is_some_and(Type::is_tensor);
        let value = attribute(engine.unit(), receiver, &self.path).filter(|_| is_list)?;
        Some(value.as_list()?.read().iter().collect())
    }
}

impl Prepared {
    pub(crate) fn new(engine: &Engine, graph: &Graph) -> Result<Prepared, String> {
        let mut expanded = graph.clone();
        autodiff::expand_contexts(&mut expanded);
        let session = engine.session();
        let applied = |graph: &Graph, text: &str| {
            session.apply_text(graph, engine.unit(), text).map_err(|error| error.to_string())
        };
        let mut graph = applied(&expanded, "simplify")?;
        let library = session.gradient_library().map_err(|error| error.to_string())?;
        let mut branches = 0;
        let resolved = loop {
            let mut resolved = graph.clone();
            match autodiff::resolve_grad_mode(&mut resolved, &*library) {
                Ok(()) => break resolved,
                Err(error) if branches < MAX_BRANCHES && leave_branch(&mut graph, &error) => branches += 1,
                Err(error) => return Err(error.to_string()),
            }
        };
        graph = resolved;
        check_overwrites(&graph, &library)?;
        let modified = modified_operands(&graph, &library);
        autodiff::unpack_tuples(&mut graph);
        let mut graph = applied(&graph, PREPARE)?;
        let queries = graph.registry().column::<RecordingQuery>();
        check_history(&graph, &|row| queries.get(row) == Some(&RecordingQuery::RequiresGrad))?;
        hoist_attributes(&mut graph);
        let mut attributes = Vec::new();
        for node in graph.nodes_deep().filter(|n| graph.is_prim(*n, Prim::GetAttr)) {
            let value = graph.result(node, 0);
            let path = path_of(&graph, value).filter(|_| graph.parent(node) == graph.root());
            if let (Some(path), true) = (path, may_hold_tensor(graph.ty(value))) {
                attributes.push(Attribute { value, path, is_tensor: graph.ty(value).is_tensor() });
            }
        }
        Ok(Prepared { graph, attributes, modified })
    }

    /// Whether a call may write a value from outside: an argument or attribute that requires no gradient.
    pub(crate) fn may_write(
        &self,
        graph: &Graph,
        value: ValueId,
        args: &[IValue],
        attributes: &[Required],
    ) -> bool {
        if let Some(i) = graph.inputs().position(|input| input == value) {
            return args.get(i).and_then(IValue::as_tensor).is_some_and(|t| !t.requires_grad());
        }
        let Some(path) = path_of(graph, value) else { return false };
        let mut known = self.attributes.iter().zip(attributes);
        known.any(|(a, requires)| a.path == path && a.is_tensor && !requires.contains(&true))
    }

    /// Returns why a call may have to refuse the backward pass: the derivative of an operator is computed, and reads memory that
    /// is written later.
    pub(crate) fn modified(&self, args: &[IValue], attributes: &[Required]) -> Option<&str> {
        let requires = |source: &Source| match source {
            Source::Input(input) => args.get(*input).is_none_or(crate::recording::requires_grad),
            Source::Attribute(path) => {
                let mut known = self.attributes.iter().zip(attributes);
                known.find(|(a, _)| a.path == *path).is_none_or(|(_, requires)| requires.contains(&true))
            }
            Source::Unknown => true,
        };
        let mut modified = self.modified.iter();
        modified.find(|operand| operand.sources.iter().any(requires)).map(|operand| operand.reason.as_str())
    }

    /// Returns which attributes require gradients; `None` if one cannot be found, or does and is neither a tensor nor a list of
    /// tensors by its type.
    pub(crate) fn requires_grad(&self, engine: &Engine, args: &[IValue]) -> Option<Vec<Required>> {
        let of = |a: &Attribute| {
            let receiver = args.first()?;
            if let Some(elements) = a.elements(engine, &self.graph, receiver) {
                return Some(elements.iter().map(crate::recording::requires_grad).collect());
            }
            let requires = crate::recording::requires_grad(&attribute(engine.unit(), receiver, &a.path)?);
            (!requires || a.is_tensor).then_some(vec![requires])
        };
        self.attributes.iter().map(of).collect()
    }
}

/// Moves attributes that nested blocks read from the receiver to the start of the graph, which does not set any.
fn hoist_attributes(graph: &mut Graph) {
    let root = graph.root();
    let is_get = |g: &Graph, n: NodeId| g.is_prim(n, Prim::GetAttr);
    if graph.nodes_deep().any(|n| graph.is_prim(n, Prim::SetAttr)) {
        return;
    }
    let nested: Vec<NodeId> =
        graph.nodes_deep().filter(|n| is_get(graph, *n) && graph.parent(*n) != root).collect();
    for node in nested {
        // In program order, so the object was moved before.
        let def = graph.def(graph.operand(node, 0));
        if graph.parent(def) != root || !(is_get(graph, def) || def == graph.param(root)) {
            continue;
        }
        let mut editor = graph.edit();
        if is_get(editor.graph(), def) {
            editor.move_after(node, def);
        } else {
            let first = editor.graph().nodes(root).next();
            first.into_iter().for_each(|first| editor.move_before(node, first));
        }
    }
    // One value for each attribute, so that all uses see writes to it.
    let mut known: BTreeMap<Vec<&str>, ValueId> = BTreeMap::new();
    let gets: Vec<NodeId> = graph.nodes(root).filter(|n| is_get(graph, *n)).collect();
    for node in gets {
        let value = graph.result(node, 0);
        let Some(path) = path_of(graph, value) else { continue };
        let path: Vec<&str> = path.iter().map(|name| name.as_str()).collect();
        match known.get(&path) {
            Some(first) => graph.edit().replace_node(node, &[*first]),
            None => drop(known.insert(path, value)),
        }
    }
}

/// Returns a node that reads an attribute which is not among those of [`Prepared`].
pub(crate) fn unknown_attribute(graph: &Graph) -> Option<NodeId> {
    let is_unknown = |n: &NodeId| {
        let value = graph.is_prim(*n, Prim::GetAttr).then(|| graph.result(*n, 0));
        let is_known = |v: ValueId| graph.parent(*n) == graph.root() && path_of(graph, v).is_some();
        value.is_some_and(|v| may_hold_tensor(graph.ty(v)) && !is_known(v))
    };
    graph.nodes_deep().find(is_unknown)
}

/// Whether a value of this type may be or contain a tensor, other than an object.
pub(crate) fn may_hold_tensor(ty: Type) -> bool {
    match ty.kind() {
        TypeKind::Tensor(_) => true,
        TypeKind::List(elem) | TypeKind::Optional(elem) => may_hold_tensor(*elem),
        TypeKind::Dict(_, elem) => may_hold_tensor(*elem),
        TypeKind::Tuple(tuple) => tuple.elems.iter().any(|ty| may_hold_tensor(*ty)),
        _ => false,
    }
}

/// Whether a graph has input or output beside changes of the mode of recording.
pub(crate) fn prints(graph: &Graph) -> bool {
    let modes = graph.registry().column::<RecordingQuery>();
    let is_mode = |node| graph.op(node).row().is_some_and(|row| modes.get(row).is_some());
    graph.nodes_deep().any(|node| graph.effects(node).contains(Effects::IO) && !is_mode(node))
}

/// Replaces the branch of a node that prevents differentiation by an error: calls that take it are recorded. Returns whether
/// that is possible: a call that prints may not run twice.
pub(crate) fn leave_branch(graph: &mut Graph, error: &NotDifferentiable) -> bool {
    let node = error.node.filter(|_| !prints(graph));
    node.is_some_and(|node| autodiff::raise_in_branch(graph, node, &format!("{LEFT_GRAPH}{error}")))
}

/// Answers whether tensors require gradients, in a graph whose outputs behind the results are the sources. Returns the number
/// of branches that were replaced by errors; the inner error is the reason why the graph cannot be differentiated.
pub(crate) fn resolved(
    session: &Session,
    library: &FormulaLibrary,
    graph: &mut Graph,
    results: usize,
    sources: usize,
) -> Result<Result<usize, String>, Error> {
    let none = CompilationUnit::new();
    let (mut rounds, mut branches) = (0, 0);
    while rounds < ROUNDS {
        let wrt: Vec<ValueId> = graph.outputs().skip(results).take(sources).collect();
        match autodiff::resolve_requires_grad(graph, &wrt, library) {
            Ok(false) => break,
            Ok(true) => rounds += 1,
            Err(error) if branches < MAX_BRANCHES && leave_branch(graph, &error) => branches += 1,
            Err(error) => return Ok(Err(error.to_string())),
        }
        *graph = session.apply_text(graph, &none, SPECIALIZE)?;
    }
    Ok(Ok(branches))
}

/// Gives the inputs of a graph the dtypes and sizes of arguments.
pub(crate) fn specialize(graph: &mut Graph, inputs: &[ValueId], args: &[IValue]) {
    for (input, arg) in inputs.iter().zip(args) {
        if let (IValue::Tensor(t), true) = (arg, graph.ty(*input).is_tensor()) {
            let facts = TensorType { strides: None, requires_grad: None, ..TensorType::of(t) };
            graph.edit().set_type(*input, Type::tensor(facts));
        }
    }
}

/// Replaces composite operators by their bodies and simplifies. The inner error: a body needs numbers that are not
/// constant, or depends on the values `wrt` in other runs than a recorded call of its operator.
///
/// Writes to memory from outside are made functional where `is_outside` permits it: see [`autodiff::functionalize`]. The
/// written inputs and attributes are returned, and their final values are the last outputs of the graph.
pub(crate) fn expanded(
    session: &Session,
    library: &FormulaLibrary,
    mut graph: Graph,
    wrt: &dyn Fn(&Graph) -> Vec<ValueId>,
    is_outside: &dyn Fn(&Graph, ValueId) -> bool,
) -> Result<Result<(Graph, Vec<Outside>), String>, Error> {
    let none = CompilationUnit::new();
    let mut written = Vec::new();
    for round in 0..ROUNDS {
        if let Err(error) = autodiff::declare_writes(&mut graph, library) {
            return Ok(Err(error.to_string()));
        }
        // Later rounds see the writes of bodies, which belong to their operators.
        let may_write = |g: &Graph, v: ValueId| round == 0 && is_outside(g, v);
        match autodiff::functionalize(&mut graph, library, &may_write) {
            Ok(None) => {}
            Ok(Some(roots)) => {
                written.extend(roots.iter().filter_map(|root| Outside::of(&graph, *root)));
                graph = session.apply_text(&graph, &none, SPECIALIZE)?;
            }
            Err(error) => return Ok(Err(error.to_string())),
        }
        // A recorded call has the history of an operator, not those of the operators in its body.
        if let (0, Err(error)) = (round, autodiff::check_dependence(&graph, &wrt(&graph), library)) {
            return Ok(Err(error.to_string()));
        }
        let active = wrt(&graph);
        match autodiff::expand_bodies(&mut graph, &active, library) {
            Ok(0) => break,
            Ok(_) => {
                graph = session.apply_text(&graph, &none, "simplify")?;
                graph = session.apply_text(&graph, &none, SPECIALIZE)?;
            }
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
    Ok(Ok((graph, written)))
}

impl Session {
    /// Differentiates a graph with respect to inputs. Writes to values of the graph's own are made functional and
    /// composite operators are expanded before; forward and backward graph are simplified.
    ///
    /// # Errors
    /// `X0002` with the node that prevents it; the error of a pass.
    pub fn differentiate(&self, graph: &Graph, inputs: &[usize]) -> Result<Gradient, Error> {
        let none = CompilationUnit::new();
        let library = self.gradient_library()?;
        let refused = |message: String| Error::new(Fault::Unsupported, "X0002", message);
        check_overwrites(graph, &library).map_err(refused)?;
        let is_differentiated = |source: &Source| match source {
            Source::Input(input) => inputs.contains(input),
            Source::Attribute(_) => false,
            Source::Unknown => true,
        };
        let modified = modified_operands(graph, &library);
        if let Some(operand) = modified.into_iter().find(|o| o.sources.iter().any(is_differentiated)) {
            return Err(refused(operand.reason));
        }
        let graph = self.apply_text(graph, &none, PREPARE)?;
        check_history(&graph, &|_| false).map_err(refused)?;
        let count = graph.inputs().len();
        if let Some(i) = inputs.iter().find(|i| **i >= count) {
            return Err(Error::misuse(format!("the graph has {count} inputs, not input {i}")));
        }
        let wrt = |g: &Graph| inputs.iter().filter_map(|i| g.inputs().nth(*i)).collect();
        let (graph, _) = expanded(self, &library, graph, &wrt, &|_, _| false)?.map_err(refused)?;
        let wrt: Vec<ValueId> = wrt(&graph);
        let gradient =
            autodiff::differentiate(&graph, &wrt, &[], &*library).map_err(|e| refused(e.to_string()))?;
        let gradient = gradient.specialized();
        Ok(Gradient {
            forward: self.apply_text(&gradient.forward, &none, SIMPLE)?,
            backward: self.apply_text(&gradient.backward, &none, SIMPLE)?,
            ..gradient
        })
    }
}

/// Checks that no operator overwrites its operand by a constant with a history, as `a.ge_(b)` does: PyTorch's result requires
/// gradients, which are zero, and that of the functional variant does not. Also checks that none leaves the history of an
/// operand as it was, as `a.logical_not_()` does, unless elements of the operand's dtype have no gradients.
fn check_overwrites(graph: &Graph, library: &FormulaLibrary) -> Result<(), String> {
    let overwrites = |n: &NodeId| graph.op(*n).row().is_some_and(|row| library.overwrites(row));
    if let Some(node) = graph.nodes_deep().find(overwrites) {
        return Err(NotDifferentiable::at(graph, node, "records a history of its own").to_string());
    }
    let queries = graph.registry().column::<RecordingQuery>();
    let is_detach = |row| queries.get(row) == Some(&RecordingQuery::Detach);
    let keeps_history =
        |n: &NodeId| graph.op(*n).row().is_some_and(|row| library.keeps_history(row) && !is_detach(row));
    let mut keeping = graph.nodes_deep().filter(keeps_history).peekable();
    if keeping.peek().is_none() {
        return Ok(());
    }
    let shapes = Shapes::new(graph, &AliasDb::new(graph));
    let has_gradient = |node: &NodeId| match shapes.fact(graph.operand(*node, 0)) {
        Fact::Tensor(fact) => fact.dtype.is_none_or(|dtype| !dtype.is_integral(true)),
        _ => true,
    };
    match keeping.find(has_gradient) {
        Some(node) => Err(NotDifferentiable::at(graph, node, "keeps the history of its operand").to_string()),
        None => Ok(()),
    }
}

/// Checks that no operator reads how its operand was recorded, except operators that are folded later.
fn check_history(graph: &Graph, is_folded_later: &dyn Fn(OpId) -> bool) -> Result<(), String> {
    let history = graph.registry().column::<ReadsHistory>();
    let reads = |n: &NodeId| {
        graph.op(*n).row().is_some_and(|row| history.get(row).is_some() && !is_folded_later(row))
    };
    match graph.nodes_deep().find(reads) {
        Some(node) => {
            Err(NotDifferentiable::at(graph, node, "depends on how its operand was recorded").to_string())
        }
        None => Ok(()),
    }
}

/// Simplifies a forward or backward graph.
const SIMPLE: &str = "simplify,peephole,simplify";
