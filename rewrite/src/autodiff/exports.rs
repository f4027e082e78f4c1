//! Values of branches and loops that the backward part reads.
//!
//! The backward part is built as if it could read any value of the forward part. A value of a branch becomes an optional
//! result of the branch, which is `None` if the branch is not taken. The values that a loop's body computes are appended to
//! a list, which the reversed loop reads at the index of its iteration. The index of an iteration and constants need not be
//! kept. All this nests. O(values · depth), and depth is bounded (`blocks.rs`).
//!
//! Before, nodes of the backward part that compute numbers from values of the forward part alone (sizes, dtypes) move to
//! the forward part, at the end of the forward block whose derivative contains them, so that numbers are kept instead of tensors.

use super::NotDifferentiable;
use super::reverse::Counterparts;
use flambeau_ir::types::TypeKind;
use flambeau_ir::{At, BlockId, Editor, Graph, IValue, NodeId, OpId, Prim, Type, ValueId, WalkStep};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

/// The border between the forward and the backward part of a graph: the last node of the forward part in the root block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Border(pub(super) NodeId);

impl Border {
    /// Returns the border of a graph that has no backward part yet.
    pub(super) fn of(graph: &Graph) -> Border {
        let root = graph.root();
        Border(graph.nodes(root).next_back().unwrap_or_else(|| graph.param(root)))
    }

    /// Whether a node belongs to the forward part.
    pub(super) fn is_forward(self, graph: &Graph, node: NodeId) -> bool {
        let holder = graph.ancestor_in(node, graph.root()).unwrap_or(node);
        holder == self.0 || graph.is_prim(holder, Prim::Param) || graph.is_before(holder, self.0)
    }

    /// Returns the nodes of the backward part in the root block.
    pub(super) fn backward(self, graph: &Graph) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = graph.nodes(graph.root()).rev().take_while(|n| *n != self.0).collect();
        nodes.reverse();
        nodes
    }
}

/// Returns the nodes of the backward part with those nested in them, in program order; the ends of blocks follow the nodes
/// of the block.
fn deep(graph: &Graph, border: Border) -> Vec<NodeId> {
    let mut found = Vec::new();
    for node in border.backward(graph) {
        found.push(node);
        for step in graph.blocks(node).flat_map(|block| graph.walk(block)) {
            match step {
                WalkStep::Node(inner) => found.push(inner),
                WalkStep::Leave(block) => found.push(graph.ret(block)),
                WalkStep::Enter(_) | WalkStep::Done(_) => {}
            }
        }
    }
    found
}

/// Erases the nodes of the backward part whose results are not used, except the indices of iterations.
pub(super) fn erase_unused_backward(editor: &mut Editor<'_>, border: Border, counterparts: &Counterparts) {
    let indices = counterparts.backward.values().filter_map(|(_, iteration)| *iteration);
    let kept: HashSet<ValueId, FxBuildHasher> = indices.collect();
    for node in deep(editor.graph(), border).into_iter().rev() {
        let g = editor.graph();
        let is_end = g.is_prim(node, Prim::Return);
        if !is_end
            && g.results(node).all(|v| g.use_count(v) == 0 && !kept.contains(&v))
            && !has_effects(g, node)
        {
            editor.erase(node);
        }
    }
}

/// Whether a node, or one nested in it, writes memory or has a side effect. Formulas write lists of their own.
fn has_effects(g: &Graph, node: NodeId) -> bool {
    let changes = |n: NodeId| {
        let effects = g.effects(n);
        effects.may_write() || effects.has_side_effects()
    };
    changes(node) || g.blocks(node).any(|block| g.nodes_deep_in(block).any(changes))
}

/// Moves nodes that compute numbers from values of the forward part alone to the forward part.
/// `seeds`: the gradients of the outputs, which are inputs of the graph.
pub(super) fn lift_numbers(
    editor: &mut Editor<'_>,
    border: &mut Border,
    counterparts: &Counterparts,
    seeds: &[ValueId],
) {
    let seeds: HashSet<ValueId, FxBuildHasher> = seeds.iter().copied().collect();
    for node in deep(editor.graph(), *border) {
        let g = editor.graph();
        let Some(&forward_block) =
            counterparts.forward.get(&g.parent(node)).filter(|forward_block| g.has_block(**forward_block))
        else {
            continue;
        };
        let is_constant = |v: ValueId| g.is_prim(g.def(v), Prim::Constant);
        let is_root = forward_block == g.root();
        let reads = |v: ValueId| {
            let is_known = is_root || g.is_available(v, g.ret(forward_block));
            is_constant(v) || !seeds.contains(&v) && border.is_forward(g, g.def(v)) && is_known
        };
        let is_simple = !g.is_prim(node, Prim::Constant)
            && !g.is_prim(node, Prim::Return)
            && g.block_count(node) == 0
            && g.result_count(node) > 0
            && g.effects(node).is_pure()
            && g.results(node).all(|v| !holds_tensor(g.ty(v)) && is_unwritten(g, v));
        // Facts of an enclosing block are the same in all iterations.
        let is_own = is_root || g.operands(node).any(|v| g.parent(g.def(v)) == forward_block);
        if !is_simple || !is_own || !g.operands(node).all(reads) {
            continue;
        }
        let constants: Vec<(usize, ValueId)> =
            g.operands(node).enumerate().filter(|(_, v)| is_constant(*v)).collect();
        if is_root {
            editor.move_after(node, border.0);
            *border = Border(node);
        } else {
            let end = editor.graph().ret(forward_block);
            editor.move_before(node, end);
        }
        editor.at(At::before(node));
        for (i, value) in constants {
            if !border.is_forward(editor.graph(), editor.graph().def(value)) {
                let copy = copy_of(editor, value);
                editor.set_operand(node, i, copy);
            }
        }
    }
}

