//! Liveness: the last use of each value, so that the interpreter can move the value instead of copying it and free its
//! memory as early as possible.
//!
//! On every path through the block that defines it, a value dies at exactly one of these points:
//! - at an operand ([`Liveness::is_last_use`]): the node consumes the value;
//! - on entry of a block ([`Liveness::on_entry`]): another branch uses the value and this one does not, or the value is
//!   an unused input of the block;
//! - after a node ([`Liveness::after`]): the node's blocks use the value, possibly more than once (a loop), or the use
//!   is nested in so many branches that tracking it would not be linear.
//!
//! Results without uses ([`Graph::use_count`] is 0) have no such point: code emission drops them at once.
//!
//! Code emission relies on this: a register is cleared where its value dies, within the branch, so its memory is free
//! before the branch ends.
//!
//! Nodes are visited backwards once. The first visited use of a value in a block is its last use there. For branches,
//! the frame of the `prim::If` on the stack records which branches use which dying values.

use crate::analysis::{Analysis, AnalysisCx};
use flambeau_ir::{BlockId, Graph, NodeId, NodeMap, NodeSet, Prim, ValueId, ValueMap};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// The last uses of the values of one graph. See the [module](self).
#[derive(Clone, Debug)]
pub struct Liveness {
    /// Operand positions that consume their value, as bits; if the top bit is set, the positions are in `wide`.
    dying: NodeMap<u64>,
    wide: HashMap<NodeId, Vec<u32>, FxBuildHasher>,
    after: HashMap<NodeId, Vec<ValueId>, FxBuildHasher>,
    on_entry: HashMap<BlockId, Vec<ValueId>, FxBuildHasher>,
    values: ValueMap<State>,
}

/// The top bit of an entry of `Liveness::dying`: the positions are in `wide`.
const IN_WIDE: u64 = 1 << 63;
/// A value used in branches nested deeper than this below its definition dies after the outermost branch.
const MAX_BRANCHES: usize = 8;

impl Liveness {
    /// Computes the last uses. O(nodes + uses).
    #[must_use]
    pub fn new(graph: &Graph) -> Self {
        Self::with_deferred(graph, &NodeSet::new())
    }

    /// [`Liveness::new`] for code that evaluates the nodes of `deferred` at the use of their result: their operands are
    /// read there, so they die there at the earliest. Each deferred node must have one result with one use, in the same
    /// block, and no deferred operand.
    #[must_use]
    pub fn with_deferred(graph: &Graph, deferred: &NodeSet) -> Self {
        let mut walk = Walk {
            g: graph,
            deferred,
            out: Liveness {
                dying: NodeMap::for_nodes(graph, 0),
                wide: HashMap::default(),
                after: HashMap::default(),
                on_entry: HashMap::default(),
                values: ValueMap::for_values(graph, State { depth: 0, last: None }),
            },
            frames: Vec::new(),
            depths: HashMap::default(),
        };
        walk.run();
        walk.out
    }

    /// Whether operand `index` of a node is the last use of its value on this path. If several operands are equal, only
    /// the last one is.
    #[must_use]
    pub fn is_last_use(&self, node: NodeId, index: usize) -> bool {
        let bits = self.dying[node];
        if bits & IN_WIDE == 0 {
            return index < 63 && bits & (1 << index) != 0;
        }
        self.wide.get(&node).is_some_and(|list| list.binary_search(&(index as u32)).is_ok())
    }

    /// Returns the node of a value's own block that is the last use or contains it; `None` for values without uses.
    #[must_use]
    pub fn last(&self, value: ValueId) -> Option<NodeId> {
        self.values[value].last
    }

