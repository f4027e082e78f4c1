//! Pointwise fusion: outlines connected pointwise operators into `prim::FusionGroup` nodes, which run as one loop.
//!
//! A node can be fused if its operator has a `Pointwise` formula for its constant operands, its tensors have
//! floating-point or unknown types, and its conditions are masks of the same block. (The interpreter checks unknown types, and
//! whether the masks are in the group, and otherwise runs the group node by node.) Chunks between such nodes are moved up first
//! ([`chunks`]): the operators on the chunks of a sum become one group, which splits the summands ([`sink`]).
//!
//! Lists of chunks are replaced by single nodes and common subexpressions are merged before; dead code is removed after.
//!
//! [`crate::outline`] documents how groups grow and how their positions respect writes.

mod chunks;
mod sink;

use super::canonicalize_ops::CanonicalizeOps;
use super::cse::Cse;
use super::dce::Dce;
use crate::memory;
use crate::outline::{self, Bounds};
use crate::pass::{Pass, PassCx, PassError};
use crate::schedule::Schedule;
use flambeau_analysis::{AliasDb, Dominance};
use flambeau_exec::{Pointwise, TileArg, TileBuilder, TileOp, TileVal};
use flambeau_ir::{Graph, IValue, NodeId, Prim, Registry, ValueId};
use flambeau_tensor::DType;
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fuse;

impl Pass for Fuse {
    const NAME: &'static str = "fuse";
    const ALIASES: &'static [&'static str] = &["graph_fuser"];
    const DOC: &'static str = "Fuses connected pointwise operators into groups that run as one loop.";

    fn schedule(&self) -> Schedule {
        Schedule::alone().first(CanonicalizeOps).first(Cse).then(Dce::default())
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        // Each round moves a chunk past one operator of a chain.
        for _ in 0..MAX_ROUNDS {
            let (graph, (db, dominance)) = cx.with::<(AliasDb, Dominance)>();
            let plans = chunks::plan(&Fusible::new(graph, db, &registry), dominance);
            if plans.is_empty() {
                break;
            }
            let (mut editor, mut fuel) = cx.edit_fuelled();
            for plan in plans {
                if !fuel.take("move-chunk", editor.graph(), plan.chunk) {
                    break;
                }
                chunks::apply(&mut editor, &plan);
            }
        }
        let (graph, (db, dominance)) = cx.with::<(AliasDb, Dominance)>();
        let fusible = Fusible::new(graph, db, &registry);
        let members = outline::members(graph, db, dominance, |n| fusible.accepts(n));
        outline::apply(cx, members, Bounds::DEFAULT_BOUNDS, Prim::FusionGroup)?;
        sink::run(cx)
    }
}

/// Maximum number of operators that a chunk moves past.
const MAX_ROUNDS: usize = 32;

/// Decides whether a node can be fused.
struct Fusible<'a> {
    graph: &'a Graph,
    db: &'a AliasDb,
    registry: &'a Registry,
    /// The masks: results of comparisons and of operators on masks, if these can be fused.
    masks: HashSet<ValueId, FxBuildHasher>,
}

impl<'a> Fusible<'a> {
    fn new(graph: &'a Graph, db: &'a AliasDb, registry: &'a Registry) -> Self {
        let mut fusible = Fusible { graph, db, registry, masks: HashSet::default() };
        for node in graph.nodes_deep() {
            if fusible.formula(node).is_some_and(|(builder, value)| builder.is_mask(value)) {
                fusible.masks.insert(graph.result(node, 0));
            }
        }
        fusible
    }

    /// Whether a node can join a group.
    fn accepts(&self, node: NodeId) -> bool {
        self.formula(node).is_some()
    }

    /// Whether a node can be fused and its operands and results have no writers, so that it may have any position.
    fn accepts_anywhere(&self, node: NodeId) -> bool {
        self.accepts(node) && !memory::has_writers(self.db, self.graph, node)
    }

