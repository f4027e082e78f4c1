//! Graphs of several forms and of any size, and measurement of how the time of a step grows with the size.
//!
//! Times are processor times of the measuring thread if the system provides them, so that other work on the machine
//! does not count. The compared quantity is the exponent between two sizes: 1 for linear growth, 2 for quadratic
//! growth.

use flambeau_ir::{At, BlockId, Graph, IValue, OpId, Prim, Registry, Type, ValueId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A form of graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A chain of pointwise operators, many of which also use one value defined at the beginning.
    Straight,
    /// A chain of products with the same view of an input, made anew for each.
    Viewing,
    /// Nested branches and loops with some nodes at every level.
    Nested,
    /// Tensors that are written in sequence: `a[i + 1].add_(a[i])`.
    Mutating,
    /// Many constants, arithmetic on them, and branches on known conditions.
    Constants,
    /// A loop with many carried values and a branch with many results, most of them unused.
    Carrying,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 6] =
        [Form::Straight, Form::Viewing, Form::Nested, Form::Mutating, Form::Constants, Form::Carrying];

    /// Creates a graph of about `nodes` nodes.
    pub fn graph(self, registry: &Arc<Registry>, nodes: usize) -> Graph {
        let mut maker = Maker::new(registry);
        match self {
            Form::Straight => maker.straight(nodes),
            Form::Viewing => maker.viewing(nodes),
            Form::Nested => maker.nested(nodes),
            Form::Mutating => maker.mutating(nodes),
            Form::Constants => maker.constants(nodes),
            Form::Carrying => maker.carrying(nodes),
        }
        maker.graph
    }
}

struct Maker {
    graph: Graph,
    registry: Arc<Registry>,
    block: BlockId,
    x: ValueId,
    condition: ValueId,
    one: ValueId,
}

impl Maker {
    fn new(registry: &Arc<Registry>) -> Maker {
        let mut graph = Graph::new(Arc::clone(registry));
        let block = graph.root();
        let mut e = graph.edit();
        let (x, condition) = (e.add_input(Type::TENSOR), e.add_input(Type::BOOL));
        let one = e.at(At::end(block)).constant(IValue::Int(1));
        Maker { graph, registry: Arc::clone(registry), block, x, condition, one }
    }

    fn op(&self, name: &str) -> OpId {
        self.registry.lookup(name).unwrap_or_else(|| panic!("no operator {name}"))
    }

    fn call(&mut self, name: &str, args: &[ValueId], ty: Type) -> ValueId {
        let (op, block) = (self.op(name), self.block);
        self.graph.edit().at(At::end(block)).value(op, args, ty)
    }

    fn tensor(&mut self, name: &str, args: &[ValueId]) -> ValueId {
        self.call(name, args, Type::TENSOR)
    }

    fn constant(&mut self, value: IValue) -> ValueId {
        let block = self.block;
        self.graph.edit().at(At::end(block)).constant(value)
    }

    fn straight(&mut self, nodes: usize) {
        let hub = self.tensor("aten::sigmoid", &[self.x]);
        let (mut a, mut b) = (self.x, self.x);
        for i in 0..nodes {
            let next = match i % 5 {
                0 => self.tensor("aten::relu", &[a]),
                1 => self.tensor("aten::mul.Tensor", &[a, b]),
                2 => self.tensor("aten::add.Tensor", &[a, b, self.one]),
                3 => self.tensor("aten::sub.Tensor", &[b, hub, self.one]),
                _ => self.tensor("aten::t", &[a]),
            };
            (a, b) = (next, a);
        }
        self.graph.edit().add_output(a);
    }

    fn viewing(&mut self, nodes: usize) {
        let mut a = self.tensor("aten::tanh", &[self.x]);
        for _ in 0..nodes / 2 {
            let view = self.tensor("aten::t", &[self.x]);
            a = self.tensor("aten::mul.Tensor", &[a, view]);
        }
        self.graph.edit().add_output(a);
    }

    /// Levels of five nodes: two that compute, a branch or loop, and the nodes for its results.
    fn nested(&mut self, nodes: usize) {
        let mut open: Vec<(BlockId, bool)> = Vec::new();
        let mut value = self.x;
        for level in 0..nodes / 5 {
            value = self.tensor("aten::relu", &[value]);
            let is_loop = level % 3 == 2;
            let block = self.block;
            let mut e = self.graph.edit();
            e.at(At::end(block));
            let node = if is_loop {
                e.node(Prim::Loop, &[self.one, self.condition, value], &[Type::TENSOR])
            } else {
                e.node(Prim::If, &[self.condition], &[Type::TENSOR])
            };
            let inner = e.add_block(node);
            if is_loop {
                e.add_block_input(inner, Type::INT);
                value = e.add_block_input(inner, Type::TENSOR);
            } else {
                let other = e.add_block(node);
                e.add_block_output(other, value);
            }
            open.push((block, is_loop));
            self.block = inner;
        }
        value = self.tensor("aten::tanh", &[value]);
        while let Some((outer, is_loop)) = open.pop() {
            let inner = self.block;
            let node = self.graph.owner(inner).expect("a nested block has an owner");
            let mut e = self.graph.edit();
            if is_loop {
                e.add_block_output(inner, self.condition);
            }
            e.add_block_output(inner, value);
            let result = e.graph().result(node, 0);
            self.block = outer;
            value = self.tensor("aten::mul.Tensor", &[result, self.x]);
        }
        self.graph.edit().add_output(value);
    }

