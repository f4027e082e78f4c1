//! Activity: the values of a graph that depend differentiably on given values.
//!
//! A value is active if it is a tensor, or a list or tuple of tensors, and a chain of operators with derivatives leads
//! to it from a value that needs a gradient. Only values of the root block are active: a graph whose branches or loops
//! read an active value is refused. O(nodes + uses).

use super::NotDifferentiable;
use super::reverse::{FormulaGraphs, OpDerivative};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{AliasRule, Effects, Graph, NodeId, Prim, Type, ValueId};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

/// The active values of a graph, and the derivatives of the operators that compute them.
pub(super) struct Activity {
    active: HashSet<ValueId, FxBuildHasher>,
    derivatives: HashMap<NodeId, OpDerivative, FxBuildHasher>,
}

impl Activity {
    pub(super) fn of(
        graph: &Graph,
        wrt: &[ValueId],
        formulas: &dyn FormulaGraphs,
    ) -> Result<Activity, NotDifferentiable> {
        check_effects(graph)?;
        let mut activity = Activity { active: HashSet::default(), derivatives: HashMap::default() };
        for &value in wrt {
            activity.activate(graph, value)?;
        }
        for node in graph.nodes(graph.root()) {
            if graph.operands(node).any(|v| activity.is_active(v)) {
                activity.visit(graph, node, formulas)?;
            }
        }
        Ok(activity)
    }

    pub(super) fn is_active(&self, value: ValueId) -> bool {
        self.active.contains(&value)
    }

    pub(super) fn derivative(&self, node: NodeId) -> Option<&OpDerivative> {
        self.derivatives.get(&node)
    }

    /// Marks a value that no nested block may use.
    fn activate(&mut self, graph: &Graph, value: ValueId) -> Result<(), NotDifferentiable> {
        let root = graph.root();
        if let Some(inner) = graph.uses(value).find(|u| graph.parent(u.user) != root) {
            return Err(NotDifferentiable::at(
                graph,
                inner.user,
                "a branch or loop reads a tensor that needs a gradient",
            ));
        }
        self.active.insert(value);
        Ok(())
    }

    fn visit(
        &mut self,
        graph: &Graph,
        node: NodeId,
        formulas: &dyn FormulaGraphs,
    ) -> Result<(), NotDifferentiable> {
        if let Some(prim) = graph.prim(node) {
            return match prim {
                Prim::ListConstruct | Prim::TupleConstruct | Prim::ListUnpack | Prim::TupleUnpack => {
                    self.activate_results(graph, node)
                }
                _ if graph.results(node).all(|v| !carries(graph.ty(v))) => Ok(()),
                _ => Err(NotDifferentiable::at(graph, node, "has no derivative as a graph")),
            };
        }
        if graph.results(node).all(|v| !carries(graph.ty(v))) {
            return Ok(());
        }
        let row = graph.op(node).row();
        let derivative =
            row.map(|row| formulas.derivative(row)).transpose()?.unwrap_or(OpDerivative::Unknown);
        match derivative {
            OpDerivative::Constant => return Ok(()),
            OpDerivative::Formulas(_) => {}
            OpDerivative::Body(_) => {
                return Err(NotDifferentiable::at(graph, node, "its body was not expanded"));
            }
            OpDerivative::Unknown => {
                return Err(NotDifferentiable::at(graph, node, "has no derivative as a graph"));
            }
        }
        self.derivatives.insert(node, derivative);
        self.activate_results(graph, node)
    }

    fn activate_results(&mut self, graph: &Graph, node: NodeId) -> Result<(), NotDifferentiable> {
        let results: Vec<ValueId> = graph.results(node).filter(|v| carries(graph.ty(*v))).collect();
        results.into_iter().try_for_each(|v| self.activate(graph, v))
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

/// Refuses graphs with effects: the forward graph runs without a tape, and may be run again.
fn check_effects(graph: &Graph) -> Result<(), NotDifferentiable> {
    let allowed = Effects::READS
        | Effects::ALIASES
        | Effects::RAISES
        | Effects::READS_STATE
        | Effects::RANDOM
        | Effects::CONTROL
        | Effects::IDENTITY
        | Effects::DIVERGES;
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
