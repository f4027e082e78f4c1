//! Simplifies operators on containers, casts and branches without evaluating anything.
//!
//! Operators on lists and dictionaries that were constructed in the graph ([`containers`]) are replaced by the
//! elements, if the container has no writers; the facet [`ContainerOp`] marks these operators. A cast to the type that a
//! value already has is replaced by the value, and a branch that returns true or false by its condition
//! ([`structure`]).
//!
//! One walk in program order plans all edits on the unchanged graph, resolving each value through edits planned so far.
//! The edits follow in the same order.

mod containers;

pub(super) use containers::{slice, wrap_index};
mod structure;

use crate::facets::ContainerOp;
use crate::pass::{Pass, PassCx, PassError};
use flambeau_analysis::AliasDb;
use flambeau_ir::{At, Editor, Graph, IValue, NodeId, Prim, Type, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idioms;

impl Pass for Idioms {
    const NAME: &'static str = "idioms";
    const ALIASES: &'static [&'static str] = &["peephole_list_idioms", "peephole_dict_idioms"];
    const DOC: &'static str =
        "Forwards elements of lists and dictionaries, casts and boolean selections to their uses.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let elements = registry.column::<ContainerOp>();
        let may = |g: &Graph, n: NodeId| {
            structure::is_candidate(g, n) || elements.of(g.op(n)).is_some() || g.is_prim(n, Prim::ListUnpack)
        };
        let work: Vec<NodeId> = cx.graph().nodes_deep().filter(|&n| may(cx.graph(), n)).collect();
        if work.is_empty() {
            return Ok(());
        }
        let (graph, db) = cx.with::<AliasDb>();
        let mut view = IdiomCx { graph, db, same: HashMap::default(), lists: HashMap::default() };
        let mut found: Vec<(NodeId, Replacement)> = Vec::new();
        for node in work {
            let outcome = match elements.of(graph.op(node)) {
                Some(&operation) => containers::plan(&view, node, operation),
                None if graph.is_prim(node, Prim::ListUnpack) => containers::unpack(&view, node),
                None => structure::plan(&view, node),
            };
            let Some(outcome) = outcome else { continue };
            view.record(node, &outcome);
            found.push((node, outcome));
        }
        let (mut editor, mut fuel) = cx.edit_fuelled();
        let mut made = NewValues::default();
        for (node, outcome) in found {
            if !fuel.take(outcome.name(), editor.graph(), node) {
                break;
            }
            outcome.apply(&mut editor, node, &mut made);
        }
        Ok(())
    }
}

/// The replacement for the results of a node.
enum Replacement {
    /// These values. A branch remains; other nodes are erased.
    Values(SmallVec<[ValueId; 2]>),
    /// Result `.0` of a branch is this value.
    Result(usize, ValueId),
    /// This constant.
    Constant(IValue, Type),
    /// A new list of these values.
    List(Vec<ValueId>),
}

impl Replacement {
    fn name(&self) -> &'static str {
        match self {
            Replacement::Values(_) => "read",
            Replacement::Result(..) => "choose",
            Replacement::Constant(..) => "count",
            Replacement::List(_) => "list",
        }
    }

    fn apply(self, editor: &mut Editor<'_>, node: NodeId, made: &mut NewValues) {
        let loc = editor.graph().loc(node);
        let now = |value: ValueId| made.get(&value).copied().unwrap_or(value);
        match self {
            Replacement::Values(values) => {
                let values: SmallVec<[ValueId; 2]> = values.into_iter().map(now).collect();
                editor.replace_node(node, &values);
            }
            Replacement::Result(index, value) => {
                let result = editor.graph().result(node, index);
                editor.replace_all_uses(result, now(value));
            }
            Replacement::Constant(value, ty) => {
                let constant = editor.at(At::before(node)).loc(loc).constant_of(value, ty);
                made.insert(editor.graph().result(node, 0), constant);
                editor.replace_node(node, &[constant]);
            }
            Replacement::List(values) => {
                let values: Vec<ValueId> = values.into_iter().map(now).collect();
                let result = editor.graph().result(node, 0);
                let ty = editor.graph().ty(result);
                let list = editor.at(At::before(node)).loc(loc).value(Prim::ListConstruct, &values, ty);
                made.insert(result, list);
                editor.replace_node(node, &[list]);
            }
        }
    }
}

/// Results of replaced nodes, and the values created for them. A later outcome was decided before the replacement and may
/// name such a result, as the element of a list.
type NewValues = HashMap<ValueId, ValueId, FxBuildHasher>;

/// The graph with the facts found so far.
struct IdiomCx<'a> {
    graph: &'a Graph,
    db: &'a AliasDb,
    /// Values replaced by other values.
    same: HashMap<ValueId, ValueId, FxBuildHasher>,
    /// Lists replaced by new lists with these elements.
    lists: HashMap<ValueId, Vec<ValueId>, FxBuildHasher>,
}

impl IdiomCx<'_> {
    /// The replacement of a value. The length of a chain is the number of equalities found before the value was
    /// visited.
    fn resolve(&self, mut value: ValueId) -> ValueId {
        while let Some(&other) = self.same.get(&value) {
            value = other;
        }
        value
    }

    fn record(&mut self, node: NodeId, outcome: &Replacement) {
        let g = self.graph;
        match outcome {
            Replacement::Values(values) => {
                for (result, &value) in g.results(node).zip(values) {
                    self.same.insert(result, value);
                }
            }
            Replacement::Result(index, value) => {
                self.same.insert(g.result(node, *index), *value);
            }
            Replacement::List(values) => {
                self.lists.insert(g.result(node, 0), values.clone());
            }
            Replacement::Constant(..) => {}
        }
    }

    fn constant(&self, value: ValueId) -> Option<IValue> {
        self.graph.constant(self.resolve(value))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn elements_are_read() {
        assert_passes(
            &toy(),
            "idioms,dce",
            "graph(%a : int, %b : int):
  %0 : int = prim::Constant[value=0]()
  %m : int = prim::Constant[value=-1]()
  %l : int[] = prim::ListConstruct(%a, %b)
  %k : int[] = toy::concat(%l, %l)
  %p : int = toy::item(%k, %m)
  %q : int = toy::item(%l, %0)
  %n : int = toy::count(%k)
  %s : int = toy::add(%p, %q)
  %t : int = toy::add(%s, %n)
  return (%t)
",
            "graph(%a : int, %b : int):
  %n : int = prim::Constant[value=4]()
  %s : int = toy::add(%b, %a)
  %t : int = toy::add(%s, %n)
  return (%t)
",
        );
    }

    #[test]
    fn written_lists_are_left() {
        let text = "graph(%a : Tensor, %i : int):
  %l : Tensor[] = prim::ListConstruct(%a)
  %k : Tensor[] = toy::append(%l, %a)
  %n : int = toy::count_tensors(%l)
  return (%n)
";
        assert_passes(&toy(), "idioms", text, text);
    }

    #[test]
    fn choices_and_casts() {
        assert_passes(
            &toy(),
            "idioms,dce",
            "graph(%c : bool, %i : int):
  %t : bool = prim::Constant[value=1]()
  %f : bool = prim::Constant[value=0]()
  %r : bool = prim::If(%c)
    block0():
      -> (%t)
    block1():
      -> (%f)
  %j : int = prim::unchecked_cast(%i)
  return (%r, %j)
",
            "graph(%c : bool, %i : int):
  return (%c, %i)
",
        );
    }
}
