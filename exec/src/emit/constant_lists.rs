//! Constant lists that are only read: their elements are kept beside the code, where instructions read them without a lock.

use super::{Emit, Loc};
use crate::intrinsic::Intrinsic;
use crate::views::ViewOf;
use flambeau_ir::value::{IValue, ListItems, Str};
use flambeau_ir::{Graph, Prim, ValueId};
use std::collections::BTreeMap;

/// The strings of the constants of a code. Equal strings are one, so that a dictionary finds a key by its address.
#[derive(Default)]
pub(super) struct InternedStrings(BTreeMap<Str, Str>);

impl InternedStrings {
    /// Returns a value, or the known string that it equals.
    pub(super) fn value(&mut self, value: IValue) -> IValue {
        match value {
            IValue::Str(text) => IValue::Str(self.0.entry(text.clone()).or_insert(text).clone()),
            other => other,
        }
    }
}

/// Returns, per constant, the elements of a list to which only reads of elements and of the length, and views, refer; an empty
/// table if there is no such list. No operation of the graph can write such a list, or pass it on.
pub(super) fn items(emit: &mut Emit<'_>) -> Box<[Option<ListItems>]> {
    let graph = emit.graph;
    let mut is_only_read: Vec<Option<bool>> = vec![None; emit.constants.len()];
    for node in graph.nodes_deep().filter(|node| graph.is_prim(*node, Prim::Constant)) {
        let value = graph.result(node, 0);
        if let Loc::Constant(index) = emit.loc[value]
            && graph.ty(value).list_elem().is_some()
            && graph.use_count(value) > 0
        {
            let known = &mut is_only_read[index as usize];
            *known = Some(known.unwrap_or(true) && has_only_reads(graph, value));
        }
    }
    if !is_only_read.contains(&Some(true)) {
        return Box::default();
    }
    let Emit { constants, interned, .. } = emit;
    // Other constants may be the same list.
    let mut handles: BTreeMap<usize, usize> = BTreeMap::new();
    constants.iter().filter_map(IValue::identity).for_each(|id| *handles.entry(id).or_default() += 1);
    let items = constants.iter().zip(&is_only_read).map(|(constant, is_only_read)| {
        let IValue::List(list) = constant else { return None };
        let handles = constant.identity().and_then(|id| handles.get(&id));
        if *is_only_read != Some(true) || handles != Some(&1) {
            return None;
        }
        let mut items = list.read().clone();
        if let ListItems::Values(values) = &mut items {
            values.iter_mut().for_each(|value| *value = interned.value(std::mem::take(value)));
        }
        Some(items)
    });
    items.collect()
}

/// Whether all uses of a list are intrinsics that read an element or the length, or views of tensors with these numbers.
fn has_only_reads(graph: &Graph, list: ValueId) -> bool {
    let intrinsics = graph.registry().column::<Intrinsic>();
    let views = graph.registry().column::<ViewOf>();
    graph.uses(list).all(|at| {
        let op = graph.op(at.user);
        let reads =
            matches!(intrinsics.of(op), Some(Intrinsic::ListGet | Intrinsic::ListLen)) && at.index == 0;
        reads || views.of(op).is_some()
    })
}
