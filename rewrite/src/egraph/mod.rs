//! Equality saturation: collects equal expressions in an e-graph and extracts the cheapest one.
//!
//! The pass `egraph` builds an e-graph from the nodes of each block that are pure and not written ([`window`]); its
//! e-nodes are registry rows ([`language`]). The text rules ([`crate::rules`]) add equal terms, with conditions on
//! types, shapes and constants ([`facts`]), within deterministic bounds ([`saturate`]). Then one term per value is
//! chosen ([`extract`]), and the changes are written as one patch ([`decode`]).

mod decode;
pub mod explain;
mod extract;
pub mod facts;
pub mod language;
pub mod saturate;
mod window;

pub use saturate::{SaturationLimits, StopReason};

use crate::control::InjectedBug;
use crate::log::LogLevel;
use crate::pass::{Pass, PassCx, PassError};
use crate::patch::Patch;
use crate::pipeline::{PassEntry, PassOptions};
use crate::rules::eligible::Eligible;
use crate::rules::sharing::Sharing;
use crate::rules::{Exactness, RuleLibrary, RuleSet, Selection};
use egg::Language;
use flambeau_analysis::shape::Symbols;
use flambeau_analysis::{AliasDb, Shapes};
use flambeau_ir::{BlockId, Graph, NodeId, WalkStep};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// The pass `egraph`. See the module documentation.
#[derive(Default)]
pub struct Saturate {
    /// The selected rules.
    pub select: Selection,
    /// The bounds on saturation.
    pub limits: SaturationLimits,
}

impl Saturate {
    /// The pass entry, with the rules of a library.
    pub(crate) fn entry(library: Arc<RuleLibrary>) -> PassEntry {
        PassEntry::made(OPTIONS, move |options| Saturate::configure(options, &library))
    }

    fn configure(options: &PassOptions, library: &Arc<RuleLibrary>) -> Result<Self, String> {
        let mut limits = SaturationLimits::default();
        let slots = [
            ("nodes", &mut limits.nodes),
            ("iterations", &mut limits.iterations),
            ("matches", &mut limits.matches_per_rule),
            ("window", &mut limits.window),
        ];
        for (name, slot) in slots {
            if let Some(n) = options.number(name)? {
                *slot = usize::try_from(n).unwrap_or(usize::MAX);
            }
        }
        Ok(Saturate { select: Selection::configure(options, library)?, limits })
    }
}

/// The options of the pass `egraph`.
const OPTIONS: &[&str] = &["accept", "only", "nodes", "iterations", "matches", "window"];

impl Pass for Saturate {
    const NAME: &'static str = "egraph";
    const DOC: &'static str = "Finds the cheapest equal program by equality saturation.";

    fn exactness(&self) -> Exactness {
        self.select.accept
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let compiled = self.select.rules(&registry)?;
        let rules = &compiled.rules;
        let ignore_conditions = cx.injected_bug() == InjectedBug::RulesWithoutConditions;
        let (tracing, deadline) = (cx.is_tracing(), cx.deadline());
        deadline.check()?;
        let mut counts = vec![0u64; rules.rules().len()];
        let (graph, (db, shapes)) = cx.with::<(AliasDb, Shapes)>();
        let inputs = Inputs::new(graph, db, shapes, &self.limits);
        let mut patch = Patch::new(graph);
        let mut sharing = Sharing::new(graph, db);
        let mut capped = 0;
        let mut contradictions = Vec::new();
        let mut rewrites: Vec<(NodeId, usize)> = Vec::new();
        let mut proofs: Vec<Option<String>> = Vec::new();
        for (_, nodes) in inputs.windows() {
            deadline.check()?;
            let found = inputs.search(&nodes, rules, ignore_conditions, &mut counts, tracing);
            let (mut window, choice, stop) = match found {
                Ok(found) => found,
                Err(contradiction) => {
                    contradictions.push(contradiction);
                    continue;
                }
            };
            let decoder = decode::Decoder::new(graph, &mut sharing, &window, &choice);
            let done = decoder.run(&mut patch);
            if tracing {
                let prove = |value| explain::prove(&mut window, &choice, graph, value);
                proofs.extend(done.iter().map(|&(n, _)| graph.result(n, 0)).map(prove).map(as_text));
            }
            rewrites.extend(done);
            capped += u64::from(stop == StopReason::Nodes);
        }
        let mut steps = 0;
        let mut proofs = proofs.into_iter();
        for (node, upto) in rewrites {
            if !cx.fuel("rewrite", node) {
                break;
            }
            if let Some(proof) = proofs.next().flatten() {
                cx.prove(proof);
            }
            steps = upto;
        }
        patch.truncate(steps);
        for (rule, n) in rules.rules().iter().zip(counts) {
            if n > 0 {
                cx.count(&rule.name, n);
            }
        }
        for found in contradictions {
            cx.log(LogLevel::Debug, |_| unchanged_message(rules, &found));
        }
        cx.log(LogLevel::Debug, |_| format!("{} edits planned, {capped} windows cut short", patch.len()));
        if !patch.is_empty() {
            cx.apply(patch)?;
        }
        Ok(())
    }
}

