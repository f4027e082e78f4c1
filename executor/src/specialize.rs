//! From a profiled graph and a record to the graph of a plan.
//!
//! The record's types become the types of the inputs, which are the plan's precondition, and the attribute
//! `profiled_type` of the profiling nodes, from which passes make guards. Nodes that observed nothing are removed, and
//! so are those of tensors whose guard failed too often before. Counters become the attributes `taken` of branches that
//! always took one side, and `trip_count` of loops whose average number of iterations was the same integer in every profiled
//! run: counters count per run, so the executions of a loop within one run may differ. These attributes are hints: nothing
//! guards them.

use crate::record::{BlockRuns, ProfilingRecord};
use flambeau_exec::Code;
use flambeau_ir::attr::names;
use flambeau_ir::types::{Dim, TensorType};
use flambeau_ir::{At, Attr, BlockId, Editor, Graph, IValue, NodeId, Prim, Type, ValueId};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

/// Indices of profiling nodes.
pub(crate) type ProfileIndices = HashSet<usize, FxBuildHasher>;

type Values = HashSet<ValueId, FxBuildHasher>;

/// Whether a graph has nodes of profiles and guards of its own. Such a graph is not specialized: its guards raise where
/// those of the executor continue.
pub(crate) fn has_assumptions(graph: &Graph) -> bool {
    graph.nodes_deep().any(|node| {
        matches!(
            graph.prim(node),
            Some(
                Prim::Profile
                    | Prim::ProfileIvalue
                    | Prim::Guard
                    | Prim::BailOut
                    | Prim::BailoutTemplate
                    | Prim::TypeCheck
            )
        )
    })
}

/// Returns the profiling nodes of a graph, in program order.
pub(crate) fn profile_nodes(graph: &Graph) -> Vec<NodeId> {
    graph.nodes_deep().filter(|&n| profile_index(graph, n).is_some()).collect()
}

/// Returns the index of a profiling node: its attribute `index`.
pub(crate) fn profile_index(graph: &Graph, node: NodeId) -> Option<usize> {
    let is_value = graph.is_prim(node, Prim::Profile) && graph.operand_count(node) > 0;
    let index = graph.attr(node, names::index()).filter(|_| is_value)?;
    usize::try_from(index.as_int()?).ok()
}

/// The blocks of a profiled graph whose executions are known: the bodies of loops, and the two blocks of branches, one after
/// the other. Blocks of outer nodes precede those of inner ones.
#[derive(Debug)]
pub(crate) struct Blocks {
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    /// The branch or loop.
    owner: NodeId,
    /// The counter; `None` for the second block of a branch, which is executed where the block before is not.
    counter: Option<usize>,
    /// The block around the owner, if it is not the body of the function.
    around: Option<usize>,
}

impl Blocks {
    /// Finds the counted blocks of a profiled function.
    pub(crate) fn of(code: &Code) -> Blocks {
        let graph = code.graph();
        let mut blocks: Vec<Block> = Vec::new();
        let mut number: HashMap<BlockId, usize, FxBuildHasher> = HashMap::default();
        for (counter, (node, _)) in code.counts().enumerate() {
            let own = graph.parent(node);
            let Some(owner) = graph.owner(own) else { continue };
            let around = number.get(&graph.parent(owner)).copied();
            number.insert(own, blocks.len());
            blocks.push(Block { owner, counter: Some(counter), around });
            if graph.is_prim(owner, Prim::If)
                && let Some(other) = graph.blocks(owner).nth(1)
            {
                number.insert(other, blocks.len());
                blocks.push(Block { owner, counter: None, around });
            }
        }
        Blocks { blocks }
    }

    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the runs of each block in a run that ended without an error, between two states of the counters.
    pub(crate) fn runs(&self, before: &[u64], code: &Code) -> Vec<BlockRuns> {
        let counts: Vec<u64> =
            code.counts().zip(before).map(|((_, after), before)| after.wrapping_sub(*before)).collect();
        let mut executed: Vec<u64> = Vec::with_capacity(self.blocks.len());
        let mut runs = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let around = block.around.map_or(1, |outer| executed[outer]);
            let count = match block.counter {
                Some(at) => Some(counts.get(at).copied().unwrap_or(0)),
                None => around.checked_sub(executed.last().copied().unwrap_or(0)),
            };
            executed.push(count.unwrap_or(0));
            // Concurrent runs count together, and an earlier count may lack what a later one has.
            let unknown = BlockRuns { executed: true, each: None, reached: true };
            runs.push(count.map_or(unknown, |count| BlockRuns::of(count, around)));
        }
        runs
    }

    /// Writes hints into a copy of the profiled graph, and removes its counters.
    fn annotate(&self, profiled: &Graph, runs: &[BlockRuns], editor: &mut Editor<'_>) {
        for (at, (block, run)) in self.blocks.iter().zip(runs).enumerate() {
            if profiled.is_prim(block.owner, Prim::Loop) {
                if let Some(trips) = run.each.and_then(|n| i64::try_from(n).ok()) {
                    editor.set_attr(block.owner, names::trip_count(), Attr::int(trips));
                }
                continue;
            }
            if let (Some(next), Some(other)) = (self.blocks.get(at + 1), runs.get(at + 1))
                && next.owner == block.owner
                && run.executed != other.executed
            {
                editor.set_attr(block.owner, names::taken(), Attr::int(i64::from(other.executed)));
            }
        }
        let is_counter =
            |&node: &NodeId| profiled.is_prim(node, Prim::Profile) && profiled.operand_count(node) == 0;
        let counters: Vec<NodeId> = profiled.nodes_deep().filter(is_counter).collect();
        counters.into_iter().for_each(|node| editor.erase(node));
    }
}

