//! Scalar replacement of containers: lists and dictionaries that a block constructs and changes are evaluated at compile time.
//!
//! A container is replaced if every use of it is an operation of a known kind ([`ContainerOp`]) with constant indices and
//! keys, an operator that only reads it, or a return of the graph. Its contents are then known at every node: reads become the
//! elements, writes are erased, and every other use gets a container that is constructed before it with the contents at that
//! point. In contrast to the pass `idioms`, a container may be written, in the block that constructs it, and may contain other
//! containers. Lists that branches return are first split into their elements.
//!
//! One walk in program order computes the contents and the edits. Edits apply after the walk, because a later use may show that
//! the contents of a container are unknown: its edits are then dropped. A container that an unknown one contains is unknown, too. O(nodes + constructed elements); both the size of a container and the number of elements that are
//! constructed again are bounded.

use super::branch_lists::split_lists;
use super::idioms::{slice, wrap_index};
use crate::facets::ContainerOp;
use crate::pass::{Pass, PassCx, PassError};
use crate::rules::rule::same_constant;
use flambeau_ir::{At, BlockId, Editor, Graph, IValue, NodeId, Prim, Type, ValueId, WalkStep};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContainerReplacement;

/// Maximum number of elements of a replaced list: every read of the whole list constructs it again.
const MAX_ELEMENTS: usize = 1_000;

/// Maximum number of entries of a replaced dictionary: keys are compared one by one.
const MAX_ENTRIES: usize = 64;

/// Elements that a run constructs at least, however small the graph is.
const FREE_ELEMENTS: usize = 4_096;

impl Pass for ContainerReplacement {
    const NAME: &'static str = "container_replacement";
    const DOC: &'static str =
        "Evaluates lists and dictionaries that do not escape and whose indices are constant.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        {
            let (mut editor, mut fuel) = cx.edit_fuelled();
            split_lists(&mut editor, |graph, node| fuel.take("split", graph, node));
        }
        let registry = cx.registry();
        let elements = registry.column::<ContainerOp>();
        let graph = cx.graph();
        let operation = |n: NodeId| elements.of(graph.op(n)).copied();
        let mut walk = Walk::new(graph, &operation);
        graph.walk(graph.root()).for_each(|step| walk.step(step));
        let Walk { containers, edges, edits, .. } = walk;
        let (mut editor, mut fuel) = cx.edit_fuelled();
        let mut unknown: Vec<bool> = containers.iter().map(|c| c.is_unknown).collect();
        let mut has_edit = vec![false; containers.len()];
        edits.iter().filter(|(_, edit)| edit.is_some()).for_each(|(of, _)| has_edit[*of] = true);
        for (i, container) in containers.iter().enumerate().filter(|(i, _)| has_edit[*i]) {
            unknown[i] = unknown[i] || !fuel.take("replace", editor.graph(), container.node);
        }
        spread(&mut unknown, &edges);
        let mut apply = Apply { replaced: HashMap::default(), made: HashMap::default() };
        for (of, edit) in edits.into_iter().filter(|(of, _)| !unknown[*of]) {
            let Some(edit) = edit else { continue };
            apply.edit(&mut editor, &containers[of], of, edit);
        }
        for (container, _) in containers.iter().zip(&unknown).rev().filter(|(_, unknown)| !**unknown) {
            let g = editor.graph();
            if g.has_node(container.node) && g.use_count(g.result(container.node, 0)) == 0 {
                editor.erase(container.node);
            }
        }
        Ok(())
    }
}

/// Marks the containers that unknown ones hold. `edges`: (container, held container).
fn spread(unknown: &mut [bool], edges: &[(usize, usize)]) {
    let mut tracked: Vec<Vec<usize>> = vec![Vec::new(); unknown.len()];
    edges.iter().for_each(|(from, to)| tracked[*from].push(*to));
    let mut open: Vec<usize> = (0..unknown.len()).filter(|i| unknown[*i]).collect();
    while let Some(from) = open.pop() {
        for &to in &tracked[from] {
            if !std::mem::replace(&mut unknown[to], true) {
                open.push(to);
            }
        }
    }
}

