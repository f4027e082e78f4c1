//! How the results of a composite operator depend on its arguments.

use super::library::FormulaLibrary;
use super::preparation::{SPECIALIZE, expanded};
use flambeau_ir::types::TensorType;
use flambeau_ir::{At, CompilationUnit, Graph, IValue, NodeId, OpId, Type, ValueId};
use flambeau_rewrite::autodiff::{self, BodyDependence, Named, OpDerivative, concrete_value};
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError};

/// The assumption about an argument of a body.
#[derive(Debug)]
enum AssumedArgument {
    Nothing,
    Type(Type),
    Value(IValue),
}

/// Limit of the kinds of arguments for which the dependence of a body is known; all are released when it is reached.
const MAX_DEPENDENCE_OF_ARGS: usize = 256;

impl FormulaLibrary {
    /// Returns how the results of a composite operator depend on its arguments.
    pub(crate) fn dependence_of_body(&self, op: OpId) -> Arc<BodyDependence> {
        let known = || self.body_dependence.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dependence) = known().get(&op) {
            return Arc::clone(dependence);
        }
        let dependence = Arc::new(self.find_dependence(op, |_, _| {}).unwrap_or_default());
        known().insert(op, Arc::clone(&dependence));
        dependence
    }

    /// Returns how the results of a call of a composite operator depend on its arguments. Where loops of the body depend on numbers
    /// and sizes, these are assumed.
    pub(super) fn dependence_of_args(&self, op: OpId, args: &[IValue]) -> Arc<BodyDependence> {
        let general = self.dependence_of_body(op);
        if general.is_known() {
            return general;
        }
        let schema = self.registry().schema(op);
        let described = |(arg, value): (usize, &IValue)| match value {
            IValue::Tensor(t) => AssumedArgument::Type(Type::tensor(TensorType {
                strides: None,
                requires_grad: None,
                ..TensorType::of(t)
            })),
            value => {
                let value = concrete_value(value.clone(), schema.args[arg].ty, false);
                let holds_tensors = value.visit(|part| match part {
                    IValue::Tensor(_) | IValue::Object(_) => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                });
                if holds_tensors.is_break() {
                    AssumedArgument::Nothing
                } else {
                    AssumedArgument::Value(value)
                }
            }
        };
        let assumed: Vec<AssumedArgument> = args.iter().enumerate().map(described).collect();
        let key = (op, format!("{assumed:?}"));
        let known = || self.dependence_of_args.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&key) {
            return Arc::clone(found);
        }
        let found = self.find_dependence(op, |body, params| {
            let inputs: Vec<ValueId> = body.inputs().collect();
            let root = body.root();
            for (input, param) in inputs.into_iter().zip(params) {
                let Some(assumed) = param.arg().and_then(|arg| assumed.get(arg)) else { continue };
                let mut editor = body.edit();
                match assumed {
                    AssumedArgument::Nothing => {}
                    AssumedArgument::Type(ty) => editor.set_type(input, *ty),
                    AssumedArgument::Value(value) => {
                        editor.at(At::start(root));
                        let value = editor.constant(value.clone());
                        editor.replace_all_uses(input, value);
                    }
                }
            }
        });
        let found = Arc::new(found.unwrap_or_default());
        let mut known = known();
        if known.len() >= MAX_DEPENDENCE_OF_ARGS {
            known.clear();
        }
        known.insert(key, Arc::clone(&found));
        found
    }

    /// Returns how the results of a node depend on its operands, given the types of these and the constants among them.
    pub(crate) fn dependence_of_call(&self, graph: &Graph, node: NodeId) -> Option<BodyDependence> {
        let operands: Vec<ValueId> = graph.operands(node).collect();
        self.find_dependence(graph.op(node).row()?, |body, params| {
            let inputs: Vec<ValueId> = body.inputs().collect();
            let root = body.root();
            for (input, param) in inputs.into_iter().zip(params) {
                let Some(arg) = param.arg() else { continue };
                let Some(&operand) = operands.get(arg) else { continue };
                let mut editor = body.edit();
                match graph.constant(operand) {
                    Some(constant) => {
                        editor.at(At::start(root));
                        let value = editor.constant(constant.clone());
                        editor.replace_all_uses(input, value);
                    }
                    None => editor.set_type(input, graph.ty(operand)),
                }
            }
        })
    }

    /// Returns how the results of a composite operator depend on its arguments, for a body whose inputs `assume` restricts;
    /// `None` for other operators.
    fn find_dependence(&self, op: OpId, assume: impl FnOnce(&mut Graph, &[Named])) -> Option<BodyDependence> {
        let OpDerivative::Body(body) = self.op_derivative(op).ok()? else { return None };
        let mut graph = (**body.graph.as_ref()?).clone();
        let results = self.registry().schema(op).returns.len();
        assume(&mut graph, &body.params);
        let known = || {
            let graph = self.session.apply_text(&graph, &CompilationUnit::new(), SPECIALIZE).ok()?;
            let (mut graph, _) =
                expanded(&self.session, self, graph, &|_| Vec::new(), &|_, _| false).ok()?.ok()?;
            autodiff::unpack_results(&mut graph);
            autodiff::Dependence::of(&graph, self).ok()
        };
        Some(BodyDependence::new(&body, results, known().as_ref()))
    }
}
