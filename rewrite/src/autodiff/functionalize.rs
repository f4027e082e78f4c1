//! Functionalization: writes to tensors that the graph allocates, and to inputs and attributes that the caller names, become operators
//! that return new tensors.
//!
//! A tensor over written memory is described by its *base*, the result of the node that made the memory, and a chain of views.
//! The pass tracks the current value of each base. A write computes the new value of the written view by the functional
//! variant of the operator, and then the new value of each tensor up to the base: the adjoint of a view places the new
//! elements in a tensor like the view's operand, and the other elements are those of before. Where a view is used after a
//! write, it is taken again from the base's current value. Branches return, and loops carry, the bases that they write.
//!
//! Inputs and attributes that the caller names are bases, too: their final values become outputs. An error is returned for writes to other
//! memory that the graph does not make, and to memory that an unknown alias (a reshaped copy or view, a container)
//! may share while it is written. Adjoints come from the derivatives of views whose elements are distinct memory. Linear in
//! the number of nodes, writes and the lengths of chains of views.

use super::activity::is_cast;
use super::reverse::{FormulaGraph, FormulaGraphs, Helper, OpDerivative, argument, inlined};
use super::{Named, NotDifferentiable};
use crate::facets::AlwaysView;
use crate::inplace::InplaceVariants;
use crate::passes::remove_mutation::is_fresh;
use flambeau_exec::tape::{RecordingQuery, ViewRecord};
use flambeau_ir::{At, BlockId, Editor, Graph, NodeId, NodeMap, OpId, Prim, Type, ValueId, WalkStep};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

type ByValue<T> = HashMap<ValueId, T, FxBuildHasher>;
type ByNode<T> = HashMap<NodeId, T, FxBuildHasher>;

/// Makes writes to tensors functional. Returns `None` if there were none; after an error the graph is unchanged.
///
/// `may_write` states which inputs and attributes may be written: tensors that no other value shares memory with. Those that
/// are written are returned, and their final values are further outputs of the graph, in this order.
///
/// # Errors
/// If a write cannot be made functional.
pub fn functionalize(
    graph: &mut Graph,
    formulas: &dyn FormulaGraphs,
    may_write: &dyn Fn(&Graph, ValueId) -> bool,
) -> Result<Option<Vec<ValueId>>, NotDifferentiable> {
    let plan = FunctionalizationPlan::of(graph, formulas, may_write)?;
    if plan.writes.is_empty() {
        return Ok(None);
    }
    let mut changed = graph.clone();
    let external: Vec<ValueId> =
        plan.external.iter().copied().filter(|v| plan.bases.contains_key(v)).collect();
    Rewrite::new(changed.edit(), &plan, formulas).run(&external)?;
    *graph = changed;
    Ok(Some(external))
}

/// The relation of a tensor to the base of its memory.
#[derive(Clone, Copy)]
enum BaseRelation {
    /// It is the base.
    Base,
    /// It is another tensor.
    Same(ValueId),
    /// The result of a view operator, whose first operand is the tensor.
    View(NodeId, ValueId),
    /// An element of a list of views: the node that unpacks the list, and its position.
    Part(NodeId, usize),
}

/// The functional form of a write.
#[derive(Clone, Copy)]
enum Functional {
    Variant(OpId),
    Detach,
}

/// A base that is written.
struct Base {
    /// Positions of writes, ascending.
    writes: Vec<u32>,
    /// The loops around writes, inside the block of the base.
    loops: Vec<NodeId>,
    /// An alias of the base that escapes the graph.
    escaping: Option<ValueId>,
    /// Whether it is an input or attribute.
    is_external: bool,
}

/// The writes of a graph, and the tensors that they concern.
struct FunctionalizationPlan {
    kinds: ByValue<(ValueId, BaseRelation)>,
    bases: ByValue<Base>,
    writes: ByNode<Functional>,
    /// Views of one tensor, or of parts of it, with their adjoints.
    views: ByNode<Arc<FormulaGraph>>,
    /// For branches and loops, the bases made outside of them that they write.
    merges: ByNode<Vec<ValueId>>,
    /// Inputs and attributes that may be written, in program order.
    external: Vec<ValueId>,
}