/// The contents of a container.
#[derive(Clone, Debug)]
enum Contents {
    List(Vec<ValueId>),
    /// Keys, their values in the graph, and the values of the entries.
    Dict(Vec<(IValue, ValueId, ValueId)>),
}

impl Contents {
    fn len(&self) -> usize {
        match self {
            Contents::List(elements) => elements.len(),
            Contents::Dict(entries) => entries.len(),
        }
    }

    fn list(&self) -> Option<&Vec<ValueId>> {
        match self {
            Contents::List(elements) => Some(elements),
            Contents::Dict(_) => None,
        }
    }

    fn entries(&self) -> Option<&Vec<(IValue, ValueId, ValueId)>> {
        match self {
            Contents::List(_) => None,
            Contents::Dict(entries) => Some(entries),
        }
    }

    /// Returns the position of an entry, or where a list index leads.
    fn position(&self, key: &IValue) -> Option<usize> {
        match self {
            Contents::List(elements) => wrap_index(key.as_int()?, elements.len()),
            Contents::Dict(entries) => entries.iter().position(|(k, ..)| same_constant(k, key)),
        }
    }

    fn value(&self, at: usize) -> ValueId {
        match self {
            Contents::List(elements) => elements[at],
            Contents::Dict(entries) => entries[at].2,
        }
    }

    /// Returns the operands of the node that constructs the container.
    fn operands(&self) -> Vec<ValueId> {
        match self {
            Contents::List(elements) => elements.clone(),
            Contents::Dict(entries) => entries.iter().flat_map(|(_, k, v)| [*k, *v]).collect(),
        }
    }

    fn prim(&self) -> Prim {
        match self {
            Contents::List(_) => Prim::ListConstruct,
            Contents::Dict(_) => Prim::DictConstruct,
        }
    }
}

/// A container that the graph makes.
struct Container {
    /// The node that makes it, and its block, in which it may be written.
    node: NodeId,
    block: BlockId,
    ty: Type,
    contents: Contents,
    /// The number of writes so far.
    version: usize,
    is_unknown: bool,
    /// Whether a return of the graph uses it, so that later writes are observable.
    is_returned: bool,
    /// The values that are this container.
    aliases: Vec<ValueId>,
    /// Positions of its edits, in the order of the walk.
    edits: Vec<usize>,
}

/// The outcome of an operation that does not write.
enum OperationResult {
    Element(ValueId),
    Constant(IValue),
    New(Contents),
    /// A list of pairs.
    Pairs(Vec<(ValueId, ValueId)>),
}

/// An edit, decided in the walk.
enum Edit {
    /// The node's results are these values.
    Values(NodeId, Vec<ValueId>),
    /// The node's result is this constant.
    Constant(NodeId, IValue),
    /// The node's result is a new container with these contents.
    New(NodeId, Contents),
    /// The node's result is a new list of pairs.
    Pairs(NodeId, Vec<(ValueId, ValueId)>),
    /// An operand becomes the container as it is after `version` writes.
    Operand { node: NodeId, index: usize, version: usize, contents: Contents },
    /// The node, a write without further results, is erased.
    Erase(NodeId),
    /// The container is constructed before the node, and used from there on.
    Materialize(NodeId, Contents),
}

/// The walk that follows the contents of all containers.
struct Walk<'g> {
    graph: &'g Graph,
    operation: &'g dyn Fn(NodeId) -> Option<ContainerOp>,
    containers: Vec<Container>,
    handles: HashMap<ValueId, usize, FxBuildHasher>,
    edges: Vec<(usize, usize)>,
    edits: Vec<(usize, Option<Edit>)>,
    /// Elements that may still be constructed again.
    budget: usize,
}

impl<'g> Walk<'g> {
    fn new(graph: &'g Graph, operation: &'g dyn Fn(NodeId) -> Option<ContainerOp>) -> Self {
        Walk {
            graph,
            operation,
            containers: Vec::new(),
            handles: HashMap::default(),
            edges: Vec::new(),
            edits: Vec::new(),
            budget: FREE_ELEMENTS.saturating_add(graph.node_count().saturating_mul(4)),
        }
    }

