//! Loops whose number of iterations is only known at run time: they become `while_loop`.
//!
//! A loop is unrolled as long as its condition is known. From the iteration on at which the condition is a symbolic number,
//! or if the maximum number of iterations is one, the loop becomes a `while_loop` of PyTorch. Its subgraphs take tensors:
//! those that each iteration passes to the next, and captured ones that stay the same. Passed are
//!
//! 1. the condition, unless it always holds, as a tensor of one truth value, so that the first subgraph only reads it;
//! 2. the number of the iteration, if the body uses it or the number of iterations has a maximum;
//! 3. the leaves ([`super::joined`]) of the variables that change, numbers as tensors without dimensions;
//! 4. the contents of memory from outside that the body writes.
//!
//! What changes is found by tracing the body: first it runs as if nothing changed, and again with everything found so far
//! until nothing is added. Each pass adds a variable or a storage, so the number of passes is bounded by their number. A
//! variable that stays the same in an iteration that starts from assumptions that hold in every iteration never changes.
//!
//! Then the loop runs on the example to its end, without recording, so that the program continues with values that it can have.

use super::branch::{Results, subgraph};
use super::joined::{Leaf, Leaves};
use super::record::{Recorder, must_run};
use super::scope::Scope;
use super::symbolic::{Symbolic, operand};
use super::tracer::{OpenBlockKind, Tracer};
use super::{Res, copied, refused};
use flambeau_exec::KernelError;
use flambeau_export::model::{Argument, NodeMetadata, TensorMeta};
use flambeau_ir::{Graph, IValue, NodeId};
use flambeau_tensor::{DType, Scalar, Tensor};
use std::sync::Arc;

/// The place that errors name.
const PLACE: &str = "a loop";

/// Maximum number of times that a body is traced to find the values that it changes.
const MAX_PASSES: usize = 64;

/// Maximum number of iterations that run on the example.
const MAX_ITERATIONS: usize = 1000;

/// Maximum total size in bytes of the variables of the iterations that run on the example, whose tensors the recorder keeps until the
/// program is made.
const MAX_BYTES: usize = 64 << 20;

/// A number of the program.
#[derive(Clone)]
pub(super) struct Number {
    pub(super) value: IValue,
    pub(super) symbol: Option<Symbolic>,
}

/// The inputs of a loop node, at the iteration from which on it is not unrolled.
pub(super) struct LoopEntry {
    pub(super) node: NodeId,
    pub(super) trip: i64,
    pub(super) limit: Number,
    pub(super) condition: Number,
    pub(super) carried: Vec<IValue>,
    pub(super) symbols: Vec<Option<Symbolic>>,
}

/// A loop whose body is traced or run.
pub(super) struct WhileLoop {
    node: NodeId,
    limit: Number,
    condition: Number,
    /// The iterations that are unrolled before the loop.
    first_trip: i64,
    counts: bool,
    entry: Vec<Leaves>,
    values: Vec<IValue>,
    symbols: Vec<Option<Symbolic>>,
    /// Whether each variable changes.
    changes: Vec<bool>,
    /// The memory from outside that the body writes, with the contents before the loop.
    roots: Vec<(Tensor, Tensor)>,
    passes: usize,
    /// The inputs of the body that an iteration passes: the number of the iteration and the leaves.
    inputs: Vec<Tensor>,
    /// The recorded body. Iterations that run after it are not recorded.
    body: Option<Body>,
    iterations: usize,
    /// Total size of the variables of these iterations in bytes.
    bytes: usize,
}

struct Body {
    scope: Scope,
    /// The outputs of the body, without the condition.
    outputs: Vec<Argument>,
    /// The next condition, unless it always holds.
    next: Option<Argument>,
    inputs: Vec<Tensor>,
}

impl WhileLoop {
    /// Returns the loop's node.
    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    fn runs(&self, condition: bool, trip: i64) -> bool {
        condition && self.limit.value.as_int().is_none_or(|limit| trip < limit)
    }
}

