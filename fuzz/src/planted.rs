//! Intentionally wrong passes, one for each dimension in which cases vary: the oracles must find them.
//! [`flambeau_rewrite::InjectedBug`] enables bugs in the standard passes.

use crate::oracle::PassEquivalence;
use flambeau_ir::attr::names;
use flambeau_ir::types::TypeKind;
use flambeau_ir::{At, Attr, Effects, Graph, IValue, NodeId, Prim, Type, ValueId, ValueSubstitution};
use flambeau_rewrite::{Pass, PassCx, PassError, Pipeline};

/// A kind of wrong pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// Removes errors that the program raises.
    DropsErrors,
    /// Removes prints of the program.
    DropsPrints,
    /// Moves the reads of a tensor before a write of another input, as if two inputs never shared memory.
    InputsShareNothing,
    /// Replaces `x + 0` by `x`, although the sum of -0.0 and 0.0 is 0.0.
    ForgetsNegativeZero,
    /// Replaces `x * 1.0` by `x` for any element type.
    ForgetsTheElementType,
    /// Replaces `relu(x)` by `x`: wrong for negative elements, so no case with an empty operand shows it.
    DropsRelu,
    /// Replaces results of calls by the first argument.
    SkipsCalls,
    /// Never runs tasks without a wait, and does not wait for others: returns the first captured value instead.
    SkipsTasks,
}

impl Bug {
    /// All bugs.
    pub(crate) const ALL: [Bug; 8] = [
        Bug::DropsErrors,
        Bug::DropsPrints,
        Bug::InputsShareNothing,
        Bug::ForgetsNegativeZero,
        Bug::ForgetsTheElementType,
        Bug::DropsRelu,
        Bug::SkipsCalls,
        Bug::SkipsTasks,
    ];

    /// Returns the name, for reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Bug::DropsErrors => "drops-errors",
            Bug::DropsPrints => "drops-prints",
            Bug::InputsShareNothing => "inputs-share-nothing",
            Bug::ForgetsNegativeZero => "forgets-negative-zero",
            Bug::ForgetsTheElementType => "forgets-the-element-type",
            Bug::DropsRelu => "drops-relu",
            Bug::SkipsCalls => "skips-calls",
            Bug::SkipsTasks => "skips-tasks",
        }
    }
}

/// Returns the oracle that must find a bug.
pub(crate) fn oracle(bug: Bug) -> PassEquivalence {
    PassEquivalence::new(bug.name(), Pipeline::new().then(Wrong(bug)))
}

struct Wrong(Bug);

impl Pass for Wrong {
    const NAME: &'static str = "wrong";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let nodes: Vec<NodeId> = cx.graph().nodes_deep().collect();
        match self.0 {
            Bug::InputsShareNothing => reads_first(cx),
            bug => nodes.into_iter().for_each(|node| one(cx, node, bug)),
        }
        Ok(())
    }
}

fn one(cx: &mut PassCx<'_>, node: NodeId, bug: Bug) {
    let graph = cx.graph();
    let named = |name: &str| graph.op_name(node).as_str() == name;
    match bug {
        Bug::DropsErrors if graph.is_prim(node, Prim::RaiseException) => cx.edit().erase(node),
        Bug::DropsPrints if graph.is_prim(node, Prim::Print) => cx.edit().erase(node),
        Bug::ForgetsNegativeZero if named("aten::add") && is_number(graph, node, 1, 0.0) => {
            first_operand(cx, node)
        }
        Bug::ForgetsTheElementType if named("aten::mul") && is_number(graph, node, 1, 1.0) => {
            first_operand(cx, node)
        }
        Bug::DropsRelu if named("aten::relu") => first_operand(cx, node),
        Bug::SkipsCalls if graph.is_prim(node, Prim::CallFunction) => operand(cx, node, 1),
        Bug::SkipsTasks if named("aten::wait") => {
            let task = graph.operands(node).next().map(|v| graph.def(v));
            let captured = task.and_then(|fork| graph.operands(fork).next());
            let fits = captured.filter(|&v| graph.ty(v).is_tensor());
            if let Some(value) = fits.filter(|_| task.is_some_and(|t| graph.is_prim(t, Prim::Fork))) {
                replace(cx, node, value);
            }
        }
        _ => {}
    }
}

