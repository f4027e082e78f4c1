//! Inserts forks: expensive nodes that do not depend on each other become tasks, which run at the same time.
//!
//! A *segment* is a sequence of nodes of a block that becomes one task: an expensive node, cheap nodes before it, and nodes
//! after it that are the only users of its results ([`segments`]). A *group* is a sequence of segments none of which depends on
//! another. Each segment of a group is replaced by a fork, and waits for all tasks, in program order, stand before the first
//! node that is not part of the group.
//!
//! The program shows no difference, because
//!
//! - every task is isolated ([`Isolation`], which the machine uses for its own decision): it writes only memory that it allocates,
//!   and has no other effects than errors. So no task writes memory that another one or its frame reads;
//! - the nodes that remain between the forks and the waits may be speculated: they can run although a task has failed;
//! - the waits raise the error of the task that comes first in the program, and no segment after the first can
//!   run forever.
//!
//! Forking pays if the segments take longer than starting a task. The pass knows the costs that operators state and trip counts,
//! but no sizes ([`work`]), and products use several threads by themselves. So it is in no standard pipeline.

mod segments;
mod work;

use crate::facets::{Cost, OpRole};
use crate::outline::{Bodies, Body};
use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{Configure, PassOptions};
use crate::roles;
use crate::trace::name;
use flambeau_exec::Isolation;
use flambeau_ir::attr::names;
use flambeau_ir::{
    At, Attr, BlockId, CompilationUnit, Editor, Graph, NodeId, OpId, Prim, Type, ValueId, WalkStep,
};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use segments::{Group, Scan, Segment};
use smallvec::SmallVec;
use std::sync::Arc;

/// See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct InsertForks {
    /// The cost from which nodes are expensive.
    pub cost: Cost,
}

impl Default for InsertForks {
    fn default() -> Self {
        InsertForks { cost: Cost::PRODUCT }
    }
}

impl Configure for InsertForks {
    const OPTIONS: &'static [&'static str] = &["cost"];

    fn configure(options: &PassOptions) -> Result<Self, String> {
        let cost = options.number("cost")?.map(|n| Cost(u32::try_from(n).unwrap_or(u32::MAX)));
        Ok(cost.map_or_else(Self::default, |cost| InsertForks { cost }))
    }
}

impl Pass for InsertForks {
    const NAME: &'static str = "insert_forks";
    const DOC: &'static str = "Runs independent expensive nodes as tasks.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let groups = self.plan(cx)?;
        if groups.is_empty() {
            return Ok(());
        }
        let wait = roles::find(&cx.registry(), OpRole::Wait)?;
        let (mut editor, mut fuel) = cx.edit_fuelled();
        let mut replaced = Replaced::default();
        for group in groups {
            let g = editor.graph();
            if !fuel.take("fork", g, group.tasks[0].last()) {
                break;
            }
            let mut moved: Vec<Vec<(ValueId, String)>> = Vec::new();
            if fuel.is_traced() {
                let values = |task: &Task| {
                    let results = task.nodes.iter().flat_map(|&n| g.results(n));
                    results.map(|v| (v, name(g, v))).collect()
                };
                moved = group.tasks.iter().map(values).collect();
            }
            let forks = apply(&mut editor, &group, wait, &mut replaced);
            for (values, fork) in moved.into_iter().zip(forks) {
                fuel.outlined(editor.graph(), values, fork);
            }
        }
        Ok(())
    }
}

/// A segment with its body.
struct Task {
    /// In program order.
    nodes: Vec<NodeId>,
    body: Arc<Graph>,
    inputs: Vec<ValueId>,
    outputs: Vec<ValueId>,
}

impl Task {
    fn last(&self) -> NodeId {
        self.nodes[self.nodes.len() - 1]
    }
}

/// Tasks that are forked one after the other.
struct TaskGroup {
    tasks: Vec<Task>,
    /// The waits are inserted here.
    end: At,
}

