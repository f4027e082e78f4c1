//! The rest of a program from a point inside of it, as a graph of its own.
//!
//! The continuation starts with the nodes after the point in its block. At the end of a block it goes on in the
//! enclosing one: after a `prim::If`, the outputs of the block are the results of the branch; a `prim::Loop` becomes a
//! loop over the remaining iterations. Values from before the point become inputs when they are first needed, and those
//! that only guards used are removed again, so the inputs are exactly the live values. Constants are copied instead.
//!
//! Guards are assumptions of the program that the continuation replaces, so they are removed from it. The inputs have
//! no refined types, because callers do not check them.

use crate::facets::OpRole;
use crate::pass::PassError;
use crate::roles;
use flambeau_ir::{
    At, BlockId, CloneError, Editor, Fault, Graph, IValue, NodeId, OpId, Prim, Registry, Type, ValueId,
    ValueSubstitution,
};
use std::sync::Arc;

/// Operators that compute the numbers of the remaining iterations.
pub(super) struct Steps {
    sum: OpId,
    difference: OpId,
}

impl Steps {
    /// Returns the operators. `None` if the registry lacks them; then guards inside loops get no continuation.
    pub(super) fn find(registry: &Registry) -> Option<Steps> {
        let (sum, difference) =
            (roles::find(registry, OpRole::Sum), roles::find(registry, OpRole::Difference));
        Some(Steps { sum: sum.ok()?, difference: difference.ok()? })
    }
}

/// The rest of a program.
pub(super) struct Continuation {
    /// Computes the results of the program.
    pub(super) graph: Graph,
    /// The values of the program that are the graph's inputs, in order.
    pub(super) captures: Vec<ValueId>,
}

impl Continuation {
    /// Returns the rest of the program after a guard, in which the guarded value is the result of the guard. Returns
    /// `None` if the guard is in a block of an operator that cannot be entered in the middle.
    ///
    /// # Errors
    /// Returns an internal error if a node cannot be cloned.
    pub(super) fn after(
        source: &Graph,
        guard: NodeId,
        steps: Option<&Steps>,
    ) -> Result<Option<Continuation>, PassError> {
        if !can_enter(source, guard, steps.is_some()) {
            return Ok(None);
        }
        let mut graph = Graph::new(Arc::clone(source.registry()));
        let mut builder =
            Builder { source, editor: graph.edit(), map: ValueSubstitution::new(), captures: Vec::new() };
        let guarded = builder.mapped(source.operand(guard, 0));
        builder.map.set(source.result(guard, 0), guarded);
        builder.rest(guard, steps).map_err(|error| {
            PassError::at(source, guard, Fault::Internal, format!("the rest of the program: {error}"))
        })?;
        let mut captures = builder.captures;
        remove_guards(&mut graph);
        remove_unused_inputs(&mut graph, &mut captures);
        Ok(Some(Continuation { graph, captures }))
    }
}

/// Whether every block around a node belongs to a branch or, with `loops`, a loop.
fn can_enter(g: &Graph, node: NodeId, loops: bool) -> bool {
    let mut around = std::iter::successors(g.enclosing(node), |&outer| g.enclosing(outer));
    around.all(|outer| g.is_prim(outer, Prim::If) || loops && g.is_prim(outer, Prim::Loop))
}

fn remove_guards(graph: &mut Graph) {
    let guards = super::guards(graph);
    let mut editor = graph.edit();
    for guard in guards {
        let value = editor.graph().operand(guard, 0);
        editor.replace_node(guard, &[value]);
    }
}

/// Removes inputs that only guards used, with their captures.
fn remove_unused_inputs(graph: &mut Graph, captures: &mut Vec<ValueId>) {
    let used: Vec<bool> = graph.inputs().map(|v| graph.use_count(v) > 0).collect();
    let root = graph.root();
    let mut editor = graph.edit();
    for (index, _) in used.iter().enumerate().rev().filter(|&(_, &used)| !used) {
        editor.remove_block_input(root, index);
    }
    let mut used = used.into_iter();
    captures.retain(|_| used.next().unwrap_or(true));
}

struct Builder<'g> {
    source: &'g Graph,
    editor: Editor<'g>,
    /// The values of the continuation for values of the program. A value of a loop's body first has the value of the
    /// interrupted iteration, then the one in the loop over the remaining iterations.
    map: ValueSubstitution,
    captures: Vec<ValueId>,
}

