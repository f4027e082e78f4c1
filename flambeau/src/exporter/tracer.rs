//! The tracing interpreter: it runs the program on the example inputs and records calls of operators.
//!
//! Frames and open blocks are organized as in `flambeau_exec::reference`. In addition a register may hold a symbolic
//! number ([`Symbolic`]), and operators on tensors are recorded. Frames and blocks are on explicit stacks.

use super::branch::{Side, attribute_name, raised};
use super::classes::{OpClass, READS_ANY, SizeQuery, class_of};
use super::functional::short;
use super::record::Recorder;
use super::source_lines::SourceLines;
use super::symbolic::Symbolic;
use super::table::DecompositionTable;
use super::while_loop::{LoopEntry, Number, WhileLoop};
use super::{Res, Stop, refused};
use crate::error::Error;
use flambeau_exec::{ExecError, Host, KernelError, is_control, one_value, resolve, run_node};
use flambeau_export::build::target_of;
use flambeau_export::model::{Argument, NamedArgument, NodeMetadata};
use flambeau_ir::schema::FunctionSchema;
use flambeau_ir::value::Future;
use flambeau_ir::{
    BlockId, CompilationUnit, Graph, IValue, NodeId, OpId, OpKind, Prim, Registry, ScalarOverload, Symbol,
    Type, ValueId, ValueMap,
};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// The destination of a frame's results.
pub(super) enum ReturnTarget {
    /// The results of the calling node.
    Results(NodeId),
    /// A future, which is the result of the node.
    Future(NodeId),
    /// The results of the run.
    Done,
}

/// An open block.
struct ActiveBlock {
    next: NodeId,
    kind: OpenBlockKind,
}

pub(super) enum OpenBlockKind {
    Root,
    /// A block that runs once; its outputs are the node's results.
    Once(NodeId),
    Loop {
        node: NodeId,
        trip: i64,
        max: i64,
    },
    /// A block of a branch on a symbolic condition.
    Branch {
        node: NodeId,
        condition: Box<Symbolic>,
        /// The first block, if this is the second one.
        first: Option<Box<Side>>,
    },
    /// The body of a loop that is not unrolled.
    While(Box<WhileLoop>),
}

struct Frame {
    graph: Arc<Graph>,
    function: Symbol,
    env: ValueMap<IValue>,
    symbols: HashMap<ValueId, Symbolic, FxBuildHasher>,
    blocks: Vec<ActiveBlock>,
    after: ReturnTarget,
    at: Option<NodeId>,
    /// Whether the call of a module began with this frame.
    is_module: bool,
}

/// The run of a program.
pub(super) struct Tracer<'w> {
    pub(super) callees: &'w CompilationUnit,
    pub(super) host: &'w mut Host,
    pub(super) recorder: Recorder,
    frames: Vec<Frame>,
    /// The modules whose calls are active: path and class.
    modules: Vec<(String, String)>,
    classes: HashMap<OpId, OpClass, FxBuildHasher>,
    source_lines: SourceLines,
    /// The table of decompositions. With one, writes are made functional.
    pub(super) table: Option<&'w DecompositionTable>,
    /// The operators whose decompositions are active. A call of one of them inside is not decomposed again.
    pub(super) active: Vec<OpId>,
    /// The number of active functions of the table.
    pub(super) nesting: usize,
    /// The dtype of the region of automatic mixed precision.
    pub(super) autocast: Option<i64>,
    /// The metadata of new nodes (`stack_trace`, `nn_module_stack`) if it does not come from the active frames.
    pub(super) given_metadata: Option<NodeMetadata>,
    /// The result of the run, if it is a symbolic number.
    pub(super) result_symbol: Option<Symbolic>,
}

/// Maximum number of active calls in the `stack_trace` of a node, the innermost ones.
const MAX_FRAMES: usize = 16;

