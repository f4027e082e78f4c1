//! Growth of one program: its inputs, then steps that are tried and reverted on failure, then its results.

use super::OperatorPool;
use super::inputs::CaseProperties;
use crate::case::Case;
use crate::observe;
use flambeau_exec::{Gen, reference};
use flambeau_ir::module::Function;
use flambeau_ir::{BlockId, CompilationUnit, Graph, IValue, Symbol, Type, ValueId};
use flambeau_tensor::Tensor;
use std::sync::Arc;

/// Loop iterations and function calls that a program may use while it grows. The limit is lower than that of oracles,
/// so that a pass that makes a case slightly slower does not make it hit a limit.
const FUEL: u64 = 1_000;

/// A growing program.
pub(super) struct ProgramBuilder<'m, 'b> {
    pub(super) operators: &'m OperatorPool,
    pub(super) g: Gen<'b>,
    pub(super) graph: Graph,
    pub(super) unit: Arc<CompilationUnit>,
    pub(super) inputs: Vec<IValue>,
    pub(super) properties: CaseProperties,
    /// Number of steps so far.
    steps: usize,
    /// The number of steps after which generation stops, without a trial run of the last one; `None`: no bound.
    last: Option<usize>,
}

/// The values that a scope can use.
#[derive(Clone, Default)]
pub(super) struct ScopeValues(pub(super) Vec<ValueId>);

/// Generates a case; with `last`, returns the program after that many steps.
pub(super) fn make(operators: &OperatorPool, mut g: Gen<'_>, last: Option<usize>) -> Case {
    let properties = CaseProperties::draw(&mut g);
    let mut maker = ProgramBuilder {
        operators,
        g,
        graph: Graph::new(Arc::clone(&operators.registry)),
        unit: Arc::default(),
        inputs: Vec::new(),
        properties,
        steps: 0,
        last,
    };
    for i in 0..maker.g.below(3) {
        if let Some(case) = maker.function(i) {
            return case;
        }
    }
    maker.main();
    Case { graph: Arc::new(maker.graph), unit: maker.unit, inputs: maker.inputs }
}

impl ProgramBuilder<'_, '_> {
    fn main(&mut self) {
        let mut pool = ScopeValues::default();
        let least = if self.properties.shared { 2 } else { 1 };
        for _ in 0..least + self.g.below(4 - least) {
            self.add_tensor(&mut pool);
        }
        let small = self.g.int(0, 3);
        self.add_input(&mut pool, IValue::Int(small), Type::INT);
        if self.g.one_in(4) {
            let flag = self.g.flag();
            self.add_input(&mut pool, IValue::Bool(flag), Type::BOOL);
        }
        if self.g.one_in(4) {
            let x = self.g.int(-8, 8) as f64 / 4.0;
            self.add_input(&mut pool, IValue::Float(x), Type::FLOAT);
        }
        if self.g.one_in(4) {
            let (value, ty) = self.properties.container(&mut self.g, &tensors(&self.inputs));
            self.add_input(&mut pool, value, ty);
        }
        let steps = 3 + self.g.below(14);
        self.grow(&mut pool, steps);
        if self.g.one_in(8) && !self.is_last() {
            let root = self.graph.root();
            (0..1 + self.g.below(3)).for_each(|_| self.step(root, &mut pool, 0));
        }
        self.add_outputs(&pool);
    }

    /// Generates a function that takes two tensors and returns one value, for later functions and the program to call.
    /// If the last step is in the function, the function is the case.
    fn function(&mut self, i: usize) -> Option<Case> {
        let empty = Graph::new(Arc::clone(&self.operators.registry));
        let outer = std::mem::replace(&mut self.graph, empty);
        let mut pool = ScopeValues::default();
        self.add_tensor(&mut pool);
        self.add_tensor(&mut pool);
        // Its callers have other tensors.
        for v in pool.0.clone() {
            self.graph.edit().set_type(v, Type::TENSOR);
        }
        let steps = 2 + self.g.below(5);
        self.grow(&mut pool, steps);
        let result = pool.0.iter().rev().copied().find(|&v| self.graph.ty(v).is_tensor());
        if let Some(result) = result {
            self.graph.edit().add_output(result);
        }
        let graph = Arc::new(std::mem::replace(&mut self.graph, outer));
        let inputs = std::mem::take(&mut self.inputs);
        if self.is_last() {
            return Some(Case { graph, unit: self.unit.clone(), inputs });
        }
        // Samples may have added inputs, for which callers have no arguments.
        if inputs.len() == 2 && result.is_some() {
            let name = Symbol::new(&format!("__torch__.helper{i}"));
            Arc::make_mut(&mut self.unit).define_function(Function::of_graph(name, graph));
        }
        None
    }

    fn grow(&mut self, pool: &mut ScopeValues, steps: usize) {
        let root = self.graph.root();
        for _ in 0..steps {
            if self.is_last() {
                return;
            }
            self.steps += 1;
            let before = (self.graph.clone(), self.inputs.len(), pool.clone());
            self.step(root, pool, 0);
            if self.is_last() {
                return;
            }
            if !self.runs() {
                (self.graph, *pool) = (before.0, before.2);
                self.inputs.truncate(before.1);
            }
        }
    }

    fn is_last(&self) -> bool {
        self.last == Some(self.steps)
    }

    /// Returns whether the current program runs without an error.
    fn runs(&self) -> bool {
        let (graph, inputs) = (Arc::new(self.graph.clone()), self.inputs.clone());
        let case = Case { graph, unit: self.unit.clone(), inputs };
        let mut host = observe::host();
        host.set_fuel(FUEL);
        reference::run(&case.graph, case.fresh_inputs(), &*case.unit, &mut host).is_ok()
    }

    pub(super) fn add_input(&mut self, pool: &mut ScopeValues, value: IValue, ty: Type) {
        pool.0.push(self.graph.edit().add_input(ty));
        self.inputs.push(value);
    }

    fn add_tensor(&mut self, pool: &mut ScopeValues) {
        let (tensor, ty) = self.properties.tensor(&mut self.g, &tensors(&self.inputs));
        self.add_input(pool, IValue::Tensor(tensor), ty);
    }

    fn add_outputs(&mut self, pool: &ScopeValues) {
        for _ in 0..1 + self.g.below(3) {
            let at = pool.0.len() - 1 - self.g.below(pool.0.len().min(6));
            let value = pool.0[at];
            self.graph.edit().add_output(value);
        }
    }

    /// Adds one more step at the end of a block.
    pub(super) fn step(&mut self, block: BlockId, pool: &mut ScopeValues, depth: usize) {
        match self.g.below(24) {
            0 | 1 if depth < 2 => self.branch(block, pool, depth),
            2 | 3 if depth < 2 => self.repeat(block, pool, depth),
            4 => self.list(block, pool),
            5 => self.tuple(block, pool),
            6 => self.again(block, pool),
            7 => self.call(block, pool),
            8 => self.task(block, pool),
            9 => self.wait(block, pool),
            10 => self.print_or_raise(block, pool),
            11..=13 => self.snippet(block, pool),
            14 | 16 if depth == 0 => self.sampled(pool),
            15 => self.unpack(block, pool),
            _ => self.operator(block, pool),
        }
    }
}

/// Returns all tensors in values.
fn tensors(values: &[IValue]) -> Vec<Tensor> {
    let mut all = Vec::new();
    values.iter().for_each(|v| v.visit_tensors(|t| all.push(t.clone())));
    all
}