impl FunctionalizationPlan {
    fn of(
        graph: &Graph,
        formulas: &dyn FormulaGraphs,
        may_write: &dyn Fn(&Graph, ValueId) -> bool,
    ) -> Result<FunctionalizationPlan, NotDifferentiable> {
        let mut plan = FunctionalizationPlan {
            external: Vec::new(),
            kinds: HashMap::default(),
            bases: HashMap::default(),
            writes: HashMap::default(),
            views: HashMap::default(),
            merges: HashMap::default(),
        };
        if !graph.nodes_deep().any(|n| target(graph, n).is_some()) {
            return Ok(plan);
        }
        let attributes = graph.nodes(graph.root()).filter(|n| graph.is_prim(*n, Prim::GetAttr));
        let known = graph.inputs().chain(attributes.map(|n| graph.result(n, 0)));
        plan.external = known.filter(|v| graph.ty(*v).is_tensor() && may_write(graph, *v)).collect();
        plan.kinds.extend(plan.external.iter().map(|v| (*v, (*v, BaseRelation::Base))));
        let registry = Arc::clone(graph.registry());
        let variants = InplaceVariants::new(&registry);
        let mut position = NodeMap::for_nodes(graph, 0u32);
        let mut count = 0;
        for step in graph.walk(graph.root()) {
            count += 1;
            match step {
                WalkStep::Node(node) => {
                    position[node] = count;
                    plan.node(graph, node, count, &variants, formulas)?;
                }
                WalkStep::Leave(block) => position[graph.ret(block)] = count,
                WalkStep::Enter(_) | WalkStep::Done(_) => {}
            }
        }
        plan.bases.values_mut().for_each(|base| base.writes.sort_unstable());
        let written: Vec<(ValueId, ValueId)> = plan.kinds.iter().map(|(v, (base, _))| (*v, *base)).collect();
        let mut written: Vec<_> =
            written.into_iter().filter(|(_, base)| plan.bases.contains_key(base)).collect();
        written.sort_unstable_by_key(|(v, _)| (position[graph.def(*v)], graph.result_index(*v)));
        for (value, base) in written {
            plan.check_uses(graph, value, base, &position)?;
        }
        Ok(plan)
    }

    fn node(
        &mut self,
        graph: &Graph,
        node: NodeId,
        at: u32,
        variants: &InplaceVariants<'_>,
        formulas: &dyn FormulaGraphs,
    ) -> Result<(), NotDifferentiable> {
        if let Some(written) = target(graph, node) {
            return self.write(graph, node, written, at, variants, formulas);
        }
        let first = (graph.operand_count(node) > 0).then(|| graph.operand(node, 0));
        let of = first.and_then(|v| Some((v, self.kinds.get(&v)?.0)));
        if let (Some((first, base)), Some(Prim::ListUnpack)) = (of, graph.prim(node)) {
            if self.views.contains_key(&graph.def(first)) {
                let parts = graph.results(node).enumerate();
                self.kinds.extend(parts.map(|(i, part)| (part, (base, BaseRelation::Part(node, i)))));
            }
            return Ok(());
        }
        if let (Some((first, base)), true) = (of, graph.prim(node).is_some_and(is_cast)) {
            self.kinds.insert(graph.result(node, 0), (base, BaseRelation::Same(first)));
            return Ok(());
        }
        let Some(row) = graph.op(node).row() else { return Ok(()) };
        let adjoint = formulas.view(row)?;
        let is_view = adjoint.is_some() || graph.registry().facet::<AlwaysView>(row).is_some();
        if let (Some((first, base)), true) = (of, is_view && graph.result_count(node) == 1) {
            adjoint.into_iter().for_each(|adjoint| drop(self.views.insert(node, Arc::new(adjoint))));
            self.kinds.insert(graph.result(node, 0), (base, BaseRelation::View(node, first)));
        } else if graph.result_count(node) == 1
            && graph.ty(graph.result(node, 0)).is_tensor()
            && is_fresh(graph, node)
        {
            let base = graph.result(node, 0);
            self.kinds.insert(base, (base, BaseRelation::Base));
        }
        Ok(())
    }