impl<'w> Tracer<'w> {
    pub(super) fn new(
        callees: &'w CompilationUnit,
        host: &'w mut Host,
        recorder: Recorder,
        table: Option<&'w DecompositionTable>,
    ) -> Tracer<'w> {
        Tracer {
            callees,
            host,
            recorder,
            frames: Vec::new(),
            modules: Vec::new(),
            classes: HashMap::default(),
            source_lines: SourceLines::default(),
            table,
            active: Vec::new(),
            nesting: 0,
            autocast: None,
            given_metadata: None,
            result_symbol: None,
        }
    }

    pub(super) fn into_recorder(self) -> Recorder {
        self.recorder
    }

    /// Runs a graph and returns its result.
    pub(super) fn run(
        &mut self,
        graph: &Arc<Graph>,
        function: Symbol,
        args: Vec<IValue>,
    ) -> Result<IValue, Error> {
        let budget = self.host.budget().cloned();
        let done = match budget {
            Some(budget) => budget.run(|| self.begin(graph, function, args)),
            None => self.begin(graph, function, args),
        };
        match done {
            Ok(results) => Ok(one_value(results.into_iter())),
            Err(stop) => {
                let mut trace = ExecError::of(&KernelError::internal(""));
                for frame in self.frames.drain(..).rev() {
                    if let Some(node) = frame.at {
                        let (graph, function) = (&frame.graph, frame.function);
                        trace.push_outer(function, graph.op_name(node), graph.locs(), graph.loc(node));
                    }
                }
                Err(stop.located(trace))
            }
        }
    }

    fn begin(&mut self, graph: &Arc<Graph>, function: Symbol, args: Vec<IValue>) -> Res<Vec<IValue>> {
        self.enter_module(&args, "forward");
        self.push(Arc::clone(graph), function, args, &[], ReturnTarget::Done)?;
        loop {
            if let Some(results) = self.step()? {
                return Ok(results);
            }
        }
    }

    /// Enters a module if the method is its `forward`; returns whether it is.
    fn enter_module(&mut self, args: &[IValue], method: &str) -> bool {
        let Some(IValue::Object(object)) = args.first().filter(|_| method == "forward") else { return false };
        let Some(module) = self.recorder.module(object) else { return false };
        self.recorder.called(&module.0);
        self.modules.push(module);
        true
    }

    pub(super) fn push(
        &mut self,
        graph: Arc<Graph>,
        function: Symbol,
        args: Vec<IValue>,
        symbols: &[Option<Symbolic>],
        after: ReturnTarget,
    ) -> Res<()> {
        self.host.tick(1)?;
        if self.frames.len() >= self.host.max_depth() {
            return Err(KernelError::limit("too many nested calls").into());
        }
        if graph.inputs().len() != args.len() {
            let (wanted, found) = (graph.inputs().len(), args.len());
            return Err(
                KernelError::input(format!("expected {wanted} arguments but {found} were given")).into()
            );
        }
        let mut env = ValueMap::for_values(&graph, IValue::None);
        let mut own = HashMap::default();
        for (i, (input, arg)) in graph.inputs().zip(args).enumerate() {
            env[input] = arg;
            if let Some(Some(symbol)) = symbols.get(i) {
                own.insert(input, symbol.clone());
            }
        }
        let blocks = vec![ActiveBlock { next: first(&graph, graph.root()), kind: OpenBlockKind::Root }];
        let (at, is_module) = (None, false);
        self.frames.push(Frame { graph, function, env, symbols: own, blocks, after, at, is_module });
        Ok(())
    }

    fn top(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("invariant: a run has a frame")
    }

    /// Runs one node or ends one block.
    pub(super) fn step(&mut self) -> Res<Option<Vec<IValue>>> {
        let frame = self.top();
        let open = frame.blocks.last_mut().expect("invariant: a frame has an open block");
        let node = open.next;
        if frame.graph.is_prim(node, Prim::Return) {
            return self.leave(node);
        }
        open.next = frame.graph.next(node).expect("invariant: a block ends in prim::Return");
        frame.at = Some(node);
        let graph = Arc::clone(&frame.graph);
        let args: Vec<IValue> = graph.operands(node).map(|v| frame.env[v].clone()).collect();
        let symbols: Vec<Option<Symbolic>> = match frame.symbols.is_empty() {
            true => Vec::new(),
            false => graph.operands(node).map(|v| frame.symbols.get(&v).cloned()).collect(),
        };
        match graph.op(node).kind() {
            OpKind::Prim(prim) if is_control(prim) => self.control(&graph, node, prim, args, &symbols)?,
            OpKind::Prim(prim) => self.structural(&graph, node, prim, args, &symbols)?,
            OpKind::Row(op) => self.operator(&graph, node, op, args, symbols)?,
            OpKind::Unknown(_) => drop(run_node(&graph, node, args, self.callees, self.host)?),
        }
        Ok(None)
    }

    /// Runs a structural operator without control flow.
    fn structural(
        &mut self,
        graph: &Graph,
        node: NodeId,
        prim: Prim,
        args: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<()> {
        let is_symbolic = symbols.iter().any(Option::is_some);
        match prim {
            // Printed text is not part of the graph.
            Prim::Print => return self.set(graph, node, Vec::new(), &[]),
            Prim::UncheckedCast | Prim::UncheckedUnwrapOptional | Prim::Annotate => {
                return self.set(graph, node, args, symbols);
            }
            Prim::SetAttr if is_symbolic => {
                return Err(refused("an attribute is set to a number that is only known at run time"));
            }
            // `self.x += y` on a tensor sets the attribute to the tensor that it has.
            Prim::SetAttr if is_set_to(self.callees, graph, node, &args) => {
                return self.set(graph, node, Vec::new(), &[]);
            }
            Prim::SetAttr => {
                let what = format!("the attribute `{}` of an object", attribute_name(graph, node));
                self.recorder.check_change("prim::SetAttr", &what, &args[0])?;
            }
            Prim::ToList if args.iter().any(|value| self.varies(value)) => {
                return Err(refused("`tolist` reads a tensor that depends on the arguments of the call"));
            }
            Prim::TupleConstruct | Prim::ListConstruct => {
                let results = run_node(graph, node, args, self.callees, self.host)?;
                self.recorder.made(&results);
                if is_symbolic {
                    self.recorder.set_symbols(&results[0], symbols.to_vec());
                }
                return self.set(graph, node, results, &[]);
            }
            _ if is_symbolic => return Err(needs_value(prim.name())),
            _ => {}
        }
        let container = args.first().cloned();
        let index = args.get(1).and_then(IValue::as_int);
        let results = run_node(graph, node, args, self.callees, self.host)?;
        if prim == Prim::Constant
            && let [IValue::Tensor(tensor)] = &results[..]
        {
            self.recorder.literal(tensor);
        }
        if !matches!(prim, Prim::GetAttr | Prim::Constant) {
            self.recorder.made(&results);
        }
        let known = container.as_ref().and_then(|value| self.recorder.symbols_of(value)).cloned();
        match (prim, known) {
            (_, None) => self.set(graph, node, results, &[]),
            (Prim::TupleUnpack | Prim::ListUnpack, Some(symbols)) => self.set(graph, node, results, &symbols),
            (Prim::TupleIndex, Some(symbols)) => {
                let index = index.map(|index| if index < 0 { index + symbols.len() as i64 } else { index });
                let symbol = index.and_then(|index| symbols.get(usize::try_from(index).ok()?).cloned());
                self.set(graph, node, results, &[symbol.flatten()])
            }
            (prim, Some(_)) => Err(needs_value(prim.name())),
        }
    }

    /// Runs an operator, and records it if it computes tensors.
    fn operator(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: OpId,
        args: Vec<IValue>,
        symbols: Vec<Option<Symbolic>>,
    ) -> Res<()> {
        let registry = Arc::clone(self.recorder.registry());
        let schema = registry.schema(op);
        let class = match self.classes.get(&op) {
            Some(class) => *class,
            None => {
                let class = class_of(schema, registry.effects(op));
                self.classes.insert(op, class);
                class
            }
        };
        let varies = || args.iter().any(|value| self.varies(value));
        match class {
            OpClass::Effect => {
                return Err(refused(format!(
                    "`{}` has an effect that a graph cannot have",
                    schema.full_name()
                )));
            }
            OpClass::Record => return self.record(graph, node, op, args, &symbols),
            OpClass::ReadElement if varies() => return self.read(graph, node, args),
            OpClass::Read if varies() => {
                return Err(refused(format!(
                    "`{}` reads a tensor that depends on the arguments of the call",
                    schema.full_name()
                )));
            }
            _ => {}
        }
        if let Some(IValue::Tensor(tensor)) = args.first()
            && self.recorder.sizes.of(tensor).is_some()
            && let Some(asked) = SizeQuery::of(schema)
        {
            let tensor = tensor.clone();
            return self.sizes(graph, node, asked, &tensor, args, &symbols);
        }
        // An operator on type variables moves elements between containers without reading them, so symbols move with them.
        let is_generic =
            schema.args.iter().any(|arg| arg.ty.has_vars()) && !READS_ANY.contains(&schema.name.as_str());
        let is_check = schema.returns.is_empty() && !schema.args.iter().any(|arg| arg.is_write());
        if symbols.iter().any(Option::is_some) && is_check {
            return self.record(graph, node, op, args, &symbols);
        }
        if symbols.iter().any(Option::is_some) && !is_generic {
            return self.number(graph, node, op, schema, args, &symbols);
        }
        for (value, arg) in args.iter().zip(&schema.args) {
            if arg.is_write() {
                let what = described(graph, node, value);
                self.recorder.check_change(&schema.full_name(), &what, value)?;
            }
        }
        if symbols.iter().any(Option::is_some)
            || args.iter().any(|value| self.recorder.symbols_of(value).is_some())
        {
            return match is_generic {
                true => self.moved(graph, node, schema, args, &symbols),
                false => Err(needs_value(&schema.full_name())),
            };
        }
        let results = run_node(graph, node, args, self.callees, self.host)?;
        self.recorder.made(&results);
        self.set(graph, node, results, &[])
    }

    /// Runs an operator on tensors and records it.
    fn record(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: OpId,
        args: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<()> {
        let mut all = args;
        all.extend(resolve::defaults(graph, node)?);
        let results = self.call_operator(op, all, symbols)?;
        self.set(graph, node, results, &[])
    }

    /// Calls an operator on all of its operands.
    pub(super) fn call_operator(
        &mut self,
        op: OpId,
        operands: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<Vec<IValue>> {
        let registry = Arc::clone(self.recorder.registry());
        let schema = registry.schema(op);
        let name = schema.full_name();
        let mut checked = Ok(());
        for (value, _) in operands.iter().zip(&schema.args).filter(|(_, arg)| arg.is_write()) {
            value.visit_tensors(|tensor| {
                if checked.is_ok() {
                    checked = self.recorder.check_write(&name, tensor);
                }
            });
            self.recorder.check_change(&name, kind_of_container(value), value)?;
        }
        checked?;
        match self.table {
            Some(_) => self.functional(op, operands, symbols),
            None => self.emit(op, schema, operands, symbols),
        }
    }

    /// Runs the kernel of an operator and appends a node.
    pub(super) fn emit(
        &mut self,
        op: OpId,
        schema: &FunctionSchema,
        operands: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<Vec<IValue>> {
        let registry = Arc::clone(self.recorder.registry());
        let stated = registry.schema(stated_operator(&registry, op));
        let inputs = self.recorder.arguments(stated, &operands, symbols)?;
        let results = self.kernel(op, schema, &operands)?;
        self.recorder.made(&results);
        let effects = self.recorder.registry().effects(op);
        self.recorder.infer(op, &operands, symbols, &results)?;
        let (own, outputs) = self.recorder.results(short(schema), effects, &operands, &results)?;
        self.append(own, stated, inputs, outputs);
        Ok(results)
    }

    /// Appends a node to the innermost graph.
    pub(super) fn append(
        &mut self,
        name: Option<String>,
        schema: &FunctionSchema,
        inputs: Vec<NamedArgument>,
        outputs: Vec<Argument>,
    ) {
        let metadata = self.metadata();
        self.recorder.scope().builder.node(name, &target_of(schema), inputs, outputs, metadata);
    }

    /// Returns the metadata of a node: the active calls with their source lines, and the active modules.
    pub(super) fn metadata(&mut self) -> NodeMetadata {
        if let Some(metadata) = &self.given_metadata {
            return metadata.clone();
        }
        let mut made = NodeMetadata::default();
        let metadata = Arc::make_mut(&mut made);
        let mut trace = ExecError::of(&KernelError::internal(""));
        for frame in self.frames.iter().rev().take(MAX_FRAMES) {
            if let Some(at) = frame.at {
                trace.push_outer(frame.function, Symbol::EMPTY, frame.graph.locs(), frame.graph.loc(at));
            }
        }
        let mut stack = String::new();
        for entry in &trace.trace {
            let Some(range) = &entry.range else { continue };
            let function = entry.function.as_str().rsplit('.').next().unwrap_or_default();
            stack.push_str(&self.source_lines.of(range).entry(function));
        }
        if !stack.is_empty() {
            metadata.insert("stack_trace".into(), stack.into());
        }
        if !self.modules.is_empty() {
            let entries = self.modules.iter().map(|(path, class)| {
                let key =
                    if path.is_empty() { String::new() } else { format!("_{}", path.replace('.', "_")) };
                format!("L__self__{key},{path},{class}")
            });
            metadata.insert("nn_module_stack".into(), entries.collect::<Vec<_>>().join(";").into());
        }
        made
    }

    fn varies(&self, value: &IValue) -> bool {
        let mut varies = false;
        value.visit_tensors(|tensor| varies |= self.recorder.varies(tensor));
        varies
    }

    /// Sets the results of a node.
    pub(super) fn set(
        &mut self,
        graph: &Graph,
        node: NodeId,
        values: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<()> {
        if graph.result_count(node) != values.len() {
            let (name, n) = (graph.op_name(node), values.len());
            let wanted = graph.result_count(node);
            return Err(
                KernelError::internal(format!("`{name}` returned {n} results; expected {wanted}")).into()
            );
        }
        let frame = self.top();
        for (i, (result, value)) in graph.results(node).zip(values).enumerate() {
            frame.env[result] = value;
            match symbols.get(i).cloned().flatten() {
                Some(symbol) => drop(frame.symbols.insert(result, symbol)),
                None => drop(frame.symbols.remove(&result)),
            }
        }
        Ok(())
    }

    pub(super) fn open(
        &mut self,
        graph: &Graph,
        block: BlockId,
        inputs: Vec<IValue>,
        symbols: &[Option<Symbolic>],
        kind: OpenBlockKind,
    ) {
        let frame = self.top();
        for (i, (input, value)) in graph.block_inputs(block).zip(inputs).enumerate() {
            frame.env[input] = value;
            match symbols.get(i).cloned().flatten() {
                Some(symbol) => drop(frame.symbols.insert(input, symbol)),
                None => drop(frame.symbols.remove(&input)),
            }
        }
        frame.blocks.push(ActiveBlock { next: first(graph, block), kind });
    }

    fn control(
        &mut self,
        graph: &Arc<Graph>,
        node: NodeId,
        prim: Prim,
        mut args: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<()> {
        match prim {
            Prim::If => match symbols.first().cloned().flatten() {
                Some(condition) => self.branch(graph, node, condition),
                None => {
                    let block = graph.block(node, usize::from(!truth(&args[0])?));
                    self.open(graph, block, Vec::new(), &[], OpenBlockKind::Once(node));
                    Ok(())
                }
            },
            Prim::Loop => {
                let (max, cond) = (int(&args[0])?, truth(&args[1])?);
                let carried = args.split_off(2);
                let own = symbols.get(2..).unwrap_or(&[]);
                let symbol_at = |i: usize| symbols.get(i).cloned().flatten();
                let condition = self.varying_condition(symbol_at(1));
                if symbol_at(0).is_none() && condition.is_none() {
                    return self.iterate(graph, node, 0, (max, cond), carried, own);
                }
                let limit = Number { value: IValue::Int(max), symbol: symbol_at(0) };
                let condition = Number { value: IValue::Bool(cond), symbol: condition };
                let symbols = own.to_vec();
                self.begin_while(graph, LoopEntry { node, trip: 0, limit, condition, carried, symbols })
            }
            Prim::CallFunction => {
                let name = resolve::callee(graph, node)?;
                args.remove(0);
                self.call(name, args, symbols.get(1..).unwrap_or(&[]), node, false)
            }
            Prim::CallMethod => {
                let is_module = self.enter_module(&args, attribute_name(graph, node));
                let function = resolve::method(self.callees, &args, resolve::name_attr(graph, node)?)?;
                self.call(function, args, symbols, node, is_module)
            }
            Prim::Fork => {
                let body = resolve::subgraph(graph, node)?;
                let function = self.top().function;
                self.push(body, function, args, symbols, ReturnTarget::Future(node))
            }
            other => Err(refused(format!("`{}` cannot be part of an exported program", other.name()))),
        }
    }

    fn call(
        &mut self,
        function: Symbol,
        args: Vec<IValue>,
        symbols: &[Option<Symbolic>],
        node: NodeId,
        is_module: bool,
    ) -> Res<()> {
        let graph = flambeau_exec::Callees::function(self.callees, function)?;
        let graph = graph.ok_or_else(|| KernelError::input(format!("unknown function '{function}'")))?;
        self.push(graph, function, args, symbols, ReturnTarget::Results(node))?;
        self.top().is_module = is_module;
        Ok(())
    }

    /// Begins a branch on a symbolic condition. If one block only raises, an assertion is recorded and the other block runs.
    fn branch(&mut self, graph: &Arc<Graph>, node: NodeId, condition: Symbolic) -> Res<()> {
        let known = self.recorder.narrowings.len();
        let answer = self.recorder.answer(&condition)?;
        if self.recorder.narrowings.len() > known {
            let trace = self.metadata().get("stack_trace").map(|trace| trace.to_string());
            self.recorder.narrowings[known..].iter_mut().for_each(|found| found.trace.clone_from(&trace));
        }
        if let Some(holds) = answer {
            let block = graph.block(node, usize::from(!holds));
            self.open(graph, block, Vec::new(), &[], OpenBlockKind::Once(node));
            return Ok(());
        }
        let blocks = [graph.block(node, 0), graph.block(node, 1)];
        match blocks.map(|block| raised(graph, block, self.host)) {
            [Some(message), None] => {
                self.recorder.assert(&condition, false, &message)?;
                self.open(graph, blocks[1], Vec::new(), &[], OpenBlockKind::Once(node));
            }
            [None, Some(message)] => {
                self.recorder.assert(&condition, true, &message)?;
                self.open(graph, blocks[0], Vec::new(), &[], OpenBlockKind::Once(node));
            }
            _ => {
                self.recorder.open_scope()?;
                let kind = OpenBlockKind::Branch { node, condition: Box::new(condition), first: None };
                self.open(graph, blocks[0], Vec::new(), &[], kind);
            }
        }
        Ok(())
    }

    /// Returns the symbol of a loop's condition if the condition may vary between calls; `None` if its value is the same in
    /// every call.
    fn varying_condition(&mut self, condition: Option<Symbolic>) -> Option<Symbolic> {
        condition.filter(|symbol| !self.recorder.is_static(symbol))
    }

    /// Begins iteration `trip`, or ends the loop.
    fn iterate(
        &mut self,
        graph: &Graph,
        node: NodeId,
        trip: i64,
        (max, cond): (i64, bool),
        mut carried: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<()> {
        if !cond || trip >= max {
            return self.set(graph, node, carried, symbols);
        }
        self.host.tick(1)?;
        carried.insert(0, IValue::Int(trip));
        let mut all = vec![None];
        all.extend_from_slice(symbols);
        self.open(graph, graph.block(node, 0), carried, &all, OpenBlockKind::Loop { node, trip, max });
        Ok(())
    }

    /// Ends a block: its outputs become results of the node, start the next iteration, or end the frame.
    fn leave(&mut self, ret: NodeId) -> Res<Option<Vec<IValue>>> {
        let frame = self.top();
        let graph = Arc::clone(&frame.graph);
        let mut outputs: Vec<IValue> = graph.operands(ret).map(|v| frame.env[v].clone()).collect();
        let mut symbols: Vec<Option<Symbolic>> =
            graph.operands(ret).map(|v| frame.symbols.get(&v).cloned()).collect();
        let open = frame.blocks.pop().expect("invariant: a frame has an open block");
        match open.kind {
            OpenBlockKind::Once(node) => self.set(&graph, node, outputs, &symbols)?,
            OpenBlockKind::Loop { node, trip, max } => {
                self.top().at = Some(node);
                let condition = self.varying_condition(symbols.remove(0));
                let cond = truth(&outputs.remove(0))?;
                if condition.is_none() {
                    return self
                        .iterate(&graph, node, trip + 1, (max, cond), outputs, &symbols)
                        .map(|()| None);
                }
                let limit = Number { value: IValue::Int(max), symbol: None };
                let condition = Number { value: IValue::Bool(cond), symbol: condition };
                let (trip, carried) = (trip + 1, outputs);
                self.begin_while(&graph, LoopEntry { node, trip, limit, condition, carried, symbols })?;
            }
            OpenBlockKind::Branch { node, condition, first } => {
                self.top().at = Some(node);
                if self.table.is_some() {
                    self.refresh_all(&outputs)?;
                }
                let side = self.recorder.end_side(&outputs, &symbols)?;
                match first {
                    None => {
                        self.recorder.open_scope()?;
                        let kind = OpenBlockKind::Branch { node, condition, first: Some(Box::new(side)) };
                        self.open(&graph, graph.block(node, 1), Vec::new(), &[], kind);
                    }
                    Some(first) => {
                        let metadata = self.metadata();
                        let results = self.recorder.cond(&condition, [*first, side], metadata)?;
                        for (root, content) in &results.written {
                            self.assign("cond", root, content)?;
                        }
                        self.set(&graph, node, results.values, &results.symbols)?;
                    }
                }
            }
            OpenBlockKind::While(state) => {
                self.top().at = Some(state.node());
                self.leave_body(&graph, state, outputs, symbols)?;
            }
            OpenBlockKind::Root => return self.end_frame(outputs, symbols),
        }
        Ok(None)
    }

    fn end_frame(
        &mut self,
        outputs: Vec<IValue>,
        symbols: Vec<Option<Symbolic>>,
    ) -> Res<Option<Vec<IValue>>> {
        let done = self.frames.pop().expect("invariant: a run has a frame");
        if done.is_module {
            self.modules.pop();
        }
        match done.after {
            ReturnTarget::Done => {
                self.result_symbol = symbols.into_iter().next().flatten();
                if self.nesting > 0 && self.result_symbol.is_some() {
                    return Err(refused("a decomposition returns a symbolic number"));
                }
                return Ok(Some(outputs));
            }
            ReturnTarget::Results(node) => {
                let caller = Arc::clone(&self.top().graph);
                self.set(&caller, node, outputs, &symbols)?;
            }
            ReturnTarget::Future(node) => {
                let caller = Arc::clone(&self.top().graph);
                let elem = caller.ty(caller.result(node, 0)).future_elem().unwrap_or(Type::ANY);
                let future = Future::ready(elem, one_value(outputs.into_iter()));
                self.set(&caller, node, vec![IValue::Future(future)], &[])?;
            }
        }
        Ok(None)
    }
}

pub(super) fn needs_value(operator: &str) -> Stop {
    refused(format!("`{operator}` needs a number that is only known at run time"))
}

fn first(graph: &Graph, block: BlockId) -> NodeId {
    graph.next(graph.param(block)).expect("invariant: a block ends in prim::Return")
}

/// Describes the container that a node changes: its kind, and the variable that holds it.
fn described(graph: &Graph, node: NodeId, value: &IValue) -> String {
    let name = graph.operands(node).next().and_then(|operand| graph.name(operand).symbol());
    // A name with a number is that of a later version of the variable.
    let name = name.map(|name| name.as_str().split('.').next().unwrap_or_default());
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("{} `{name}`", kind_of_container(value)),
        None => kind_of_container(value).to_owned(),
    }
}

fn kind_of_container(value: &IValue) -> &'static str {
    match value {
        IValue::List(_) => "the list",
        IValue::Dict(_) => "the dictionary",
        _ => "an object",
    }
}

/// Returns whether an attribute already has the value that a node gives it.
fn is_set_to(callees: &CompilationUnit, graph: &Graph, node: NodeId, args: &[IValue]) -> bool {
    let [IValue::Object(object), value] = args else { return false };
    let name = resolve::name_attr(graph, node).ok();
    let slot = name.and_then(|name| flambeau_exec::Callees::slot(callees, object.class(), name));
    slot.is_some_and(|slot| object.get(slot).is_same(value))
}

fn truth(value: &IValue) -> Result<bool, KernelError> {
    let wrong = || KernelError::input(format!("expected a bool as a condition but found {}", value.tag()));
    value.as_bool().ok_or_else(wrong)
}

fn int(value: &IValue) -> Result<i64, KernelError> {
    let wrong =
        || KernelError::input(format!("expected an integer as a trip count but found {}", value.tag()));
    value.as_int().ok_or_else(wrong)
}

/// Returns the overload that exported programs state for an operator on a number: PyTorch resolves `x + 1` to `add.Tensor(x, 1)`, and
/// its kernel takes the number as `add.Scalar` does.
fn stated_operator(registry: &Registry, op: OpId) -> OpId {
    let schema = registry.schema(op);
    let takes = |other: OpId| {
        let overload = registry.facet::<ScalarOverload>(other);
        overload.is_some_and(|ScalarOverload(name)| schema.overload.as_str() == *name)
    };
    registry.overloads(schema.name).iter().copied().find(|&other| takes(other)).unwrap_or(op)
}
