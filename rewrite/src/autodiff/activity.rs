//! Activity: the values of a graph that depend differentiably on given values.
//!
//! A value is active if it is a tensor, or a list or tuple of tensors, and a chain of operators with derivatives leads
//! to it from a value that needs a gradient. Tensors of integers have no gradients. Branches and loops pass activity on: a result is active if one of the
//! block outputs that it may come from is, a carried value if its initial value or the value of an iteration is. Such a
//! value is *certain* if each of these is active, so that it depends on a given value in every run. O(nodes + uses).

use super::input_facts::KnownTypes;
use super::kept::KeptTensors;
use super::reverse::{FormulaGraphs, OpDerivative, is_element};
use super::{Named, NotDifferentiable};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{AliasRule, BlockId, Effects, Graph, NodeId, Prim, Type, Use, ValueId};
use flambeau_tensor::DType;
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

/// The active values of a graph, and the derivatives of the operators that compute them.
pub(super) struct Activity {
    active: HashSet<ValueId, FxBuildHasher>,
    uncertain: HashSet<ValueId, FxBuildHasher>,
    derivatives: HashMap<NodeId, OpDerivative, FxBuildHasher>,
}

impl Activity {
    pub(super) fn of(
        graph: &Graph,
        wrt: &[ValueId],
        formulas: &dyn FormulaGraphs,
        types: &KnownTypes,
    ) -> Result<Activity, NotDifferentiable> {
        check_effects(graph)?;
        let mut propagation = Propagation::new(graph, wrt, formulas, types);
        while let Some(value) = propagation.open.pop() {
            for used in graph.uses(value) {
                propagation.visit(used)?;
            }
        }
        propagation.check_lists()?;
        Ok(propagation.finish())
    }

    /// As [`Activity::of`], for a graph whose composite operators have not been expanded. All results of such an operator
    /// are active if a recorded call of it has a history. Nodes that cannot be differentiated have no active results:
    /// differentiation reports them.
    pub(super) fn of_composites(graph: &Graph, wrt: &[ValueId], formulas: &dyn FormulaGraphs) -> Activity {
        let types = KnownTypes::of(graph);
        let mut propagation = Propagation::new(graph, wrt, formulas, &types);
        while let Some(value) = propagation.open.pop() {
            for used in graph.uses(value) {
                if !propagation.visit_composite(used) {
                    let _ = propagation.visit(used);
                }
            }
        }
        propagation.finish()
    }

    pub(super) fn is_active(&self, value: ValueId) -> bool {
        self.active.contains(&value)
    }

    /// Whether a value depends on a given value in every run.
    pub(super) fn is_certain(&self, value: ValueId) -> bool {
        self.is_active(value) && !self.uncertain.contains(&value)
    }

    pub(super) fn derivative(&self, node: NodeId) -> Option<&OpDerivative> {
        self.derivatives.get(&node)
    }

    /// Returns the active operands of a node that give its results a history: those that a formula of the operator is for.
    pub(super) fn history_operands<'a>(
        &'a self,
        graph: &'a Graph,
        node: NodeId,
    ) -> impl Iterator<Item = ValueId> + 'a {
        let operands = graph.operands(node).enumerate().filter(|(_, v)| self.is_active(*v));
        let gives = move |index: usize| match self.derivative(node) {
            Some(OpDerivative::Formulas(formulas)) => {
                !formulas.iter().any(|f| f.graph.is_none() && f.args.contains(&index))
            }
            _ => true,
        };
        operands.filter(move |(i, _)| gives(*i)).map(|(_, value)| value)
    }

    /// Finds the active values that are not certain: starting where a block output or an initial value is inactive.
    fn find_uncertain(&mut self, graph: &Graph) {
        let mut open: Vec<ValueId> = Vec::new();
        for node in graph.nodes_deep().filter(|n| graph.block_count(*n) > 0) {
            for (value, origins) in merged(graph, node) {
                let never = |v: &&ValueId| graph.is_prim(graph.def(**v), Prim::Uninitialized);
                if self.is_active(value) && origins.iter().any(|v| !self.is_active(*v) && !never(&v)) {
                    open.push(value);
                }
            }
        }
        while let Some(value) = open.pop() {
            if !self.uncertain.insert(value) {
                continue;
            }
            for used in graph.uses(value) {
                match merge_targets(graph, used) {
                    Some(merged) => open.extend(merged.into_iter().filter(|v| self.is_active(*v))),
                    None => {
                        let certain = self.history_operands(graph, used.user).any(|v| self.is_certain(v));
                        if !certain && graph.block_count(used.user) == 0 {
                            open.extend(graph.results(used.user).filter(|v| self.is_active(*v)));
                        }
                    }
                }
            }
        }
    }
}