    fn write(
        &mut self,
        graph: &Graph,
        node: NodeId,
        written: ValueId,
        at: u32,
        variants: &InplaceVariants<'_>,
        formulas: &dyn FormulaGraphs,
    ) -> Result<(), NotDifferentiable> {
        let fail = |reason: &str| Err(NotDifferentiable::at(graph, node, reason));
        let Some(&(base, kind)) = self.kinds.get(&written) else {
            return fail(
                "writes a tensor that is not a view chain over a tensor created in the graph, or over a writable input or \
                 attribute",
            );
        };
        if !self.can_be_placed(graph, written) {
            return fail("writes through a view whose elements may share memory, or that has no history");
        }
        if self.is_refused(graph, written) {
            return fail("writes to one of several views that an operator returned");
        }
        let Some(row) = graph.op(node).row() else { return fail("is not registered") };
        let is_detach = graph.registry().facet::<RecordingQuery>(row) == Some(&RecordingQuery::Detach);
        let form = match variants.functional(row) {
            _ if is_detach && matches!(kind, BaseRelation::Base | BaseRelation::Same(_)) => {
                Functional::Detach
            }
            // The written tensor still requires a gradient, which is zero; the new one would not.
            Some(variant) if is_constant(formulas, variant)? && !is_constant(formulas, row)? => {
                return fail(
                    "overwrites a tensor with values that do not depend on its elements, so the functional form's result would \
                     not require a gradient",
                );
            }
            Some(variant) => Functional::Variant(variant),
            None => return fail("writes and has no functional variant"),
        };
        if let Functional::Variant(variant) = form
            && self.saves_written(graph, node, base, &formulas.derivative(variant)?)
        {
            return fail("overwrites memory that its derivative reads through another operand");
        }
        self.writes.insert(node, form);
        self.kinds.extend(graph.results(node).map(|v| (v, (base, BaseRelation::Same(written)))));
        let base_block = graph.parent(graph.def(base));
        let entry = self.bases.entry(base);
        let def = graph.prim(graph.def(base));
        let is_external = matches!(def, Some(Prim::Param | Prim::GetAttr));
        let entry = entry.or_insert_with(|| Base {
            writes: Vec::new(),
            loops: Vec::new(),
            escaping: None,
            is_external,
        });
        entry.writes.push(at);
        let mut inner = node;
        while graph.parent(inner) != base_block {
            let Some(outer) = graph.enclosing(inner) else {
                return fail("writes memory that was made in a block that does not contain the write");
            };
            match graph.prim(outer) {
                Some(Prim::If) => {}
                Some(Prim::Loop) => entry.loops.push(outer),
                _ => {
                    return fail(
                        "is in a block that is neither a branch nor a loop body, and writes memory made outside of it",
                    );
                }
            }
            let bases = self.merges.entry(outer).or_default();
            if bases.contains(&base) {
                break;
            }
            bases.push(base);
            inner = outer;
        }
        Ok(())
    }

