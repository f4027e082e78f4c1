//! The analyses that prove that nothing writes a container meanwhile.

use flambeau_analysis::{AliasDb, Dominance, WriteOrder};
use flambeau_ir::Graph;
use std::cell::OnceCell;

/// Aliasing and the order of writes of a graph, computed when something is first to be proved.
pub(super) struct WriteProofs<'g> {
    pub(super) graph: &'g Graph,
    analyses: OnceCell<(AliasDb, Dominance, WriteOrder)>,
}

impl<'g> WriteProofs<'g> {
    pub(super) fn new(graph: &'g Graph) -> Self {
        WriteProofs { graph, analyses: OnceCell::new() }
    }

    /// Returns the analyses.
    pub(super) fn get(&self) -> &(AliasDb, Dominance, WriteOrder) {
        self.analyses.get_or_init(|| {
            let (alias, dominance) = (AliasDb::new(self.graph), Dominance::new(self.graph));
            let writes = WriteOrder::new(self.graph, &alias, &dominance);
            (alias, dominance, writes)
        })
    }
}
