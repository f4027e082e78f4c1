//! Estimate of the work of nodes: the costs of the operators that they run, nested blocks and called functions included.
//!
//! The estimate decides whether a task pays, so it is a lower bound where the program leaves a choice: a branch counts as its
//! cheaper side, and a loop whose number of iterations is neither constant nor profiled as one iteration. Sizes of tensors
//! are not part of it.

use crate::facets::Cost;
use flambeau_analysis::calls::callee;
use flambeau_exec::{Intrinsic, resolve};
use flambeau_ir::attr::names;
use flambeau_ir::{BlockId, CompilationUnit, Graph, NodeId, OpKind, Prim, Symbol};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Work in units of one scalar operation.
pub(super) type Work = u64;

/// The number of scalar operations that take as long as one unit of [`Cost`], a tenth of a pointwise operator on few elements.
pub(super) const SCALARS_PER_COST: Work = 16;

/// Bound on the nesting of blocks, subgraphs and calls; deeper nodes are not counted. Every node is visited at most
/// this many times: in the estimates of its enclosing nodes.
const MAX_DEPTH: usize = 32;

/// Estimates the work of nodes.
pub(super) struct Estimate<'u> {
    unit: Option<&'u CompilationUnit>,
    /// By function of the unit; 0 while a function is being estimated, so that recursion adds nothing.
    functions: HashMap<Symbol, Work, FxBuildHasher>,
}

impl<'u> Estimate<'u> {
    pub(super) fn new(unit: Option<&'u CompilationUnit>) -> Self {
        Estimate { unit, functions: HashMap::default() }
    }

    /// Returns the work of a node.
    pub(super) fn of(&mut self, g: &Graph, node: NodeId) -> Work {
        self.of_node(g, node, MAX_DEPTH)
    }

    fn of_node(&mut self, g: &Graph, node: NodeId, depth: usize) -> Work {
        let Some(depth) = depth.checked_sub(1) else { return 0 };
        match g.op(node).kind() {
            OpKind::Row(op) => match g.registry().facet::<Intrinsic>(op) {
                Some(_) => 1,
                None => SCALARS_PER_COST * Work::from(Cost::of(g.registry(), op).0),
            },
            OpKind::Prim(Prim::Constant) => 0,
            OpKind::Prim(Prim::CallFunction | Prim::CallMethod) => self.of_call(g, node, depth),
            OpKind::Prim(prim) if prim.runs_subgraph() => match resolve::subgraph(g, node) {
                Ok(body) => self.of_block(&body, body.root(), depth),
                Err(_) => 0,
            },
            OpKind::Prim(_) if let Some(view) = g.as_loop(node) => {
                let profiled = || u64::try_from(g.attr(node, names::trip_count())?.as_int()?).ok();
                let trips = view.trip_count(g).or_else(profiled).unwrap_or(1);
                trips.saturating_mul(self.of_block(g, view.body(g), depth))
            }
            OpKind::Prim(_) if let Some(view) = g.as_if(node) => {
                let sides = [view.then_block(g), view.else_block(g)];
                sides.map(|side| self.of_block(g, side, depth)).into_iter().fold(Work::MAX, Work::min)
            }
            OpKind::Prim(_) => g.blocks(node).fold(1, |all, block| {
                let inner: Work = self.of_block(g, block, depth);
                inner.saturating_add(all)
            }),
            OpKind::Unknown(_) => 0,
        }
    }

    fn of_block(&mut self, g: &Graph, block: BlockId, depth: usize) -> Work {
        g.nodes(block).fold(0, |all: Work, node| all.saturating_add(self.of_node(g, node, depth)))
    }

    fn of_call(&mut self, g: &Graph, call: NodeId, depth: usize) -> Work {
        let called = self.unit.and_then(|unit| unit.function(callee(g, call, unit)?));
        let Some(function) = called else { return 0 };
        if let Some(&known) = self.functions.get(&function.name) {
            return known;
        }
        self.functions.insert(function.name, 0);
        let work = self.of_block(&function.graph, function.graph.root(), depth);
        self.functions.insert(function.name, work);
        work
    }
}