impl Builder<'_> {
    /// Copies the program after `node` to its end.
    fn rest(&mut self, node: NodeId, steps: Option<&Steps>) -> Result<(), CloneError> {
        let source = self.source;
        let mut at = node;
        loop {
            let block = source.parent(at);
            let after = std::iter::successors(source.next(at), |&n| source.next(n));
            for node in after.take_while(|&n| n != source.ret(block)) {
                self.copy(node)?;
            }
            let outputs: Vec<ValueId> = source.block_outputs(block).map(|v| self.mapped(v)).collect();
            let Some(owner) = source.owner(block) else {
                outputs.into_iter().for_each(|v| self.editor.add_output(v));
                return Ok(());
            };
            match steps {
                Some(steps) if source.is_prim(owner, Prim::Loop) => {
                    self.remaining_iterations(owner, block, &outputs, steps)?;
                }
                _ => source.results(owner).zip(outputs).for_each(|(result, out)| self.map.set(result, out)),
            }
            at = owner;
        }
    }

    /// Copies one node. Values that it uses and that come from before the point become inputs.
    fn copy(&mut self, node: NodeId) -> Result<(), CloneError> {
        let source = self.source;
        source.operands(node).for_each(|v| {
            self.mapped(v);
        });
        for block in source.blocks(node) {
            let inner = source.nodes_deep_in(block).flat_map(|n| source.operands(n).collect::<Vec<_>>());
            let returned = blocks_in(source, block).into_iter().flat_map(|b| source.block_outputs(b));
            for v in inner.chain(returned) {
                if source.ancestor_in(source.def(v), source.parent(node)) != Some(node) {
                    self.mapped(v);
                }
            }
        }
        self.editor.copy_from(source, [node], &mut self.map)
    }

    /// Returns the value of the continuation for a value of the program: a copied value, a copied constant, or an input.
    fn mapped(&mut self, value: ValueId) -> ValueId {
        if let Some(known) = self.map.get(value) {
            return known;
        }
        let new = match self.source.constant(value) {
            Some(constant) => {
                // At the start, because uses in several blocks share the copy.
                let (cursor, root) = (self.editor.cursor(), self.editor.graph().root());
                self.editor.at(At::start(root));
                let new = self.editor.constant_of(constant, self.source.ty(value));
                self.editor.at(At::before(cursor));
                new
            }
            None => {
                self.captures.push(value);
                self.editor.add_input(self.source.ty(value).erase_shapes())
            }
        };
        self.name(value, new);
        self.map.set(value, new);
        new
    }

    /// Gives a new value the debug name of a value of the program.
    fn name(&mut self, value: ValueId, new: ValueId) {
        if let Some(name) = self.source.name(value).symbol() {
            self.editor.set_name(new, name);
        }
    }

    /// Adds the loop over the iterations after the interrupted one, whose outputs are given.
    fn remaining_iterations(
        &mut self,
        owner: NodeId,
        body: BlockId,
        outputs: &[ValueId],
        steps: &Steps,
    ) -> Result<(), CloneError> {
        let source = self.source;
        let inputs: Vec<ValueId> = source.block_inputs(body).collect();
        let (limit, trip) = (self.mapped(source.operand(owner, 0)), self.mapped(inputs[0]));
        let loc = self.editor.import_loc(source, source.loc(owner));
        let editor = &mut self.editor;
        editor.loc(loc);
        let one = editor.constant(IValue::Int(1));
        let done = editor.value(steps.sum, &[trip, one], Type::INT);
        let left = editor.value(steps.difference, &[limit, done], Type::INT);
        let operands: Vec<ValueId> = [left].into_iter().chain(outputs.iter().copied()).collect();
        let types: Vec<Type> = source.results(owner).map(|v| source.ty(v)).collect();
        let node = editor.node(Prim::Loop, &operands, &types);
        let copy = editor.add_block(node);
        let number = editor.add_block_input(copy, Type::INT);
        for &carried in &inputs[1..] {
            let new = editor.add_block_input(copy, source.ty(carried));
            self.map.set(carried, new);
        }
        editor.at(At::end(copy)).loc(loc);
        if source.use_count(inputs[0]) > 0 {
            let number = editor.value(steps.sum, &[number, done], Type::INT);
            self.map.set(inputs[0], number);
        }
        for inner in source.nodes(body) {
            self.copy(inner)?;
        }
        for output in source.block_outputs(body) {
            let output = self.mapped(output);
            self.editor.add_block_output(copy, output);
        }
        for (i, result) in source.results(owner).enumerate() {
            let new = self.editor.graph().result(node, i);
            self.map.set(result, new);
        }
        self.editor.at(At::after(node));
        Ok(())
    }
}

/// Returns a block and all blocks nested in it.
fn blocks_in(g: &Graph, block: BlockId) -> Vec<BlockId> {
    let nested = g.nodes_deep_in(block).flat_map(|n| g.blocks(n).collect::<Vec<_>>());
    std::iter::once(block).chain(nested).collect()
}
