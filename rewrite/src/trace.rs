//! Rewrite trace: the rewrites that created or replaced each value in a run of a pipeline, with proofs.
//!
//! A run with [`crate::Control::with_trace`] records every rewrite that takes fuel, with the proof if there is one.
//! From the graph's journal it records which value replaced which, from outlining which values moved into subgraphs. The trace of one value is the set of events that led
//! to it or followed from it. Events identify values by id, which stays valid if names change. Printed names are those
//! at the time of the event.

use flambeau_ir::{Change, Graph, NodeId, Revision, ValueId};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use std::fmt;

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// A pass rewrote a node.
    Rewrite {
        /// The pass.
        pass: &'static str,
        /// The rule, or kind of rewrite.
        rewrite: String,
        /// The node as printed before the rewrite: `%3 = ns::op`.
        at: String,
        /// The results of the node.
        values: Vec<ValueId>,
        /// The proof: rule applications from the old term to the new one.
        proof: Option<String>,
    },
    /// A pass created a value as an operand of another new one, which replaced an older value.
    Made {
        /// The pass.
        pass: &'static str,
        /// The new value.
        value: ValueId,
        /// The value that it was created for.
        whole: ValueId,
        /// The names of `value` and `whole`.
        names: (String, String),
    },
    /// A value took the uses of another.
    Replaced {
        /// The pass.
        pass: &'static str,
        /// The replaced value.
        old: ValueId,
        /// The replacement.
        new: ValueId,
        /// The names of `old` and `new`.
        names: (String, String),
    },
    /// A pass moved the node of a value into the subgraph of another node.
    Outlined {
        /// The pass.
        pass: &'static str,
        /// The value, which only the subgraph computes from now on.
        value: ValueId,
        /// The name of `value`.
        name: String,
        /// The node with the subgraph, as printed: `%3 = prim::FusionGroup`.
        into: String,
    },
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceEvent::Rewrite { pass, rewrite, at, proof, .. } => {
                write!(f, "{pass}: {rewrite} at {at}")?;
                for line in proof.iter().flat_map(|p| p.lines()) {
                    write!(f, "\n    {line}")?;
                }
                Ok(())
            }
            TraceEvent::Made { pass, names: (value, whole), .. } => {
                write!(f, "{pass}: {value} is part of the replacement of {whole}")
            }
            TraceEvent::Replaced { pass, names: (old, new), .. } => {
                write!(f, "{pass}: {new} replaces {old}")
            }
            TraceEvent::Outlined { pass, name, into, .. } => {
                write!(f, "{pass}: {name} moves into the subgraph of {into}")
            }
        }
    }
}

/// The events of a run, in order.
#[derive(Clone, Debug, Default)]
pub struct RewriteTrace {
    events: Vec<TraceEvent>,
}

/// The names of values at one time.
pub(crate) struct ValueNames(HashMap<ValueId, String, FxBuildHasher>);

impl ValueNames {
    /// Returns the names of all values of a graph.
    pub(crate) fn of(graph: &Graph) -> ValueNames {
        ValueNames(graph.values_in_order().map(|v| (v, name(graph, v))).collect())
    }
}

/// Returns the printed name of a value.
pub(crate) fn name(graph: &Graph, value: ValueId) -> String {
    format!("%{}", graph.name(value))
}

impl RewriteTrace {
    /// Returns all events.
    pub fn events(&self) -> &[TraceEvent] {
        &self.events
    }

    pub(crate) fn rewrite(&mut self, pass: &'static str, rewrite: &str, graph: &Graph, node: NodeId) {
        let at = crate::control::describe(graph, node);
        let values = graph.results(node).collect();
        self.events.push(TraceEvent::Rewrite { pass, rewrite: rewrite.to_owned(), at, values, proof: None });
    }

    /// Records the values, with their former names, whose nodes moved into the subgraph of `group`.
    pub(crate) fn outlined(
        &mut self,
        pass: &'static str,
        graph: &Graph,
        values: Vec<(ValueId, String)>,
        group: NodeId,
    ) {
        let into = crate::control::describe(graph, group);
        let event = |(value, name)| TraceEvent::Outlined { pass, value, name, into: into.clone() };
        self.events.extend(values.into_iter().map(event));
    }

    /// Attaches a proof to the last event, if it is a rewrite.
    pub(crate) fn prove(&mut self, text: String) {
        if let Some(TraceEvent::Rewrite { proof, .. }) = self.events.last_mut() {
            *proof = Some(text);
        }
    }

    /// Records the replacements of values since a revision, from the journal.
    pub(crate) fn replaced(
        &mut self,
        pass: &'static str,
        graph: &Graph,
        since: Revision,
        before: &ValueNames,
    ) {
        let called = |v: ValueId| match before.0.get(&v) {
            Some(name) => name.clone(),
            None if graph.has_value(v) => name(graph, v),
            None => "an erased value".to_owned(),
        };
        let (mut inserted, mut wholes) = (HashSet::<NodeId, FxBuildHasher>::default(), Vec::new());
        for change in graph.journal().since(since).into_iter().flatten() {
            match *change {
                Change::Inserted(node) => {
                    inserted.insert(node);
                }
                Change::UsesReplaced { old, new } => {
                    wholes.push(new);
                    self.events.push(TraceEvent::Replaced {
                        pass,
                        old,
                        new,
                        names: (called(old), called(new)),
                    });
                }
                _ => {}
            }
        }
        for whole in wholes {
            self.made(pass, graph, whole, &mut inserted);
        }
    }