    /// Returns the values of outer blocks that are dead after a node with blocks has finished.
    #[must_use]
    pub fn after(&self, node: NodeId) -> &[ValueId] {
        self.after.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Returns the values that are dead on entry of a block: its unused inputs, and values that only other branches
    /// use.
    #[must_use]
    pub fn on_entry(&self, block: BlockId) -> &[ValueId] {
        self.on_entry.get(&block).map_or(&[], Vec::as_slice)
    }

    fn mark(&mut self, node: NodeId, index: usize) {
        if index < 63 && self.dying[node] & IN_WIDE == 0 {
            self.dying[node] |= 1 << index;
            return;
        }
        let list = self.wide.entry(node).or_default();
        if self.dying[node] & IN_WIDE == 0 {
            let bits = self.dying[node];
            list.extend((0..63).filter(|i| bits & (1 << i) != 0).rev());
            self.dying[node] = IN_WIDE;
        }
        // Operands are visited from the last to the first; sorted when the node is finished.
        list.push(index as u32);
    }

    fn finish(&mut self, node: NodeId) {
        if self.dying[node] & IN_WIDE != 0
            && let Some(list) = self.wide.get_mut(&node)
        {
            list.sort_unstable();
        }
    }
}

/// The state of a value in the backward walk.
#[derive(Clone, Copy, Debug)]
struct State {
    /// The depth of the block that defines the value, plus one; 0 if not computed.
    depth: u32,
    /// The node of that block at, inside or after which the value dies.
    last: Option<NodeId>,
}

/// A node with blocks whose walk is in progress.
struct OpenNode {
    node: NodeId,
    blocks: SmallVec<[BlockId; 2]>,
    /// Index of the current block.
    current: usize,
    is_if: bool,
    /// Number of frames from the outermost to the innermost that is not a `prim::If`, inclusive; 0 if there is none.
    barrier: usize,
    /// Values that die inside, each with a bit set of the blocks that use it.
    dying: Vec<(ValueId, u64)>,
    index: HashMap<ValueId, usize, FxBuildHasher>,
}

struct Walk<'g> {
    g: &'g Graph,
    deferred: &'g NodeSet,
    out: Liveness,
    frames: Vec<OpenNode>,
    /// Number of frames around each block entered so far.
    depths: HashMap<BlockId, u32, FxBuildHasher>,
}

impl Walk<'_> {
    fn run(&mut self) {
        let g = self.g;
        self.depths.insert(g.root(), 0);
        let mut at = g.ret(g.root());
        loop {
            // `at` has no blocks, or they have been visited.
            self.node(at);
            let Some(prev) = g.prev(at) else {
                // The start of a block, where its inputs are defined.
                let block = g.parent(at);
                for v in g.results(at) {
                    if g.use_count(v) == 0 {
                        self.out.on_entry.entry(block).or_default().push(v);
                    }
                }
                match self.leave_block() {
                    Some(next) => at = next,
                    None => return,
                }
                continue;
            };
            at = self.enter(prev);
        }
    }

    /// Visits a node: returns the end of its last block, or the node itself if it has none.
    fn enter(&mut self, node: NodeId) -> NodeId {
        let g = self.g;
        if g.block_count(node) == 0 {
            return node;
        }
        let blocks: SmallVec<[BlockId; 2]> = g.blocks(node).collect();
        let current = blocks.len() - 1;
        let is_if = g.is_prim(node, Prim::If) && blocks.len() <= 64;
        let barrier = if is_if { self.frames.last().map_or(0, |f| f.barrier) } else { self.frames.len() + 1 };
        let last = g.ret(blocks[current]);
        let depth = self.frames.len() as u32 + 1;
        self.depths.extend(blocks.iter().map(|&block| (block, depth)));
        self.frames.push(OpenNode {
            node,
            blocks,
            current,
            is_if,
            barrier,
            dying: Vec::new(),
            index: HashMap::default(),
        });
        last
    }

    /// Moves from the start of a block to the end of the preceding one, or to the owning node; `None` at the root.
    fn leave_block(&mut self) -> Option<NodeId> {
        let frame = self.frames.last_mut()?;
        if frame.current > 0 {
            frame.current -= 1;
            return Some(self.g.ret(frame.blocks[frame.current]));
        }
        let frame = self.frames.pop().expect("invariant: looked at just now");
        for (v, seen) in frame.dying {
            for (i, &block) in frame.blocks.iter().enumerate() {
                if seen & (1 << i) == 0 {
                    self.out.on_entry.entry(block).or_default().push(v);
                }
            }
        }
        Some(frame.node)
    }

    fn node(&mut self, node: NodeId) {
        if !self.deferred.contains(node) {
            self.operands(node, node);
        }
        self.out.finish(node);
    }

    /// Records the values that `reader` reads when `user` runs: its operands, and those of deferred nodes among them.
    fn operands(&mut self, reader: NodeId, user: NodeId) {
        for index in (0..self.g.operand_count(reader)).rev() {
            let v = self.g.operand(reader, index);
            let def = self.g.def(v);
            if reader == user && self.deferred.contains(def) {
                self.operands(def, user);
            }
            if self.record_use(v, user) {
                self.out.mark(reader, index);
            }
        }
    }

    /// Number of frames around the block that defines a value.
    fn depth_of(&mut self, v: ValueId) -> usize {
        let known = self.out.values[v].depth;
        if known != 0 {
            return known as usize - 1;
        }
        let block = self.g.parent(self.g.def(v));
        let depth = *self.depths.get(&block).expect("invariant: a definition is in a block around its use");
        self.out.values[v].depth = depth + 1;
        depth as usize
    }

    /// Records a use. Returns whether the use consumes the value.
    fn record_use(&mut self, v: ValueId, user: NodeId) -> bool {
        let depth = self.depth_of(v);
        let here = self.frames.len();
        let last = self.out.values[v].last;
        if depth == here {
            if last.is_none() {
                self.out.values[v].last = Some(user);
            }
            return last.is_none();
        }
        let outermost = self.frames[depth].node;
        if last.is_some_and(|last| last != outermost) {
            return false;
        }
        let branches_only = self.frames[here - 1].barrier <= depth && here - depth <= MAX_BRANCHES;
        if last.is_none() {
            self.out.values[v].last = Some(outermost);
            if !branches_only {
                self.out.after.entry(outermost).or_default().push(v);
                return false;
            }
        }
        // From the outermost level inwards: at each level the value dies in this branch, or already died later in it,
        // or dies at an inner level.
        let mut first_here = last.is_none();
        for level in depth..here {
            let frame = &mut self.frames[level];
            let bit = 1_u64 << frame.current;
            match frame.index.get(&v).copied() {
                None if first_here => {
                    frame.index.insert(v, frame.dying.len());
                    frame.dying.push((v, bit));
                }
                None => return false,
                Some(at) => {
                    let seen = &mut frame.dying[at].1;
                    first_here = *seen & bit == 0;
                    if first_here && !branches_only {
                        // The last use in this branch is not a single operand.
                        *seen |= bit;
                        let inner = self.frames[level + 1].node;
                        self.out.after.entry(inner).or_default().push(v);
                        return false;
                    }
                    *seen |= bit;
                }
            }
        }
        debug_assert!(self.frames[depth..].iter().all(|f| f.is_if), "only branches are followed");
        first_here
    }
}

