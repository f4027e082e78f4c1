//! The analyses that prove that nothing writes a container meanwhile.

use crate::intrinsic::Intrinsic;
use flambeau_analysis::{AliasDb, Dominance, WriteOrder};
use flambeau_ir::Graph;
use std::cell::OnceCell;

/// Aliasing and the order of writes of a graph, computed when something is first to be proved.
pub(super) struct WriteProofs<'g> {
    pub(super) graph: &'g Graph,
    analyses: OnceCell<(AliasDb, Dominance, WriteOrder)>,
    resizes: OnceCell<WriteOrder>,
}

impl<'g> WriteProofs<'g> {
    pub(super) fn new(graph: &'g Graph) -> Self {
        WriteProofs { graph, analyses: OnceCell::new(), resizes: OnceCell::new() }
    }

    /// Returns the analyses.
    pub(super) fn get(&self) -> &(AliasDb, Dominance, WriteOrder) {
        self.analyses.get_or_init(|| {
            let (alias, dominance) = (AliasDb::new(self.graph), Dominance::new(self.graph));
            let writes = WriteOrder::new(self.graph, &alias, &dominance);
            (alias, dominance, writes)
        })
    }

    /// Returns the order of those writes that may change the length of a list: an assignment to an element does not.
    pub(super) fn resizes(&self) -> &WriteOrder {
        self.resizes.get_or_init(|| {
            let (alias, dominance, _) = self.get();
            let intrinsics = self.graph.registry().column::<Intrinsic>();
            let is_assignment = |node| intrinsics.of(self.graph.op(node)) == Some(&Intrinsic::ListSet);
            WriteOrder::of_writers(self.graph, alias, dominance, |node| !is_assignment(node))
        })
    }
}