/// Inserts a copy of a constant.
fn copy_of(editor: &mut Editor<'_>, constant: ValueId) -> ValueId {
    let ty = editor.graph().ty(constant);
    let value = editor.graph().constant(constant).unwrap_or(IValue::None);
    editor.constant_of(value, ty)
}

/// Whether no node may write a value, which is a number or a list of numbers.
fn is_unwritten(g: &Graph, value: ValueId) -> bool {
    let is_number = matches!(
        g.ty(value).kind(),
        TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Str | TypeKind::None
    );
    let reads = |user: NodeId| {
        let nests = g.is_prim(user, Prim::Return) || g.block_count(user) > 0;
        !nests && !g.effects(user).may_write() && g.results(user).all(|v| g.ty(v) != g.ty(value))
    };
    is_number || g.uses(value).all(|u| reads(u.user))
}

/// Whether a value of this type is or contains a tensor.
pub(super) fn holds_tensor(ty: Type) -> bool {
    match ty.kind() {
        TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Str | TypeKind::None => false,
        TypeKind::List(elem) | TypeKind::Optional(elem) => holds_tensor(*elem),
        _ => true,
    }
}

/// Operators on lists that exports use.
#[derive(Clone, Copy)]
pub(super) struct ListOps {
    /// Appends an element.
    pub(super) push: OpId,
    /// Returns an element.
    pub(super) element: OpId,
}

/// Exports of values of blocks.
pub(super) struct Exports<'e, 'g> {
    editor: &'e mut Editor<'g>,
    border: Border,
    counterparts: &'e Counterparts,
    ops: ListOps,
    /// The value that the backward part reads instead of a value of a block.
    found: HashMap<ValueId, ValueId, FxBuildHasher>,
}

impl<'e, 'g> Exports<'e, 'g> {
    pub(super) fn new(
        editor: &'e mut Editor<'g>,
        border: Border,
        counterparts: &'e Counterparts,
        ops: ListOps,
    ) -> Self {
        Exports { editor, border, counterparts, ops, found: HashMap::default() }
    }

    /// Exports all values of blocks that the backward part reads.
    pub(super) fn run(mut self) -> Result<(), NotDifferentiable> {
        for node in deep(self.editor.graph(), self.border) {
            let operands: Vec<ValueId> = self.editor.graph().operands(node).collect();
            for (i, value) in operands.into_iter().enumerate() {
                if self.is_nested(value) {
                    let by = self.resolve(value)?;
                    self.editor.set_operand(node, i, by);
                }
            }
        }
        Ok(())
    }

    /// Whether a value belongs to a block of the forward part other than the root.
    fn is_nested(&self, value: ValueId) -> bool {
        let g = self.editor.graph();
        let def = g.def(value);
        g.parent(def) != g.root() && self.border.is_forward(g, def)
    }

    /// Returns the value of the backward part that a value of a block has there. The recursion follows the nesting, which is
    /// bounded.
    fn resolve(&mut self, value: ValueId) -> Result<ValueId, NotDifferentiable> {
        if !self.is_nested(value) {
            return Ok(value);
        }
        if let Some(found) = self.found.get(&value) {
            return Ok(*found);
        }
        let g = self.editor.graph();
        let def = g.def(value);
        let forward = g.parent(def);
        let (Some(node), Some(&(back, iteration))) =
            (g.owner(forward), self.counterparts.backward.get(&forward))
        else {
            return Err(NotDifferentiable::at(g, def, "the backward part does not enter its block"));
        };
        let ty = g.ty(value);
        let is_index = g.block_inputs(forward).next() == Some(value);
        let found = if g.is_prim(def, Prim::Constant) {
            self.editor.at(At::start(back));
            copy_of(self.editor, value)
        } else {
            match iteration {
                Some(iteration) if is_index => iteration,
                Some(iteration) => {
                    let list = self.export_list(value, node, forward)?;
                    let list = self.resolve(list)?;
                    let at = self.editor.graph().def(iteration);
                    self.editor.at(At::after(at));
                    self.editor.value(self.ops.element, &[list, iteration], ty)
                }
                None => {
                    let result = self.export_result(value, node, forward);
                    let result = self.resolve(result)?;
                    self.editor.at(At::start(back));
                    if self.editor.graph().ty(result) == ty {
                        result
                    } else {
                        self.editor.value(Prim::UncheckedCast, &[result], ty)
                    }
                }
            }
        };
        self.found.insert(value, found);
        Ok(found)
    }

    /// Makes a value of a branch a result of it, which is `None` if the branch is not taken.
    fn export_result(&mut self, value: ValueId, node: NodeId, forward: BlockId) -> ValueId {
        let ty = Type::optional(self.editor.graph().ty(value));
        let blocks: Vec<BlockId> = self.editor.graph().blocks(node).collect();
        for block in blocks {
            let output = if block == forward {
                value
            } else {
                self.editor.at(At::end(block));
                self.editor.constant(IValue::None)
            };
            self.editor.add_block_output(block, output);
        }
        self.editor.add_result(node, ty)
    }

    /// Collects a value of all iterations of a loop in a list.
    fn export_list(
        &mut self,
        value: ValueId,
        node: NodeId,
        forward: BlockId,
    ) -> Result<ValueId, NotDifferentiable> {
        let ty = self.editor.graph().ty(value);
        self.editor.at(At::before(node));
        let list = self.editor.value(Prim::ListConstruct, &[], Type::list(ty));
        self.editor.at(At::end(forward));
        self.editor.node(self.ops.push, &[list, value], &[Type::list(ty)]);
        Ok(list)
    }
}