    /// Checks that no use of a tensor keeps it where a later write would be seen.
    fn check_uses(
        &mut self,
        graph: &Graph,
        value: ValueId,
        base: ValueId,
        position: &NodeMap<u32>,
    ) -> Result<(), NotDifferentiable> {
        let uses: Vec<(NodeId, usize)> = graph.uses(value).map(|u| (u.user, u.index as usize)).collect();
        for (user, index) in uses {
            let is_known = index == 0
                && (self.writes.contains_key(&user)
                    || self.is_view(graph, user)
                    || graph.prim(user).is_some_and(is_cast)
                    || graph.is_prim(user, Prim::ListUnpack));
            if is_known {
                continue;
            }
            let def = graph.def(value);
            if self.is_refused(graph, value) && self.is_written_between(base, position[def], position[user]) {
                let reason =
                    "reads one of several views that an operator returned after a write to their memory";
                return Err(NotDifferentiable::at(graph, user, reason));
            }
            if !graph.ty(value).is_tensor()
                && self.is_written_later(graph, base, def, position[def], u32::MAX)
            {
                let reason = "reads a list of views of a tensor that is written";
                return Err(NotDifferentiable::at(graph, user, reason));
            }
            let is_end = user == graph.ret(graph.root());
            let until = match graph.prim(user) {
                _ if is_end => Some(u32::MAX),
                Some(Prim::ListConstruct | Prim::TupleConstruct | Prim::DictConstruct) => {
                    let container = graph.result(user, 0);
                    if graph.uses(container).any(|u| u.user == graph.ret(graph.root())) {
                        self.leave(graph, value, base, user)?;
                    }
                    let reads = |n: NodeId| {
                        graph.op(n).row().is_some_and(|row| !graph.registry().schema(row).has_aliases())
                    };
                    let is_read = graph.uses(container).all(|u| reads(u.user));
                    Some(if is_read {
                        graph.uses(container).map(|u| position[u.user]).max().unwrap_or(0)
                    } else {
                        u32::MAX
                    })
                }
                Some(_) => Some(u32::MAX),
                None if crate::memory::is_opaque(graph, user) || graph.block_count(user) > 0 => {
                    Some(u32::MAX)
                }
                None => {
                    let row = graph.op(user).row();
                    let arg = row.and_then(|row| graph.registry().schema(row).args.get(index));
                    arg.is_none_or(|arg| arg.alias.is_some()).then_some(u32::MAX)
                }
            };
            if is_end {
                self.leave(graph, value, base, user)?;
            } else if let Some(until) = until
                && self.is_written_later(graph, base, user, position[user], until)
            {
                let reason = "stores or aliases a tensor that a later node writes";
                return Err(NotDifferentiable::at(graph, user, reason));
            }
        }
        Ok(())
    }

    fn is_view(&self, graph: &Graph, node: NodeId) -> bool {
        let result = graph.results(node).next();
        matches!(result.and_then(|v| self.kinds.get(&v)), Some((_, BaseRelation::View(of, _))) if *of == node)
    }

    /// Whether new elements of a tensor can be placed in its base: all views between have adjoints.
    fn can_be_placed(&self, graph: &Graph, tensor: ValueId) -> bool {
        let mut at = tensor;
        loop {
            match self.kinds.get(&at) {
                Some((_, BaseRelation::Base)) => return true,
                Some((_, BaseRelation::Same(of))) => at = *of,
                Some((_, BaseRelation::View(view, of))) if self.views.contains_key(view) => at = *of,
                Some((_, BaseRelation::Part(unpack, _))) => at = graph.operand(*unpack, 0),
                _ => return false,
            }
        }
    }

    /// Whether the derivative of a write reads an operand besides the first that is memory of the written base: an error of
    /// the backward walk.
    fn saves_written(&self, graph: &Graph, node: NodeId, base: ValueId, derivative: &OpDerivative) -> bool {
        let reads = |i: usize| match derivative {
            OpDerivative::Formulas(all) => all.iter().any(|f| f.params.contains(&Named::Arg(i))),
            OpDerivative::Body(body) => body.params.contains(&Named::Arg(i)),
            OpDerivative::Constant | OpDerivative::Unknown => false,
        };
        let mut others = graph.operands(node).enumerate().skip(1);
        others.any(|(i, v)| self.kinds.get(&v).is_some_and(|(of, _)| *of == base) && reads(i))
    }

    /// Whether a tensor is a view that its operator returned with others, or a view of one, where recorded writes to its
    /// memory are errors.
    fn is_refused(&self, graph: &Graph, tensor: ValueId) -> bool {
        let several = |node: NodeId| {
            let record = graph.op(node).row().and_then(|row| graph.registry().facet::<ViewRecord>(row));
            matches!(record, Some(ViewRecord::Several(_)))
        };
        let mut at = tensor;
        loop {
            at = match self.kinds.get(&at) {
                Some((_, BaseRelation::Same(of))) => *of,
                Some((_, BaseRelation::View(view, _))) if several(*view) => return true,
                Some((_, BaseRelation::View(_, of))) => *of,
                Some((_, BaseRelation::Part(unpack, _))) => graph.operand(*unpack, 0),
                Some((_, BaseRelation::Base)) | None => return false,
            }
        }
    }

