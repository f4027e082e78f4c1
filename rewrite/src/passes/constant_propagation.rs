//! Constant propagation: evaluates nodes with constant operands and simplifies control flow with known conditions.
//!
//! A node whose operands are all constants is evaluated if it is deterministic and free of effects, the memory involved
//! has no writers, and no mutable result escapes the graph (a caller could change the constant). A branch with a known
//! condition is replaced by the block taken. A type test is decided by the static type of a number, string or tensor.
//! Equal results of both blocks are used directly. A loop with zero iterations is replaced by its initial values, and a
//! loop-carried value that never changes by its initial value.
//!
//! One walk in program order plans all edits on the unchanged graph, with side tables of constants and equalities found
//! so far. The edits follow in the same order, so every prefix of them yields a valid program. Dead code is removed at
//! the end.

use super::dce::Dce;
use crate::control::InjectedBug;
use crate::deadline::Deadline;
use crate::log::LogLevel;
use crate::memory;
use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{Configure, PassOptions};
use crate::schedule::Schedule;
use flambeau_analysis::AliasDb;
use flambeau_exec::{EvalLimits, Host, KernelError, eval_node};
use flambeau_ir::attr::names;
use flambeau_ir::types::{NoClasses, TypeKind, is_subtype};
use flambeau_ir::{At, Attr, BlockId, Editor, Effects, Fault, Graph, IValue, NodeId, Prim, Type, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::ops::ControlFlow;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConstantPropagation {
    /// Fold only immutable values.
    pub immutable: bool,
    /// Also fold values that escape the graph, although a caller could write them and the next run would see the write.
    pub escaping: bool,
    /// Bounds on the evaluation of one node.
    pub limits: EvalLimits,
}

impl Configure for ConstantPropagation {
    const OPTIONS: &'static [&'static str] = &["immutable", "escaping"];

    fn configure(options: &PassOptions) -> Result<Self, String> {
        let (immutable, escaping) = (options.flag("immutable"), options.flag("escaping"));
        Ok(ConstantPropagation { immutable, escaping, ..Self::default() })
    }
}

impl Pass for ConstantPropagation {
    const NAME: &'static str = "constant_propagation";
    const DOC: &'static str =
        "Evaluates nodes with constant operands and simplifies control flow with known conditions.";

    fn schedule(&self) -> Schedule {
        Schedule::alone().then(Dce::default())
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let (fold_random, deadline) = (cx.injected_bug() == InjectedBug::FoldsRandom, cx.deadline());
        deadline.check()?;
        let (graph, db) = cx.with::<AliasDb>();
        let mut search = Search {
            graph,
            db,
            fold_random,
            deadline,
            pass: *self,
            host: Host::quiet(),
            known: HashMap::default(),
            same: HashMap::default(),
            edits: Vec::new(),
            refused: None,
        };
        search.run()?;
        let (edits, refused) = (search.edits, search.refused);
        if let Some((count, first)) = refused {
            cx.log(LogLevel::Debug, |_| {
                format!("{count} nodes with constant operands cannot be evaluated and stay; the first error: {first}")
            });
        }
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for edit in edits {
            if !fuel.take(edit.name(), editor.graph(), edit.node()) {
                break;
            }
            edit.apply(&mut editor);
        }
        Ok(())
    }
}

enum Edit {
    /// The results are these constants with these types.
    Fold(NodeId, Vec<(IValue, Type)>),
    /// Block `.1` replaces the branch.
    Take(NodeId, usize),
    /// Both blocks return the same value for result `.1`.
    Use(NodeId, usize),
    /// Both blocks return this constant for result `.1`.
    Join(NodeId, usize, IValue),
    /// The loop has zero iterations.
    Skip(NodeId),
    /// Carried value `.1` keeps its initial value.
    Invariant(NodeId, usize),
}

impl Edit {
    fn node(&self) -> NodeId {
        match self {
            Edit::Fold(n, _)
            | Edit::Take(n, _)
            | Edit::Use(n, _)
            | Edit::Join(n, ..)
            | Edit::Skip(n)
            | Edit::Invariant(n, _) => *n,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Edit::Fold(..) => "fold",
            Edit::Take(..) => "take-branch",
            Edit::Use(..) | Edit::Join(..) => "join",
            Edit::Skip(_) => "skip-loop",
            Edit::Invariant(..) => "invariant",
        }
    }

