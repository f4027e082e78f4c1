//! Removes writes to new memory that has no other references yet.
//!
//! A list that is constructed and then appended to (inserted into, changed at a known index) is constructed with the
//! new elements, if no node uses it in between. If a node creates a tensor and an in-place operator then writes it, the
//! functional variant ([`crate::inplace`]) replaces the write and its result replaces the tensor from there on, if no
//! view of the tensor exists before the write.
//!
//! Both visit the uses of a value in program order, starting at its definition. Reads are skipped and writes are
//! removed. Any other use (a view, a container, the graph's outputs) ends the walk, because the value is visible
//! elsewhere from there on.
//!
//! An in-place operator raises an error if its result does not fit the written tensor. With the option `exact`, only
//! writes that certainly fit, by facts about dtypes and sizes, are removed, so that no error is removed with them.

use crate::facets::{ContainerOp, OpRole};
use crate::inplace::{DtypeRules, InplaceVariants};
use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{Configure, PassOptions};
use flambeau_analysis::Shapes;
use flambeau_ir::{At, Editor, Graph, NodeId, NodeMap, OpId, Prim, Registry, ValueId, ValueSet};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct RemoveMutation {
    /// Remove writes to lists.
    pub lists: bool,
    /// Remove writes to tensors.
    pub tensors: bool,
    /// Of the writes to tensors, remove only those by [`OpRole::Activation`]s.
    pub activations_only: bool,
    /// Of the writes to tensors, remove only those whose result certainly has the dtype and sizes of the written tensor.
    pub exact: bool,
}

impl Configure for RemoveMutation {
    const OPTIONS: &'static [&'static str] = &["lists", "tensors", "activations", "exact"];

    fn configure(options: &PassOptions) -> Result<Self, String> {
        let (lists, tensors) = (options.flag("lists"), options.flag("tensors"));
        let activations_only = options.flag("activations");
        let all = !(lists || tensors || activations_only);
        let tensors = tensors || activations_only || all;
        Ok(RemoveMutation { lists: lists || all, tensors, activations_only, exact: options.flag("exact") })
    }
}

impl Pass for RemoveMutation {
    const NAME: &'static str = "remove_mutation";
    const DOC: &'static str = "Removes writes to new lists and tensors that have no other references yet.";

    /// An in-place operator raises if the result does not match its operand in element type or sizes. The functional
    /// variant returns the result.
    fn removed_errors(&self) -> &'static [&'static str] {
        if self.tensors && !self.exact { &["result type ", "output with shape "] } else { &[] }
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        if self.lists {
            lists(cx, &registry);
        }
        if self.tensors {
            tensors(cx, &registry, *self);
        }
        Ok(())
    }
}

// --- lists -----------------------------------------------------------------------------------------------------------

fn lists(cx: &mut PassCx<'_>, registry: &Registry) {
    let elements = registry.column::<ContainerOp>();
    let graph = cx.graph();
    let made: Vec<NodeId> = graph.nodes_deep().filter(|&n| graph.is_prim(n, Prim::ListConstruct)).collect();
    let (mut editor, mut fuel) = cx.edit_fuelled();
    for list in made {
        let mut list = list;
        while let Some((write, members)) =
            next_list_write(editor.graph(), list, |n| elements.of(editor.graph().op(n)).copied())
        {
            if !fuel.take("fold-element", editor.graph(), write) {
                return;
            }
            list = fold_element(&mut editor, list, write, &members);
        }
    }
}

/// The first user of a list, if it changes the list in a known way, and the elements after the change.
fn next_list_write(
    g: &Graph,
    list: NodeId,
    elements: impl Fn(NodeId) -> Option<ContainerOp>,
) -> Option<(NodeId, Vec<ValueId>)> {
    let value = g.result(list, 0);
    let block = g.parent(list);
    // Only the first use is needed, so the uses are not sorted.
    let mut first: Option<NodeId> = None;
    for u in g.uses(value) {
        let user = g.ancestor_in(u.user, block)?;
        if first.is_none_or(|f| g.is_before(user, f)) {
            first = Some(user);
        }
    }
    let write = first?;
    let operation = elements(write)?;
    let own = g.operand(write, 0) == value && g.operands(write).skip(1).all(|v| v != value);
    let mut members: Vec<ValueId> = g.operands(list).collect();
    if !own || members.len() >= MAX_ELEMENTS {
        return None;
    }
    let element = |i: usize| (i < g.operand_count(write)).then(|| g.operand(write, i));
    let index = || g.constant(element(1)?)?.as_int();
    match operation {
        ContainerOp::Append => members.push(element(1)?),
        ContainerOp::Insert => {
            // As in Python, an index beyond an end means that end.
            let len = members.len() as i64;
            let at = index()?;
            let at = if at < 0 { at.saturating_add(len).max(0) } else { at.min(len) };
            members.insert(at as usize, element(2)?);
        }
        ContainerOp::Replace => {
            let at = super::idioms::wrap_index(index()?, members.len())?;
            members[at] = element(2)?;
        }
        _ => return None,
    }
    Some((write, members))
}

