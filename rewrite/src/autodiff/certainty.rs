//! Conditions under which values depend on values that need gradients.
//!
//! A result of a branch or loop may depend on an input in some runs only. The forward part computes a bool, the
//! *condition*, that states it for this run: branches return the condition, loops carry it, and for an operator it is the
//! disjunction over its active operands.

use super::NotDifferentiable;
use super::activity::Activity;
use super::reverse::{FormulaGraphs, Helper, inlined};
use flambeau_ir::{At, BlockId, Editor, IValue, NodeId, Prim, Type, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Length of a chain of operators between a merged value and an output up to which conditions are computed.
const LONGEST: usize = 64;

/// Computes conditions; adds nodes to the forward part.
pub(super) struct Certainty<'e, 'g> {
    editor: &'e mut Editor<'g>,
    activity: &'e Activity,
    formulas: &'e dyn FormulaGraphs,
    found: HashMap<ValueId, ValueId, FxBuildHasher>,
}

impl<'e, 'g> Certainty<'e, 'g> {
    pub(super) fn new(
        editor: &'e mut Editor<'g>,
        activity: &'e Activity,
        formulas: &'e dyn FormulaGraphs,
    ) -> Self {
        Certainty { editor, activity, formulas, found: HashMap::default() }
    }

    /// Returns the value of type bool that states whether an active value depends on an input in this run, in the block of
    /// that value; `None` if it always does.
    pub(super) fn condition(&mut self, value: ValueId) -> Result<Option<ValueId>, NotDifferentiable> {
        if self.activity.is_certain(value) {
            return Ok(None);
        }
        self.of(value, 0).map(Some)
    }

    /// Returns the condition of a value, which is available where the value is.
    fn of(&mut self, value: ValueId, depth: usize) -> Result<ValueId, NotDifferentiable> {
        if let Some(found) = self.found.get(&value) {
            return Ok(*found);
        }
        let g = self.editor.graph();
        let def = g.def(value);
        if depth > LONGEST {
            let reason = format!(
                "whether a result depends on an input is decided at run time, over more than {LONGEST} operators"
            );
            return Err(NotDifferentiable::at(g, def, reason));
        }
        let index = g.result_index(value);
        let found = match g.prim(def) {
            Some(Prim::If) => self.of_branch(def, index, depth)?,
            Some(Prim::Loop) => self.of_loop(def, index, depth)?,
            Some(Prim::Param) => match g.enclosing(def).filter(|n| g.is_prim(*n, Prim::Loop)) {
                Some(node) if index > 0 => {
                    self.of_loop(node, index - 1, depth)?;
                    return self.found.get(&value).copied().ok_or_else(|| {
                        NotDifferentiable::at(self.editor.graph(), def, "its block is not a loop's")
                    });
                }
                _ => return Err(NotDifferentiable::at(g, def, "its block is not a loop's")),
            },
            _ => self.of_operands(def, depth)?,
        };
        self.found.insert(value, found);
        Ok(found)
    }

    /// Returns the condition of a value at a position; a constant if it is known.
    fn at_end(&mut self, value: ValueId, at: At, depth: usize) -> Result<ValueId, NotDifferentiable> {
        if self.activity.is_active(value) && !self.activity.is_certain(value) {
            return self.of(value, depth + 1);
        }
        let is_certain = self.activity.is_certain(value);
        self.editor.at(at);
        Ok(self.editor.constant(IValue::Bool(is_certain)))
    }

    fn of_branch(&mut self, node: NodeId, index: usize, depth: usize) -> Result<ValueId, NotDifferentiable> {
        let blocks: Vec<BlockId> = self.editor.graph().blocks(node).collect();
        // Computed before any is returned: a condition may add others to the same branch, if both are carried by a loop around it.
        let mut conditions = Vec::with_capacity(blocks.len());
        for &block in &blocks {
            let Some(output) = self.editor.graph().block_outputs(block).nth(index) else { continue };
            conditions.push((block, self.at_end(output, At::end(block), depth)?));
        }
        for (block, condition) in conditions {
            self.editor.add_block_output(block, condition);
        }
        Ok(self.editor.add_result(node, Type::BOOL))
    }

    fn of_loop(&mut self, node: NodeId, index: usize, depth: usize) -> Result<ValueId, NotDifferentiable> {
        let g = self.editor.graph();
        let (Some(body), start) = (g.blocks(node).next(), g.operand(node, index + 2)) else {
            return Err(NotDifferentiable::at(g, node, "has no body"));
        };
        let (Some(input), Some(output)) =
            (g.block_inputs(body).nth(index + 1), g.block_outputs(body).nth(index + 1))
        else {
            return Err(NotDifferentiable::at(g, node, "carries no such value"));
        };
        let carried = g.result(node, index);
        let start = self.at_end(start, At::before(node), depth)?;
        self.editor.push_operand(node, start);
        let before = self.editor.add_block_input(body, Type::BOOL);
        let result = self.editor.add_result(node, Type::BOOL);
        self.found.insert(input, before);
        self.found.insert(carried, result);
        // The condition of the output may add conditions of other carried values: the position of this one is fixed first.
        self.editor.at(At::end(body));
        let placeholder = self.editor.constant(IValue::Bool(false));
        self.editor.add_block_output(body, placeholder);
        let end = self.editor.graph().ret(body);
        let position = self.editor.graph().operand_count(end) - 1;
        let next = self.at_end(output, At::end(body), depth)?;
        self.editor.set_operand(end, position, next);
        Ok(result)
    }

    /// The condition of an operator's result: one of its active operands depends on a given value.
    fn of_operands(&mut self, node: NodeId, depth: usize) -> Result<ValueId, NotDifferentiable> {
        let operands: Vec<ValueId> = self.activity.history_operands(self.editor.graph(), node).collect();
        let mut conditions: Vec<ValueId> = Vec::with_capacity(operands.len());
        for operand in operands {
            let condition = self.of(operand, depth + 1)?;
            if !conditions.contains(&condition) {
                conditions.push(condition);
            }
        }
        // Each disjunction is inserted behind the one that it reads.
        self.editor.at(At::after(node));
        let mut conditions = conditions.into_iter();
        let first = conditions.next();
        let first =
            first.ok_or_else(|| NotDifferentiable::at(self.editor.graph(), node, "reads no active value"))?;
        conditions.try_fold(first, |found, condition| self.either(found, condition))
    }

    fn either(&mut self, a: ValueId, b: ValueId) -> Result<ValueId, NotDifferentiable> {
        let graph = self.formulas.helper(Helper::Either)?;
        let node = self.editor.cursor();
        inlined(self.editor, node, &graph, &[a, b])
    }
}