    fn apply(self, editor: &mut Editor<'_>) {
        match self {
            Edit::Fold(node, values) => {
                let loc = editor.graph().loc(node);
                let constants: SmallVec<[ValueId; 2]> = values
                    .into_iter()
                    .map(|(value, ty)| editor.at(At::before(node)).loc(loc).constant_of(value, ty))
                    .collect();
                editor.replace_node(node, &constants);
            }
            Edit::Take(node, index) => {
                let block = editor.graph().block(node, index);
                let outputs: SmallVec<[ValueId; 4]> = editor.graph().block_outputs(block).collect();
                editor.splice_before(block, node);
                editor.replace_node(node, &outputs);
            }
            Edit::Use(node, index) => {
                let g = editor.graph();
                // Earlier edits may have replaced the common value, in both blocks alike.
                let (result, value) = (g.result(node, index), g.operand(g.ret(g.block(node, 0)), index));
                editor.replace_all_uses(result, value);
            }
            Edit::Join(node, index, value) => {
                let (loc, result) = (editor.graph().loc(node), editor.graph().result(node, index));
                let ty = editor.graph().ty(result);
                let constant = editor.at(At::before(node)).loc(loc).constant_of(value, ty);
                editor.replace_all_uses(result, constant);
            }
            Edit::Skip(node) => {
                let initial: SmallVec<[ValueId; 4]> = editor.graph().operands(node).skip(2).collect();
                editor.replace_node(node, &initial);
            }
            Edit::Invariant(node, index) => {
                let g = editor.graph();
                let initial = g.operand(node, index + 2);
                let (result, carried) =
                    (g.result(node, index), g.result(g.param(g.block(node, 0)), index + 1));
                editor.replace_all_uses(carried, initial);
                editor.replace_all_uses(result, initial);
            }
        }
    }
}

enum Task {
    /// The nodes of a block from this one on.
    From(NodeId),
    /// Both blocks of a branch, or the body of a loop, have been visited.
    Done(NodeId),
    /// The block taken has been visited.
    Taken(NodeId, usize),
}

struct Search<'a> {
    graph: &'a Graph,
    db: &'a AliasDb,
    fold_random: bool,
    /// Checked before each evaluation; the bounds on evaluations do not bound their sum.
    deadline: Deadline,
    pass: ConstantPropagation,
    host: Host,
    /// Constants found, in addition to those of the graph.
    known: HashMap<ValueId, IValue, FxBuildHasher>,
    /// Values found equal to other values.
    same: HashMap<ValueId, ValueId, FxBuildHasher>,
    edits: Vec<Edit>,
    /// The number of nodes that this build cannot evaluate, and the error of the first one.
    refused: Option<(u64, KernelError)>,
}