    /// Records that a tensor leaves the graph; at most one of each base may.
    fn leave(
        &mut self,
        graph: &Graph,
        value: ValueId,
        base: ValueId,
        user: NodeId,
    ) -> Result<(), NotDifferentiable> {
        let mut tensor = value;
        while let Some((_, BaseRelation::Same(of))) = self.kinds.get(&tensor) {
            tensor = *of;
        }
        let Some(entry) = self.bases.get_mut(&base) else { return Ok(()) };
        if entry.is_external {
            return Err(NotDifferentiable::at(
                graph,
                user,
                "returns an input or attribute that the graph writes",
            ));
        }
        if entry.escaping.is_some_and(|other| other != tensor) {
            return Err(NotDifferentiable::at(graph, user, "two results share memory that is written"));
        }
        entry.escaping = Some(tensor);
        Ok(())
    }

    /// Whether a base is written between two positions.
    fn is_written_between(&self, base: ValueId, from: u32, until: u32) -> bool {
        let Some(entry) = self.bases.get(&base) else { return false };
        let next = entry.writes.partition_point(|at| *at <= from);
        entry.writes.get(next).is_some_and(|at| *at < until)
    }

    /// Whether a base is written after a node at position `from` and before `until`, also by the next iteration of a loop.
    fn is_written_later(&self, graph: &Graph, base: ValueId, node: NodeId, from: u32, until: u32) -> bool {
        let Some(entry) = self.bases.get(&base) else { return false };
        let next = entry.writes.partition_point(|at| *at <= from);
        if entry.writes.get(next).is_some_and(|at| *at < until) {
            return true;
        }
        let mut outer = graph.enclosing(node);
        while let Some(at) = outer {
            if until == u32::MAX && entry.loops.contains(&at) {
                return true;
            }
            outer = graph.enclosing(at);
        }
        false
    }
}

fn is_constant(formulas: &dyn FormulaGraphs, op: OpId) -> Result<bool, NotDifferentiable> {
    Ok(matches!(formulas.derivative(op)?, OpDerivative::Constant))
}

/// Returns the first operand of an operator that writes this operand, a tensor, and no other.
pub(super) fn target(graph: &Graph, node: NodeId) -> Option<ValueId> {
    let row = graph.op(node).row()?;
    let schema = graph.registry().schema(row);
    let is_first = |(i, arg): (usize, &flambeau_ir::schema::Argument)| arg.is_write() == (i == 0);
    let is_write = schema.args.iter().enumerate().all(is_first) && schema.args.first()?.ty.is_tensor();
    is_write.then(|| graph.operand(node, 0))
}

/// A value of a base or view, and the version of the base that it belongs to.
type Versioned = (u64, ValueId);

/// An open branch or loop that writes bases made outside of it.
struct Frame {
    before: Vec<Versioned>,
}

/// The rewrite of a graph.
struct Rewrite<'g, 'p> {
    editor: Editor<'g>,
    plan: &'p FunctionalizationPlan,
    formulas: &'p dyn FormulaGraphs,
    /// The current values of bases.
    current: ByValue<Versioned>,
    /// The views that exist in the current block and those around it.
    views: ByValue<Versioned>,
    /// Replaced entries of `views`, to restore them at the end of a block, and the open blocks' marks in it.
    undo: Vec<(ValueId, Option<Versioned>)>,
    marks: Vec<usize>,
    frames: Vec<Frame>,
    versions: u64,
}

impl<'g, 'p> Rewrite<'g, 'p> {
    fn new(editor: Editor<'g>, plan: &'p FunctionalizationPlan, formulas: &'p dyn FormulaGraphs) -> Self {
        let current = plan.bases.keys().map(|base| (*base, (0, *base))).collect();
        Rewrite {
            editor,
            plan,
            formulas,
            current,
            views: HashMap::default(),
            undo: Vec::new(),
            marks: Vec::new(),
            frames: Vec::new(),
            versions: 0,
        }
    }