/// Which inputs and results of a function are connected by derivatives.
pub struct Dependence {
    /// For each input, the results that may depend on it differentiably. A tuple that the graph returns has one result per
    /// element.
    pub of_input: Vec<Vec<bool>>,
    /// For each input, what the derivative with respect to it reads.
    pub kept: Vec<KeptTensors>,
}

impl Dependence {
    /// Follows the inputs of a graph. Bodies of composite operators must have been expanded.
    ///
    /// # Errors
    /// Returns the node through which dependence cannot be followed.
    pub fn of(graph: &Graph, formulas: &dyn FormulaGraphs) -> Result<Dependence, NotDifferentiable> {
        let values: Vec<ValueId> = match graph.outputs().collect::<Vec<_>>()[..] {
            [tuple] if graph.is_prim(graph.def(tuple), Prim::TupleConstruct) => {
                graph.operands(graph.def(tuple)).collect()
            }
            ref outputs => outputs.to_vec(),
        };
        let types = KnownTypes::of(graph);
        let of = |input: ValueId| {
            if !carries(graph.ty(input)) {
                return Ok((vec![false; values.len()], KeptTensors::default()));
            }
            let activity = Activity::of(graph, &[input], formulas, &types)?;
            let kept = KeptTensors::of_input(graph, &values, &activity, formulas);
            Ok((values.iter().map(|value| activity.is_active(*value)).collect(), kept))
        };
        let (of_input, kept) = graph.inputs().map(of).collect::<Result<_, _>>()?;
        Ok(Dependence { of_input, kept })
    }
}

/// The merged values of a branch or loop (its results, and the inputs of a loop's body), each with the values that it
/// may be.
fn merged(graph: &Graph, node: NodeId) -> Vec<(ValueId, Vec<ValueId>)> {
    let blocks: Vec<BlockId> = graph.blocks(node).collect();
    let outputs: Vec<Vec<ValueId>> = blocks.iter().map(|b| graph.block_outputs(*b).collect()).collect();
    let mut found = Vec::new();
    match graph.prim(node) {
        Some(Prim::If) => {
            for (i, result) in graph.results(node).enumerate() {
                found.push((result, outputs.iter().filter_map(|o| o.get(i)).copied().collect()));
            }
        }
        Some(Prim::Loop) => {
            let inputs: Vec<ValueId> = graph.block_inputs(blocks[0]).collect();
            for (i, result) in graph.results(node).enumerate() {
                let origins = vec![graph.operand(node, i + 2), outputs[0][i + 1]];
                found.push((inputs[i + 1], origins.clone()));
                found.push((result, origins));
            }
        }
        _ => {}
    }
    found
}

/// Returns the results and block inputs that receive the value of a use, which is an initial value of a loop or an output of
/// a block; `None` for other uses.
pub(super) fn merge_targets(graph: &Graph, used: Use) -> Option<Vec<ValueId>> {
    let index = used.index as usize;
    let carried = |node: NodeId, i: usize| {
        let body = graph.blocks(node).next()?;
        Some(vec![graph.block_inputs(body).nth(i + 1)?, graph.result(node, i)])
    };
    match graph.prim(used.user)? {
        Prim::Loop if index >= 2 => carried(used.user, index - 2),
        Prim::Loop => Some(Vec::new()),
        Prim::Return => {
            let owner = graph.enclosing(used.user);
            let Some(owner) = owner else { return Some(Vec::new()) };
            match graph.prim(owner)? {
                Prim::If => Some(vec![graph.result(owner, index)]),
                Prim::Loop if index >= 1 => carried(owner, index - 1),
                Prim::Loop => Some(Vec::new()),
                _ => None,
            }
        }
        Prim::If => Some(Vec::new()),
        _ => None,
    }
}

/// Whether the result of a node is only returned, or an element of tuples that are.
fn is_returned(graph: &Graph, node: NodeId) -> bool {
    let end = graph.ret(graph.root());
    let is_end = |used: Use| {
        let is_tuple = graph.is_prim(used.user, Prim::TupleConstruct);
        used.user == end || is_tuple && graph.uses(graph.result(used.user, 0)).all(|u| u.user == end)
    };
    graph.uses(graph.result(node, 0)).all(is_end)
}