impl Search<'_> {
    fn first(&self, block: BlockId) -> Task {
        let param = self.graph.param(block);
        Task::From(self.graph.next(param).expect("invariant: a block ends in prim::Return"))
    }

    fn run(&mut self) -> Result<(), PassError> {
        let mut stack = vec![self.first(self.graph.root())];
        while let Some(task) = stack.pop() {
            match task {
                Task::From(node) => {
                    let Some(next) = self.graph.next(node) else { continue };
                    stack.push(Task::From(next));
                    self.visit(node, &mut stack)?;
                }
                Task::Taken(node, index) => {
                    let block = self.graph.block(node, index);
                    for (result, output) in self.graph.results(node).zip(self.graph.block_outputs(block)) {
                        self.same.insert(result, output);
                    }
                    self.edits.push(Edit::Take(node, index));
                }
                Task::Done(node) if self.graph.is_prim(node, Prim::If) => self.join(node),
                Task::Done(_) => {}
            }
        }
        Ok(())
    }

    fn resolve(&self, mut value: ValueId) -> ValueId {
        while let Some(&other) = self.same.get(&value) {
            value = other;
        }
        value
    }

    fn constant(&self, value: ValueId) -> Option<IValue> {
        let value = self.resolve(value);
        self.known.get(&value).cloned().or_else(|| self.graph.constant(value))
    }

    fn visit(&mut self, node: NodeId, stack: &mut Vec<Task>) -> Result<(), PassError> {
        let g = self.graph;
        match g.prim(node) {
            Some(Prim::Constant) => {}
            Some(Prim::If) => match self.constant(g.operand(node, 0)).and_then(|c| c.as_bool()) {
                Some(condition) => {
                    let index = usize::from(!condition);
                    stack.push(Task::Taken(node, index));
                    stack.push(self.first(g.block(node, index)));
                }
                None => {
                    stack.push(Task::Done(node));
                    stack.extend(g.blocks(node).rev().map(|b| self.first(b)));
                }
            },
            Some(Prim::Loop) => self.visit_loop(node, stack),
            Some(Prim::Isinstance) if let Some(answer) = static_type_test(g, node) => {
                self.known.insert(g.result(node, 0), IValue::Bool(answer));
                self.edits.push(Edit::Fold(node, vec![(IValue::Bool(answer), Type::BOOL)]));
            }
            _ if g.block_count(node) > 0 => stack.extend(g.blocks(node).rev().map(|b| self.first(b))),
            _ => return self.fold(node),
        }
        Ok(())
    }

    fn visit_loop(&mut self, node: NodeId, stack: &mut Vec<Task>) {
        let g = self.graph;
        let none = self.constant(g.operand(node, 0)).and_then(|c| c.as_int()).is_some_and(|n| n <= 0)
            || self.constant(g.operand(node, 1)).and_then(|c| c.as_bool()) == Some(false);
        if none {
            for (result, initial) in g.results(node).zip(g.operands(node).skip(2)) {
                self.same.insert(result, initial);
            }
            self.edits.push(Edit::Skip(node));
            return;
        }
        let body = g.block(node, 0);
        let carried = g.block_inputs(body).skip(1).zip(g.block_outputs(body).skip(1));
        for (i, (input, output)) in carried.enumerate() {
            if input == output {
                let initial = g.operand(node, i + 2);
                self.same.insert(input, initial);
                self.same.insert(g.result(node, i), initial);
                self.edits.push(Edit::Invariant(node, i));
            }
        }
        stack.push(self.first(body));
    }

    /// Finds results of a branch that do not depend on the block taken.
    fn join(&mut self, node: NodeId) {
        let g = self.graph;
        let (a, b) = (g.block(node, 0), g.block(node, 1));
        for (i, (x, y)) in g.block_outputs(a).zip(g.block_outputs(b)).enumerate() {
            let result = g.result(node, i);
            let (rx, ry) = (self.resolve(x), self.resolve(y));
            if rx == ry {
                // Visible in both blocks, so it is defined outside of them.
                self.same.insert(result, rx);
                self.edits.push(Edit::Use(node, i));
                continue;
            }
            if g.ty(result).is_mutable() {
                continue;
            }
            let (Some(x), Some(y)) = (self.constant(x), self.constant(y)) else { continue };
            if crate::rules::rule::same_constant(&x, &y) {
                self.known.insert(result, x.clone());
                self.edits.push(Edit::Join(node, i, x));
            }
        }
    }

    fn may_fold(&self, node: NodeId) -> bool {
        let g = self.graph;
        let mut effects = g.effects(node);
        if self.fold_random {
            effects = effects.without(Effects::RANDOM);
        }
        let runs_here = g.prim(node).is_none_or(|prim| !prim.has_subgraph());
        if !effects.is_pure() || !runs_here || g.result_count(node) == 0 {
            return false;
        }
        if g.results(node).all(|v| g.use_count(v) == 0) {
            return false;
        }
        if memory::has_writers(self.db, g, node) {
            return false;
        }
        g.results(node).all(|v| {
            !g.ty(v).is_mutable()
                || !self.pass.immutable
                    && !self.db.has_writers(v)
                    && (self.pass.escaping || !self.db.escapes_scope(&[v]))
        })
    }

    fn fold(&mut self, node: NodeId) -> Result<(), PassError> {
        let g = self.graph;
        // The cheapest check first: most nodes have an operand that is not constant.
        let mut args = Vec::with_capacity(g.operand_count(node));
        for v in g.operands(node) {
            match self.constant(v) {
                Some(value) => args.push(value),
                None => return Ok(()),
            }
        }
        if !self.may_fold(node) {
            return Ok(());
        }
        self.deadline.check()?;
        let values = match eval_node(g, node, &args, self.pass.limits, &mut self.host) {
            Ok(values) => values,
            // A node that raises is not folded: the program raises at run time.
            Err(error) => {
                if error.fault() == Fault::Unsupported {
                    self.refused.get_or_insert((0, error)).0 += 1;
                }
                return Ok(());
            }
        };
        if !values.iter().all(is_storable) || takes_part_in_gradients(&args, &values) {
            return Ok(());
        }
        let typed: Vec<(IValue, Type)> = values
            .into_iter()
            .zip(g.results(node))
            .map(|(value, result)| {
                let ty = constant_type(&value, g.ty(result));
                (value, ty)
            })
            .collect();
        // A declared `number` whose value is a bool has no constant of its type.
        if typed.iter().any(|(value, ty)| !value.is_none() && !value.fits(*ty)) {
            return Ok(());
        }
        for (result, (value, _)) in g.results(node).zip(&typed) {
            self.known.insert(result, value.clone());
        }
        self.edits.push(Edit::Fold(node, typed));
        Ok(())
    }
}