impl Tracer<'_> {
    /// Begins a loop that is not unrolled.
    pub(super) fn begin_while(&mut self, graph: &Arc<Graph>, entry: LoopEntry) -> Res<()> {
        let LoopEntry { node, trip, limit, condition, carried, symbols } = entry;
        if self.table.is_some() {
            self.refresh_all(&carried)?;
        }
        let symbol_at = |i: usize| symbols.get(i).and_then(Option::as_ref);
        let leaves = carried.iter().enumerate().map(|(i, value)| self.recorder.leaves(value, symbol_at(i)));
        let has_limit = limit.symbol.is_some() || limit.value.as_int() != Some(i64::MAX);
        let number = graph.block_inputs(graph.block(node, 0)).next();
        let counts = has_limit || number.is_some_and(|number| graph.use_count(number) > 0);
        let state = WhileLoop {
            node,
            limit,
            condition,
            first_trip: trip,
            counts,
            entry: leaves.collect(),
            changes: vec![false; carried.len()],
            values: carried,
            symbols,
            roots: Vec::new(),
            passes: 0,
            inputs: Vec::new(),
            body: None,
            iterations: 0,
            bytes: 0,
        };
        let values = state.values.clone();
        self.open_body(graph, Box::new(state), &values)
    }

    /// Opens the body for an iteration with these values of the variables.
    fn open_body(&mut self, graph: &Arc<Graph>, mut state: Box<WhileLoop>, values: &[IValue]) -> Res<()> {
        self.host.tick(1)?;
        let recorder = &mut self.recorder;
        recorder.open_scope()?;
        for (root, _) in &state.roots {
            recorder.iteration_memory(root)?;
        }
        state.inputs.clear();
        let trip = IValue::Int(state.first_trip.saturating_add(state.iterations as i64));
        let mut inputs = vec![trip.clone()];
        let mut symbols = vec![None];
        if state.counts {
            let leaf = Leaf { value: trip, symbol: None };
            symbols[0] = recorder.iteration_leaf(&leaf, &mut state.inputs)?.symbol;
        }
        for (i, value) in values.iter().enumerate() {
            if !state.changes[i] {
                inputs.push(value.clone());
                symbols.push(state.symbols.get(i).cloned().flatten());
                continue;
            }
            let mut leaves = recorder.leaves(value, None);
            for leaf in &mut leaves.items {
                *leaf = recorder.iteration_leaf(leaf, &mut state.inputs)?;
            }
            let none = vec![None; leaves.items.len()];
            let (value, symbol) = recorder.rebuilt(&leaves, &none)?;
            inputs.push(value);
            symbols.push(symbol);
        }
        let block = graph.block(state.node, 0);
        self.open(graph, block, inputs, &symbols, OpenBlockKind::While(state));
        Ok(())
    }

    /// Ends an iteration with these outputs: the next condition and the variables.
    pub(super) fn leave_body(
        &mut self,
        graph: &Arc<Graph>,
        mut state: Box<WhileLoop>,
        mut outputs: Vec<IValue>,
        mut symbols: Vec<Option<Symbolic>>,
    ) -> Res<()> {
        if self.table.is_some() {
            self.refresh_all(&outputs)?;
        }
        let next = Number { value: outputs.remove(0), symbol: symbols.remove(0) };
        if state.body.is_none() {
            if self.revise(&mut state, &outputs, &symbols)? {
                self.recorder.undo_writes()?;
                self.recorder.discard_scope();
                for i in 0..state.roots.len() {
                    // The memory has the content before the loop again.
                    state.roots[i].1 = copied(&state.roots[i].0)?;
                }
                let values = state.values.clone();
                return self.open_body(graph, state, &values);
            }
            state.body = Some(self.recorder.end_body(&state, &next, &outputs, &symbols)?);
            let is_entered = state.condition.value.as_bool() == Some(true);
            if !state.runs(is_entered, state.first_trip) {
                for (root, before) in &state.roots {
                    root.copy_(before).map_err(KernelError::from)?;
                }
                let values = state.values.clone();
                return self.end_while(graph, *state, &values);
            }
        } else {
            self.recorder.discard_scope();
        }
        state.iterations += 1;
        let trip = state.first_trip.saturating_add(state.iterations as i64);
        let goes_on = state.runs(next.value.as_bool() == Some(true), trip);
        for value in &outputs {
            value.visit_tensors(|tensor| state.bytes = state.bytes.saturating_add(tensor.storage().nbytes()));
        }
        match goes_on && state.iterations < MAX_ITERATIONS && state.bytes < MAX_BYTES {
            true => self.open_body(graph, state, &outputs),
            false => self.end_while(graph, *state, &outputs),
        }
    }

    /// Adds the variables and the memory that an iteration has changed; returns whether there are new ones.
    fn revise(
        &mut self,
        state: &mut WhileLoop,
        outputs: &[IValue],
        symbols: &[Option<Symbolic>],
    ) -> Res<bool> {
        let before = (state.changes.iter().filter(|&&changes| changes).count(), state.roots.len());
        let mut is_set = false;
        for (i, value) in outputs.iter().enumerate() {
            let leaves = self.recorder.leaves(value, symbols.get(i).and_then(Option::as_ref));
            let (old, new) = Leaves::aligned(&state.entry[i], &leaves, PLACE)?;
            let is_same = old.items.iter().zip(&new.items).all(|(a, b)| a.is_same(b));
            if !is_same && old.items.iter().any(|leaf| matches!(leaf.value, IValue::Uninitialized)) {
                is_set = true;
                state.entry[i] = self.recorder.initialized(&old, &new)?;
                let none = vec![None; new.items.len()];
                (state.values[i], _) = self.recorder.rebuilt(&state.entry[i].clone(), &none)?;
            }
            state.changes[i] |= !is_same;
        }
        for written in &self.recorder.scope().written {
            if !state.roots.iter().any(|(root, _)| root.id() == written.root.id()) {
                state.roots.push((written.root.clone(), written.before.clone()));
            }
        }
        state.passes += 1;
        if state.passes > MAX_PASSES {
            return Err(refused(format!(
                "{PLACE} whose number of iterations is only known at run time changes something else in each of {MAX_PASSES} iterations"
            )));
        }
        let after = (state.changes.iter().filter(|&&changes| changes).count(), state.roots.len());
        Ok(is_set || before != after)
    }

    /// Records the loop; its results have the values of the variables after the run on the example.
    fn end_while(&mut self, graph: &Arc<Graph>, mut state: WhileLoop, values: &[IValue]) -> Res<()> {
        let node = state.node;
        let mut written = Vec::with_capacity(state.roots.len());
        for (root, before) in &state.roots {
            let content = copied(root)?;
            self.recorder.give_sizes(root, &content);
            root.copy_(before).map_err(KernelError::from)?;
            written.push((root.clone(), content));
        }
        let metadata = self.metadata();
        let body = state.body.take().ok_or_else(|| KernelError::internal("a loop without a body"))?;
        let mut results = self.recorder.while_node(&state, body, values, &written, metadata)?;
        for (root, content) in std::mem::take(&mut results.written) {
            self.assign("while_loop", &root, &content)?;
        }
        self.set(graph, node, results.values, &results.symbols)
    }
}

