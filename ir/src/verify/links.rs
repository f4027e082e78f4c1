//! Phase 1: the links inside the arenas. A violation is a bug of this crate, not of the program.

use super::{Findings, VerifyError};
use crate::graph::{Graph, WalkStep};

pub(super) fn check(g: &Graph, findings: &mut Findings) {
    let root = g.ret(g.root());
    if let Err(message) = g.check_use_lists() {
        findings.push(VerifyError::new("V001", root, message));
        return;
    }
    for step in g.walk(g.root()) {
        if let WalkStep::Enter(block) = step
            && !g.block_order_holds(block)
        {
            findings.push(VerifyError::new(
                "V001",
                g.ret(block),
                "order keys do not increase along the block's node list",
            ));
        }
    }
}
