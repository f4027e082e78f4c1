//! Passes that turn observations into assumptions: profiles into guards, guards into bail-outs.
//!
//! A profiled program has a `prim::profile` node before every use of a tensor ([`profile`]), with the type that runs
//! observed in the attribute `profiled_type`. The passes of this folder run in the order of the pipeline `guards`:
//!
//! 1. [`insert`]: each `prim::profile` becomes a `prim::Guard`, whose result has the observed type.
//! 2. [`motion`]: guards move to the definition of the guarded value.
//! 3. [`coalesce`]: guards of one value become one guard, and later uses of the value become uses of its result.
//! 4. [`eliminate`]: guards that follow from other guards and from the shape rules of operators are removed.
//! 5. [`bailout`]: each remaining guard becomes a `prim::BailOut` with the rest of the program as its subgraph
//!    ([`continuation`]).
//!
//! A guard has no effect on results, so every pass may drop one. Only step 5 makes programs with guards complete: a
//! `prim::Guard` that fails in a run is an error, a `prim::BailOut` continues in the unoptimized program. Passes that
//! rely on guarded types therefore run after step 5, and the subgraphs are copies of the program as it was before them.

pub mod bailout;
pub mod coalesce;
mod continuation;
pub mod count;
pub mod eliminate;
pub mod insert;
pub mod motion;
pub mod profile;

use flambeau_ir::{Graph, NodeId, Prim};

/// Returns the guards of a graph, in program order.
fn guards(graph: &Graph) -> Vec<NodeId> {
    graph.nodes_deep().filter(|&n| graph.is_prim(n, Prim::Guard)).collect()
}

#[cfg(test)]
mod captures;
#[cfg(test)]
mod tests;