    /// Whether a node is a pointwise operator on tensors.
    fn is_plain(&self, node: NodeId) -> bool {
        let g = self.graph;
        let Some(row) = g.op(node).row() else { return false };
        if self.registry.facet::<Pointwise>(row).is_none() || g.result_count(node) != 1 {
            return false;
        }
        let effects = self.registry.effects(row);
        let pure = effects.is_pure() && !effects.result_aliases();
        pure && is_lanes(g, g.result(node, 0))
    }

    /// The node's formula, if it can be fused.
    fn formula(&self, node: NodeId) -> Option<(TileBuilder, TileVal)> {
        let g = self.graph;
        if !self.is_plain(node) {
            return None;
        }
        let mut builder = TileBuilder::new();
        let mut inputs = 0;
        let mut args: SmallVec<[TileArg; 4]> = SmallVec::new();
        for v in g.operands(node) {
            let def = g.def(v);
            args.push(if g.ty(v).is_tensor() {
                if !is_lanes(g, v) {
                    return None;
                }
                let input = TileVal::Input(inputs);
                inputs += 1;
                // Groups have the nodes of one block. Any mask stands for that of the operand.
                let is_mask = self.masks.contains(&v) && g.parent(def) == g.parent(node);
                TileArg::Lanes(if is_mask { builder.binary(TileOp::Eq, input, input) } else { input })
            } else if g.is_prim(def, Prim::Constant) {
                match g.constant(v)? {
                    IValue::None => TileArg::Absent,
                    value => value.as_scalar().map_or(TileArg::Other, TileArg::Number),
                }
            } else {
                return None;
            });
        }
        let row = g.op(node).row()?;
        let value = self.registry.facet::<Pointwise>(row)?.build(&mut builder, &args)?;
        builder.conditions_are_masks().then_some((builder, value))
    }
}

