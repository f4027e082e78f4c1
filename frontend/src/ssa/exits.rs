//! Elimination of `return`, `break` and `continue`.
//!
//! Loop exits (`prim::LoopContinuation`) are removed first, then returns. A node after which control *might* have left
//! gets a boolean flag; the nodes after it in its block move into an `if` on that flag. On paths where control has
//! left, outputs that are never read are `prim::Uninitialized`. Nodes after a certain exit are unreachable and are
//! removed.
//!
//! The guards of a block are built from the last to the first, so that each node moves once. Nesting is traversed on
//! the heap ([`crate::trampoline`]), so 10,000 returns in a row or nested do not overflow the stack. Context managers are
//! blocks during the transformation, so that exits from them still run their `__exit__`.

use std::cell::RefCell;

use flambeau_ir::types::{NoClasses, unify};
use flambeau_ir::{At, BlockId, Graph, IValue, NodeId, Prim, Type, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::{Control, withs};
use crate::trampoline::{Task, Trampoline, run};

/// Whether control has left a block, and with which values.
#[derive(Clone, Debug)]
enum Exit {
    /// Control stays in the block.
    Wont,
    /// Control has left with these values.
    Will(Vec<ValueId>),
    /// Control has left with these values if the flag is true.
    Might(ValueId, Vec<ValueId>),
    /// Control never reaches the end.
    Throws,
}

struct ExitTransform<'g> {
    graph: &'g mut Graph,
    /// The kind of exit being eliminated.
    kind: Prim,
    yes: ValueId,
    no: ValueId,
    unset: HashMap<Type, ValueId, FxBuildHasher>,
}

#[derive(Clone, Copy)]
struct Exits<'a, 'g> {
    trampoline: &'a Trampoline<'a>,
    state: &'a RefCell<ExitTransform<'g>>,
}

pub(super) fn transform(graph: &mut Graph) {
    withs::to_blocks(graph);
    for kind in [Prim::LoopContinuation, Prim::ReturnStmt] {
        let root = graph.root();
        let mut e = graph.edit();
        e.at(At::start(root));
        let (yes, no) = (e.constant(IValue::Bool(true)), e.constant(IValue::Bool(false)));
        let state =
            RefCell::new(ExitTransform { graph: &mut *graph, kind, yes, no, unset: HashMap::default() });
        let trampoline = Trampoline::new();
        run(&trampoline, Exits { trampoline: &trampoline, state: &state }.block(root));
    }
    merge_consecutive_ifs(graph);
    withs::to_nodes(graph);
}

/// Like [`transform`], for a function whose only exit is a return at the end.
pub(super) fn return_at_the_end(graph: &mut Graph, control: &Control) {
    for &last in &control.returns {
        let (root, values) = (graph.root(), graph.operands(last).collect::<Vec<ValueId>>());
        let mut e = graph.edit();
        e.retain_block_outputs(root, |_| false);
        for value in values {
            e.add_block_output(root, value);
        }
        // After the return there is only the placeholder output from before the result was known.
        while let Some(node) = e.graph().prev(e.graph().ret(root)).filter(|&n| n != last) {
            e.erase(node);
        }
        e.erase(last);
    }
    let follows_its_condition = |&node: &NodeId| {
        let before = graph.def(graph.operand(node, 0));
        graph.is_prim(before, Prim::If) && graph.next(before) == Some(node)
    };
    if control.branches.iter().any(follows_its_condition) {
        merge_consecutive_ifs(graph);
    }
}