impl Recorder {
    /// Makes a leaf an input that each iteration passes, and returns it as the body has it.
    fn iteration_leaf(&mut self, leaf: &Leaf, inputs: &mut Vec<Tensor>) -> Res<Leaf> {
        if matches!(leaf.value, IValue::Uninitialized) {
            return Ok(leaf.clone());
        }
        let like = self.leaf_tensor(leaf)?;
        let own = self.iteration_input(&like, inputs.len())?;
        inputs.push(own.clone());
        Ok(match leaf.tensor() {
            Some(_) => Leaf { value: IValue::Tensor(own), symbol: None },
            None => Leaf { value: leaf.value.clone(), symbol: Some(self.item(&own, &leaf.value)?) },
        })
    }

    /// Returns leaves with zeros in place of those that are uninitialized, with the sizes of other leaves. The zeros are
    /// recorded in the scope around the innermost one.
    fn initialized(&mut self, leaves: &Leaves, like: &Leaves) -> Res<Leaves> {
        let mut made = leaves.clone();
        let inner = self.close_scope();
        for (leaf, like) in made.items.iter_mut().zip(&like.items) {
            if matches!(leaf.value, IValue::Uninitialized) && !matches!(like.value, IValue::Uninitialized) {
                leaf.joined(like, PLACE)?;
                leaf.value = match like.value {
                    IValue::Tensor(_) => IValue::Tensor(self.zeros(like)?),
                    IValue::Float(_) => IValue::Float(0.0),
                    IValue::Bool(_) => IValue::Bool(false),
                    _ => IValue::Int(0),
                };
            }
        }
        self.scopes.push(inner);
        Ok(made)
    }

