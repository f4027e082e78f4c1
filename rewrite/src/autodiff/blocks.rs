//! Derivatives of branches and loops.
//!
//! The derivative of a branch is a branch on the same condition, which is kept. That of a loop is a loop with as many
//! iterations, from the last to the first: it carries the gradients of the carried values, and sums of the gradients of
//! the values that the body reads from outside. The number of iterations is the loop's bound, or counted by the forward
//! part where a condition may end the loop.
//!
//! Whether a carried gradient exists in every iteration depends on the body, which is known only when it has been
//! differentiated. So the body is differentiated on the assumption that a gradient which the loop gets exists throughout, and
//! again without it if that is wrong. In deeply nested loops the assumption is not made, so the work is bounded.

use super::NotDifferentiable;
use super::reverse::{Grad, Helper, Reverse, Scope};
use flambeau_ir::{At, BlockId, IValue, NodeId, Prim, Type, ValueId};
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// Nesting of blocks up to which graphs are differentiated: the walk is recursive.
const MAX_NESTING: usize = 64;

/// Nesting of loops up to which a body is differentiated more than once.
const MAX_REPEATED_LOOPS: usize = 3;

/// A gradient that leaves a block: of a tensor, or of an element of a list or tuple.
type GradientKey = (ValueId, Option<usize>);

/// A block of the backward part that has been filled.
struct BackwardBlock {
    block: BlockId,
    scope: Scope,
    /// Whether the block that it differentiates raises, so that it never runs.
    raises: bool,
}

