//! Pairs of graphs before and after one of PyTorch's passes: ours has to leave no more nodes than PyTorch's.

use super::super::case::{Case, Verdict};
use super::{Replay, text};

impl Replay {
    pub(super) fn pass(&self, case: &Case) -> Result<(), Verdict> {
        if case.get("source").is_none() {
            text::read(case.text("before"), self.session.registry())?;
        }
        Err(Verdict::unsupported(format!("the pass {}", case.text("pass"))))
    }
}
