//! Runs a program with the reference evaluator and compares each value with the fact that shape propagation computed
//! for it.

use super::predict::FactWeakener;
use crate::callees::Callees;
use crate::error::ExecError;
use crate::host::Host;
use crate::reference::{Observer, run_observed};
use crate::sample::Gen;
use flambeau_analysis::AliasDb;
use flambeau_analysis::shape::{BindingPosition, Fact, Shapes, Valuation};
use flambeau_ir::value::IValue;
use flambeau_ir::{BlockId, Graph, Prim, ValueId};
use std::sync::Arc;

/// Result of a watched run.
pub struct Watched {
    /// The outputs or the error of the program.
    pub result: Result<Vec<IValue>, ExecError>,
    /// Describes the first value that contradicts its fact.
    pub wrong: Option<String>,
    /// Number of values whose fact is stronger than their type.
    pub claims: usize,
}

/// Runs a graph; the facts of its inputs are those of their types.
pub fn watch(graph: &Arc<Graph>, args: Vec<IValue>, callees: &dyn Callees, host: &mut Host) -> Watched {
    let shapes = Shapes::new(graph, &AliasDb::new(graph));
    follow(graph, &shapes, Valuation::new(), args, callees, host)
}

/// Runs a graph; the facts of its inputs are randomly weakened facts of the arguments.
pub fn watch_partial(
    graph: &Arc<Graph>,
    args: Vec<IValue>,
    callees: &dyn Callees,
    host: &mut Host,
    g: &mut Gen<'_>,
) -> Watched {
    let everything = g.one_in(3);
    let mut forgetting = FactWeakener::new(g);
    forgetting.symbols.note_types(graph);
    let facts =
        args.iter().map(|arg| if everything { Fact::of(arg) } else { forgetting.weaken(Fact::of(arg)) });
    let facts = facts.collect();
    let FactWeakener { symbols, valuation, .. } = forgetting;
    let shapes = Shapes::with_symbols(graph, &AliasDb::new(graph), facts, symbols);
    follow(graph, &shapes, valuation, args, callees, host)
}

fn follow(
    graph: &Arc<Graph>,
    shapes: &Shapes,
    run: Valuation,
    args: Vec<IValue>,
    callees: &dyn Callees,
    host: &mut Host,
) -> Watched {
    let mut watch =
        Watch { graph, shapes, run, loops: Vec::new(), outermost: Vec::new(), wrong: None, claims: 0 };
    let result = run_observed(graph, args, callees, host, &mut watch);
    watch.recheck();
    let Watch { wrong, claims, .. } = watch;
    Watched { result, wrong, claims }
}

struct Watch<'a> {
    graph: &'a Graph,
    shapes: &'a Shapes,
    run: Valuation,
    /// Marks of the open loop iterations: the symbol bindings before each of them.
    loops: Vec<BindingPosition>,
    /// Values outside of loops, which are defined once; their facts hold until the end of the run.
    outermost: Vec<(ValueId, IValue)>,
    wrong: Option<String>,
    claims: usize,
}

impl Watch<'_> {
    fn is_loop(&self, block: BlockId) -> bool {
        self.graph.owner(block).is_some_and(|node| self.graph.is_prim(node, Prim::Loop))
    }

    fn check(&mut self, id: ValueId, value: &IValue, when: &str) {
        let fact = self.shapes.fact(id);
        if self.wrong.is_some() || matches!(value, IValue::Uninitialized) {
            return;
        }
        if let Err(why) = self.run.check(fact, value, self.shapes.symbols()) {
            let name = self.graph.name(id);
            self.wrong = Some(format!("%{name}{when}: {why}; the fact is {fact:?}"));
        }
    }

    fn consistent(&mut self) {
        if self.wrong.is_none() {
            self.wrong = self.run.consistent(self.shapes.symbols()).err();
        }
    }

    /// Checks these values again at the end of the run: facts must also hold after later writes.
    fn recheck(&mut self) {
        for (id, value) in std::mem::take(&mut self.outermost) {
            self.check(id, &value, " at the end of the run");
        }
        self.consistent();
    }
}

impl Observer for Watch<'_> {
    fn value(&mut self, id: ValueId, value: &IValue) {
        self.claims += usize::from(*self.shapes.fact(id) != Fact::of_type(self.graph.ty(id)));
        self.check(id, value, "");
        if self.loops.is_empty() {
            self.outermost.push((id, value.clone()));
        }
    }

    fn enter(&mut self, block: BlockId) {
        if self.is_loop(block) {
            self.loops.push(self.run.mark());
        }
    }

    fn leave(&mut self, block: BlockId) {
        if self.is_loop(block)
            && let Some(mark) = self.loops.pop()
        {
            self.consistent();
            self.run.undo(mark);
        }
    }
}
