//! Structural operators: interprets [`MemoryTransfer`] as constraints of the points-to graph.

use super::build::Builder;
use super::dag::{ElementId, ElementSubject, contents_type, owns_location};
use flambeau_ir::attr::names;
use flambeau_ir::{Graph, MemoryTransfer, NodeId, Prim, ValueId};
use smallvec::SmallVec;

impl Builder<'_> {
    pub(crate) fn prim(&mut self, node: NodeId, prim: Prim) {
        let g = self.g;
        match prim.memory() {
            MemoryTransfer::Nothing | MemoryTransfer::Blocks => {}
            MemoryTransfer::Constant => g.results(node).for_each(|v| self.constant(v)),
            MemoryTransfer::Fresh => g.results(node).for_each(|v| self.fresh(v)),
            MemoryTransfer::Same => self.same(node),
            MemoryTransfer::Continue => self.continuation(node),
            MemoryTransfer::AnyOperand => {
                let targets: SmallVec<[ElementId; 8]> =
                    self.mutable_operands(node).into_iter().map(|v| self.element(v)).collect();
                for v in g.results(node) {
                    if self.is_mutable(v) {
                        self.any_of(v, &targets);
                    }
                }
            }
            MemoryTransfer::Construct => self.construct(node),
            MemoryTransfer::Extract => self.extract(node, prim),
            MemoryTransfer::Wildcard => g.results(node).for_each(|v| self.set_wildcard(v)),
            MemoryTransfer::Attribute => self.attribute(node),
            MemoryTransfer::Store | MemoryTransfer::Captures => {
                g.operands(node).for_each(|v| self.escape(v));
                g.results(node).for_each(|v| self.set_wildcard(v));
            }
            MemoryTransfer::Call | MemoryTransfer::Host => self.anything(node),
            MemoryTransfer::Task => self.task(node),
            MemoryTransfer::Wait => {
                self.write_wildcards(node);
                g.results(node).for_each(|v| self.set_wildcard(v));
            }
            MemoryTransfer::Subgraph => self.subgraph(node),
            MemoryTransfer::Object => {
                for v in g.results(node) {
                    let e = self.element(v);
                    self.dag.open(e);
                }
            }
            MemoryTransfer::SetAttr => {
                let mut operands = g.operands(node);
                if let Some(object) = operands.next() {
                    let e = self.element(object);
                    self.write(node, e, false);
                }
                operands.for_each(|v| self.escape(v));
            }
        }
    }

    fn same(&mut self, node: NodeId) {
        let g = self.g;
        for (v, operand) in g.results(node).zip(g.operands(node)) {
            if !self.is_mutable(v) {
                continue;
            }
            if self.is_mutable(operand) {
                let e = self.element(operand);
                self.set(v, e);
            } else {
                self.set_wildcard(v);
            }
        }
        for v in g.results(node).skip(g.operand_count(node)) {
            self.set_wildcard(v);
        }
    }

    fn construct(&mut self, node: NodeId) {
        let g = self.g;
        let Some(v) = g.results(node).next() else { return };
        let ty = g.ty(v);
        if !ty.is_mutable() || contents_type(ty).is_none() {
            return;
        }
        let e = self.dag.add_exact(ElementSubject::Value(v), ty, owns_location(ty));
        self.set(v, e);
        for operand in g.operands(node) {
            if self.is_mutable(operand) {
                let item = self.element(operand);
                self.dag.put(e, item);
            }
        }
        if owns_location(ty) {
            self.container_made(v, e);
        }
    }

    fn extract(&mut self, node: NodeId, prim: Prim) {
        let g = self.g;
        let Some(container) = g.operands(node).next() else { return };
        let made = g.def(container);
        let known =
            matches!(prim, Prim::TupleUnpack | Prim::TupleIndex) && g.is_prim(made, Prim::TupleConstruct);
        for (i, v) in g.results(node).enumerate() {
            if !self.is_mutable(v) {
                continue;
            }
            self.reads_constants |= known && prim == Prim::TupleIndex;
            if known && let Some(item) = tuple_item(g, node, prim, made, i) {
                if self.is_mutable(item) {
                    let e = self.element(item);
                    self.set(v, e);
                }
                continue;
            }
            if !self.is_mutable(container) || contents_type(g.ty(container)).is_none() {
                self.set_wildcard(v);
                continue;
            }
            let from = self.element(container);
            let inside = self.dag.contents(from);
            if prim == Prim::TupleSlice {
                let e = self.dag.add_exact(ElementSubject::Value(v), g.ty(v), false);
                self.set(v, e);
                if contents_type(g.ty(v)).is_some() {
                    self.dag.put(e, inside);
                }
            } else {
                self.set(v, inside);
            }
        }
    }

    /// If the node continues in its subgraph, the operands after the first may be written there and become results of the
    /// function. The nodes that follow do not run then, but their results may not be replaced by other values that
    /// the subgraph could write or return: a copy of a tensor stays apart from the tensor.
    fn continuation(&mut self, node: NodeId) {
        self.same(node);
        self.continued.insert(node);
        let g = self.g;
        let body = g.attr(node, names::subgraph()).and_then(|a| a.as_graph()).cloned();
        let writes = body.as_ref().is_none_or(|body| self.summaries.writes_anything(body));
        // A summary takes time in proportion to the subgraph.
        let summary =
            body.filter(|_| writes).and_then(|body| self.summaries.of(&body)).filter(|s| !s.rebinds);
        for (i, v) in g.operands(node).skip(1).enumerate() {
            if !self.is_mutable(v) {
                continue;
            }
            let e = self.element(v);
            let is_written =
                summary.as_ref().map_or(writes, |s| s.inputs.get(i).is_none_or(|does| does.written));
            if is_written {
                self.write(node, e, true);
            }
            self.dag.escape(e);
        }
        if summary.map_or(writes, |summary| summary.writes_wildcards) {
            let all = self.dag.everything();
            self.write(node, all, true);
        }
    }

    /// A task reads its operands, and may write them if its code can, at any time from this node on.
    fn task(&mut self, node: NodeId) {
        let g = self.g;
        let writes = match g.attr(node, names::subgraph()).and_then(|a| a.as_graph()) {
            Some(body) => self.summaries.writes_anything(body),
            None => true,
        };
        for v in self.mutable_operands(node) {
            let e = self.element(v);
            if writes {
                self.write(node, e, true);
            }
            self.dag.escape(e);
        }
        if writes {
            self.write_wildcards(node);
        }
        g.results(node).for_each(|v| self.set_wildcard(v));
    }

    fn subgraph(&mut self, node: NodeId) {
        let g = self.g;
        let body = g.attr(node, names::subgraph()).and_then(|a| a.as_graph()).cloned();
        let Some(summary) = body.and_then(|body| self.summaries.of(&body)) else {
            return self.anything(node);
        };
        if summary.rebinds {
            return self.anything(node);
        }
        let operands: SmallVec<[ValueId; 8]> = g.operands(node).collect();
        for (i, &v) in operands.iter().enumerate() {
            let does = summary.inputs.get(i).copied().unwrap_or_default();
            if !self.is_mutable(v) || !(does.written || does.escapes) {
                continue;
            }
            let e = self.element(v);
            if does.written {
                self.write(node, e, true);
            }
            if does.escapes {
                self.dag.escape(e);
            }
        }
        if summary.writes_wildcards {
            let all = self.dag.everything();
            self.write(node, all, true);
        }
        for (i, v) in g.results(node).enumerate() {
            if !self.is_mutable(v) {
                continue;
            }
            match summary.outputs.get(i) {
                Some(out) if !out.outside && contents_type(g.ty(v)).is_none() => {
                    let mut targets: SmallVec<[ElementId; 4]> = SmallVec::new();
                    for &o in out.inputs.iter().filter_map(|&i| operands.get(i as usize)) {
                        if self.is_mutable(o) {
                            targets.push(self.element(o));
                        }
                    }
                    if targets.is_empty() {
                        self.fresh(v);
                    } else if out.fresh {
                        let e = self.element(v);
                        targets.into_iter().for_each(|t| self.dag.point(e, t));
                    } else {
                        self.any_of(v, &targets);
                    }
                }
                _ => {
                    operands.iter().for_each(|&o| self.escape(o));
                    self.set_wildcard(v);
                }
            }
        }
    }
}

/// The operand of `made` that a result of an unpacking or indexing node equals.
pub(crate) fn tuple_item(
    g: &Graph,
    node: NodeId,
    prim: Prim,
    made: NodeId,
    result: usize,
) -> Option<ValueId> {
    let count = g.operand_count(made);
    let at = match prim {
        Prim::TupleIndex if g.operand_count(node) > 1 => {
            let i = g.constant(g.operand(node, 1))?.as_int()?;
            usize::try_from(if i < 0 { i + count as i64 } else { i }).ok()?
        }
        _ => result,
    };
    (at < count).then(|| g.operand(made, at))
}