fn first_operand(cx: &mut PassCx<'_>, node: NodeId) {
    operand(cx, node, 0);
}

fn operand(cx: &mut PassCx<'_>, node: NodeId, i: usize) {
    let value = cx.graph().operands(node).nth(i);
    if let Some(value) = value {
        replace(cx, node, value);
    }
}

fn replace(cx: &mut PassCx<'_>, node: NodeId, value: ValueId) {
    let old = cx.graph().result(node, 0);
    if cx.graph().ty(value).is_tensor() && cx.graph().ty(old).is_tensor() {
        cx.edit().replace_all_uses(old, value);
    }
}

/// Returns whether an operand is the constant `number`.
fn is_number(graph: &Graph, node: NodeId, i: usize, number: f64) -> bool {
    let constant = graph.operands(node).nth(i).and_then(|v| graph.constant(v));
    match constant {
        Some(IValue::Int(n)) => n as f64 == number,
        Some(IValue::Float(x)) => x == number,
        _ => false,
    }
}

/// Copies every input that is not written through its own name at the start of the program, and redirects all reads to
/// the copy: correct only if no other input shares its memory.
fn reads_first(cx: &mut PassCx<'_>) {
    let graph = cx.graph();
    let Some(neg) = graph.registry().lookup("aten::clone") else { return };
    let inputs: Vec<ValueId> =
        graph.inputs().filter(|&v| matches!(graph.ty(v).kind(), TypeKind::Tensor(_))).collect();
    let root = graph.root();
    for input in inputs {
        let graph = cx.graph();
        let pure = graph.uses(input).all(|u| {
            let row = graph.op(u.user).row();
            row.is_some_and(|id| !graph.registry().schema(id).has_aliases())
        });
        if !pure || graph.use_count(input) == 0 {
            continue;
        }
        let mut e = cx.edit();
        e.at(At::start(root));
        let format = e.constant_of(IValue::None, Type::optional(Type::INT));
        let node = e.node(neg, &[input, format], &[Type::TENSOR]);
        let copy = e.graph().result(node, 0);
        e.replace_uses_after(node, input, copy);
    }
}

/// A kind of wrong backward graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GradBug {
    /// The formula of a product lacks a factor.
    WrongFormula,
    /// Gradients are not summed over broadcast dimensions.
    MissesSums,
    /// The backward graph reads a tensor that has changed since the forward graph kept it.
    StaleCapture,
}

impl GradBug {
    /// All bugs.
    pub(crate) const ALL: [GradBug; 3] = [GradBug::WrongFormula, GradBug::MissesSums, GradBug::StaleCapture];

    /// Returns the name, for reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            GradBug::WrongFormula => "wrong-formula",
            GradBug::MissesSums => "misses-sums",
            GradBug::StaleCapture => "stale-capture",
        }
    }

    /// Changes a backward graph.
    pub(crate) fn apply_bug(self, graph: &mut Graph) {
        let name = match self {
            GradBug::WrongFormula => "aten::mul",
            GradBug::MissesSums => "aten::sum_to_size",
            GradBug::StaleCapture => return,
        };
        let named = |n: &NodeId| {
            let row = graph.op(*n).row();
            row.is_some_and(|row| graph.registry().schema(row).name.as_str() == name)
        };
        let nodes: Vec<NodeId> = graph.nodes_deep().filter(named).collect();
        for node in nodes {
            let operand = graph.operand(node, 0);
            if graph.ty(operand).is_tensor() && graph.ty(graph.result(node, 0)).is_tensor() {
                graph.edit().replace_node(node, &[operand]);
            }
        }
    }
}