/// Maximum length of the resulting list: every element costs a new node.
const MAX_ELEMENTS: usize = 256;

/// Constructs the list at the position of the write. Returns the new node.
fn fold_element(editor: &mut Editor<'_>, list: NodeId, write: NodeId, members: &[ValueId]) -> NodeId {
    let g = editor.graph();
    let (old, loc) = (g.result(list, 0), g.loc(list));
    let ty = g.ty(old);
    let new = editor.at(At::before(write)).loc(loc).value(Prim::ListConstruct, members, ty);
    let results: Vec<ValueId> = editor.graph().results(write).map(|_| new).collect();
    editor.replace_node(write, &results);
    editor.replace_node(list, &[new]);
    editor.graph().def(new)
}

// --- tensors ---------------------------------------------------------------------------------------------------------

/// A new tensor and the replacements of its writes.
struct Chain {
    /// The tensor as created.
    made: ValueId,
    /// Writes with the functional variants that replace them, in order.
    writes: Vec<(NodeId, OpId)>,
    /// Uses as (user, operand index, n): the use takes the original tensor if n is 0, else the result of the n-th
    /// variant.
    uses: Vec<(NodeId, usize, usize)>,
}

fn tensors(cx: &mut PassCx<'_>, registry: &Registry, pass: RemoveMutation) {
    let variants = InplaceVariants::new(registry);
    let roles = registry.column::<OpRole>();
    let variant_of = |g: &Graph, n: NodeId| -> Option<OpId> {
        let op = g.op(n).row().filter(|_| g.effects(n).may_write())?;
        let variant = variants.functional(op)?;
        (!pass.activations_only || roles.get(variant) == Some(&OpRole::Activation)).then_some(variant)
    };
    let graph = cx.graph();
    let written: Vec<(NodeId, OpId)> =
        graph.nodes_deep().filter_map(|n| Some((n, variant_of(graph, n)?))).collect();
    if written.is_empty() {
        return;
    }
    let (graph, shapes) = cx.with::<Shapes>();
    let dtypes = DtypeRules::new(graph, shapes);
    let mut ways: HashMap<NodeId, OpId, FxBuildHasher> = HashMap::default();
    let mut roots: Vec<ValueId> = Vec::new();
    for (node, variant) in written {
        let fits = || variants.fits_operand(&dtypes, node, variant) && dtypes.keeps_sizes(node, variant);
        let removable = if pass.exact { fits() } else { variants.keeps_dtype(&dtypes, node, variant) };
        if removable {
            ways.insert(node, variant);
            let target = graph.operand(node, 0);
            if is_fresh(graph, graph.def(target)) && roots.last() != Some(&target) {
                roots.push(target);
            }
        }
    }
    let mut position = NodeMap::for_nodes(graph, 0u32);
    for (i, node) in graph.nodes_deep().enumerate() {
        position[node] = i as u32 + 1;
    }
    let mut seen = ValueSet::new();
    let chains: Vec<Chain> = roots
        .into_iter()
        .filter(|&v| seen.insert(v))
        .filter_map(|v| follow(graph, &position, &ways, v))
        .collect();
    let (mut editor, mut fuel) = cx.edit_fuelled();
    let mut became: HashMap<NodeId, NodeId, FxBuildHasher> = HashMap::default();
    for chain in chains {
        if !fuel.take("to-functions", editor.graph(), chain.writes[0].0) {
            return;
        }
        replace_writes(&mut editor, &chain, &mut became);
    }
}

/// Visits the uses of a new tensor in program order.
fn follow(
    g: &Graph,
    position: &NodeMap<u32>,
    ways: &HashMap<NodeId, OpId, FxBuildHasher>,
    made: ValueId,
) -> Option<Chain> {
    let block = g.parent(g.def(made));
    let mut chain = Chain { made, writes: Vec::new(), uses: Vec::new() };
    let mut names: HashSet<ValueId, FxBuildHasher> = HashSet::default();
    names.insert(made);
    // The `Return` of a block follows all its nodes.
    let place = |user: NodeId| if g.is_prim(user, Prim::Return) { u32::MAX } else { position[user] };
    let mut queue: BinaryHeap<Reverse<(u32, u32, u32)>> = BinaryHeap::new();
    let mut pending: Vec<(NodeId, NodeId, u32)> = Vec::new();
    let add = |value: ValueId, pending: &mut Vec<(NodeId, NodeId, u32)>, queue: &mut BinaryHeap<_>| {
        for u in g.uses(value) {
            let Some(top) = g.ancestor_in(u.user, block) else { return false };
            queue.push(Reverse((place(top), place(u.user), pending.len() as u32)));
            pending.push((top, u.user, u.index));
        }
        true
    };
    if !add(made, &mut pending, &mut queue) {
        return None;
    }
    let mut alone = true;
    while let Some(Reverse((.., number))) = queue.pop() {
        let (top, user, index) = pending[number as usize];
        chain.uses.push((user, index as usize, chain.writes.len()));
        if !alone {
            continue;
        }
        let once = g.operands(user).filter(|v| names.contains(v)).count() == 1;
        match ways.get(&user) {
            Some(&variant) if top == user && index == 0 && once => {
                let result = g.result(user, 0);
                if !add(result, &mut pending, &mut queue) {
                    return None;
                }
                names.insert(result);
                chain.writes.push((user, variant));
            }
            _ => alone = only_reads(g, user, g.operand(user, index as usize)),
        }
    }
    (!chain.writes.is_empty()).then_some(chain)
}

