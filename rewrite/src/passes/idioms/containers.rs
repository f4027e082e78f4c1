//! Simplification of operators on lists and dictionaries whose elements are known.
//!
//! An element read from a container is the same object that was put in, so its value may be used directly even if the
//! element itself is written. Only the container must have no writers.

use super::{IdiomCx, Replacement};
use crate::facets::ContainerOp;
use crate::rules::rule::same_constant;
use flambeau_analysis::guards::{guarded_length, is_guard};
use flambeau_ir::{IValue, NodeId, Prim, Type, ValueId};
use smallvec::SmallVec;

/// The outcome of a node that operates on a container.
pub(super) fn plan(view: &IdiomCx<'_>, node: NodeId, operation: ContainerOp) -> Option<Replacement> {
    let g = view.graph;
    let operand = |i: usize| (i < g.operand_count(node)).then(|| g.operand(node, i));
    let int = |i: usize| view.constant(operand(i)?)?.as_int();
    match operation {
        ContainerOp::Count => {
            let container = operand(0)?;
            let known = list_of(view, container).map(|elements| elements.len());
            let count = known
                .or_else(|| guarded_length_of(view, container))
                .or_else(|| Some(entries_of(view, container)?.len()))?;
            Some(Replacement::Constant(IValue::Int(i64::try_from(count).ok()?), Type::INT))
        }
        ContainerOp::Item => {
            let elements = list_of(view, operand(0)?)?;
            let index = wrap_index(int(1)?, elements.len())?;
            fitting(view, node, elements[index])
        }
        ContainerOp::Slice => {
            let elements = list_of(view, operand(0)?)?;
            let bound = |i: usize| match view.constant(operand(i)?)? {
                IValue::None => Some(None),
                value => value.as_int().map(Some),
            };
            Some(Replacement::List(slice(&elements, bound(1)?, bound(2)?, int(3)?)?))
        }
        ContainerOp::Concat => {
            let mut elements = list_of(view, operand(0)?)?;
            elements.extend(list_of(view, operand(1)?)?);
            (elements.len() <= MAX_ELEMENTS).then_some(Replacement::List(elements))
        }
        ContainerOp::Copy => Some(Replacement::List(list_of(view, operand(0)?)?)),
        ContainerOp::Value => {
            let key = view.constant(operand(1)?)?;
            let entries = entries_of(view, operand(0)?)?;
            let entry = entries.iter().find(|(k, _)| same_constant(k, &key))?;
            fitting(view, node, entry.1)
        }
        _ => None,
    }
}

/// Simplifies the unpacking of a list that was constructed in the graph.
pub(super) fn unpack(view: &IdiomCx<'_>, node: NodeId) -> Option<Replacement> {
    let g = view.graph;
    let elements = list_of(view, g.operand(node, 0))?;
    let same = elements.len() == g.result_count(node)
        && elements
            .iter()
            .zip(g.results(node))
            .all(|(&e, r)| g.ty(e).erase_shapes() == g.ty(r).erase_shapes());
    same.then(|| Replacement::Values(SmallVec::from_vec(elements)))
}

/// Maximum length of a list that is constructed element by element.
const MAX_ELEMENTS: usize = 1_000;

/// The element, if its type is that of the result up to shapes.
fn fitting(view: &IdiomCx<'_>, node: NodeId, element: ValueId) -> Option<Replacement> {
    let g = view.graph;
    let result = g.ty(g.result(node, 0));
    let fits = g.ty(element).erase_shapes() == result.erase_shapes();
    fits.then(|| Replacement::Values(SmallVec::from_slice(&[element])))
}

/// The elements of a list that was constructed in the graph and has no writers.
fn list_of(view: &IdiomCx<'_>, list: ValueId) -> Option<Vec<ValueId>> {
    let list = view.resolve(list);
    if view.db.is_written(list) {
        return None;
    }
    if let Some(elements) = view.lists.get(&list) {
        return Some(elements.iter().map(|&v| view.resolve(v)).collect());
    }
    let g = view.graph;
    let def = g.def(list);
    let made = g.is_prim(def, Prim::ListConstruct) && g.operand_count(def) <= MAX_ELEMENTS;
    made.then(|| g.operands(def).map(|v| view.resolve(v)).collect())
}

/// The length that a guard states of a list without writers.
fn guarded_length_of(view: &IdiomCx<'_>, list: ValueId) -> Option<usize> {
    let g = view.graph;
    let guard = g.def(list);
    (is_guard(g, guard) && !view.db.is_written(list)).then(|| guarded_length(g, guard))?
}

/// Keys and values of a dictionary that was constructed from distinct constant keys and has no writers.
fn entries_of(view: &IdiomCx<'_>, dict: ValueId) -> Option<Vec<(IValue, ValueId)>> {
    let g = view.graph;
    let dict = view.resolve(dict);
    let def = g.def(dict);
    if view.db.is_written(dict) || !g.is_prim(def, Prim::DictConstruct) || g.operand_count(def) > MAX_KEYS {
        return None;
    }
    let operands: Vec<ValueId> = g.operands(def).collect();
    let mut entries: Vec<(IValue, ValueId)> = Vec::with_capacity(operands.len() / 2);
    for pair in operands.chunks_exact(2) {
        let key = view.constant(pair[0])?;
        let plain = matches!(key, IValue::Int(_) | IValue::Str(_) | IValue::Bool(_));
        if !plain || entries.iter().any(|(k, _)| same_constant(k, &key)) {
            return None;
        }
        entries.push((key, view.resolve(pair[1])));
    }
    Some(entries)
}

/// Maximum size of a dictionary that is analyzed: its keys are compared pairwise.
const MAX_KEYS: usize = 64;

/// Converts an index that counts from the end if negative. Returns `None` if it is out of bounds.
pub(in crate::passes) fn wrap_index(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(i64::try_from(len).ok()?)? } else { index };
    usize::try_from(index).ok().filter(|&i| i < len)
}

/// The elements that a slice selects. Returns `None` for a step below one, which raises at run time.
pub(in crate::passes) fn slice(
    elements: &[ValueId],
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
) -> Option<Vec<ValueId>> {
    let len = i64::try_from(elements.len()).ok()?;
    let clamp =
        |bound: i64| if bound < 0 { bound.saturating_add(len).max(0) } else { bound.min(len) } as usize;
    let step = usize::try_from(step).ok().filter(|&s| s > 0)?;
    let (start, end) = (start.map_or(0, clamp), end.map_or(elements.len(), clamp));
    Some(elements.get(start..end).unwrap_or(&[]).iter().step_by(step).copied().collect())
}
