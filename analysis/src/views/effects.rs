//! The orderings that memory and side effects demand, as edges.
//!
//! In program order, every location that is written keeps its last writer and the readers since: a reader comes after the
//! last writer, a writer after that and those readers. Nodes with side effects and nodes that draw random numbers form
//! one chain each. So there are at most as many edges as reads and writes.

use crate::alias::AliasDb;
use flambeau_ir::{Graph, NodeId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

#[derive(Default)]
struct Location {
    writer: Option<u32>,
    readers: Vec<u32>,
}

pub(super) fn order(graph: &Graph, db: &AliasDb, items: &[NodeId], edges: &mut Vec<(u32, u32)>) {
    let mut locations: HashMap<u32, Location, FxBuildHasher> = HashMap::default();
    let (mut last_effect, mut last_random) = (None, None);
    for (i, &node) in items.iter().enumerate() {
        let i = i as u32;
        let effects = graph.effects(node);
        if effects.has_side_effects() {
            edges.extend(last_effect.replace(i).map(|before| (before, i)));
        }
        if effects.is_nondeterministic() {
            edges.extend(last_random.replace(i).map(|before| (before, i)));
        }
        for v in graph.operands(node) {
            for loc in db.written_locations(v) {
                let location = locations.entry(loc).or_default();
                edges.extend(location.writer.filter(|&w| w != i).map(|w| (w, i)));
                if location.readers.last() != Some(&i) {
                    location.readers.push(i);
                }
            }
        }
        for loc in db.locations_written_by(node) {
            let location = locations.entry(loc).or_default();
            edges.extend(location.writer.replace(i).filter(|&w| w != i).map(|w| (w, i)));
            edges.extend(location.readers.drain(..).filter(|&r| r != i).map(|r| (r, i)));
        }
    }
}