impl InsertForks {
    /// Plans all groups, in program order, blocks before the blocks nested in them. Nodes inside of tasks are not tasks
    /// themselves.
    fn plan(self, cx: &mut PassCx<'_>) -> Result<Vec<TaskGroup>, PassError> {
        // A gradient may be undefined, which no operand of a task can be.
        let is_gradient = |n: NodeId| matches!(cx.graph().prim(n), Some(Prim::AutogradZero | Prim::GradOf));
        if cx.graph().nodes_deep().any(is_gradient) {
            return Ok(Vec::new());
        }
        let expensive = work::SCALARS_PER_COST * work::Work::from(self.cost.0);
        let none = CompilationUnit::new();
        let unit = cx.unit();
        let bodies = Bodies::of_graph(cx);
        let g = cx.graph();
        let mut isolation = Isolation::new(unit.unwrap_or(&none));
        let mut scan = Scan::new(g, unit, &bodies, expensive);
        let mut groups = Vec::new();
        let mut in_tasks: HashSet<NodeId, FxBuildHasher> = HashSet::default();
        let mut inside: Option<NodeId> = None;
        for step in g.walk(g.root()) {
            match step {
                WalkStep::Enter(block) if inside.is_none() => {
                    let before = groups.len();
                    for group in scan.block(block) {
                        split(g, &bodies, &mut isolation, group, block, &mut groups)?;
                    }
                    let tasks = groups[before..].iter().flat_map(|group: &TaskGroup| &group.tasks);
                    in_tasks.extend(tasks.flat_map(|task| &task.nodes));
                }
                WalkStep::Node(node) if inside.is_none() && in_tasks.contains(&node) => {
                    inside = (g.block_count(node) > 0).then_some(node);
                }
                WalkStep::Done(node) if inside == Some(node) => inside = None,
                _ => {}
            }
        }
        Ok(groups)
    }
}

/// Makes the isolated segments of a group tasks. A segment that is not isolated runs in the frame, after the tasks before it.
fn split(
    g: &Graph,
    bodies: &Bodies,
    isolation: &mut Isolation<'_>,
    group: Group,
    block: BlockId,
    groups: &mut Vec<TaskGroup>,
) -> Result<(), PassError> {
    let mut tasks = Vec::new();
    let mut end_at = |tasks: &mut Vec<Task>, end| {
        let tasks = std::mem::take(tasks);
        if tasks.len() > 1 {
            groups.push(TaskGroup { tasks, end });
        }
    };
    for Segment { nodes, .. } in group.segments {
        let body = bodies.of_nodes(g, &nodes)?;
        let (outputs, inputs) = (body.outputs.clone(), body.inputs.clone());
        let body = Arc::new(with_one_output(body));
        if isolation.holds(&body) {
            tasks.push(Task { nodes, body, inputs, outputs });
        } else {
            end_at(&mut tasks, At::before(nodes[0]));
        }
    }
    end_at(&mut tasks, group.end.map_or(At::end(block), At::before));
    Ok(())
}

/// Returns a body whose outputs are packed into a tuple unless there is one.
fn with_one_output(body: Body) -> Graph {
    let Body { mut graph, .. } = body;
    let outputs: SmallVec<[ValueId; 4]> = graph.outputs().collect();
    if outputs.len() != 1 {
        let mut editor = graph.edit();
        let all = editor.tuple(&outputs);
        let root = editor.graph().root();
        editor.retain_block_outputs(root, |_| false);
        editor.add_output(all);
    }
    graph
}

/// Values that waits have replaced.
type Replaced = HashMap<ValueId, ValueId, FxBuildHasher>;

/// Replaces the nodes of tasks by forks and waits. Returns the forks.
fn apply(editor: &mut Editor<'_>, group: &TaskGroup, wait: OpId, replaced: &mut Replaced) -> Vec<NodeId> {
    let mut forks = Vec::with_capacity(group.tasks.len());
    for task in &group.tasks {
        let loc = editor.graph().loc(task.last());
        let inputs: SmallVec<[ValueId; 8]> =
            task.inputs.iter().map(|v| replaced.get(v).copied().unwrap_or(*v)).collect();
        let output = task.body.outputs().next().map(|v| task.body.ty(v));
        let ty = Type::future(output.expect("invariant: a task has one output"));
        let attrs = editor.attrs(vec![(names::subgraph(), Attr::Graph(Arc::clone(&task.body)))]);
        forks.push(editor.at(At::before(task.last())).loc(loc).insert(Prim::Fork, &inputs, attrs, &[ty]));
    }
    for (task, &fork) in group.tasks.iter().zip(&forks) {
        let g = editor.graph();
        let (loc, future) = (g.loc(task.last()), g.result(fork, 0));
        let types: SmallVec<[Type; 4]> = task.outputs.iter().map(|&v| g.ty(v)).collect();
        let output = g.ty(future).future_elem().expect("invariant: the result of a fork is a future");
        let mut values: SmallVec<[ValueId; 4]> =
            SmallVec::from_slice(&[editor.at(group.end).loc(loc).value(wait, &[future], output)]);
        if types.len() != 1 {
            let all = editor.node(Prim::TupleUnpack, &values, &types);
            values = editor.graph().results(all).collect();
        }
        for (&old, &new) in task.outputs.iter().zip(&values) {
            editor.replace_all_uses(old, new);
            replaced.insert(old, new);
        }
        task.nodes.iter().rev().for_each(|&node| editor.erase(node));
    }
    forks
}