impl<'a, 'g: 'a> Exits<'a, 'g> {
    fn block(self, block: BlockId) -> Task<'a, Exit> {
        Box::pin(self.block_steps(block))
    }

    async fn block_steps(self, block: BlockId) -> Exit {
        // Forward: transform each node. Nodes after a certain exit are removed.
        let mut might: Vec<(NodeId, ValueId, Vec<ValueId>)> = Vec::new();
        let mut last = Exit::Wont;
        let nodes: Vec<NodeId> = self.state.borrow().graph.nodes(block).collect();
        for (i, &node) in nodes.iter().enumerate() {
            match self.node(node).await {
                Exit::Wont => {}
                Exit::Might(flag, values) => might.push((node, flag, values)),
                certain => {
                    last = certain;
                    let mut state = self.state.borrow_mut();
                    state.drop_nodes(&nodes[i + 1..]);
                    if matches!(state.graph.prim(node), Some(k) if k == state.kind) {
                        state.graph.edit().erase(node);
                    }
                    break;
                }
            }
        }
        let mut state = self.state.borrow_mut();
        // Backward: guard the nodes after each node that might have left.
        while let Some((node, flag, values)) = might.pop() {
            last = state.guard(block, node, flag, values, last);
        }
        if state.is_target(block) { state.end_at_target(block, last) } else { last }
    }

    /// Transforms the blocks of a node; returns the effect of the node on control.
    async fn node(self, node: NodeId) -> Exit {
        let (prim, kind) = {
            let state = self.state.borrow();
            (state.graph.prim(node), state.kind)
        };
        let child = |i| self.state.borrow().graph.block(node, i);
        match prim {
            Some(Prim::RaiseException) => Exit::Throws,
            Some(p) if p == kind => Exit::Will(self.state.borrow().graph.operands(node).collect()),
            Some(Prim::If) => {
                let then_exit = self.trampoline.call(self.block(child(0))).await;
                let else_exit = self.trampoline.call(self.block(child(1))).await;
                self.state.borrow_mut().join(node, then_exit, else_exit)
            }
            Some(Prim::Loop) => {
                let body = self.trampoline.call(self.block(child(0))).await;
                self.state.borrow_mut().leave_loop(node, body)
            }
            Some(Prim::With) => {
                let exit = self.trampoline.call(self.block(child(0))).await;
                self.state.borrow_mut().leave_with(node, exit)
            }
            Some(Prim::Closure) => {
                self.trampoline.call(self.block(child(0))).await;
                Exit::Wont
            }
            _ => Exit::Wont,
        }
    }
}