/// Returns the result of a type test if it is that of all values of the operand's static type: a number, a string, or a
/// tensor of a known dtype, which is not absent. A cast of such a value does not change it.
fn static_type_test(g: &Graph, node: NodeId) -> Option<bool> {
    let Some(Attr::Types(tested)) = g.attr(node, names::types()) else { return None };
    let mut value = g.operand(node, 0);
    loop {
        let is_decided = match g.ty(value).kind() {
            TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Complex | TypeKind::Str => true,
            TypeKind::Tensor(facts) => facts.dtype.is_some() && !facts.undefined,
            _ => false,
        };
        if is_decided {
            let ty = g.ty(value).erase_shapes();
            return Some(tested.iter().any(|t| is_subtype(ty, t.erase_shapes(), &NoClasses)));
        }
        let def = g.def(value);
        if !g.is_prim(def, Prim::UncheckedCast) {
            return None;
        }
        value = g.operand(def, 0);
    }
}

/// Whether a value can be a constant in IR text: no objects, futures, generators or host objects.
fn is_storable(value: &IValue) -> bool {
    value
        .visit(|v| match v {
            IValue::Object(_)
            | IValue::Future(_)
            | IValue::Generator(_)
            | IValue::Host(_)
            | IValue::Uninitialized => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
        .is_continue()
}

/// Whether autograd would record the node. A leaf must be created in each run, and a tensor computed from one must keep
/// its graph, which a constant cannot.
fn takes_part_in_gradients(args: &[IValue], results: &[IValue]) -> bool {
    let requires_grad = |values: &[IValue]| {
        let mut found = false;
        values.iter().for_each(|value| value.visit_tensors(|t| found |= t.requires_grad()));
        found
    };
    let mut gives_tensors = false;
    results.iter().for_each(|value| value.visit_tensors(|_| gives_tensors = true));
    gives_tensors && (requires_grad(results) || requires_grad(args))
}

/// The type of a folded constant: that of the value if it is more specific than the declared result type.
fn constant_type(value: &IValue, declared: Type) -> Type {
    if matches!(value, IValue::None | IValue::Tensor(_)) || declared.is_mutable() {
        return declared;
    }
    let own = value.type_of();
    if crate::rules::rule::fits(own, declared) && declared.as_tuple().is_none() { own } else { declared }
}

#[cfg(test)]
mod tests {
    use crate::control::{Control, InjectedBug};
    use crate::testing::{assert_passes, run_with, toy};

    #[test]
    fn folds_branches_and_loops() {
        assert_passes(
            &toy(),
            "constant_propagation",
            "graph(%x : Tensor, %n : int):
  %1 : int = prim::Constant[value=2]()
  %2 : int = prim::Constant[value=3]()
  %t : bool = prim::Constant[value=1]()
  %f : bool = prim::Constant[value=0]()
  %3 : int = toy::mul(%1, %2)
  %c : bool = toy::lt(%3, %2)
  %y : Tensor, %k : int = prim::If(%c)
    block0():
      %a : Tensor = toy::relu(%x)
      -> (%a, %3)
    block1():
      %4 : int = toy::add(%3, %3)
      -> (%x, %4)
  %z : Tensor, %i : int = prim::Loop(%n, %t, %y, %k)
    block0(%j : int, %w : Tensor, %m : int):
      %v : Tensor = toy::mul(%w, %m)
      -> (%t, %v, %m)
  %u : Tensor = prim::Loop(%n, %f, %z)
    block0(%j2 : int, %w2 : Tensor):
      %v2 : Tensor = toy::relu(%w2)
      -> (%t, %v2)
  return (%u, %i)
",
            "graph(%x : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %k : int = prim::Constant[value=12]()
  %z : Tensor = prim::Loop(%n, %t, %x)
    block0(%j : int, %w : Tensor):
      %v : Tensor = toy::mul(%w, %k)
      -> (%t, %v)
  return (%z, %k)
",
        );
    }

    #[test]
    fn mutable_values_are_not_folded() {
        let text = "graph():
  %1 : int = prim::Constant[value=2]()
  %l : int[] = prim::ListConstruct(%1, %1)
  %r : Tensor = toy::rand(%l)
  %z : Tensor = toy::zeros(%l)
  %k : Tensor = toy::zeros(%l)
  %w : Tensor = toy::relu_(%k)
  return (%r, %z, %w)
";
        let after = run_with(&toy(), "constant_propagation", text, Control::new()).to_string();
        assert!(after.contains("toy::rand") && after.matches("toy::zeros").count() == 2, "{after}");
        let planted = Control::new().with_injected_bug(InjectedBug::FoldsRandom);
        let inner = "graph():
  %1 : int = prim::Constant[value=2]()
  %l : int[] = prim::ListConstruct(%1, %1)
  %r : Tensor = toy::rand(%l)
  %s : Tensor = toy::relu(%r)
  return (%s)
";
        let after = run_with(&toy(), "constant_propagation", inner, Control::new()).to_string();
        assert!(after.contains("toy::rand"), "{after}");
        let after = run_with(&toy(), "constant_propagation", inner, planted).to_string();
        assert!(!after.contains("toy::rand"), "{after}");
    }
}