    fn run(mut self, external: &[ValueId]) -> Result<(), NotDifferentiable> {
        let root = self.editor.graph().root();
        let steps: Vec<WalkStep> = self.editor.graph().walk(root).collect();
        for &step in &steps {
            match step {
                WalkStep::Node(node) => self.node(node)?,
                WalkStep::Enter(block) => self.enter(block),
                WalkStep::Leave(block) => self.leave(block)?,
                WalkStep::Done(node) => self.add_results(node),
            }
        }
        for written in external {
            let (_, last) = self.current[written];
            self.editor.add_output(last);
        }
        for step in steps.into_iter().rev() {
            let WalkStep::Node(node) = step else { continue };
            if self.plan.writes.contains_key(&node) {
                let g = self.editor.graph();
                let written = g.operand(node, 0);
                let results: Vec<ValueId> = g.results(node).map(|_| written).collect();
                self.editor.replace_node(node, &results);
            }
        }
        Ok(())
    }

    /// Returns the base of a tensor if the base is written.
    fn base_of(&self, value: ValueId) -> Option<ValueId> {
        let (base, _) = self.plan.kinds.get(&value)?;
        self.plan.bases.contains_key(base).then_some(*base)
    }

    /// Records the current value of a view, and the replaced entry in `undo`.
    fn remember(&mut self, view: ValueId, value: Versioned) {
        let before = self.views.insert(view, value);
        self.undo.push((view, before));
    }

    fn version(&self, base: ValueId) -> u64 {
        self.current.get(&base).map_or(0, |(version, _)| *version)
    }

    fn node(&mut self, node: NodeId) -> Result<(), NotDifferentiable> {
        if let Some(form) = self.plan.writes.get(&node) {
            return self.write(node, *form);
        }
        self.update_operands(node)?;
        let results: Vec<ValueId> = self.editor.graph().results(node).collect();
        for result in results {
            if let (Some(base), Some((_, BaseRelation::View(..) | BaseRelation::Part(..)))) =
                (self.base_of(result), self.plan.kinds.get(&result))
            {
                let version = self.version(base);
                // Parts are as old as their list.
                let list = self.editor.graph().operand(node, 0);
                let is_part = matches!(self.plan.kinds[&result].1, BaseRelation::Part(..));
                let is_old = is_part && self.views.get(&list).is_none_or(|(v, _)| *v != version);
                if !is_old {
                    self.remember(result, (version, result));
                }
            }
        }
        if let Some(bases) = self.plan.merges.get(&node) {
            let before: Vec<Versioned> = bases.iter().map(|base| self.current[base]).collect();
            if self.editor.graph().is_prim(node, Prim::Loop) {
                before.iter().for_each(|(_, value)| self.editor.push_operand(node, *value));
            }
            self.frames.push(Frame { before });
        }
        Ok(())
    }

    /// Lets a node read the current values of its operands.
    fn update_operands(&mut self, node: NodeId) -> Result<(), NotDifferentiable> {
        let operands: Vec<ValueId> = self.editor.graph().operands(node).collect();
        for (i, operand) in operands.into_iter().enumerate() {
            let is_list = self.editor.graph().ty(operand).list_elem().is_some();
            if self.base_of(operand).is_some() && !is_list {
                let value = self.value(operand, node)?;
                if value != operand {
                    self.editor.set_operand(node, i, value);
                }
            }
        }
        Ok(())
    }

    /// Returns the current value of a tensor of a written base; view operators are applied again before node `user` if the view is older.
    fn value(&mut self, tensor: ValueId, user: NodeId) -> Result<ValueId, NotDifferentiable> {
        let Some(base) = self.base_of(tensor) else { return Ok(tensor) };
        let (version, mut found) = self.current[&base];
        let mut chain: Vec<ValueId> = Vec::new();
        let mut at = tensor;
        loop {
            if let Some((_, value)) = self.views.get(&at).filter(|(v, _)| *v == version) {
                found = *value;
                break;
            }
            match self.plan.kinds[&at].1 {
                BaseRelation::Base => break,
                BaseRelation::Same(of) => at = of,
                BaseRelation::View(_, of) => {
                    chain.push(at);
                    at = of;
                }
                BaseRelation::Part(unpack, _) => {
                    chain.push(at);
                    at = self.source_of_parts(unpack);
                }
            }
        }
        for view in chain.into_iter().rev() {
            found = match self.plan.kinds[&view].1 {
                BaseRelation::View(node, _) => self.reinsert_view(node, found, user),
                BaseRelation::Part(unpack, i) => self.reinsert_parts(unpack, found, user)[i],
                BaseRelation::Base | BaseRelation::Same(_) => found,
            };
            self.remember(view, (version, found));
        }
        Ok(found)
    }