    /// Ends the scope of the body.
    fn end_body(
        &mut self,
        state: &WhileLoop,
        next: &Number,
        outputs: &[IValue],
        symbols: &[Option<Symbolic>],
    ) -> Res<Body> {
        let mut made = Vec::new();
        let always = next.symbol.is_none() && next.value.as_bool() == Some(true);
        let is_entered = state.condition.symbol.is_none() && state.condition.value.as_bool() == Some(true);
        let next = match always && is_entered {
            true => None,
            false => {
                let leaf = Leaf { value: next.value.clone(), symbol: next.symbol.clone() };
                Some(self.leaf_output(&leaf, &leaf)?)
            }
        };
        let mut inputs = state.inputs.iter();
        if state.counts {
            let first =
                inputs.next().ok_or_else(|| KernelError::internal("an iteration without a number"))?;
            made.push(self.incremented(first)?);
        }
        for (i, value) in outputs.iter().enumerate().filter(|&(i, _)| state.changes[i]) {
            let leaves = self.leaves(value, symbols.get(i).and_then(Option::as_ref));
            let (old, new) = Leaves::aligned(&state.entry[i], &leaves, PLACE)?;
            for (a, b) in old.items.iter().zip(&new.items) {
                let like = a.joined(b, PLACE)?.clone();
                let input = match a.value {
                    IValue::Uninitialized => None,
                    _ => inputs.next(),
                };
                if let (Some(input), Some(tensor)) = (input, b.tensor())
                    && self.sizes.of(input) != self.sizes.of(tensor)
                {
                    return Err(refused(format!(
                        "{PLACE} whose number of iterations is only known at run time changes the sizes of a tensor"
                    )));
                }
                made.push(self.leaf_output(b, &like)?);
            }
        }
        for (root, _) in &state.roots {
            made.push(self.owned(root)?);
        }
        Ok(Body { scope: self.close_scope(), outputs: made, next, inputs: state.inputs.clone() })
    }

    /// Records the number of the next iteration.
    fn incremented(&mut self, number: &Tensor) -> Res<Argument> {
        let made = Tensor::full(&[], Scalar::Int(0), DType::I64).map_err(KernelError::from)?;
        let name = self.name_of(number)?;
        let inputs = vec![operand("self", Argument::Tensor(name)), operand("other", Argument::Int(1))];
        Ok(Argument::Tensor(self.call("aten::add.Scalar", inputs, &made)?))
    }