impl ExitTransform<'_> {
    /// Returns true if exits of the current kind leave to the end of this block.
    fn is_target(&self, block: BlockId) -> bool {
        let owner = self.graph.owner(block).map(|o| self.graph.prim(o));
        match self.kind {
            Prim::LoopContinuation => owner == Some(Some(Prim::Loop)),
            _ => owner.is_none() || owner == Some(Some(Prim::Closure)),
        }
    }

    fn unset(&mut self, ty: Type) -> ValueId {
        if let Some(&value) = self.unset.get(&ty) {
            return value;
        }
        let root = self.graph.root();
        let mut e = self.graph.edit();
        e.at(At::start(root));
        let value = e.value(Prim::Uninitialized, &[], ty);
        self.unset.insert(ty, value);
        value
    }

    fn unset_like(&mut self, values: &[ValueId]) -> Vec<ValueId> {
        values.iter().map(|&v| self.unset(self.graph.ty(v))).collect()
    }

    /// Removes unreachable nodes. Uses of their results become uninitialized values.
    fn drop_nodes(&mut self, nodes: &[NodeId]) {
        for &node in nodes.iter().rev() {
            let results: Vec<ValueId> = self.graph.results(node).collect();
            for value in results {
                if self.graph.use_count(value) > 0 {
                    let unset = self.unset(self.graph.ty(value));
                    self.graph.edit().replace_all_uses(value, unset);
                }
            }
            self.graph.edit().erase(node);
        }
    }

    fn add_if_results(
        &mut self,
        node: NodeId,
        then_values: &[ValueId],
        else_values: &[ValueId],
    ) -> Vec<ValueId> {
        let (then_block, else_block) = (self.graph.block(node, 0), self.graph.block(node, 1));
        let mut results = Vec::with_capacity(then_values.len());
        for (&a, &b) in then_values.iter().zip(else_values) {
            let (ta, tb) = (self.graph.ty(a), self.graph.ty(b));
            let ty = unify(ta, tb, true, None, &NoClasses).unwrap_or(Type::ANY);
            let mut e = self.graph.edit();
            e.add_block_output(then_block, a);
            e.add_block_output(else_block, b);
            results.push(e.add_result(node, ty));
        }
        results
    }

    /// Returns the exit of an `if` from the exits of its branches.
    fn join(&mut self, node: NodeId, then_exit: Exit, else_exit: Exit) -> Exit {
        use Exit::{Might, Throws, Will, Wont};
        match (&then_exit, &else_exit) {
            (Throws, Throws) => return Throws,
            (Throws | Wont, Wont) | (Wont, Throws) => return Wont,
            _ => {}
        }
        // A branch that throws counts as having left: its flag is never read.
        let certain = matches!((&then_exit, &else_exit), (Will(_) | Throws, Will(_) | Throws));
        let (yes, no) = (self.yes, self.no);
        let flag_of = |exit: &Exit, state: &mut Self| match exit {
            Wont => no,
            Will(_) => yes,
            Might(flag, _) => *flag,
            Throws => state.unset(Type::BOOL),
        };
        let (then_flag, else_flag) = (flag_of(&then_exit, self), flag_of(&else_exit, self));
        let values = |exit: Exit| match exit {
            Will(values) | Might(_, values) => Some(values),
            Wont | Throws => None,
        };
        let (then_values, else_values) = match (values(then_exit), values(else_exit)) {
            (Some(a), Some(b)) => (a, b),
            (Some(a), None) => {
                let b = self.unset_like(&a);
                (a, b)
            }
            (None, Some(b)) => (self.unset_like(&b), b),
            (None, None) => return Wont,
        };
        if certain {
            return Will(self.add_if_results(node, &then_values, &else_values));
        }
        let flag = self.add_if_results(node, &[then_flag], &[else_flag])[0];
        Might(flag, self.add_if_results(node, &then_values, &else_values))
    }

    /// Propagates an exit of the body out of a loop: the loop ends and carries the flag and the values out.
    fn leave_loop(&mut self, node: NodeId, body_exit: Exit) -> Exit {
        let (flag, values) = match body_exit {
            // The body may run zero times, so a loop does not always throw, even if its body does.
            Exit::Wont | Exit::Throws => return Exit::Wont,
            Exit::Will(values) => (self.yes, values),
            Exit::Might(flag, values) => (flag, values),
        };
        let (yes_stop, body) = (self.no, self.graph.block(node, 0));
        let types: Vec<Type> = values.iter().map(|&v| self.graph.ty(v)).collect();
        let starts = self.unset_like(&values);
        let mut e = self.graph.edit();
        let loc = e.graph().loc(node);
        e.loc(loc).at(At::end(body));
        let end = e.graph().ret(body);
        let go_on = e.graph().operand(end, 0);
        let choice = e.node(Prim::If, &[flag], &[Type::BOOL]);
        let (stop_block, go_block) = (e.add_block(choice), e.add_block(choice));
        e.add_block_output(stop_block, yes_stop);
        e.add_block_output(go_block, go_on);
        let cond = e.graph().result(choice, 0);
        e.set_operand(end, 0, cond);
        e.push_operand(node, yes_stop);
        e.add_block_input(body, Type::BOOL);
        e.add_block_output(body, flag);
        let left = e.add_result(node, Type::BOOL);
        let mut out = Vec::with_capacity(values.len());
        for ((&value, &start), &ty) in values.iter().zip(&starts).zip(&types) {
            e.push_operand(node, start);
            out.push(e.add_result(node, ty));
            e.add_block_input(body, ty);
            e.add_block_output(body, value);
        }
        Exit::Might(left, out)
    }

    /// Propagates an exit of the body out of a `with`. The flag and the values that the body defines become results of
    /// the node: the elimination of returns may later move their definitions into an `if` in the body.
    fn leave_with(&mut self, node: NodeId, mut exit: Exit) -> Exit {
        let body = self.graph.block(node, 0);
        let (flag, values) = match &mut exit {
            Exit::Wont | Exit::Throws => return exit,
            Exit::Will(values) => (None, values),
            Exit::Might(flag, values) => (Some(flag), values),
        };
        for value in flag.into_iter().chain(values) {
            let defined_in = self.graph.parent(self.graph.def(*value));
            if !self.graph.is_nested_in(defined_in, body) {
                continue;
            }
            let ty = self.graph.ty(*value);
            let mut e = self.graph.edit();
            e.add_block_output(body, *value);
            *value = e.add_result(node, ty);
        }
        exit
    }

    /// Moves the nodes after `node` into the second branch of an `if` on `flag`.
    fn guard(
        &mut self,
        block: BlockId,
        node: NodeId,
        flag: ValueId,
        values: Vec<ValueId>,
        rest: Exit,
    ) -> Exit {
        let following: Vec<NodeId> = {
            let g = &*self.graph;
            std::iter::successors(g.next(node), |&n| g.next(n))
                .take_while(|&n| !g.is_prim(n, Prim::Return))
                .collect()
        };
        // A bare `return x` leaves no node behind but is an exit nevertheless, hence the check of `rest`.
        if following.is_empty() && matches!(rest, Exit::Wont) {
            return Exit::Might(flag, values);
        }
        let outputs: Vec<ValueId> = self.graph.block_outputs(block).collect();
        let unset = self.unset_like(&outputs);
        let mut e = self.graph.edit();
        let loc = e.graph().loc(node);
        e.loc(loc).at(At::after(node));
        let types: Vec<Type> = outputs.iter().map(|&v| e.graph().ty(v)).collect();
        let choice = e.node(Prim::If, &[flag], &types);
        let (left_block, guarded) = (e.add_block(choice), e.add_block(choice));
        let guarded_end = e.graph().ret(guarded);
        for &n in &following {
            e.move_before(n, guarded_end);
        }
        for (i, (&output, &nothing)) in outputs.iter().zip(&unset).enumerate() {
            e.add_block_output(left_block, nothing);
            e.add_block_output(guarded, output);
            let result = e.graph().result(choice, i);
            let end = e.graph().ret(block);
            e.set_operand(end, i, result);
        }
        self.join(choice, Exit::Will(values), rest)
    }

    /// Ends exits at their target block: on paths that left, the outputs of the block are the values of the exit.
    fn end_at_target(&mut self, block: BlockId, exit: Exit) -> Exit {
        let values = match exit {
            Exit::Wont | Exit::Throws => return Exit::Wont,
            Exit::Will(values) => values,
            Exit::Might(flag, values) => {
                let outputs: Vec<ValueId> = self.graph.block_outputs(block).collect();
                let mut e = self.graph.edit();
                e.at(At::end(block));
                let choice = e.node(Prim::If, &[flag], &[]);
                e.add_block(choice);
                e.add_block(choice);
                self.add_if_results(choice, &values, &outputs)
            }
        };
        let mut e = self.graph.edit();
        e.retain_block_outputs(block, |_| false);
        for value in values {
            e.add_block_output(block, value);
        }
        Exit::Wont
    }
}