    fn step(&mut self, step: WalkStep) {
        match step {
            WalkStep::Node(node) => self.node(node),
            WalkStep::Leave(block) => {
                let end = self.graph.ret(block);
                let is_root = block == self.graph.root();
                for (index, of) in self.container_operands(end) {
                    if is_root { self.return_container(end, index, of) } else { self.end_tracking(end, of) }
                }
            }
            WalkStep::Enter(_) | WalkStep::Done(_) => {}
        }
    }

    /// Returns the operands of a node that are containers, as positions and containers.
    fn container_operands(&self, node: NodeId) -> Vec<(usize, usize)> {
        let operands = self.graph.operands(node).enumerate();
        operands.filter_map(|(i, v)| Some((i, *self.handles.get(&v)?))).collect()
    }

    fn mark_unknown(&mut self, of: usize) {
        self.containers[of].is_unknown = true;
    }

    fn edit(&mut self, of: usize, edit: Edit) {
        self.containers[of].edits.push(self.edits.len());
        self.edits.push((of, Some(edit)));
    }

    /// Ends the tracking of a container before a use of an unknown kind. A container with the contents at that point is
    /// constructed there, and later uses refer to it. If the use is in a nested block, the edits under the same outermost node are
    /// dropped, since that node may be a loop.
    fn end_tracking(&mut self, user: NodeId, of: usize) {
        let g = self.graph;
        let Container { contents, version, block, aliases, edits, is_returned, .. } = &self.containers[of];
        let top = g.ancestor_in(user, *block);
        let holds_others = contents.operands().iter().any(|v| self.handles.contains_key(v));
        let (Some(top), false) = (top, holds_others || *is_returned || contents.len() + 1 > self.budget)
        else {
            return self.mark_unknown(of);
        };
        let is_inside = |edit: &Option<Edit>| {
            edit.as_ref().is_some_and(|edit| g.ancestor_in(edit.node(), *block) == Some(top))
        };
        let undone: Vec<usize> =
            edits.iter().rev().copied().take_while(|i| is_inside(&self.edits[*i].1)).collect();
        self.budget -= contents.len() + 1;
        let materialize = (*version > 0).then(|| Edit::Materialize(top, contents.clone()));
        for name in aliases {
            self.handles.remove(name);
        }
        undone.into_iter().for_each(|i| self.edits[i].1 = None);
        materialize.into_iter().for_each(|materialize| self.edit(of, materialize));
    }

    fn node(&mut self, node: NodeId) {
        let g = self.graph;
        let tracked = self.container_operands(node);
        let is_made = match g.prim(node) {
            Some(Prim::ListConstruct | Prim::DictConstruct) => self.track(node, &tracked),
            _ => false,
        };
        if is_made || tracked.is_empty() {
            return;
        }
        if let (Some(operation), 0) = ((self.operation)(node), tracked[0].0) {
            let known = !self.containers[tracked[0].1].is_unknown
                && self.operate(node, operation, &tracked).is_some();
            if !known {
                for (index, of) in tracked {
                    let reads =
                        !operation.writes() && (index == 0 || index == 1 && operation == ContainerOp::Concat);
                    if reads { self.construct(node, index, of) } else { self.end_tracking(node, of) }
                }
            }
            return;
        }
        for (index, of) in tracked {
            match g.prim(node) {
                Some(Prim::ListUnpack) => self.unpack(node, of),
                Some(Prim::TupleConstruct) if is_result(g, node) => self.return_container(node, index, of),
                None if only_reads(g, node, index) => self.construct(node, index, of),
                _ => self.end_tracking(node, of),
            }
        }
    }

    /// Starts to track the container that a node constructs; returns `false` if its contents are unknown.
    fn track(&mut self, node: NodeId, tracked: &[(usize, usize)]) -> bool {
        let g = self.graph;
        let operands: Vec<ValueId> = g.operands(node).collect();
        let contents = if g.is_prim(node, Prim::ListConstruct) {
            if operands.len() > MAX_ELEMENTS {
                return false;
            }
            Contents::List(operands)
        } else {
            let mut entries: Vec<(IValue, ValueId, ValueId)> = Vec::with_capacity(operands.len() / 2);
            for pair in operands.chunks_exact(2) {
                let Some(key) = self.key(pair[0]) else { return false };
                if entries.len() >= MAX_ENTRIES || entries.iter().any(|(k, ..)| same_constant(k, &key)) {
                    return false;
                }
                entries.push((key, pair[0], pair[1]));
            }
            Contents::Dict(entries)
        };
        let of = self.containers.len();
        let result = g.result(node, 0);
        self.edges.extend(tracked.iter().map(|(_, inner)| (of, *inner)));
        self.handles.insert(result, of);
        self.containers.push(Container {
            node,
            block: g.parent(node),
            ty: g.ty(result),
            contents,
            version: 0,
            is_unknown: false,
            is_returned: false,
            aliases: vec![result],
            edits: Vec::new(),
        });
        true
    }