    /// Returns the tensor of which the elements of an unpacked list are views.
    fn source_of_parts(&self, unpack: NodeId) -> ValueId {
        let g = self.editor.graph();
        let list = g.def(g.operand(unpack, 0));
        match self.plan.kinds.get(&g.result(list, 0)) {
            Some((_, BaseRelation::View(_, of))) => *of,
            _ => g.operand(list, 0),
        }
    }

    /// Inserts a copy of a view operator before node `user`, applied to another tensor.
    fn reinsert_view(&mut self, node: NodeId, of: ValueId, user: NodeId) -> ValueId {
        let g = self.editor.graph();
        let (op, loc, ty) = (g.op(node), g.loc(node), g.ty(g.result(node, 0)));
        let mut operands: Vec<ValueId> = g.operands(node).collect();
        operands[0] = of;
        self.editor.at(At::before(user)).loc(loc).value(op, &operands, ty)
    }

    /// Inserts copies of a list of views of another tensor, and of the node that unpacks it, before node `user`; returns the
    /// elements.
    fn reinsert_parts(&mut self, unpack: NodeId, of: ValueId, user: NodeId) -> Vec<ValueId> {
        let g = self.editor.graph();
        let list = g.def(g.operand(unpack, 0));
        let types: Vec<Type> = g.results(unpack).map(|v| g.ty(v)).collect();
        let list = self.reinsert_view(list, of, user);
        let node = self.editor.node(Prim::ListUnpack, &[list], &types);
        self.editor.graph().results(node).collect()
    }

    fn write(&mut self, node: NodeId, form: Functional) -> Result<(), NotDifferentiable> {
        let g = self.editor.graph();
        let (written, loc) = (g.operand(node, 0), g.loc(node));
        let Some(base) = self.base_of(written) else { return Ok(()) };
        let before = self.value(written, node)?;
        let mut operands = vec![before];
        let others: Vec<ValueId> = self.editor.graph().operands(node).skip(1).collect();
        for operand in others {
            operands.push(self.value(operand, node)?);
        }
        self.editor.at(At::before(node)).loc(loc);
        let mut new = match form {
            Functional::Detach => self.inline_helper(node, Helper::Detach, &[before])?,
            Functional::Variant(op) => {
                let ty = self.editor.graph().ty(written).erase_shapes();
                let result = self.editor.value(op, &operands, ty);
                self.inline_helper(node, Helper::Written, &[result, before])?
            }
        };
        self.versions += 1;
        let version = self.versions;
        let mut at = written;
        loop {
            match self.plan.kinds[&at].1 {
                BaseRelation::Base => break,
                BaseRelation::Same(of) => at = of,
                BaseRelation::View(view, of) => {
                    let source = self.value(of, node)?;
                    self.remember(at, (version, new));
                    self.editor.at(At::before(node)).loc(loc);
                    let placed = self.adjoint(view, new, source)?;
                    let ones = self.inline_helper(node, Helper::OnesLike, &[new])?;
                    let mask = self.adjoint(view, ones, source)?;
                    new = self.inline_helper(node, Helper::Replace, &[placed, mask, source])?;
                    at = of;
                }
                BaseRelation::Part(unpack, i) => {
                    let of = self.source_of_parts(unpack);
                    let source = self.value(of, node)?;
                    self.remember(at, (version, new));
                    let mut parts = self.reinsert_parts(unpack, source, node);
                    parts[i] = new;
                    self.editor.at(At::before(node)).loc(loc);
                    let list = self.editor.value(Prim::ListConstruct, &parts, Type::list(Type::TENSOR));
                    let made = self.editor.graph().operand(unpack, 0);
                    let view = self.editor.graph().def(made);
                    new = self.adjoint(view, list, source)?;
                    at = of;
                }
            }
        }
        self.current.insert(base, (version, new));
        Ok(())
    }