/// Merges an `if` into a preceding one that determines its condition. Early exits often produce such pairs: the first
/// sets a flag to constants and the second branches on it. The branches of the second move into those of the first.
fn merge_consecutive_ifs(g: &mut Graph) {
    let mut blocks = Vec::new();
    for step in g.walk(g.root()) {
        if let flambeau_ir::WalkStep::Leave(block) = step {
            blocks.push(block);
        }
    }
    for block in blocks {
        if !g.has_block(block) {
            continue;
        }
        let mut node = g.nodes(block).next();
        while let Some(n) = node {
            if !merge_with_next(g, n) {
                node = g.next(n).filter(|&m| !g.is_prim(m, Prim::Return));
            }
        }
    }
}

fn merge_with_next(g: &mut Graph, first: NodeId) -> bool {
    let Some(second) = g.next(first) else { return false };
    if !g.is_prim(first, Prim::If) || !g.is_prim(second, Prim::If) || g.def(g.operand(second, 0)) != first {
        return false;
    }
    let flag = g.result_index(g.operand(second, 0));
    let side = |i: usize| {
        let out = g.block_outputs(g.block(first, i)).nth(flag)?;
        g.constant(out)?.as_bool()
    };
    let (Some(then_value), Some(else_value)) = (side(0), side(1)) else { return false };
    if then_value == else_value {
        return false;
    }
    let results: Vec<ValueId> = g.results(first).collect();
    for (i, taken) in [(0, then_value), (1, else_value)] {
        let (into, from) = (g.block(first, i), g.block(second, usize::from(!taken)));
        let own: Vec<ValueId> = g.block_outputs(into).collect();
        for (&result, &value) in results.iter().zip(&own) {
            let inside: Vec<flambeau_ir::Use> =
                g.uses(result).filter(|u| g.is_nested_in(g.parent(u.user), from)).collect();
            let mut e = g.edit();
            for u in inside {
                e.set_operand(u.user, u.index as usize, value);
            }
        }
        let outputs: Vec<ValueId> = g.block_outputs(from).collect();
        let end = g.ret(into);
        let mut e = g.edit();
        e.retain_block_outputs(from, |_| false);
        e.splice_before(from, end);
        for value in outputs {
            e.add_block_output(into, value);
        }
    }
    let old: Vec<ValueId> = g.results(second).collect();
    let mut e = g.edit();
    for value in old {
        let ty = e.graph().ty(value);
        let name = e.graph().name(value).symbol();
        let new = e.add_result(first, ty);
        e.replace_all_uses(value, new);
        if let Some(name) = name {
            e.set_name(new, name);
        }
    }
    e.erase(second);
    true
}