    /// Records the values that a pass inserted as direct or indirect operands of `whole`, each once.
    fn made(
        &mut self,
        pass: &'static str,
        graph: &Graph,
        whole: ValueId,
        inserted: &mut HashSet<NodeId, FxBuildHasher>,
    ) {
        let mut open = vec![whole];
        while let Some(value) = open.pop() {
            if !graph.has_value(value) || !inserted.remove(&graph.def(value)) {
                continue;
            }
            let node = graph.def(value);
            for value in graph.results(node).filter(|&v| v != whole) {
                let names = (name(graph, value), name(graph, whole));
                self.events.push(TraceEvent::Made { pass, value, whole, names });
            }
            open.extend(graph.operands(node));
        }
    }

    /// Returns the events that led to a value or followed from it, in order.
    pub fn of(&self, value: ValueId) -> Vec<&TraceEvent> {
        let mut family: HashSet<ValueId, FxBuildHasher> = HashSet::default();
        family.insert(value);
        // A value created for another one shares its history.
        for event in self.events.iter().rev() {
            if let TraceEvent::Made { value, whole, .. } = event
                && family.contains(value)
            {
                family.insert(*whole);
            }
        }
        // The forward traversal finds the values that replaced the value, the backward one those that it replaced.
        let link = |family: &mut HashSet<ValueId, FxBuildHasher>, event: &TraceEvent| {
            if let TraceEvent::Replaced { old, new, .. } = event
                && (family.contains(old) || family.contains(new))
            {
                family.extend([*old, *new]);
            }
        };
        self.events.iter().for_each(|e| link(&mut family, e));
        self.events.iter().rev().for_each(|e| link(&mut family, e));
        let concerns = |event: &&TraceEvent| match event {
            TraceEvent::Rewrite { values, .. } => values.iter().any(|v| family.contains(v)),
            TraceEvent::Made { value: made, .. } => *made == value,
            TraceEvent::Replaced { old, new, .. } => family.contains(old) || family.contains(new),
            TraceEvent::Outlined { value, .. } => family.contains(value),
        };
        self.events.iter().filter(concerns).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::control::Control;
    use crate::manager::Manager;
    use crate::pipeline::{PassLibrary, Pipeline};
    use crate::testing::{read, toy};
    use flambeau_analysis::Analyses;
    use flambeau_ir::Symbol;

    #[test]
    fn a_value_lists_its_rules_and_replaced_values() {
        let mut graph = read(
            &toy(),
            "graph(%x : Float(2, 3), %y : Float(2, 3)):
  %1 : int = prim::Constant[value=1]()
  %a : Float(2, 3) = toy::mul(%x, %1)
  %b : Tensor = toy::t(%a)
  %c : Float(2, 3) = toy::t(%b)
  %d : Float(2, 3) = toy::relu(%c)
  %e : Float(2, 3) = toy::relu(%d)
  %f : Float(2, 3) = toy::mul(%e, %y)
  %g : Float(2, 3) = toy::mul(%e, %y)
  %h : Tensor = toy::add(%f, %g, %1)
  return (%e, %h)
",
        );
        let value = |name: &str| graph.value_named(Symbol::new(name)).expect("the value is there");
        let (e, f, x) = (value("e"), value("f"), value("x"));
        let pipeline = Pipeline::parse("cse,egraph,dce", &PassLibrary::standard()).expect("a pipeline");
        let mut control = Control::new().with_trace();
        let run = Manager::new().run_with(&mut graph, &pipeline, &mut Analyses::new(), &mut control);
        run.unwrap_or_else(|e| panic!("{e}"));
        let trace = control.trace().expect("the run records a trace");
        let described = |v| trace.of(v).iter().map(|event| format!("{event}\n")).collect::<String>();
        for part in ["egraph: rewrite at %e = toy::relu", "toy/relu-relu", "replaces %e", "toy::relu(%x)"] {
            assert!(described(e).contains(part), "`{part}` in:\n{}", described(e));
        }
        assert!(described(f).contains("%f replaces %g"), "{}", described(f));
        assert_eq!(described(x), "");
    }

    #[test]
    fn an_intermediate_value_names_its_rewrite() {
        let mut graph = read(
            &toy(),
            "graph(%a : Float(2, 3), %b : Float(2, 3), %c : Float(2, 3)):
  %1 : int = prim::Constant[value=1]()
  %x : Float(2, 3) = toy::mul(%a, %b)
  %y : Float(2, 3) = toy::mul(%a, %c)
  %z : Float(2, 3) = toy::add(%x, %y, %1)
  return (%z)
",
        );
        let pipeline = Pipeline::parse("egraph{accept=rounding},dce", &PassLibrary::standard());
        let mut control = Control::new().with_trace();
        let pipeline = pipeline.expect("a pipeline");
        let run = Manager::new().run_with(&mut graph, &pipeline, &mut Analyses::new(), &mut control);
        run.unwrap_or_else(|e| panic!("{e}"));
        let trace = control.trace().expect("the run records a trace");
        // Factored out: `a * (b + c)`. The sum is new and belongs to the value that replaced %z.
        let sum = graph.values_in_order().find(|&v| graph.op_name(graph.def(v)).as_str() == "toy::add");
        let described: String = trace.of(sum.expect("a sum")).iter().map(|e| format!("{e}\n")).collect();
        for part in ["is part of the replacement of", "replaces %z", "rewrite at %z = toy::add"] {
            assert!(described.contains(part), "`{part}` in:\n{described}\n{graph}");
        }
    }
}