/// A bug in the plans of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanBug {
    /// Bail-outs pass the guarded value in place of a captured tensor.
    LosesCaptures,
    /// Bail-outs run the last write or print before them again.
    RepeatsEffects,
    /// Guards on which the plan relies are missing.
    SkipsGuards,
    /// The plan runs for arguments that it does not fit.
    StalePlans,
}

impl PlanBug {
    /// All bugs.
    pub(crate) const ALL: [PlanBug; 4] =
        [PlanBug::LosesCaptures, PlanBug::RepeatsEffects, PlanBug::SkipsGuards, PlanBug::StalePlans];

    /// Returns the name, for reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            PlanBug::LosesCaptures => "loses-captures",
            PlanBug::RepeatsEffects => "repeats-effects",
            PlanBug::SkipsGuards => "skips-guards",
            PlanBug::StalePlans => "stale-plans",
        }
    }

    /// Changes the graph of a plan.
    pub(crate) fn apply_bug(self, graph: &mut Graph) {
        let bailouts: Vec<NodeId> = graph.nodes_deep().filter(|&n| graph.is_prim(n, Prim::BailOut)).collect();
        match self {
            PlanBug::LosesCaptures => bailouts.into_iter().for_each(|node| replace_capture(graph, node)),
            PlanBug::RepeatsEffects => bailouts.into_iter().for_each(|node| repeat_effect(graph, node)),
            PlanBug::SkipsGuards => {
                for node in bailouts {
                    let guarded = graph.operand(node, 0);
                    graph.edit().replace_node(node, &[guarded]);
                }
            }
            PlanBug::StalePlans => {
                let inputs: Vec<ValueId> = graph.inputs().collect();
                for input in inputs {
                    let declared = graph.ty(input).erase_shapes();
                    graph.edit().set_type(input, declared);
                }
            }
        }
    }
}

/// Replaces the last captured tensor of a bail-out that is not the guarded one by the guarded one.
fn replace_capture(graph: &mut Graph, node: NodeId) {
    let guarded = graph.operand(node, 0);
    let is_other = |&i: &usize| {
        let value = graph.operand(node, i);
        value != guarded && graph.ty(value).is_tensor()
    };
    if let Some(index) = (1..graph.operand_count(node)).rev().find(is_other) {
        graph.edit().set_operand(node, index, guarded);
    }
}

/// Copies the last node before a bail-out that writes or prints to the start of its subgraph, if the bail-out captures
/// the operands of the node.
fn repeat_effect(graph: &mut Graph, node: NodeId) {
    let before = std::iter::successors(graph.prev(node), |&n| graph.prev(n));
    let has_effect = |&n: &NodeId| {
        graph.block_count(n) == 0 && graph.effects(n).intersects(Effects::WRITES.union(Effects::IO))
    };
    let Some(effect) = before.take_while(|&n| !graph.is_prim(n, Prim::BailOut)).find(has_effect) else {
        return;
    };
    let Some(body) = graph.attr(node, names::subgraph()).and_then(|a| a.as_graph()) else { return };
    let mut body = (**body).clone();
    let mut map = ValueSubstitution::new();
    let inputs: Vec<ValueId> = body.inputs().collect();
    graph.operands(node).skip(1).zip(inputs).for_each(|(value, input)| map.set(value, input));
    let root = body.root();
    for value in graph.operands(effect) {
        if let Some(constant) = graph.constant(value) {
            let copy = body.edit().at(At::start(root)).constant_of(constant, graph.ty(value));
            map.set(value, copy);
        }
    }
    let constants = body.nodes(root).take_while(|&n| body.is_prim(n, Prim::Constant)).last();
    let at = constants.map_or(At::start(root), At::after);
    if body.edit().at(at).copy_from(graph, [effect], &mut map).is_ok() {
        graph.edit().set_attr(node, names::subgraph(), Attr::Graph(std::sync::Arc::new(body)));
    }
}