/// Whether a value is a tensor of floating-point, bool or unknown type.
fn is_lanes(graph: &Graph, value: ValueId) -> bool {
    let Some(facts) = graph.ty(value).as_tensor() else { return false };
    facts.dtype.is_none_or(|d| d.is_floating() || d == DType::Bool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manager::{Checks, Manager};
    use crate::pipeline::{PassLibrary, Pipeline};
    use crate::testing::{assert_passes, toy};
    use flambeau_ir::Type;
    use flambeau_ir::attr::names;
    use flambeau_tensor::Tensor;
    use std::sync::Arc;

    #[test]
    fn a_cell_is_one_group() {
        assert_passes(
            &toy(),
            "canonicalize_ops,fuse,dce",
            "graph(%a : Tensor, %b : Tensor, %c : Tensor, %x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %s : Tensor = toy::add(%a, %b, %1)
  %g : Tensor = toy::add(%s, %c, %1)
  %l : Tensor[] = toy::chunk(%g, %2, %1)
  %p : Tensor, %q : Tensor = prim::ListUnpack(%l)
  %i : Tensor = toy::relu(%p)
  %o : Tensor = toy::relu(%q)
  %m : Tensor = toy::mul(%i, %x)
  %n : Tensor = toy::mul(%m, %o)
  return (%m, %n)
",
            "graph(%a : Tensor, %b : Tensor, %c : Tensor, %x : Tensor):
  %m : Tensor, %n : Tensor = prim::FusionGroup_0(%x, %a, %b, %c)
  return (%m, %n)
with prim::FusionGroup_0 = graph(%6 : Tensor, %16 : Tensor, %17 : Tensor, %18 : Tensor):
  %19 : Tensor, %20 : Tensor, %21 : Tensor, %22 : Tensor, %23 : Tensor, %24 : Tensor = prim::BroadcastingChunk[chunks=2, dim=1](%16, %17, %18)
  %7 : int = prim::Constant[value=1]()
  %8 : Tensor = toy::add(%19, %21, %7)
  %9 : Tensor = toy::add(%20, %22, %7)
  %10 : Tensor = toy::add(%8, %23, %7)
  %11 : Tensor = toy::add(%9, %24, %7)
  %i : Tensor = toy::relu(%10)
  %o : Tensor = toy::relu(%11)
  %m : Tensor = toy::mul(%i, %6)
  %n : Tensor = toy::mul(%m, %o)
  return (%m, %n)
",
        );
    }

    #[test]
    fn chunks_with_other_uses_stay_outside() {
        assert_passes(
            &toy(),
            "fuse",
            "graph(%a : Tensor, %x : Tensor):
  %p : Tensor, %q : Tensor = prim::ConstantChunk[chunks=2, dim=1](%a)
  %i : Tensor = toy::relu(%p)
  %m : Tensor = toy::mul(%i, %x)
  return (%m, %q)
",
            "graph(%a : Tensor, %x : Tensor):
  %p : Tensor, %q : Tensor = prim::ConstantChunk[chunks=2, dim=1](%a)
  %m : Tensor = prim::FusionGroup_0(%p, %x)
  return (%m, %q)
with prim::FusionGroup_0 = graph(%0 : Tensor, %1 : Tensor):
  %i : Tensor = toy::relu(%0)
  %m : Tensor = toy::mul(%i, %1)
  return (%m)
",
        );
    }

    /// A constant tensor can be written through another name, so the group takes it as an operand; a number is copied.
    #[test]
    fn constant_memory_stays_outside_of_groups() {
        let registry = toy();
        let mut graph = Graph::new(Arc::clone(&registry));
        let mut e = graph.edit();
        let x = e.add_input(Type::TENSOR);
        let tensor = Tensor::from_slice(&[1.0_f32, 2.0], &[2]).unwrap();
        let (held, one) = (e.constant(IValue::Tensor(tensor)), e.constant(IValue::Int(1)));
        let op = |name: &str| registry.lookup(name).unwrap();
        let a = e.value(op("toy::mul.Tensor"), &[x, held], Type::TENSOR);
        let b = e.value(op("toy::add.Tensor"), &[a, held, one], Type::TENSOR);
        e.add_output(b);
        let pipeline = Pipeline::parse("fuse", &PassLibrary::standard()).unwrap();
        Manager::new().checks(Checks::EveryEdit).run(&mut graph, &pipeline).unwrap();
        let group = graph.nodes_deep().find(|&n| graph.is_prim(n, Prim::FusionGroup)).unwrap();
        assert_eq!(graph.operands(group).collect::<Vec<_>>(), [x, held], "{graph}");
        let body = graph.attr(group, names::subgraph()).and_then(|a| a.as_graph()).unwrap();
        assert!(body.nodes_deep().filter(|&n| body.is_prim(n, Prim::Constant)).count() == 1, "{graph}");
    }

    #[test]
    fn groups_stop_at_writes_and_other_nodes() {
        let text = "graph(%x : Tensor, %y : Tensor, %s : str):
  %a : Tensor = toy::relu(%x)
  %b : Tensor = toy::relu_(%a)
  %c : Tensor = toy::mul(%a, %y)
  %t : Tensor = toy::t(%c)
  %d : Tensor = toy::mul(%t, %y)
  return (%d)
";
        assert_passes(&toy(), "fuse,dce", text, text);
    }

    /// No node of a group moves across a write that follows the group or precedes its first node.
    #[test]
    fn groups_form_between_writes() {
        assert_passes(
            &toy(),
            "fuse",
            "graph(%x : Tensor, %y : Tensor):
  %v : Tensor = toy::relu_(%x)
  %a : Tensor = toy::mul(%x, %y)
  %b : Tensor = toy::mul(%a, %x)
  %w : Tensor = toy::relu_(%x)
  %c : Tensor = toy::mul(%b, %x)
  %d : Tensor = toy::relu(%c)
  return (%d)
",
            "graph(%x : Tensor, %y : Tensor):
  %v : Tensor = toy::relu_(%x)
  %b : Tensor = prim::FusionGroup_0(%x, %y)
  %w : Tensor = toy::relu_(%x)
  %d : Tensor = prim::FusionGroup_1(%b, %x)
  return (%d)
with prim::FusionGroup_0 = graph(%0 : Tensor, %1 : Tensor):
  %a : Tensor = toy::mul(%0, %1)
  %b : Tensor = toy::mul(%a, %0)
  return (%b)
with prim::FusionGroup_1 = graph(%0 : Tensor, %1 : Tensor):
  %c : Tensor = toy::mul(%0, %1)
  %d : Tensor = toy::relu(%c)
  return (%d)
",
        );
    }
}