impl Analysis for Liveness {
    const NAME: &'static str = "liveness";

    fn build(cx: &AnalysisCx<'_>) -> Self {
        Liveness::new(cx.graph())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, graph, registry};
    use flambeau_ir::{At, Type};

    fn listing(g: &Graph) -> Vec<String> {
        let live = Liveness::new(g);
        let name = |v: &ValueId| format!("%{}", g.name(*v));
        let mut lines = Vec::new();
        for step in g.walk(g.root()) {
            match step {
                flambeau_ir::WalkStep::Enter(b) if !live.on_entry(b).is_empty() => {
                    let names: Vec<_> = live.on_entry(b).iter().map(name).collect();
                    lines.push(format!("enter: {}", names.join(" ")));
                }
                flambeau_ir::WalkStep::Node(n) => lines.extend(last_uses(g, &live, n)),
                flambeau_ir::WalkStep::Leave(b) => lines.extend(last_uses(g, &live, g.ret(b))),
                flambeau_ir::WalkStep::Done(n) if !live.after(n).is_empty() => {
                    let names: Vec<_> = live.after(n).iter().map(name).collect();
                    lines.push(format!("after {}: {}", g.op_name(n), names.join(" ")));
                }
                _ => {}
            }
        }
        lines
    }

    fn last_uses(g: &Graph, live: &Liveness, n: NodeId) -> Option<String> {
        let names: Vec<_> = (0..g.operand_count(n))
            .filter(|&i| live.is_last_use(n, i))
            .map(|i| format!("{i}:%{}", g.name(g.operand(n, i))))
            .collect();
        (!names.is_empty()).then(|| format!("{}: {}", g.op_name(n), names.join(" ")))
    }

    #[test]
    fn straight_code_and_branches() {
        let g = graph(
            "graph(%x : Tensor, %p : bool, %unused : int):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::add(%a, %a, %one)
  %r : Tensor = prim::If(%p)
    block0():
      %c : Tensor = aten::relu(%b)
      -> (%c)
    block1():
      %d : Tensor = aten::add(%x, %x, %one)
      -> (%d)
  return (%r)",
        );
        assert_eq!(
            listing(&g),
            [
                "enter: %unused",
                "aten::add: 1:%a",
                "prim::If: 0:%p",
                "enter: %one %x",
                "aten::relu: 0:%b",
                "prim::Return: 0:%c",
                "enter: %b",
                "aten::add: 1:%x 2:%one",
                "prim::Return: 0:%d",
                "prim::Return: 0:%r",
            ]
        );
    }