/// Whether a node hands on a tensor as it is, with another static type.
pub(super) fn is_cast(prim: Prim) -> bool {
    matches!(prim, Prim::UncheckedCast | Prim::UncheckedUnwrapOptional | Prim::Annotate)
}

/// The propagation of activity along uses.
struct Propagation<'a> {
    graph: &'a Graph,
    formulas: &'a dyn FormulaGraphs,
    types: &'a KnownTypes,
    open: Vec<ValueId>,
    found: Activity,
}

impl<'a> Propagation<'a> {
    fn new(
        graph: &'a Graph,
        wrt: &[ValueId],
        formulas: &'a dyn FormulaGraphs,
        types: &'a KnownTypes,
    ) -> Self {
        let found = Activity {
            active: wrt.iter().copied().collect(),
            uncertain: HashSet::default(),
            derivatives: HashMap::default(),
        };
        Propagation { graph, formulas, types, open: wrt.to_vec(), found }
    }

    fn finish(mut self) -> Activity {
        self.found.find_uncertain(self.graph);
        self.found
    }

    /// Activates the results of a composite operator; returns whether the use is an operand of one.
    fn visit_composite(&mut self, used: Use) -> bool {
        let node = used.user;
        let Some(row) = self.graph.op(node).row() else { return false };
        if !matches!(self.formulas.derivative(row), Ok(OpDerivative::Body(_))) {
            return false;
        }
        let dependence = self.formulas.body_dependence(row);
        if !dependence.is_constant_arg(used.index as usize) {
            let results = self.graph.results(node).enumerate();
            results.filter(|(i, _)| !dependence.is_constant_result(*i)).for_each(|(_, v)| self.activate(v));
        }
        true
    }

    fn visit(&mut self, used: Use) -> Result<(), NotDifferentiable> {
        let (graph, node) = (self.graph, used.user);
        if let Some(merged) = merge_targets(graph, used) {
            merged.into_iter().for_each(|v| self.activate(v));
            return Ok(());
        }
        let results = || graph.results(node).filter(|v| carries(graph.ty(*v)));
        if graph.is_prim(node, Prim::DictConstruct) && is_returned(graph, node) {
            // The dictionary itself is active, so that its entries are found.
            self.found.active.insert(graph.result(node, 0));
            graph.uses(graph.result(node, 0)).for_each(|used| self.activate_tuple(used));
            return Ok(());
        }
        if is_element(graph, node) {
            results().for_each(|v| self.activate(v));
            return Ok(());
        }
        let is_derived = !matches!(self.derivative_of(node)?, Some(OpDerivative::Constant));
        if let Some(hiding) = graph.results(node).find(|v| is_derived && hides(graph.ty(*v))) {
            let reason = format!(
                "stores a tensor that requires a gradient in a value of type {}, which differentiation does not follow",
                graph.ty(hiding)
            );
            return Err(NotDifferentiable::at(graph, node, reason));
        }
        if let Some(prim) = graph.prim(node) {
            match prim {
                Prim::ListConstruct | Prim::TupleConstruct | Prim::ListUnpack | Prim::TupleUnpack => {}
                _ if is_cast(prim) => {}
                _ if results().next().is_none() => return Ok(()),
                _ => return Err(NotDifferentiable::at(graph, node, "has no derivative as a graph")),
            }
            results().for_each(|v| self.activate(v));
            return Ok(());
        }
        if results().next().is_none() || self.found.derivatives.contains_key(&node) {
            return Ok(());
        }
        match self.derivative_of(node)?.unwrap_or(OpDerivative::Unknown) {
            OpDerivative::Constant => Ok(()),
            OpDerivative::Body(_) => Err(NotDifferentiable::at(graph, node, "its body was not expanded")),
            OpDerivative::Unknown => Err(NotDifferentiable::at(graph, node, "has no derivative as a graph")),
            OpDerivative::Formulas(formulas) => {
                let index = used.index as usize;
                if formulas.iter().any(|f| f.graph.is_none() && f.args.contains(&index)) {
                    return Ok(());
                }
                if self.has_integral_dtype(node) {
                    return Ok(());
                }
                if self.has_dynamic_dtype(node) {
                    return Err(NotDifferentiable::at(graph, node, "its dtype is not a constant"));
                }
                // A result whose gradient no formula reads is not differentiable.
                let reads = |i: usize| formulas.iter().any(|f| f.params.contains(&Named::Grad(i)));
                let of_none = !(0..graph.result_count(node)).any(reads);
                let read = graph.results(node).enumerate().filter(|(i, _)| of_none || reads(*i));
                read.for_each(|(_, result)| self.activate(result));
                self.found.derivatives.insert(node, OpDerivative::Formulas(formulas));
                Ok(())
            }
        }
    }