    /// Returns a constant that may be a key.
    fn key(&self, value: ValueId) -> Option<IValue> {
        self.graph.constant(value).filter(|k| matches!(k, IValue::Int(_) | IValue::Str(_) | IValue::Bool(_)))
    }

    fn unpack(&mut self, node: NodeId, of: usize) {
        let g = self.graph;
        let elements = self.containers[of].contents.list().cloned().unwrap_or_default();
        let fits = elements.len() == g.result_count(node)
            && elements.iter().zip(g.results(node)).all(|(v, r)| fits(g.ty(*v), g.ty(r)));
        if !fits {
            return self.mark_unknown(of);
        }
        for (result, element) in g.results(node).zip(&elements) {
            self.alias_result(result, *element);
        }
        self.edit(of, Edit::Values(node, elements));
    }

    /// Records that a value is an element, which may be a container.
    fn alias_result(&mut self, result: ValueId, element: ValueId) {
        if let Some(inner) = self.handles.get(&element) {
            self.handles.insert(result, *inner);
        }
    }

    /// A use as a result of the graph.
    fn return_container(&mut self, user: NodeId, index: usize, of: usize) {
        self.construct(user, index, of);
        self.containers[of].is_returned = true;
    }

    /// A use that reads the whole container.
    fn construct(&mut self, user: NodeId, index: usize, of: usize) {
        let g = self.graph;
        let Container { contents, version, node, block, .. } = &self.containers[of];
        if *version == 0 && g.operand(user, index) == g.result(*node, 0) {
            return;
        }
        let holds_others = contents.operands().iter().any(|v| self.handles.contains_key(v));
        let cost = contents.len() + 1;
        if holds_others || cost > self.budget || g.ancestor_in(user, *block).is_none() {
            return self.mark_unknown(of);
        }
        self.budget -= cost;
        let edit = Edit::Operand { node: user, index, version: *version, contents: contents.clone() };
        self.edit(of, edit);
    }

