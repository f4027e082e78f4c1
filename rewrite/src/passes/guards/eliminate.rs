//! Removes implied guards.
//!
//! [`GuardGraph`] states which guards are implied: by facts about the guarded value, which shape rules derive from the types
//! of the graph's inputs and from other guards, or by an earlier guard of the same tensor. If two inputs of an addition
//! are known to have sizes [2, 3], so does the result, and its guard is removed. The analysis explains why all implied
//! guards may be removed at once.
//!
//! A guard without uses states nothing that another node relies on, and is removed too, because passes that rely on
//! guarded types run after `insert_bailouts`. A `prim::BailOut` without uses stays: such a pass may have used its type.
//!
//! The log (level `>`) and the rewrite trace name the premises of each removed guard.

use crate::log::LogLevel;
use crate::pass::{Pass, PassCx, PassError};
use crate::trace::name;
use flambeau_analysis::GuardGraph;
use flambeau_analysis::guards::{Implication, Premise, is_guard};
use flambeau_ir::{Graph, NodeId, Prim, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Removes guards that other guards and the rules of operators imply, and guards without uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct EliminateGuards;

/// A guard to be removed.
struct Removal {
    guard: NodeId,
    /// The earlier guard of the same tensor whose result replaces that of this one; its operand if there is none.
    by: Option<NodeId>,
    /// The premises of the guard, if a log or a trace is kept.
    because: Option<String>,
}

impl Pass for EliminateGuards {
    const NAME: &'static str = "eliminate_guards";
    const ALIASES: &'static [&'static str] = &["eliminate_redundant_guards"];
    const DOC: &'static str = "Removes guards that follow from other guards and from shape rules.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        if !graph.nodes_deep().any(|n| is_guard(graph, n)) {
            return Ok(());
        }
        let explains = cx.is_tracing() || cx.is_logging(LogLevel::Update);
        let (graph, implications) = cx.with::<GuardGraph>();
        let removals: Vec<Removal> =
            implications.guards().iter().filter_map(|&g| removal(graph, implications, g, explains)).collect();
        for removal in &removals {
            if let Some(because) = &removal.because {
                cx.log(LogLevel::Update, |g| format!("{} {because}", describe_guard(g, removal.guard)));
            }
        }
        let (mut editor, mut fuel) = cx.edit_fuelled();
        // The values that results of removed guards were replaced by.
        let mut replaced: HashMap<NodeId, ValueId, FxBuildHasher> = HashMap::default();
        for Removal { guard, by, because } in removals {
            if !fuel.take("remove", editor.graph(), guard) {
                break;
            }
            if let Some(because) = because {
                fuel.prove(because);
            }
            let g = editor.graph();
            let value = match by {
                Some(by) => replaced.get(&by).copied().unwrap_or_else(|| g.result(by, 0)),
                None => g.operand(guard, 0),
            };
            replaced.insert(guard, value);
            editor.replace_node(guard, &[value]);
        }
        Ok(())
    }
}

/// Returns how a guard is removed; `None` if it stays.
fn removal(g: &Graph, implications: &GuardGraph, guard: NodeId, explains: bool) -> Option<Removal> {
    let (by, because) = match implications.reason(guard) {
        Some((Premise::Guard(earlier), Implication::Dominance)) => {
            let because = || format!("follows from {}", describe_guard(g, earlier));
            (Some(earlier), explains.then(because))
        }
        Some(_) => (None, explains.then(|| explanation(g, implications, guard))),
        None if g.is_prim(guard, Prim::Guard) && g.use_count(g.result(guard, 0)) == 0 => {
            (None, explains.then(|| "has no uses".to_owned()))
        }
        None => return None,
    };
    Some(Removal { guard, by, because })
}

/// States the premises of a guard that follows from the facts about its value.
fn explanation(g: &Graph, implications: &GuardGraph, guard: NodeId) -> String {
    let premises = implications.premises(guard);
    let mut parts: Vec<String> = Vec::new();
    if !premises.values.is_empty() {
        let mut names: Vec<String> = premises.values.iter().map(|&v| name(g, v)).collect();
        names.sort();
        parts.push(names.join(", "));
    }
    let mut guards: Vec<String> = premises.guards.iter().map(|&n| describe_guard(g, n)).collect();
    guards.sort();
    parts.extend(guards);
    if premises.truncated {
        parts.push("others".to_owned());
    }
    format!("follows by shape rules from {}", parts.join(", "))
}

/// Names a guard by the value and the type that it states: `guard of %3: Float(2, 3)`.
fn describe_guard(g: &Graph, guard: NodeId) -> String {
    format!("guard of {}: {}", name(g, g.operand(guard, 0)), g.ty(g.result(guard, 0)))
}