    /// Checks that all elements of a list are active where an operator maps it to another list, element by element, or reads an
    /// element whose index is known at run time only.
    fn check_lists(&self) -> Result<(), NotDifferentiable> {
        let graph = self.graph;
        let is_list = |v: &ValueId| graph.ty(*v).list_elem().is_some_and(Type::is_tensor);
        let is_partly_active = |node: &NodeId| {
            let Some(list) = graph.operands(*node).find(is_list) else { return false };
            let made = graph.def(list);
            let is_active = |v: ValueId| self.found.active.contains(&v);
            let reads_any = is_element(graph, *node) && graph.is_prim(made, Prim::ListConstruct);
            (graph.results(*node).any(|v| is_list(&v)) || reads_any)
                && !(graph.is_prim(made, Prim::ListConstruct) && graph.operands(made).all(is_active))
        };
        let elements = graph
            .nodes_deep()
            .filter(|n| is_element(graph, *n) && graph.results(*n).any(|v| self.found.active.contains(&v)));
        let mapping = self.found.derivatives.keys().copied().chain(elements).filter(|n| is_partly_active(n));
        match mapping.min() {
            Some(node) => {
                let reason = "maps or reads a list of tensors, and not all of them require gradients";
                Err(NotDifferentiable::at(graph, node, reason))
            }
            None => Ok(()),
        }
    }

    /// Returns the arguments that state the dtype of a node's results, if their types do not have it, and whether they state
    /// it in every call: `dtype` does. One for each kind of device, as `cpu_dtype`, does so where the call casts.
    fn stated_dtypes(&self, node: NodeId) -> impl Iterator<Item = (bool, ValueId)> {
        let graph = self.graph;
        let is_known = |v: ValueId| match self.types.type_of(graph, v).kind() {
            TypeKind::Tensor(tensor) => tensor.dtype.is_some(),
            _ => false,
        };
        let row = graph.op(node).row().filter(|_| !graph.results(node).all(is_known));
        let args = row.map_or(&[][..], |row| &graph.registry().schema(row).args);
        let stating =
            args.iter().zip(graph.operands(node)).filter(|(arg, _)| arg.name.as_str().ends_with("dtype"));
        stating.map(|(arg, value)| (arg.name.as_str() == "dtype", value))
    }

    /// Whether an argument that is known only at run time states the dtype of a node's result, which may be an integer: then
    /// the result has no gradient.
    fn has_dynamic_dtype(&self, node: NodeId) -> bool {
        self.stated_dtypes(node).any(|(_, v)| self.may_be_integral_dtype(v))
    }