    /// Evaluates an operation on a container, its first operand; `None` if the outcome is not known.
    fn operate(&mut self, node: NodeId, operation: ContainerOp, tracked: &[(usize, usize)]) -> Option<()> {
        let g = self.graph;
        let of = tracked[0].1;
        let operand = |i: usize| (i < g.operand_count(node)).then(|| g.operand(node, i));
        let constant = |i: usize| g.constant(operand(i)?);
        let others: Vec<usize> = tracked[1..].iter().map(|(i, _)| *i).collect();
        let contents = &self.containers[of].contents;
        let found = match operation {
            ContainerOp::Count => OperationResult::Constant(IValue::Int(i64::try_from(contents.len()).ok()?)),
            ContainerOp::Contains => {
                let key = self.key(operand(1)?)?;
                matches!(contents, Contents::Dict(_)).then_some(())?;
                OperationResult::Constant(IValue::Bool(contents.position(&key).is_some()))
            }
            ContainerOp::Item | ContainerOp::Value => {
                OperationResult::Element(contents.value(contents.position(&constant(1)?)?))
            }
            ContainerOp::Get => match (contents.position(&self.key(operand(1)?)?), operand(2)) {
                (Some(at), _) => OperationResult::Element(contents.value(at)),
                (None, Some(default)) => OperationResult::Element(default),
                (None, None) => OperationResult::Constant(IValue::None),
            },
            ContainerOp::Slice => {
                let bound = |i: usize| match constant(i)? {
                    IValue::None => Some(None),
                    value => value.as_int().map(Some),
                };
                let step = constant(3)?.as_int()?;
                OperationResult::New(Contents::List(slice(contents.list()?, bound(1)?, bound(2)?, step)?))
            }
            ContainerOp::Concat => {
                let second = self.other(operand(1)?)?;
                OperationResult::New(Contents::List([&contents.list()?[..], second].concat()))
            }
            ContainerOp::Repeat => {
                let times = usize::try_from(constant(1)?.as_int()?.max(0)).ok()?;
                let elements = contents.list()?;
                (elements.len().checked_mul(times)? <= MAX_ELEMENTS).then_some(())?;
                OperationResult::New(Contents::List(elements.repeat(times)))
            }
            ContainerOp::Copy => OperationResult::New(contents.clone()),
            ContainerOp::Keys => {
                OperationResult::New(Contents::List(contents.entries()?.iter().map(|e| e.1).collect()))
            }
            ContainerOp::Values => {
                OperationResult::New(Contents::List(contents.entries()?.iter().map(|e| e.2).collect()))
            }
            ContainerOp::Items => {
                OperationResult::Pairs(contents.entries()?.iter().map(|e| (e.1, e.2)).collect())
            }
            _ => return self.write(node, operation, of, &others),
        };
        (others.is_empty() || operation == ContainerOp::Concat).then_some(())?;
        let edit = match found {
            OperationResult::Element(element) => self.read(node, element)?,
            OperationResult::Constant(value) => Edit::Constant(node, value),
            OperationResult::New(contents) => {
                self.spend(&contents.operands())?;
                Edit::New(node, contents)
            }
            OperationResult::Pairs(pairs) => {
                self.spend(&pairs.iter().map(|(_, v)| *v).collect::<Vec<_>>())?;
                Edit::Pairs(node, pairs)
            }
        };
        self.edit(of, edit);
        Some(())
    }

    /// Returns the elements of the second list of an operation.
    fn other(&self, list: ValueId) -> Option<&[ValueId]> {
        let other = &self.containers[*self.handles.get(&list)?];
        if other.is_unknown {
            return None;
        }
        other.contents.list().map(Vec::as_slice)
    }

    fn read(&mut self, node: NodeId, element: ValueId) -> Option<Edit> {
        let result = self.graph.result(node, 0);
        fits_result(self.graph, node, element).then_some(())?;
        self.alias_result(result, element);
        Some(Edit::Values(node, vec![element]))
    }

    /// Takes the elements of a new container from the budget. The container is not followed in this walk, nor are the
    /// containers that it holds.
    fn spend(&mut self, values: &[ValueId]) -> Option<()> {
        (values.len() <= 2 * MAX_ELEMENTS).then_some(())?;
        self.budget = self.budget.checked_sub(values.len() + 1)?;
        for value in values {
            if let Some(of) = self.handles.get(value).copied() {
                self.mark_unknown(of);
            }
        }
        Some(())
    }

    /// Evaluates a write.
    fn write(&mut self, node: NodeId, operation: ContainerOp, of: usize, others: &[usize]) -> Option<()> {
        let g = self.graph;
        let container = &self.containers[of];
        (g.parent(node) == container.block && !container.is_returned).then_some(())?;
        let mut contents = std::mem::replace(&mut self.containers[of].contents, Contents::List(Vec::new()));
        let edit = self.change(node, operation, of, others, &mut contents);
        let container = &mut self.containers[of];
        container.contents = contents;
        let edit = edit?;
        container.version += 1;
        self.edit(of, edit);
        Some(())
    }