impl Reverse<'_> {
    /// Opens a block of the backward part, which differentiates `forward`.
    fn open(&mut self, block: BlockId, forward: BlockId) -> Result<(), NotDifferentiable> {
        if self.scopes.len() >= MAX_NESTING {
            let reason = format!("is nested more than {MAX_NESTING} blocks deep");
            let node = self.editor.graph().ret(forward);
            return Err(NotDifferentiable::at(self.editor.graph(), node, reason));
        }
        self.counterparts.forward.insert(block, forward);
        self.scopes.push((block, Scope::default()));
        self.editor.at(At::end(block));
        Ok(())
    }

    /// Closes the innermost block; returns the gradients that it computed.
    fn close(&mut self) -> Scope {
        let scope = self.scopes.pop().map(|(_, scope)| scope).unwrap_or_default();
        self.resume();
        scope
    }

    /// Moves the cursor to the end of the innermost open block.
    fn resume(&mut self) {
        if let Some((block, _)) = self.scopes.last() {
            self.editor.at(At::end(*block));
        }
    }

    /// Returns the forward block that the innermost open block differentiates.
    fn forward_block(&self) -> BlockId {
        let root = self.editor.graph().root();
        let open = self.scopes.last().and_then(|(block, _)| self.counterparts.forward.get(block));
        open.copied().unwrap_or(root)
    }

    /// Differentiates a node in a branch that is taken if one of the gradients of its results exists.
    pub(super) fn differentiate_if_present(
        &mut self,
        node: NodeId,
        results: &[ValueId],
        grads: &[ValueId],
    ) -> Result<(), NotDifferentiable> {
        let mut exists = self.help(Helper::Present, &grads[..1])?;
        for grad in &grads[1..] {
            let other = self.help(Helper::Present, &[*grad])?;
            exists = self.help(Helper::Either, &[exists, other])?;
        }
        let known: Vec<(ValueId, Grad)> =
            results.iter().filter_map(|v| Some((*v, self.scope().get(v)?.clone()))).collect();
        let backward = self.editor.node(Prim::If, &[exists], &[]);
        let (taken, skipped) = (self.editor.add_block(backward), self.editor.add_block(backward));
        self.open(taken, self.forward_block())?;
        for (result, grad) in known {
            let grad = match grad {
                Grad::Tensor(grad) if grads.len() == 1 => Grad::Tensor(self.defined(grad)),
                Grad::Elements(elements) if grads.len() == 1 && !elements.contains(&None) => {
                    let elements = elements.into_iter().flatten();
                    Grad::Elements(elements.map(|grad| Some(self.defined(grad))).collect())
                }
                other => other,
            };
            self.scope().insert(result, grad);
        }
        self.differentiate(node, results)?;
        let mut scope = self.close();
        scope.retain(|value, _| !results.contains(value));
        let taken = BackwardBlock { block: taken, scope, raises: false };
        let skipped = BackwardBlock { block: skipped, scope: Scope::default(), raises: false };
        self.add_block_results(backward, &[taken, skipped])
    }

    /// Differentiates a branch.
    pub(super) fn differentiate_branch(
        &mut self,
        node: NodeId,
        results: &[ValueId],
    ) -> Result<(), NotDifferentiable> {
        let grads = self.result_gradients(node, results)?;
        let g = self.editor.graph();
        let condition = g.operand(node, 0);
        let blocks: Vec<BlockId> = g.blocks(node).collect();
        let backward = self.editor.node(Prim::If, &[condition], &[]);
        let mut filled = Vec::with_capacity(blocks.len());
        for forward in blocks {
            let block = self.editor.add_block(backward);
            self.open(block, forward)?;
            self.counterparts.backward.insert(forward, (block, None));
            let g = self.editor.graph();
            let outputs: Vec<ValueId> = g.block_outputs(forward).collect();
            let nodes: Vec<NodeId> = g.nodes(forward).collect();
            let raises = nodes.iter().any(|n| g.is_prim(*n, Prim::RaiseException));
            for (output, grad) in outputs.into_iter().zip(&grads) {
                grad.map_or(Ok(()), |grad| self.add(output, grad, None))?;
            }
            self.block(&nodes)?;
            let mut scope = self.close();
            scope.retain(|value, _| self.is_outside(*value, forward));
            filled.push(BackwardBlock { block, scope, raises });
        }
        self.add_block_results(backward, &filled)
    }

    /// Returns the gradients of the results of a branch or loop.
    fn result_gradients(
        &mut self,
        node: NodeId,
        results: &[ValueId],
    ) -> Result<Vec<Option<ValueId>>, NotDifferentiable> {
        let grad = |v: &ValueId| match self.scope().get(v) {
            Some(Grad::Elements(_)) => None,
            Some(Grad::Tensor(grad)) => Some(Some(*grad)),
            None => Some(None),
        };
        let grads: Option<Vec<Option<ValueId>>> = results.iter().map(grad).collect();
        let reason = "a branch or loop returns a list or tuple of tensors that need gradients";
        grads.ok_or_else(|| NotDifferentiable::at(self.editor.graph(), node, reason))
    }

    /// Whether a value is defined outside of a block.
    fn is_outside(&self, value: ValueId, block: BlockId) -> bool {
        let g = self.editor.graph();
        !g.is_nested_in(g.parent(g.def(value)), block)
    }

    /// Makes the gradients that the blocks of a branch computed results of the branch, and adds these to the gradients
    /// of the enclosing block. A gradient that a block did not compute is `None` there.
    fn add_block_results(
        &mut self,
        backward: NodeId,
        filled: &[BackwardBlock],
    ) -> Result<(), NotDifferentiable> {
        let mut keys: IndexSet<GradientKey, FxBuildHasher> = IndexSet::default();
        for (value, grad) in filled.iter().flat_map(|f| &f.scope) {
            keys.extend(parts(*value, grad).into_iter().map(|(part, _)| part));
        }
        if keys.is_empty() {
            self.editor.erase(backward);
            return Ok(());
        }
        let mut found = Vec::with_capacity(keys.len());
        for part in &keys {
            let of = |f: &BackwardBlock| grad_of(&f.scope, *part);
            let is_definite =
                |f: &BackwardBlock| f.raises || of(f).is_some_and(|grad| !self.is_optional(grad));
            let g = self.editor.graph();
            let list = filled.iter().filter_map(of).map(|v| g.ty(v)).find(|ty| ty.list_elem().is_some());
            let ty = match (filled.iter().all(is_definite), list) {
                (true, found) => found.unwrap_or(Type::TENSOR),
                (false, None) => Type::optional(Type::TENSOR),
                (false, Some(_)) => {
                    let reason = "a list of tensors has a gradient in some branches only";
                    return Err(NotDifferentiable::at(g, backward, reason));
                }
            };
            for f in filled {
                self.editor.at(At::end(f.block));
                let output = match of(f) {
                    Some(grad) => grad,
                    None if f.raises => self.editor.value(Prim::Uninitialized, &[], ty),
                    None => self.editor.constant(IValue::None),
                };
                self.editor.add_block_output(f.block, output);
            }
            found.push(self.editor.add_result(backward, ty));
        }
        self.resume();
        keys.into_iter().zip(found).try_for_each(|(part, grad)| self.add_part(part, grad))
    }

    fn add_part(&mut self, (value, element): GradientKey, grad: ValueId) -> Result<(), NotDifferentiable> {
        match element {
            None => self.add(value, grad, None),
            Some(i) => {
                let mut elements = vec![None; i + 1];
                elements[i] = Some(grad);
                self.add_elements(value, elements)
            }
        }
    }

    /// Differentiates a loop.
    pub(super) fn differentiate_loop(
        &mut self,
        node: NodeId,
        results: &[ValueId],
    ) -> Result<(), NotDifferentiable> {
        let grads = self.result_gradients(node, results)?;
        let count = self.trip_count(node)?;
        let g = self.editor.graph();
        let loops =
            self.scopes.iter().filter(|(block, _)| g.owner(*block).is_some_and(|n| g.is_prim(n, Prim::Loop)));
        let is_deep = loops.count() >= MAX_REPEATED_LOOPS;
        let mut optional: Vec<bool> =
            grads.iter().map(|grad| is_deep || grad.is_none_or(|grad| self.is_optional(grad))).collect();
        // Wrong assumptions are dropped one by one the first time, then all at once.
        for _ in 0..2 {
            match self.append_reversed_loop(node, count, &grads, &optional)? {
                None => return Ok(()),
                Some(missing) => optional = missing,
            }
        }
        self.append_reversed_loop(node, count, &grads, &vec![true; grads.len()])?;
        Ok(())
    }

    /// Returns the number of iterations of a loop of the forward part, which counts them if a condition may end the loop.
    fn trip_count(&mut self, node: NodeId) -> Result<ValueId, NotDifferentiable> {
        if let Some(count) = self.counts.get(&node) {
            return Ok(*count);
        }
        let g = self.editor.graph();
        let (bound, condition) = (g.operand(node, 0), g.operand(node, 1));
        let Some(body) = g.blocks(node).next() else {
            return Err(NotDifferentiable::at(g, node, "has no body"));
        };
        let holds = |v: ValueId| g.constant(v).is_some_and(|value| value.as_bool() == Some(true));
        let count = if holds(condition) && g.block_outputs(body).next().is_some_and(holds) {
            bound
        } else {
            let index = g.block_inputs(body).next();
            let index = index.ok_or_else(|| NotDifferentiable::at(g, node, "has no index"))?;
            self.editor.at(At::before(node));
            let zero = self.editor.constant(IValue::Int(0));
            self.editor.push_operand(node, zero);
            self.editor.add_block_input(body, Type::INT);
            self.editor.at(At::end(body));
            let next = self.help(Helper::Next, &[index])?;
            self.editor.add_block_output(body, next);
            let count = self.editor.add_result(node, Type::INT);
            self.resume();
            count
        };
        self.counts.insert(node, count);
        Ok(count)
    }

    /// Appends the reversed loop, whose carried gradients exist in every iteration unless they are `optional`. Returns
    /// the gradients that are optional in fact if that is wrong; then nothing is appended.
    fn append_reversed_loop(
        &mut self,
        node: NodeId,
        count: ValueId,
        grads: &[Option<ValueId>],
        optional: &[bool],
    ) -> Result<Option<Vec<bool>>, NotDifferentiable> {
        let g = self.editor.graph();
        let Some(forward) = g.blocks(node).next() else { return Ok(None) };
        let inputs: Vec<ValueId> = g.block_inputs(forward).skip(1).collect();
        let outputs: Vec<ValueId> = g.block_outputs(forward).skip(1).collect();
        let initial: Vec<ValueId> = g.operands(node).skip(2).collect();
        let nodes: Vec<NodeId> = g.nodes(forward).collect();
        let carried: Vec<usize> = (0..grads.len()).filter(|j| self.activity.is_active(inputs[*j])).collect();
        let always = self.editor.constant(IValue::Bool(true));
        let starts: Vec<ValueId> =
            carried.iter().map(|j| grads[*j].unwrap_or_else(|| self.editor.constant(IValue::None))).collect();
        let backward = self.editor.node(Prim::Loop, &[count, always], &[]);
        let block = self.editor.add_block(backward);
        let index = self.editor.add_block_input(block, Type::INT);
        self.editor.add_block_output(block, always);
        let ty = |j: usize| if optional[j] { Type::optional(Type::TENSOR) } else { Type::TENSOR };
        self.open(block, forward)?;
        let iteration = self.help(Helper::Mirror, &[count, index])?;
        self.counterparts.backward.insert(forward, (block, Some(iteration)));
        for (&j, start) in carried.iter().zip(starts) {
            self.editor.push_operand(backward, start);
            let grad = self.editor.add_block_input(block, ty(j));
            self.add(outputs[j], grad, None)?;
        }
        self.block(&nodes)?;
        let mut missing = optional.to_vec();
        let mut next = Vec::with_capacity(carried.len());
        for &j in &carried {
            let grad = self.gradient(inputs[j]);
            missing[j] |= grad.is_none_or(|grad| self.is_optional(grad));
            next.push(grad.unwrap_or_else(|| self.editor.constant(IValue::None)));
        }
        let mut scope = self.close();
        if missing != optional {
            self.editor.erase(backward);
            return Ok(Some(missing));
        }
        next.into_iter().for_each(|grad| self.editor.add_block_output(block, grad));
        let found: Vec<ValueId> = carried.iter().map(|j| self.editor.add_result(backward, ty(*j))).collect();
        scope.retain(|value, _| self.is_outside(*value, forward));
        for (value, grad) in &scope {
            for (part, grad) in parts(*value, grad) {
                self.accumulate(backward, count, part, grad)?;
            }
        }
        for (j, grad) in carried.into_iter().zip(found) {
            self.add(initial[j], grad, None)?;
        }
        Ok(None)
    }

    /// Sums a gradient that the body of a reversed loop computes for a value from outside, over all iterations. The
    /// result exists if there is an iteration, or if the value has a gradient already, with which the sum starts.
    fn accumulate(
        &mut self,
        backward: NodeId,
        count: ValueId,
        part: GradientKey,
        grad: ValueId,
    ) -> Result<(), NotDifferentiable> {
        let Some(block) = self.editor.graph().blocks(backward).next() else { return Ok(()) };
        let before = self.scopes.last().and_then(|(_, scope)| grad_of(scope, part));
        let is_tensor = part.1.is_none() && self.editor.graph().ty(part.0).is_tensor();
        if self.editor.graph().ty(grad).list_elem().is_some() {
            let reason = "an iteration reads a list of tensors from outside of the loop";
            return Err(NotDifferentiable::at(self.editor.graph(), backward, reason));
        }
        let is_sure = before.is_some_and(|grad| !self.is_optional(grad));
        let is_definite = !self.is_optional(grad) && (is_sure || is_tensor);
        self.editor.at(At::before(backward));
        let start = match before {
            Some(before) if is_sure || !is_definite => before,
            _ if is_definite => self.help(Helper::ZerosLike, &[part.0])?,
            _ => self.editor.constant(IValue::None),
        };
        let ty = if is_definite { Type::TENSOR } else { Type::optional(Type::TENSOR) };
        self.editor.push_operand(backward, start);
        let sum = self.editor.add_block_input(block, ty);
        self.editor.at(At::end(block));
        let sum = self.sum(sum, grad)?;
        self.editor.add_block_output(block, sum);
        let result = self.editor.add_result(backward, ty);
        self.resume();
        if before == Some(start) {
            set_part(self.scope(), part, result);
            return Ok(());
        }
        let runs = self.editor.graph().constant(count).and_then(|n| n.as_int()).is_some_and(|n| n > 0);
        let result = match is_definite && !runs {
            true => self.help(Helper::IfAny, &[count, result])?,
            false => result,
        };
        self.add_part(part, result)
    }
}

/// Returns the gradients in an entry of a scope.
fn parts(value: ValueId, grad: &Grad) -> Vec<(GradientKey, ValueId)> {
    match grad {
        Grad::Tensor(grad) => vec![((value, None), *grad)],
        Grad::Elements(grads) => {
            let grads = grads.iter().enumerate();
            grads.filter_map(|(i, grad)| grad.map(|grad| ((value, Some(i)), grad))).collect()
        }
    }
}

fn grad_of(scope: &Scope, (value, element): GradientKey) -> Option<ValueId> {
    match (scope.get(&value)?, element) {
        (Grad::Tensor(grad), None) => Some(*grad),
        (Grad::Elements(grads), Some(i)) => grads.get(i).copied().flatten(),
        _ => None,
    }
}

/// Replaces a gradient that a scope has.
fn set_part(scope: &mut Scope, (value, element): GradientKey, by: ValueId) {
    match (scope.get_mut(&value), element) {
        (Some(Grad::Tensor(grad)), None) => *grad = by,
        (Some(Grad::Elements(grads)), Some(i)) => grads[i] = Some(by),
        _ => {}
    }
}