    fn mutating(&mut self, nodes: usize) {
        let made: Vec<ValueId> = (0..nodes / 2).map(|_| self.tensor("aten::neg", &[self.x])).collect();
        for pair in made.windows(2) {
            self.tensor("aten::add_.Tensor", &[pair[1], pair[0], self.one]);
        }
        self.graph.edit().add_output(made[made.len() - 1]);
    }

    fn constants(&mut self, nodes: usize) {
        let (mut sum, mut tensor) = (self.one, self.x);
        for i in 0..nodes / 6 {
            let number = self.constant(IValue::Int(i as i64 % 97));
            let scale = self.constant(IValue::Float(i as f64));
            let total = self.call("aten::add.int", &[sum, number], Type::INT);
            let least = self.call("prim::min.int", &[total, self.one], Type::INT);
            let size = self.graph.edit().at(At::end(self.block)).value(
                Prim::ListConstruct,
                &[least, number],
                Type::list(Type::INT),
            );
            let length = self.call("aten::len.t", &[size], Type::INT);
            tensor = self.tensor("aten::mul.Scalar", &[tensor, scale]);
            sum = length;
        }
        let result = self.tensor("aten::mul.Scalar", &[tensor, sum]);
        self.graph.edit().add_output(result);
    }

    fn carrying(&mut self, nodes: usize) {
        let (outer, count) = (self.block, nodes / 2);
        let types = vec![Type::TENSOR; count];
        let mut operands = vec![self.one, self.condition];
        operands.resize(2 + count, self.x);
        let mut e = self.graph.edit();
        let repeated = e.at(At::end(outer)).node(Prim::Loop, &operands, &types);
        let body = e.add_block(repeated);
        e.add_block_input(body, Type::INT);
        let carried: Vec<ValueId> = types.iter().map(|&ty| e.add_block_input(body, ty)).collect();
        e.add_block_output(body, self.condition);
        self.ends(body, &carried);
        let results: Vec<ValueId> = self.graph.results(repeated).collect();
        let mut e = self.graph.edit();
        let chosen = e.at(At::end(outer)).node(Prim::If, &[self.condition], &types);
        let (one, other) = (e.add_block(chosen), e.add_block(chosen));
        self.ends(one, &results);
        results.iter().for_each(|&v| self.graph.edit().add_block_output(other, v));
        self.block = outer;
        for i in (0..count).step_by(10) {
            let result = self.graph.result(chosen, i);
            self.graph.edit().add_output(result);
        }
    }

    /// Fills a block that applies `relu` to each of these values and outputs the results.
    fn ends(&mut self, block: BlockId, values: &[ValueId]) {
        self.block = block;
        for &v in values {
            let end = self.tensor("aten::relu", &[v]);
            self.graph.edit().add_block_output(block, end);
        }
    }
}

/// Returns the processor time of this thread if the system provides it, else the elapsed time.
fn now(start: Instant) -> Duration {
    let of_thread = || {
        // The kernel updates the account of a running thread only when it schedules, or else at the next tick,
        // milliseconds later.
        std::thread::yield_now();
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
    };
    of_thread().unwrap_or_else(|| start.elapsed())
}

/// Returns the minimum time of `runs` runs, each on a new input.
pub fn fastest<P>(runs: usize, mut prepare: impl FnMut() -> P, mut run: impl FnMut(P)) -> Duration {
    let start = Instant::now();
    let times = (0..runs.max(1)).map(|_| {
        let input = prepare();
        let before = now(start);
        run(input);
        now(start).saturating_sub(before)
    });
    times.min().unwrap_or_default()
}

/// Returns the exponent `e` of growth `time ~ size^e` between two sizes.
pub fn exponent(small: (usize, Duration), large: (usize, Duration)) -> f64 {
    let ratio = |a: f64, b: f64| (b / a.max(1e-9)).ln();
    ratio(small.1.as_secs_f64(), large.1.as_secs_f64()) / ratio(small.0 as f64, large.0 as f64)
}