fn as_text(proof: Option<explain::Explanation>) -> Option<String> {
    proof.map(|p| p.to_string())
}

/// The log message for a window that stays unchanged because of a contradiction.
fn unchanged_message(rules: &RuleSet, found: &facts::Contradiction) -> String {
    let name = |r: Option<usize>| r.map_or("the program itself", |r| rules.rules()[r].name.as_str());
    let [first, second] = found.rules.map(name);
    format!(
        "a window stays unchanged because no value can have both {}, by {first} and {second}: the window always \
         raises, or a rule is wrong",
        found.conflict
    )
}

/// The inputs of a search.
pub(crate) struct Inputs<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) db: &'a AliasDb,
    pub(crate) shapes: &'a Shapes,
    /// The graph's symbols; the symbol table of every window extends them.
    symbols: Arc<Symbols>,
    pub(crate) limits: &'a SaturationLimits,
}

impl<'a> Inputs<'a> {
    pub(crate) fn new(
        graph: &'a Graph,
        db: &'a AliasDb,
        shapes: &'a Shapes,
        limits: &'a SaturationLimits,
    ) -> Self {
        Inputs { graph, db, shapes, symbols: Arc::new(shapes.symbols().clone()), limits }
    }

    pub(crate) fn eligible(&self) -> Eligible<'a> {
        let graph = self.graph;
        let writes = graph.all_effects().may_write();
        Eligible { graph, db: self.db, writes }
    }

    /// The windows of all blocks that are worth searching.
    pub(crate) fn windows(&self) -> Vec<(BlockId, Vec<NodeId>)> {
        let eligible = self.eligible();
        let blocks = self.graph.walk(self.graph.root()).filter_map(|s| match s {
            WalkStep::Enter(b) => Some(b),
            _ => None,
        });
        blocks
            .flat_map(|b| window::windows(&eligible, b, self.limits.window).into_iter().map(move |w| (b, w)))
            .collect()
    }

    /// Searches a window. Adds the number of applications of each rule to `counts`.
    ///
    /// # Errors
    /// Returns the first contradiction between facts. The window must then stay unchanged.
    pub(crate) fn search(
        &self,
        nodes: &[NodeId],
        rules: &RuleSet,
        ignore_conditions: bool,
        counts: &mut [u64],
        explain: bool,
    ) -> Result<(window::EGraphWindow, extract::Choice, StopReason), facts::Contradiction> {
        let mut window = window::build(self.graph, self.shapes, &self.symbols, nodes, explain);
        let mut applied = vec![0; counts.len()];
        let stop =
            saturate::saturate(&mut window.egraph, rules, self.limits, ignore_conditions, &mut applied)?;
        counts.iter_mut().zip(applied).for_each(|(n, more)| *n += more);
        let original: HashSet<language::ENode, FxBuildHasher> =
            (0..window.members.len()).map(|i| decode::member_node(&window, self.graph, i)).collect();
        debug_assert!(original.iter().all(|n| n.len() == n.children.len()));
        let leaves: Vec<u32> = window.leaves.iter().map(|l| l.available_from).collect();
        let costs = extract::Costs { registry: self.graph.registry() };
        let choice = extract::extract(&window.egraph, &costs, &original, |leaf| leaves[leaf as usize]);
        Ok((window, choice, stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Vocabulary;
    use crate::testing::{assert_passes, read, toy};
    use flambeau_analysis::Analyses;

    const BEFORE: &str = "graph(%x : Float(2, 3), %y : Float(2, 3)):
  %1 : int = prim::Constant[value=1]()
  %a : Float(2, 3) = toy::mul(%x, %1)
  %b : Tensor = toy::t(%a)
  %c : Float(2, 3) = toy::t(%b)
  %d : Float(2, 3) = toy::relu(%c)
  %e : Float(2, 3) = toy::relu(%d)
  %f : Float(2, 3) = toy::mul(%e, %y)
  %g : Float(2, 3) = toy::mul(%y, %e)
  %h : Tensor = toy::add(%f, %g, %1)
  return (%h)
";

    #[test]
    fn saturation_finds_the_cheapest() {
        assert_passes(
            &toy(),
            "egraph,dce",
            BEFORE,
            "graph(%x : Float(2, 3), %y : Float(2, 3)):
  %1 : int = prim::Constant[value=1]()
  %d : Float(2, 3) = toy::relu(%x)
  %f : Float(2, 3) = toy::mul(%d, %y)
  %h : Tensor = toy::add(%f, %f, %1)
  return (%h)
",
        );
    }

    #[test]
    fn the_worklist_applies_the_same_rules() {
        assert_passes(
            &toy(),
            "peephole,dce",
            BEFORE,
            "graph(%x : Float(2, 3), %y : Float(2, 3)):
  %1 : int = prim::Constant[value=1]()
  %d : Float(2, 3) = toy::relu(%x)
  %f : Float(2, 3) = toy::mul(%d, %y)
  %g : Float(2, 3) = toy::mul(%y, %d)
  %h : Tensor = toy::add(%f, %g, %1)
  return (%h)
",
        );
    }

    #[test]
    fn classes_are_chosen_by_the_pipeline() {
        let before = "graph(%a : Float(2), %b : Float(2), %c : Float(2)):
  %1 : int = prim::Constant[value=1]()
  %p : Float(2) = toy::mul(%a, %b)
  %q : Float(2) = toy::mul(%a, %c)
  %r : Float(2) = toy::add(%p, %q, %1)
  %s : Float(2) = toy::relu(%r)
  return (%s)
";
        assert_passes(&toy(), "egraph,dce", before, before);
        assert_passes(&toy(), "egraph{accept=rounding,only=mul-comm},dce", before, before);
        assert_passes(
            &toy(),
            "egraph{accept=rounding},dce",
            before,
            "graph(%a : Float(2), %b : Float(2), %c : Float(2)):
  %1 : int = prim::Constant[value=1]()
  %p : Tensor = toy::add(%b, %c, %1)
  %q : Float(2) = toy::mul(%a, %p)
  %s : Float(2) = toy::relu(%q)
  return (%s)
",
        );
    }

    #[test]
    fn returned_values_keep_their_own_memory() {
        let before = "graph(%x : Float(2)):
  %1 : int = prim::Constant[value=1]()
  %a : Float(2) = toy::mul(%x, %1)
  %l : Float(2) = toy::relu(%x)
  %m : Float(2) = toy::mul(%l, %1)
  return (%a, %l, %m)
";
        assert_passes(&toy(), "egraph,dce", before, before);
        assert_passes(&toy(), "peephole,dce", before, before);
        // A value that may share memory with one value must not make two values share memory with each other.
        let two = "graph(%x : Float(2)):
  %1 : int = prim::Constant[value=1]()
  %l : Float(2) = toy::relu(%x)
  %m : Float(2) = toy::mul(%l, %1)
  %n : Float(2) = toy::mul(%l, %1)
  return (%m, %n)
";
        for pass in ["egraph,dce", "peephole,dce"] {
            assert_passes(
                &toy(),
                pass,
                two,
                "graph(%x : Float(2)):
  %1 : int = prim::Constant[value=1]()
  %l : Float(2) = toy::relu(%x)
  %n : Float(2) = toy::mul(%l, %1)
  return (%l, %n)
",
            );
        }
    }

    #[test]
    fn written_memory_is_not_looked_into() {
        let before = "graph(%x : Float(2)):
  %1 : int = prim::Constant[value=1]()
  %a : Float(2) = toy::relu(%x)
  %b : Float(2) = toy::mul(%a, %1)
  %c : Float(2) = toy::relu_(%a)
  %d : Float(2) = toy::relu(%b)
  return (%d, %c)
";
        assert_passes(&toy(), "egraph,dce", before, before);
        assert_passes(&toy(), "peephole,dce", before, before);
    }

    #[test]
    fn changes_are_explained() {
        let registry = toy();
        let graph = read(&registry, BEFORE);
        let rules = &Selection::default().rules(&registry).unwrap().rules;
        let value = graph.value_named(flambeau_ir::Symbol::new("e")).unwrap();
        let why = explain::explain(&graph, &mut Analyses::new(), rules, &SaturationLimits::default(), value)
            .unwrap();
        let names: Vec<&str> = why.steps.iter().map(|s| s.rule.as_str()).collect();
        assert_eq!(why.after, "toy::relu(%x)");
        for rule in ["toy/relu-relu", "toy/t-t", "toy/mul-one"] {
            assert!(names.contains(&rule), "{why}");
        }
    }

    #[test]
    fn rules_are_checked_against_the_registry() {
        let registry = toy();
        let vocabulary = Vocabulary::standard();
        for (text, part) in [
            ("use toy\nrule a [exact]: nope(%x) => %x", "no operator `toy::nope`"),
            ("use toy\nrule a [exact]: relu(%x, %x) => %x", "no overloads"),
            ("use toy\nrule a [exact]: relu(%x) => lt(%x, %x)", "no overloads"),
            ("use toy\nrule a [exact]: relu(%x) => %x where nope(%x)", "no condition"),
            ("use toy\nrule a [exact]: relu(%x) => %x where same_type(%x)", "takes 2"),
            ("use toy\nrule a [exact]: mul(%x, 1) => @nope(%x)", "no function"),
        ] {
            let source = flambeau_ir::Source::new("t.rules", text);
            let errors = RuleSet::new().add(&source, &registry, &vocabulary).unwrap_err();
            assert!(errors[0].message.contains(part), "{}", errors[0].message);
        }
    }

    #[test]
    fn regions_with_contradictory_facts_stay_as_they_are() {
        let registry = toy();
        let text = "use toy\nrule bad [exact]: mul.Tensor(%x, %y) => %y\n";
        let mut library = RuleLibrary::new();
        library.add(flambeau_ir::Source::new("bad", text));
        let select = Selection::of_library(library);
        let rules = &select.rules(&registry).unwrap().rules;
        let mut graph = read(
            &registry,
            "graph(%x : Float(2, 3), %y : Float(3)):
  %r : Float(2, 3) = toy::relu(%x)
  %s : Float(2, 3) = toy::relu(%r)
  %m : Float(2, 3) = toy::mul(%s, %y)
  return (%m)
",
        );
        let before = graph.to_string();
        let value = graph.value_named(flambeau_ir::Symbol::new("m")).unwrap();
        let limits = SaturationLimits::default();
        let (mut analyses, mut control) = (Analyses::new(), crate::control::Control::new());
        assert!(explain::explain(&graph, &mut analyses, rules, &limits, value).is_none());
        let (seen, (db, shapes)) = analyses.with::<(AliasDb, Shapes)>(&graph);
        let inputs = Inputs::new(seen, db, shapes, &limits);
        let mut counts = vec![0; rules.rules().len()];
        let found = inputs.search(&inputs.windows()[0].1, rules, false, &mut counts, false);
        let reason = unchanged_message(rules, &found.err().expect("the ranks differ"));
        assert!(reason.contains("ranks of") && reason.contains("bad"), "{reason}");
        assert!(counts.iter().all(|&n| n == 0), "{counts:?}");
        let mut cx = PassCx::bare(&mut graph, &mut analyses, &mut control, None);
        Pass::run(&Saturate { select, limits }, &mut cx).unwrap();
        assert_eq!(graph.to_string(), before);
    }
}