    /// Changes the contents of a container by a write; they stay the same if the outcome is not known.
    fn change(
        &mut self,
        node: NodeId,
        operation: ContainerOp,
        of: usize,
        others: &[usize],
        contents: &mut Contents,
    ) -> Option<Edit> {
        let g = self.graph;
        let operand = |i: usize| (i < g.operand_count(node)).then(|| g.operand(node, i));
        let added = match operation {
            ContainerOp::Append | ContainerOp::Extend => operand(1),
            ContainerOp::Insert | ContainerOp::Replace => operand(2),
            _ => None,
        };
        let is_added = |i: &usize| added == operand(*i);
        let fits =
            contents.len() < MAX_ELEMENTS && !matches!(contents, Contents::Dict(e) if e.len() >= MAX_ENTRIES);
        (fits && others.iter().all(is_added)).then_some(())?;
        let inner =
            added.filter(|_| operation != ContainerOp::Extend).and_then(|v| self.handles.get(&v).copied());
        (inner != Some(of)).then_some(())?;
        let mut popped = None;
        match (operation, &mut *contents) {
            (ContainerOp::Append, Contents::List(elements)) => elements.push(added?),
            (ContainerOp::Insert, Contents::List(elements)) => {
                let len = i64::try_from(elements.len()).ok()?;
                let at = g.constant(operand(1)?)?.as_int()?;
                let at = if at < 0 { at.saturating_add(len).max(0) } else { at.min(len) };
                elements.insert(usize::try_from(at).ok()?, added?);
            }
            (ContainerOp::Replace, Contents::List(elements)) => {
                let at = wrap_index(g.constant(operand(1)?)?.as_int()?, elements.len())?;
                elements[at] = added?;
            }
            (ContainerOp::Replace, Contents::Dict(entries)) => {
                let (key, value) = (self.key(operand(1)?)?, added?);
                match entries.iter_mut().find(|(k, ..)| same_constant(k, &key)) {
                    Some(entry) => entry.2 = value,
                    None => entries.push((key, operand(1)?, value)),
                }
            }
            (ContainerOp::Extend, Contents::List(elements)) => {
                let source = *self.handles.get(&added?)?;
                let other = self.other(added?).filter(|_| source != of)?.to_vec();
                (elements.len() + other.len() <= MAX_ELEMENTS).then_some(())?;
                let tracked: Vec<usize> = other.iter().filter_map(|v| self.handles.get(v).copied()).collect();
                self.edges.extend(tracked.into_iter().map(|inner| (of, inner)));
                self.edges.push((source, of));
                elements.extend(other);
            }
            (ContainerOp::Delete | ContainerOp::Pop, _) => {
                let at = match operand(1) {
                    Some(at) => contents.position(&g.constant(at)?)?,
                    None => contents.list()?.len().checked_sub(1)?,
                };
                if operation == ContainerOp::Pop {
                    let value = contents.value(at);
                    fits_result(g, node, value).then_some(())?;
                    popped = Some(value);
                }
                match contents {
                    Contents::List(elements) => drop(elements.remove(at)),
                    Contents::Dict(entries) => drop(entries.remove(at)),
                }
            }
            (ContainerOp::Clear, Contents::List(elements)) => elements.clear(),
            (ContainerOp::Clear, Contents::Dict(entries)) => entries.clear(),
            (ContainerOp::Reverse, Contents::List(elements)) => elements.reverse(),
            _ => return None,
        }
        self.edges.extend(inner.map(|inner| (of, inner)));
        match popped {
            Some(value) => self.read(node, value),
            None => {
                // A write returns the container.
                self.handles.extend(g.results(node).map(|result| (result, of)));
                self.containers[of].aliases.extend(g.results(node));
                Some(Edit::Erase(node))
            }
        }
    }
}

impl Edit {
    /// Returns the node that is edited.
    fn node(&self) -> NodeId {
        match self {
            Edit::Values(node, _)
            | Edit::Constant(node, _)
            | Edit::New(node, _)
            | Edit::Pairs(node, _)
            | Edit::Operand { node, .. }
            | Edit::Erase(node)
            | Edit::Materialize(node, _) => *node,
        }
    }
}

/// The application of the edits.
struct Apply {
    /// Values that replace results of nodes.
    replaced: HashMap<ValueId, ValueId, FxBuildHasher>,
    /// Containers constructed again, by container and number of writes.
    made: HashMap<(usize, usize), ValueId, FxBuildHasher>,
}

impl Apply {
    /// Returns the values that now stand for `values`: replacements are recorded in program order, so one step is enough.
    fn current(&self, values: Vec<ValueId>) -> Vec<ValueId> {
        values.into_iter().map(|v| self.replaced.get(&v).copied().unwrap_or(v)).collect()
    }