    #[test]
    fn values_used_in_every_iteration_live_through_the_loop() {
        let g = graph(
            "graph(%x : Tensor, %n : int, %p : bool):
  %one : int = prim::Constant[value=1]()
  %t : bool = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %c : Tensor):
      %r : Tensor = prim::If(%p)
        block0():
          -> (%c)
        block1():
          %s : Tensor = aten::add(%c, %a, %one)
          -> (%s)
      -> (%t, %r)
  return (%y)",
        );
        assert_eq!(
            listing(&g),
            [
                "prim::Loop: 0:%n 2:%x",
                "enter: %i",
                "prim::Return: 0:%c",
                "aten::add: 0:%c",
                "prim::Return: 0:%s",
                "prim::Return: 1:%r",
                "after prim::Loop: %t %one %a %p",
                "prim::Return: 0:%y",
            ]
        );
    }

    #[test]
    fn branches_in_branches() {
        let g = graph(
            "graph(%x : Tensor, %p : bool):
  %r : Tensor = prim::If(%p)
    block0():
      %s : Tensor = prim::If(%p)
        block0():
          %u : Tensor = aten::relu(%x)
          -> (%u)
        block1():
          %k : Tensor = aten::relu(%x)
          %v : Tensor = aten::mul(%x, %k)
          -> (%v)
      -> (%s)
    block1():
      %w : Tensor = prim::If(%p)
        block0():
          -> (%x)
        block1():
          %z : Tensor = prim::Uninitialized()
          -> (%z)
      -> (%w)
  return (%r)",
        );
        let lines = listing(&g);
        assert_eq!(
            lines,
            [
                "prim::If: 0:%p",
                "aten::relu: 0:%x",
                "prim::Return: 0:%u",
                "aten::mul: 0:%x 1:%k",
                "prim::Return: 0:%v",
                "prim::Return: 0:%s",
                "prim::If: 0:%p",
                "prim::Return: 0:%x",
                "enter: %x",
                "prim::Return: 0:%z",
                "prim::Return: 0:%w",
                "prim::Return: 0:%r",
            ]
        );
    }

    #[test]
    fn deferred_nodes_read_where_they_are_used() {
        let g = graph(
            "graph(%x : Tensor, %y : Tensor, %k : int, %p : bool):
  %m : int = aten::mul(%k, %k)
  %a : Tensor = aten::add(%x, %y, %k)
  %b : Tensor = aten::add(%a, %x, %m)
  return (%b)",
        );
        let product = g.def(g.operand(g.nodes(g.root()).nth(2).unwrap(), 2));
        let mut deferred = NodeSet::new();
        deferred.insert(product);
        let (plain, later) = (Liveness::new(&g), Liveness::with_deferred(&g, &deferred));
        let sum = g.nodes(g.root()).nth(1).unwrap();
        let k = g.operand(product, 0);
        assert!(plain.is_last_use(sum, 2) && !plain.is_last_use(product, 1));
        assert!(
            !later.is_last_use(sum, 2) && later.is_last_use(product, 1) && !later.is_last_use(product, 0)
        );
        assert_eq!((plain.last(k), later.last(k)), (Some(sum), g.nodes(g.root()).nth(2)));
    }

    /// Runs random programs with branches and loops on a machine that drops dead values: no dropped value is ever read,
    /// and no value of a block remains at the block's end.
    #[test]
    fn values_die_once_on_every_path() {
        for seed in 1..100 {
            let g = random(&mut Random(seed * 104_729), 40);
            let live = Liveness::new(&g);
            for way in 0..6 {
                let mut machine = Machine {
                    g: &g,
                    live: &live,
                    alive: Vec::new(),
                    random: Random(seed * 31 + way * 7 + 1),
                };
                machine.block(g.root());
                assert!(machine.alive.is_empty(), "seed {seed}: {:?} left\n{g}", machine.alive.len());
            }
        }
    }

    struct Machine<'g> {
        g: &'g Graph,
        live: &'g Liveness,
        alive: Vec<ValueId>,
        random: Random,
    }

    impl Machine<'_> {
        fn drop_value(&mut self, v: ValueId) {
            let at = self.alive.iter().position(|&a| a == v).unwrap_or_else(|| {
                panic!("%{} dies twice\n{}", self.g.name(v), self.g);
            });
            self.alive.swap_remove(at);
        }

        fn take(&mut self, node: NodeId) {
            for (i, v) in self.g.operands(node).enumerate() {
                assert!(self.alive.contains(&v), "%{} is dead\n{}", self.g.name(v), self.g);
                if self.live.is_last_use(node, i) {
                    self.drop_value(v);
                }
            }
        }

        fn block(&mut self, block: BlockId) {
            let g = self.g;
            self.alive.extend(g.block_inputs(block));
            self.live.on_entry(block).iter().for_each(|&v| self.drop_value(v));
            for node in g.nodes(block) {
                self.take(node);
                match g.prim(node) {
                    Some(Prim::If) => {
                        let taken = self.random.below(2);
                        self.block(g.block(node, taken));
                    }
                    Some(Prim::Loop) => (0..self.random.below(3)).for_each(|_| self.block(g.block(node, 0))),
                    _ => {}
                }
                self.live.after(node).iter().for_each(|&v| self.drop_value(v));
                self.alive.extend(g.results(node).filter(|&v| g.use_count(v) > 0));
            }
            self.take(g.ret(block));
        }
    }

    fn random(random: &mut Random, size: usize) -> Graph {
        let relu = registry().lookup("aten::add.Tensor").expect("registered");
        let mut g = Graph::new(registry());
        let mut e = g.edit();
        let mut live = vec![e.add_input(Type::TENSOR), e.add_input(Type::TENSOR)];
        let (p, n) = (e.add_input(Type::BOOL), e.add_input(Type::INT));
        // (node, block, values visible outside)
        let mut open: Vec<(NodeId, usize, usize)> = Vec::new();
        for left in (0..size + 40).rev() {
            let pick = |random: &mut Random| live[random.below(live.len())];
            let (a, b) = (pick(random), pick(random));
            match random.below(7) {
                0..3 if left > 40 => live.push(e.value(relu, &[a, b, n], Type::TENSOR)),
                3 if left > 40 && open.len() < 6 => {
                    let node = e.node(Prim::If, &[p], &[Type::TENSOR]);
                    for _ in 0..2 {
                        e.add_block(node);
                    }
                    open.push((node, 0, live.len()));
                    let first = e.graph().block(node, 0);
                    e.at(At::end(first));
                }
                4 if left > 40 && open.len() < 6 => {
                    let node = e.node(Prim::Loop, &[n, p, a], &[Type::TENSOR]);
                    let body = e.add_block(node);
                    e.add_block_input(body, Type::INT);
                    open.push((node, 0, live.len()));
                    live.push(e.add_block_input(body, Type::TENSOR));
                    e.at(At::end(body));
                }
                _ => {
                    let Some((node, block, outer)) = open.pop() else { continue };
                    let is_if = e.graph().is_prim(node, Prim::If);
                    let body = e.graph().block(node, block);
                    if !is_if {
                        e.add_block_output(body, p);
                    }
                    e.add_block_output(body, a);
                    live.truncate(outer);
                    if is_if && block == 0 {
                        open.push((node, 1, outer));
                        let second = e.graph().block(node, 1);
                        e.at(At::end(second));
                    } else {
                        live.push(e.graph().result(node, 0));
                        e.at(At::after(node));
                    }
                }
            }
        }
        while let Some((node, block, outer)) = open.pop() {
            let last = *live.last().expect("inputs stay");
            let is_if = e.graph().is_prim(node, Prim::If);
            for i in block..e.graph().block_count(node) {
                let body = e.graph().block(node, i);
                if !is_if {
                    e.add_block_output(body, p);
                }
                e.add_block_output(body, if i == block { last } else { live[0] });
            }
            live.truncate(outer);
            live.push(e.graph().result(node, 0));
            e.at(At::after(node));
        }
        let last = *live.last().expect("inputs stay");
        e.add_output(last);
        flambeau_ir::verify::verify(&g).unwrap_or_else(|why| panic!("{why:?}"));
        g
    }

    #[test]
    fn wide_nodes_and_deep_nests() {
        let mut g = Graph::new(registry());
        let mut e = g.edit();
        let p = e.add_input(Type::BOOL);
        let values: Vec<ValueId> = (0..200).map(|_| e.add_input(Type::INT)).collect();
        let list = e.value(Prim::ListConstruct, &values, Type::LIST_INT);
        e.add_output(list);
        let x = values[7];
        // Every level uses an outer value in one branch.
        for _ in 0..100_000 {
            let node = e.node(Prim::If, &[p], &[]);
            let block = e.add_block(node);
            e.add_block(node);
            e.at(At::start(block));
            e.node(Prim::Print, &[x], &[]);
        }
        let live = Liveness::new(&g);
        let node = g.def(list);
        assert!(!live.is_last_use(node, 7) || g.use_count(x) == 1);
        assert_eq!((0..200).filter(|&i| live.is_last_use(node, i)).count(), 199);
    }
}