    /// Whether a value may be the number of an integer dtype. The dtype of another tensor is not: it is read for the sake of
    /// gradients, which are not integers. Backward graphs have such numbers as results of branches, and in lists.
    fn may_be_integral_dtype(&self, value: ValueId) -> bool {
        let graph = self.graph;
        let (mut open, mut seen) = (vec![value], HashSet::<ValueId, FxBuildHasher>::default());
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            let def = graph.def(value);
            if graph.is_prim(def, Prim::If) {
                let Some(result) = graph.results(def).position(|v| v == value) else { return true };
                open.extend(graph.blocks(def).filter_map(|block| graph.block_outputs(block).nth(result)));
                continue;
            }
            if graph.prim(def).is_some_and(is_cast) {
                open.extend(graph.operands(def));
                continue;
            }
            let is_stored = |of: ValueId| graph.ty(of).is_tensor() || graph.ty(of).list_elem().is_some();
            let is_closed = match graph.constant(value) {
                Some(number) => {
                    number.as_int().and_then(DType::from_scalar_type).is_none_or(|d| !d.is_integral(true))
                }
                None => {
                    graph.ty(value) == Type::NONE
                        || graph.is_prim(def, Prim::Uninitialized)
                        || graph.op(def).row().is_some() && graph.operands(def).any(is_stored)
                }
            };
            if !is_closed {
                return true;
            }
        }
        false
    }

    /// Whether the results of a node are integers or bools in every call, by the dtype that an argument states.
    fn has_integral_dtype(&self, node: NodeId) -> bool {
        let number = |v: ValueId| self.graph.constant(v).and_then(|n| n.as_int());
        let is_integral =
            |v| number(v).and_then(DType::from_scalar_type).is_some_and(|dtype| dtype.is_integral(true));
        let mut stated = self.stated_dtypes(node).peekable();
        stated.peek().is_some() && stated.all(|(always, v)| always && is_integral(v))
    }

    /// Activates a tuple that holds a returned dictionary.
    fn activate_tuple(&mut self, used: Use) {
        if self.graph.is_prim(used.user, Prim::TupleConstruct) {
            self.found.active.insert(self.graph.result(used.user, 0));
        }
    }

    fn derivative_of(&self, node: NodeId) -> Result<Option<OpDerivative>, NotDifferentiable> {
        let at_node = |error| NotDifferentiable { node: Some(node), ..error };
        self.graph.op(node).row().map(|row| self.formulas.derivative(row)).transpose().map_err(at_node)
    }

    fn activate(&mut self, value: ValueId) {
        if carries(self.types.type_of(self.graph, value)) && self.found.active.insert(value) {
            self.open.push(value);
        }
    }
}

/// Whether a value of this type may carry a gradient.
fn carries(ty: Type) -> bool {
    match ty.kind() {
        TypeKind::Tensor(tensor) => tensor.dtype.is_none_or(|d| d.is_floating() || d.is_complex()),
        TypeKind::List(elem) | TypeKind::Optional(elem) => carries(*elem),
        TypeKind::Tuple(tuple) => tuple.elems.iter().any(|ty| carries(*ty)),
        _ => false,
    }
}

/// Whether a value of this type may hold tensors whose gradients are not followed.
fn hides(ty: Type) -> bool {
    match ty.kind() {
        TypeKind::Any
        | TypeKind::Dict(..)
        | TypeKind::Union(_)
        | TypeKind::Future(_)
        | TypeKind::Await(_)
        | TypeKind::RRef(_)
        | TypeKind::Class(_)
        | TypeKind::Interface(_)
        | TypeKind::PyObject
        | TypeKind::AnyList
        | TypeKind::AnyTuple
        | TypeKind::AnyClass => true,
        TypeKind::List(elem) | TypeKind::Optional(elem) => hides(*elem),
        TypeKind::Tuple(tuple) => tuple.elems.iter().any(|ty| hides(*ty)),
        _ => false,
    }
}

/// Refuses graphs that write memory or state, wait for tasks or call the host: the forward graph runs without a tape.
fn check_effects(graph: &Graph) -> Result<(), NotDifferentiable> {
    let allowed = Effects::READS
        | Effects::ALIASES
        | Effects::RAISES
        | Effects::READS_STATE
        | Effects::RANDOM
        | Effects::CONTROL
        | Effects::IDENTITY
        | Effects::DIVERGES
        | Effects::IO;
    let refused = |node: &NodeId| {
        let ends = graph.is_prim(*node, Prim::Return) || graph.is_prim(*node, Prim::Param);
        let effects = graph.effects(*node);
        let effects = if only_stores(graph, *node) { effects.without(Effects::WRITES) } else { effects };
        !ends && !allowed.contains(effects)
    };
    match graph.nodes_deep().find(refused) {
        Some(node) => {
            Err(NotDifferentiable::at(graph, node, format!("has effects: {:?}", graph.effects(node))))
        }
        None => Ok(()),
    }
}

/// Whether an operator counts as writing only because views of its operand are put into its result, a list.
pub(crate) fn only_stores(graph: &Graph, node: NodeId) -> bool {
    let registry = graph.registry();
    let fixed = |row| {
        !matches!(registry.facet::<AliasRule>(row), Some(AliasRule::WritesWhen { .. } | AliasRule::Waits))
    };
    let stores_views = |row| {
        let returns = &registry.schema(row).returns;
        returns.iter().any(|r| r.ty.list_elem().is_some_and(Type::is_tensor) && r.alias.is_some())
    };
    let row = graph.op(node).row();
    row.is_some_and(|row| !registry.schema(row).is_mutable() && fixed(row) && stores_views(row))
}