    fn edit(&mut self, editor: &mut Editor<'_>, container: &Container, of: usize, edit: Edit) {
        match edit {
            Edit::Values(node, values) => {
                let values = self.current(values);
                self.replace(editor, node, &values);
            }
            Edit::Constant(node, value) => {
                let (loc, ty) = (editor.graph().loc(node), editor.graph().ty(editor.graph().result(node, 0)));
                editor.at(At::before(node)).loc(loc);
                let constant = if matches!(value, IValue::None) {
                    editor.constant(value)
                } else {
                    editor.constant_of(value, ty)
                };
                self.replace(editor, node, &[constant]);
            }
            Edit::New(node, contents) => {
                let (loc, ty) = (editor.graph().loc(node), editor.graph().ty(editor.graph().result(node, 0)));
                let operands = self.current(contents.operands());
                let made = editor.at(At::before(node)).loc(loc).value(contents.prim(), &operands, ty);
                self.replace(editor, node, &[made]);
            }
            Edit::Pairs(node, pairs) => {
                let (loc, ty) = (editor.graph().loc(node), editor.graph().ty(editor.graph().result(node, 0)));
                let elem = ty.list_elem().unwrap_or(Type::ANY);
                editor.at(At::before(node)).loc(loc);
                let tuples = pairs.into_iter().map(|(k, v)| {
                    let pair = self.current(vec![k, v]);
                    editor.value(Prim::TupleConstruct, &pair, elem)
                });
                let tuples: Vec<ValueId> = tuples.collect();
                let made = editor.value(Prim::ListConstruct, &tuples, ty);
                self.replace(editor, node, &[made]);
            }
            Edit::Operand { node, index, version, contents } => {
                let made = match self.made.get(&(of, version)) {
                    Some(made) => *made,
                    None => {
                        let g = editor.graph();
                        let Some(top) = g.ancestor_in(node, container.block) else { return };
                        let loc = g.loc(container.node);
                        let operands = self.current(contents.operands());
                        editor.at(At::before(top)).loc(loc);
                        let made = editor.value(contents.prim(), &operands, container.ty);
                        self.made.insert((of, version), made);
                        made
                    }
                };
                editor.set_operand(node, index, made);
            }
            Edit::Materialize(node, contents) => {
                let g = editor.graph();
                let (loc, old) = (g.loc(container.node), g.result(container.node, 0));
                let operands = self.current(contents.operands());
                let made =
                    editor.at(At::before(node)).loc(loc).value(contents.prim(), &operands, container.ty);
                let def = editor.graph().def(made);
                editor.replace_uses_after(def, old, made);
            }
            Edit::Erase(node) => {
                let g = editor.graph();
                let container = g.result(container.node, 0);
                let results: Vec<ValueId> = g.results(node).map(|_| container).collect();
                editor.replace_node(node, &results);
            }
        }
    }

    fn replace(&mut self, editor: &mut Editor<'_>, node: NodeId, values: &[ValueId]) {
        let results: Vec<ValueId> = editor.graph().results(node).collect();
        self.replaced.extend(results.into_iter().zip(values.iter().copied()));
        editor.replace_node(node, values);
    }
}

/// Whether an element of type `ty` may stand for a value of type `of`.
fn fits(ty: Type, of: Type) -> bool {
    let (ty, of) = (ty.erase_shapes(), of.erase_shapes());
    ty == of || (of != of.unwrap_optional() && (ty == of.unwrap_optional() || ty == Type::NONE))
}

/// Whether an element may stand for the result of a node.
fn fits_result(g: &Graph, node: NodeId, element: ValueId) -> bool {
    fits(g.ty(element), g.ty(g.result(node, 0)))
}

/// Whether a tuple is only returned.
fn is_result(g: &Graph, tuple: NodeId) -> bool {
    g.uses(g.result(tuple, 0)).all(|u| u.user == g.ret(g.root()))
}

/// Whether an operator only reads an operand and keeps nothing of it.
fn only_reads(g: &Graph, user: NodeId, index: usize) -> bool {
    let Some(row) = g.op(user).row() else { return false };
    let schema = g.registry().schema(row);
    let is_unaliased = schema.args.get(index).is_some_and(|a| a.alias.is_none());
    let keeps = schema
        .returns
        .iter()
        .any(|r| r.alias.as_ref().is_some_and(flambeau_ir::schema::AliasInfo::is_wildcard_after));
    is_unaliased && !keeps && g.block_count(user) == 0 && !crate::memory::is_opaque(g, user)
}