    /// Inserts the adjoint of a view at the cursor.
    fn adjoint(
        &mut self,
        view: NodeId,
        grad: ValueId,
        source: ValueId,
    ) -> Result<ValueId, NotDifferentiable> {
        let formula = Arc::clone(&self.plan.views[&view]);
        let registry = Arc::clone(self.editor.graph().registry());
        let fail =
            |g: &Graph| NotDifferentiable::at(g, view, "its adjoint reads its result, or several gradients");
        let schema = self.editor.graph().op(view).row().map(|row| registry.schema(row));
        let (Some(schema), Some(graph)) = (schema, &formula.graph) else {
            return Err(fail(self.editor.graph()));
        };
        let operands: Vec<ValueId> = self.editor.graph().operands(view).collect();
        let mut inputs = Vec::with_capacity(formula.params.len());
        for param in &formula.params {
            inputs.push(match *param {
                Named::Grad(0) => grad,
                Named::Arg(0) | Named::Copy(0) | Named::Like(0) => source,
                Named::Arg(i) | Named::Copy(i) | Named::Like(i) => {
                    argument(&mut self.editor, view, schema, i, &operands)?
                }
                Named::Grad(_) | Named::Result(_) => return Err(fail(self.editor.graph())),
            });
        }
        let found = inlined(&mut self.editor, view, graph, &inputs)?;
        // Formulas return optional tensors.
        let ty = self.editor.graph().ty(found);
        Ok(if ty.is_tensor() {
            found
        } else {
            self.editor.value(Prim::UncheckedCast, &[found], Type::TENSOR)
        })
    }

    /// Inlines a helper function at the cursor and returns its result.
    fn inline_helper(
        &mut self,
        node: NodeId,
        helper: Helper,
        inputs: &[ValueId],
    ) -> Result<ValueId, NotDifferentiable> {
        let graph = self.formulas.helper(helper)?;
        inlined(&mut self.editor, node, &graph, inputs)
    }

    fn enter(&mut self, block: BlockId) {
        self.marks.push(self.undo.len());
        let Some(node) = self.editor.graph().owner(block) else { return };
        let plan = self.plan;
        let Some(bases) = plan.merges.get(&node) else { return };
        let is_loop = self.editor.graph().is_prim(node, Prim::Loop);
        for (i, base) in bases.iter().enumerate() {
            let before = self.frames.last().map(|frame| frame.before[i]);
            let value = match before {
                Some(_) if is_loop => {
                    self.versions += 1;
                    (self.versions, self.editor.add_block_input(block, Type::TENSOR))
                }
                Some(before) => before,
                None => continue,
            };
            self.current.insert(*base, value);
        }
    }

    fn leave(&mut self, block: BlockId) -> Result<(), NotDifferentiable> {
        let end = self.editor.graph().ret(block);
        self.update_operands(end)?;
        let owner = self.editor.graph().owner(block);
        let plan = self.plan;
        if let Some(bases) = owner.and_then(|node| plan.merges.get(&node)) {
            for base in bases {
                let (_, value) = self.current[base];
                self.editor.add_block_output(block, value);
            }
        }
        let mark = self.marks.pop().unwrap_or(0);
        while self.undo.len() > mark {
            let Some((view, before)) = self.undo.pop() else { break };
            match before {
                Some(before) => self.views.insert(view, before),
                None => self.views.remove(&view),
            };
        }
        Ok(())
    }

    /// Adds the results of a branch or loop: the values of the bases that it writes.
    fn add_results(&mut self, node: NodeId) {
        let plan = self.plan;
        let Some(bases) = plan.merges.get(&node) else { return };
        self.frames.pop();
        for base in bases {
            self.versions += 1;
            let result = self.editor.add_result(node, Type::TENSOR);
            self.current.insert(*base, (self.versions, result));
        }
    }
}