/// The property of a value that a guard will check.
#[derive(Clone, Copy)]
struct Observation {
    ty: Type,
    length: Option<usize>,
}

impl Observation {
    /// Returns what runs observed at a profiling node of a value of type `declared`; `None` if it is no more than that.
    fn at(record: &ProfilingRecord, index: usize, declared: Type) -> Option<Observation> {
        let (ty, length) = (record.observed_type(index, declared), record.observed_length(index));
        (ty.is_some() || length.is_some()).then(|| Observation { ty: ty.unwrap_or(declared), length })
    }

    /// Returns the observation without sizes, strides and lengths; `None` if nothing else was observed.
    fn without_sizes(self, declared: Type) -> Option<Observation> {
        let ty = match self.ty.as_tensor() {
            Some(facts) => {
                let sizes = facts.sizes.as_ref().map(|sizes| sizes.iter().map(|_| Dim::Unknown).collect());
                Type::tensor(TensorType { sizes, strides: None, ..facts.clone() })
            }
            None => self.ty,
        };
        (ty != declared).then_some(Observation { ty, length: None })
    }
}

/// Returns the values that are computed from some of `roots`. What a computation stores in a container is not followed
/// to where it is read.
fn dependent_values(graph: &Graph, roots: &Values) -> Values {
    let mut found = Values::default();
    let mut pending: Vec<ValueId> = roots.iter().copied().collect();
    while let Some(value) = pending.pop() {
        for user in graph.uses(value).map(|found| found.user) {
            let is_return = graph.is_prim(user, Prim::Return);
            let Some(user) = (if is_return { graph.enclosing(user) } else { Some(user) }) else { continue };
            let inputs = graph.blocks(user).flat_map(|block| graph.block_inputs(block));
            pending.extend(graph.results(user).chain(inputs).filter(|&value| found.insert(value)));
        }
    }
    found
}

/// Writes what a record observed into a copy of the profiled graph.
///
/// Where a guard is left out because its value had other sizes than observed, the sizes of values that are computed from
/// it are left out too: each of their guards would fail as often before it is left out in turn.
pub(crate) fn annotate(
    profiled: &Graph,
    blocks: &Blocks,
    record: &ProfilingRecord,
    disabled: &ProfileIndices,
) -> Graph {
    let mut graph = profiled.clone();
    let nodes = profile_nodes(profiled);
    // A tensor is profiled at each use, and one guard is made of all its profiles.
    let is_disabled = |node| profile_index(profiled, node).is_some_and(|index| disabled.contains(&index));
    let unguarded: Values =
        nodes.iter().filter(|&&n| is_disabled(n)).map(|&n| profiled.operand(n, 0)).collect();
    let dependent = dependent_values(profiled, &unguarded);
    let mut editor = graph.edit();
    blocks.annotate(profiled, record.blocks(), &mut editor);
    for node in nodes {
        let value = profiled.operand(node, 0);
        let index = profile_index(profiled, node).filter(|_| !unguarded.contains(&value));
        let observation = index.and_then(|index| Observation::at(record, index, profiled.ty(value)));
        let observation = match observation {
            Some(observation) if dependent.contains(&value) => observation.without_sizes(profiled.ty(value)),
            other => other,
        };
        let Some(observation) = observation else {
            let value = editor.graph().operand(node, 0);
            editor.replace_node(node, &[value]);
            continue;
        };
        editor.set_attr(node, names::profiled_type(), Attr::Type(observation.ty));
        if let Some(length) = observation.length {
            editor.set_attr(node, names::length(), Attr::int(length as i64));
        }
    }
    // The observed types have symbols of their own.
    editor.clear_size_ranges();
    for (index, input) in profiled.inputs().enumerate() {
        let ty = record.input_type(index, profiled.ty(input));
        editor.set_type(input, ty);
        if ty == Type::NONE {
            let root = editor.graph().root();
            let none = editor.at(At::start(root)).constant_of(IValue::None, Type::NONE);
            editor.replace_all_uses(input, none);
        }
    }
    graph
}