    /// Appends the node of a loop in the innermost scope.
    fn while_node(
        &mut self,
        state: &WhileLoop,
        body: Body,
        values: &[IValue],
        written: &[(Tensor, Tensor)],
        metadata: NodeMetadata,
    ) -> Res<Results> {
        let Body { mut scope, mut outputs, next, mut inputs } = body;
        // The tensors that enter the loop, and the results.
        let mut entering = Vec::new();
        let mut tensors = Vec::new();
        if let Some(next) = &next {
            outputs.insert(0, next.clone());
            let condition = self.number_tensor(&state.condition.value, state.condition.symbol.as_ref())?;
            let own = self.within(&mut scope, |this| this.iteration_input(&condition, outputs.len()))?;
            inputs.insert(0, own);
            tensors.push(copied(&condition)?);
            entering.push(condition);
        }
        if state.counts {
            let trip = self.number_tensor(&IValue::Int(state.first_trip), None)?;
            tensors.push(copied(&trip)?);
            entering.push(trip);
        }
        let mut places: Vec<Vec<Option<Tensor>>> = Vec::with_capacity(values.len());
        let mut all = Vec::with_capacity(values.len());
        for (i, value) in values.iter().enumerate() {
            let symbol = state.symbols.get(i).and_then(Option::as_ref);
            let leaves = self.leaves(value, symbol.filter(|_| !state.changes[i]));
            let mut own = Vec::with_capacity(leaves.items.len());
            for (leaf, entry) in leaves.items.iter().zip(&state.entry[i].items) {
                if !state.changes[i] {
                    own.push(None);
                    continue;
                }
                let result = self.leaf_tensor(leaf)?;
                if let Some(tensor) = entry.tensor() {
                    self.give_sizes(tensor, &result);
                }
                entering.push(match entry.tensor() {
                    Some(tensor) => tensor.clone(),
                    None => self.number_tensor(&entry.value, entry.symbol.as_ref())?,
                });
                tensors.push(result.clone());
                own.push(Some(result));
            }
            places.push(own);
            all.push(leaves);
        }
        for (root, content) in written {
            entering.push(root.clone());
            tensors.push(content.clone());
            inputs.push(root.clone());
        }
        let registry = self.registry().clone();
        scope.builder.graph.outputs = outputs;
        scope.builder.remove_unused(|node| must_run(&registry, node));
        scope.forget_unused_inputs();
        let is_root = |tensor: &Tensor| written.iter().any(|(root, _)| root.id() == tensor.id());
        scope.captured.retain(|tensor| !is_root(tensor));
        let limit = match state.limit.symbol.as_ref() {
            Some(symbol) => Some(self.number_tensor(&state.limit.value, Some(symbol))?),
            None => None,
        };
        let mut captured = self.described(&[&scope])?;
        if let Some(limit) =
            limit.as_ref().filter(|limit| !captured.iter().any(|(own, _)| own.id() == limit.id()))
        {
            captured.push((limit.clone(), self.meta(limit)?));
        }
        let mut passed = Vec::with_capacity(inputs.len());
        for input in inputs {
            let meta = TensorMeta { requires_grad: false, ..self.meta(&input)? };
            passed.push((input, meta));
        }
        let condition = self.condition_graph(state, next.is_some(), limit.as_ref(), &passed, &captured)?;
        scope.arrange(&[passed, captured.clone()].concat());
        let number = self.subgraph_number();
        let names = entering.iter().map(|tensor| self.name_of(tensor));
        let carried = Argument::Tensors(names.collect::<Res<_>>()?);
        let args = vec![
            subgraph(format!("while_loop_cond_graph_{number}"), condition),
            subgraph(format!("while_loop_body_graph_{number}"), scope),
            carried,
            self.operand_list(&captured)?,
        ];
        self.higher_order("while_loop", args, &tensors, metadata)?;
        let mut results = Results { written: written.to_vec(), ..Results::default() };
        for (leaves, own) in all.iter().zip(&places) {
            let result = self.rebuilt(leaves, own)?;
            results.push(result);
        }
        Ok(results)
    }

    /// Builds the graph that tests whether the loop goes on.
    fn condition_graph(
        &mut self,
        state: &WhileLoop,
        has_condition: bool,
        limit: Option<&Tensor>,
        passed: &[(Tensor, TensorMeta)],
        captured: &[(Tensor, TensorMeta)],
    ) -> Res<Scope> {
        self.open_scope()?;
        let operands = [passed, captured].concat();
        for (number, (tensor, _)) in operands.iter().enumerate() {
            self.subgraph_input(tensor, &format!("arg{number}_1"))?;
        }
        let truth = || Tensor::full(&[], Scalar::Bool(true), DType::Bool).map_err(KernelError::from);
        let mut tests = Vec::new();
        if has_condition {
            tests.push(self.owned(&passed[0].0)?);
        }
        let trip = &passed[usize::from(has_condition)].0;
        if state.counts && (limit.is_some() || state.limit.value.as_int() != Some(i64::MAX)) {
            let name = Argument::Tensor(self.name_of(trip)?);
            let (op, other) = match limit {
                Some(limit) => ("aten::lt.Tensor", Argument::Tensor(self.name_of(limit)?)),
                None => {
                    let limit = state.limit.value.as_int().unwrap_or(i64::MAX);
                    ("aten::lt.Scalar", Argument::Int(limit))
                }
            };
            let inputs = vec![operand("self", name), operand("other", other)];
            tests.push(Argument::Tensor(self.call(op, inputs, &truth()?)?));
        }
        let output = match &tests[..] {
            [] => {
                let made = truth()?;
                self.full(&made, Argument::Bool(true))?;
                Argument::Tensor(self.name_of(&made)?)
            }
            [only] => only.clone(),
            [first, second, ..] => {
                let inputs = vec![operand("self", first.clone()), operand("other", second.clone())];
                Argument::Tensor(self.call("aten::logical_and", inputs, &truth()?)?)
            }
        };
        let mut scope = self.close_scope();
        scope.builder.graph.outputs = vec![output];
        scope.builder.graph.is_single_tensor_return = true;
        scope.arrange(&operands);
        Ok(scope)
    }
}
