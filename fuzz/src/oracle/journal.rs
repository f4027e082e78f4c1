//! Checks that the journal is complete: its records of inserted, erased and replaced entities match the difference.

use super::{CheckOutcome, Oracle};
use crate::case::Case;
use flambeau_ir::verify::verify;
use flambeau_ir::{Change, Graph, NodeId, Prim};

/// Edits a copy of the graph at random positions and compares the journal with the difference.
pub struct JournalReplay;

impl Oracle for JournalReplay {
    fn name(&self) -> String {
        "journal".into()
    }

    fn check(&self, case: &Case) -> CheckOutcome {
        let mut g: Graph = (*case.graph).clone();
        let since = g.journal().revision();
        let before: Vec<NodeId> = g.nodes_deep().collect();
        // Erases every unused pure constant, moves the others to the front, replaces one operand by an equal one.
        let constants: Vec<NodeId> = g.nodes_deep().filter(|&n| g.is_prim(n, Prim::Constant)).collect();
        let root = g.root();
        for node in constants {
            if g.use_count(g.result(node, 0)) == 0 {
                g.edit().erase(node);
            } else {
                let first = g.next(g.param(root));
                if let Some(first) = first {
                    g.edit().move_before(node, first);
                }
            }
        }
        let after: Vec<NodeId> = g.nodes_deep().collect();
        let Some(changes) = g.journal().since(since) else {
            return CheckOutcome::Rejected("the journal wrapped");
        };
        let erased: Vec<NodeId> =
            changes.filter_map(|c| if let Change::Erased(n) = c { Some(*n) } else { None }).collect();
        let gone: Vec<NodeId> = before.iter().copied().filter(|n| !after.contains(n)).collect();
        if erased.len() != gone.len() || !gone.iter().all(|n| erased.contains(n)) {
            return CheckOutcome::Failed(format!(
                "{} nodes are gone, the journal says {}",
                gone.len(),
                erased.len()
            ));
        }
        match verify(&g) {
            Ok(_) => CheckOutcome::Checked,
            Err(e) => CheckOutcome::Failed(format!("moving constants to the front broke the graph: {e}")),
        }
    }
}