/// Inserts the functional variants. `became` maps the writes of all chains to their replacements, because a write of
/// one chain may use a value of another.
fn replace_writes(
    editor: &mut Editor<'_>,
    chain: &Chain,
    became: &mut HashMap<NodeId, NodeId, FxBuildHasher>,
) {
    let mut values = vec![chain.made];
    for &(write, variant) in &chain.writes {
        let g = editor.graph();
        let (loc, ty) = (g.loc(write), g.ty(g.result(write, 0)));
        let mut operands: Vec<ValueId> = g.operands(write).collect();
        operands[0] = values[values.len() - 1];
        let new = editor.at(At::before(write)).loc(loc).value(variant, &operands, ty);
        became.insert(write, editor.graph().def(new));
        values.push(new);
    }
    for &(user, index, number) in &chain.uses {
        let own = index == 0 && chain.writes.get(number).is_some_and(|w| w.0 == user);
        if !own {
            let user = became.get(&user).copied().unwrap_or(user);
            editor.set_operand(user, index, values[number]);
        }
    }
    for &(write, _) in chain.writes.iter().rev() {
        editor.erase(write);
    }
}

/// Whether the result of a node is a tensor in new memory.
pub(crate) fn is_fresh(g: &Graph, node: NodeId) -> bool {
    let effects = g.effects(node);
    let alias_free = |op: OpId| !g.registry().schema(op).has_aliases();
    g.op(node).row().is_some_and(alias_free)
        && !effects.result_aliases()
        && !effects.may_write()
        && g.result_count(node) == 1
}

/// Whether a node only reads a value.
fn only_reads(g: &Graph, user: NodeId, value: ValueId) -> bool {
    let Some(op) = g.op(user).row() else { return false };
    let schema = g.registry().schema(op);
    let plain = |i: usize| schema.args.get(i).is_some_and(|a| a.alias.is_none());
    !crate::memory::is_opaque(g, user) && g.operands(user).enumerate().all(|(i, v)| v != value || plain(i))
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn lists_are_put_together_whole() {
        assert_passes(
            &toy(),
            "remove_mutation",
            "graph(%a : Tensor, %b : Tensor):
  %l : Tensor[] = prim::ListConstruct(%a)
  %c : Tensor = toy::relu(%b)
  %m : Tensor[] = toy::append(%l, %c)
  %n : Tensor[] = toy::append(%m, %a)
  %k : int = toy::count_tensors(%l)
  return (%k, %l)
",
            "graph(%a : Tensor, %b : Tensor):
  %c : Tensor = toy::relu(%b)
  %l : Tensor[] = prim::ListConstruct(%a, %c, %a)
  %k : int = toy::count_tensors(%l)
  return (%k, %l)
",
        );
    }

    #[test]
    fn writes_of_unshared_tensors_are_removed() {
        assert_passes(
            &toy(),
            "remove_mutation",
            "graph(%x : Float(2), %c : bool):
  %a : Float(2) = toy::relu(%x)
  %b : Tensor = toy::relu_(%a)
  %d : Tensor = toy::relu_(%x)
  %v : Float(2) = toy::relu(%x)
  %t : Tensor = toy::t(%v)
  %w : Tensor = toy::relu_(%v)
  return (%a, %b, %t)
",
            "graph(%x : Float(2), %c : bool):
  %a : Float(2) = toy::relu(%x)
  %b : Tensor = toy::relu(%a)
  %d : Tensor = toy::relu_(%x)
  %v : Float(2) = toy::relu(%x)
  %t : Tensor = toy::t(%v)
  %w : Tensor = toy::relu_(%v)
  return (%b, %b, %t)
",
        );
    }

    /// With `exact`, a write stays unless its result has the sizes of the written tensor.
    #[test]
    fn exact_removal_preserves_errors() {
        let text = |second: &str| {
            format!(
                "graph(%x : Float(2), %y : Float(2), %z : Tensor):
  %a : Float(2) = toy::relu(%x)
  %b : Tensor = toy::mul_(%a, %{second})
  return (%b)
"
            )
        };
        assert_passes(&toy(), "remove_mutation{tensors,exact}", &text("z"), &text("z"));
        let removed = text("y").replace("toy::mul_(", "toy::mul(");
        assert_passes(&toy(), "remove_mutation{tensors,exact}", &text("y"), &removed);
    }
}
