//! The run of the program on the example: an evaluator that records calls of operators.
//!
//! Values, frames and open blocks are those of `flambeau_exec::reference`. In addition a register may hold a symbolic
//! number ([`Symbolic`]), and operators on tensors are recorded. Frames and blocks are on explicit stacks.

use super::branch::{Side, attribute_name, raised};
use super::record::Recorder;
use super::symbolic::{Computed, Symbolic, reads_element};
use super::{Res, Stop, refused};
use crate::error::Error;
use flambeau_exec::{ExecError, Host, KernelError, is_control, one_value, resolve, run_node};
use flambeau_export::build::target_of;
use flambeau_export::model::Map;
use flambeau_ir::schema::FunctionSchema;
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::Future;
use flambeau_ir::{
    BlockId, CompilationUnit, Effects, Graph, IValue, NodeId, OpId, OpKind, Prim, Symbol, Type, ValueId,
    ValueMap,
};
use flambeau_tensor::Tensor;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// The destination of a frame's results.
enum After {
    /// The results of the calling node.
    Results(NodeId),
    /// A future, which is the result of the node.
    Future(NodeId),
    /// The results of the run.
    Done,
}

/// An open block.
struct Open {
    next: NodeId,
    kind: Kind,
}

enum Kind {
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
}

struct Frame {
    graph: Arc<Graph>,
    function: Symbol,
    env: ValueMap<IValue>,
    symbols: HashMap<ValueId, Symbolic, FxBuildHasher>,
    blocks: Vec<Open>,
    after: After,
    at: Option<NodeId>,
    /// Whether the call of a module began with this frame.
    is_module: bool,
}

/// The run of a program.
pub(super) struct Walk<'w> {
    callees: &'w CompilationUnit,
    host: &'w mut Host,
    recorder: Recorder,
    frames: Vec<Frame>,
    /// The modules whose calls are active: path and class.
    modules: Vec<(String, String)>,
    classes: HashMap<OpId, OpClass, FxBuildHasher>,
}

/// The way in which an operator is exported.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpClass {
    /// It becomes a node.
    Record,
    /// It is computed.
    Compute,
    /// It is computed if the operands do not vary; its result is a number that it reads from a tensor.
    ReadElement,
    /// It is computed if the operands do not vary.
    Read,
    /// It has an effect that a graph cannot have.
    Effect,
}

/// Operators that make a tensor of numbers. A tensor without a node becomes a constant of the program when it is used.
const FROM_NUMBERS: &[&str] =
    &["aten::tensor", "aten::as_tensor", "prim::NumToTensor", "aten::_make_per_tensor_quantized_tensor"];

/// Questions about tensors that their contents do not answer, beside those of the namespace `prim`.
const QUESTIONS: &[&str] = &[
    "aten::size",
    "aten::stride",
    "aten::sym_size",
    "aten::sym_stride",
    "aten::sym_numel",
    "aten::dim",
    "aten::numel",
    "aten::len",
    "aten::is_contiguous",
    "aten::is_same_size",
    "aten::is_floating_point",
    "aten::is_complex",
    "aten::is_signed",
    "aten::is_conj",
    "aten::is_neg",
    "aten::is_inference",
    "aten::storage_offset",
    "aten::get_device",
    "aten::element_size",
    "aten::result_type",
    "aten::can_cast",
    "aten::requires_grad",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
    "aten::retains_grad",
    "aten::ndimension",
    "aten::__is__",
    "aten::__isnot__",
    "aten::__range_length",
    "aten::device",
    "aten::is_pinned",
    "aten::nelement",
];

/// A question about sizes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SizeQuestion {
    /// All sizes, or one.
    Sizes,
    /// The first size.
    Length,
    /// The number of elements.
    Count,
    /// Anything else that depends on sizes.
    Other,
}

impl SizeQuestion {
    fn of(schema: &FunctionSchema) -> Option<SizeQuestion> {
        Some(match schema.name.as_str() {
            "aten::size" | "aten::sym_size" => SizeQuestion::Sizes,
            "aten::len" => SizeQuestion::Length,
            "aten::numel" | "aten::sym_numel" | "aten::nelement" => SizeQuestion::Count,
            "aten::stride" | "aten::sym_stride" | "aten::is_same_size" | "aten::storage_offset" => {
                SizeQuestion::Other
            }
            _ => return None,
        })
    }
}

/// Operators on values of any type that read the contents of tensors.
const READS_ANY: &[&str] = &[
    "aten::str",
    "aten::format",
    "aten::percentFormat",
    "aten::eq",
    "aten::ne",
    "aten::sort",
    "aten::sorted",
    "aten::index",
    "aten::count",
    "aten::remove",
    "aten::hash",
];

impl<'w> Walk<'w> {
    pub(super) fn new(callees: &'w CompilationUnit, host: &'w mut Host, recorder: Recorder) -> Walk<'w> {
        let (frames, modules, classes) = (Vec::new(), Vec::new(), HashMap::default());
        Walk { callees, host, recorder, frames, modules, classes }
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
        self.push(Arc::clone(graph), function, args, &[], After::Done)?;
        loop {
            if let Some(results) = self.step()? {
                return Ok(results);
            }
        }
    }

    /// Notes the call of a module's method; returns whether it is one that calls the module.
    fn enter_module(&mut self, args: &[IValue], method: &str) -> bool {
        let Some(IValue::Object(object)) = args.first().filter(|_| method == "forward") else { return false };
        let Some(module) = self.recorder.module(object) else { return false };
        self.recorder.called(&module.0);
        self.modules.push(module);
        true
    }

    fn push(
        &mut self,
        graph: Arc<Graph>,
        function: Symbol,
        args: Vec<IValue>,
        symbols: &[Option<Symbolic>],
        after: After,
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
        let blocks = vec![Open { next: first(&graph, graph.root()), kind: Kind::Root }];
        let (at, is_module) = (None, false);
        self.frames.push(Frame { graph, function, env, symbols: own, blocks, after, at, is_module });
        Ok(())
    }

    fn top(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("invariant: a run has a frame")
    }

    /// Runs one node or ends one block.
    fn step(&mut self) -> Res<Option<Vec<IValue>>> {
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
            // What a program prints is no part of its graph.
            Prim::Print => return self.set(graph, node, Vec::new(), &[]),
            Prim::UncheckedCast | Prim::UncheckedUnwrapOptional | Prim::Annotate => {
                return self.set(graph, node, args, symbols);
            }
            Prim::SetAttr if is_symbolic => {
                return Err(refused("an attribute is set to a number that is only known in the call"));
            }
            Prim::SetAttr => self.recorder.check_change("prim::SetAttr", &args[0])?,
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
            OpClass::Record => return self.record(graph, node, op, schema, args, &symbols),
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
            && let Some(asked) = SizeQuestion::of(schema)
        {
            let tensor = tensor.clone();
            return self.sizes(graph, node, asked, &tensor, args, &symbols);
        }
        let moves =
            schema.args.iter().any(|arg| arg.ty.has_vars()) && !READS_ANY.contains(&schema.name.as_str());
        if symbols.iter().any(Option::is_some) && !moves {
            return self.number(graph, node, op, schema, args, &symbols);
        }
        for (value, arg) in args.iter().zip(&schema.args) {
            if arg.is_write() {
                self.recorder.check_change(&schema.full_name(), value)?;
            }
        }
        if symbols.iter().any(Option::is_some)
            || args.iter().any(|value| self.recorder.symbols_of(value).is_some())
        {
            return match moves {
                true => self.moved(graph, node, schema, args, &symbols),
                false => Err(needs_value(&schema.full_name())),
            };
        }
        let results = run_node(graph, node, args, self.callees, self.host)?;
        self.recorder.made(&results);
        self.set(graph, node, results, &[])
    }

    /// Answers a question about sizes of which some are symbolic.
    fn sizes(
        &mut self,
        graph: &Graph,
        node: NodeId,
        asked: SizeQuestion,
        tensor: &Tensor,
        args: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<()> {
        let at = args.get(1).and_then(IValue::as_int);
        if symbols.iter().any(Option::is_some) || asked == SizeQuestion::Other {
            return Err(needs_value(graph.op_name(node).as_str()));
        }
        let results = run_node(graph, node, args, self.callees, self.host)?;
        self.recorder.made(&results);
        let symbol = match (asked, at) {
            (SizeQuestion::Sizes, None) => {
                let each = (0..tensor.rank()).map(|dim| self.recorder.size_of(tensor, Some(dim)));
                let each: Vec<Option<Symbolic>> = each.collect();
                if each.iter().any(Option::is_some) {
                    self.recorder.set_symbols(&results[0], each);
                }
                None
            }
            (SizeQuestion::Sizes, Some(dim)) => {
                let dim = if dim < 0 { dim + tensor.rank() as i64 } else { dim };
                usize::try_from(dim).ok().and_then(|dim| self.recorder.size_of(tensor, Some(dim)))
            }
            (SizeQuestion::Length, _) => self.recorder.size_of(tensor, Some(0)),
            _ => self.recorder.size_of(tensor, None),
        };
        self.set(graph, node, results, &[symbol])
    }

    /// Runs an operator on a list with symbolic elements: one that moves elements and does not depend on their values. It
    /// also runs on the positions of the elements, which shows where each element goes.
    fn moved(
        &mut self,
        graph: &Graph,
        node: NodeId,
        schema: &FunctionSchema,
        args: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<()> {
        if schema.name.as_str() == "aten::len" {
            let results = run_node(graph, node, args, self.callees, self.host)?;
            return self.set(graph, node, results, &[]);
        }
        let is_generic = |i: usize| schema.args.get(i).is_some_and(|arg| arg.ty.has_vars());
        if (0..args.len()).any(|i| symbols.get(i).is_some_and(Option::is_some) && !is_generic(i)) {
            return Err(needs_value(&schema.full_name()));
        }
        let mut all: Vec<Option<Symbolic>> = Vec::new();
        let mut positions = Vec::with_capacity(args.len());
        for (i, value) in args.iter().enumerate() {
            let from = all.len() as i64;
            positions.push(match value {
                IValue::List(list) if is_generic(i) => {
                    let own = self.recorder.symbols_of(value).cloned();
                    all.extend(own.unwrap_or_else(|| vec![None; list.len()]));
                    IValue::ints((from..all.len() as i64).collect())
                }
                _ if is_generic(i) => {
                    all.push(symbols.get(i).cloned().flatten());
                    IValue::Int(from)
                }
                other => other.clone(),
            });
        }
        let (written, moved) = (args.clone(), positions.clone());
        let places = run_node(graph, node, positions, self.callees, self.host)?;
        let results = run_node(graph, node, args, self.callees, self.host)?;
        self.recorder.made(&results);
        let symbol_at =
            |place: i64| usize::try_from(place).ok().and_then(|place| all.get(place).cloned()).flatten();
        let mut own = Vec::with_capacity(results.len());
        let changed = written.iter().zip(&moved).zip(&schema.args).filter(|(_, arg)| arg.is_write());
        let changed: Vec<(&IValue, &IValue)> = changed.map(|(pair, _)| pair).collect();
        for (value, places) in results.iter().zip(&places).chain(changed) {
            match (value, places) {
                (IValue::List(_), IValue::List(places)) => {
                    let places = places.to_ints().unwrap_or_default();
                    let each: Vec<Option<Symbolic>> = places.into_iter().map(symbol_at).collect();
                    self.recorder.set_symbols(value, each);
                }
                (_, IValue::Int(place)) => own.push(symbol_at(*place)),
                _ => {}
            }
        }
        self.set(graph, node, results, &own)
    }

    /// Computes a number of symbolic numbers.
    fn number(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: OpId,
        schema: &FunctionSchema,
        args: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<()> {
        let operands = args.clone();
        let results = run_node(graph, node, args, self.callees, self.host)?;
        let made = match &results[..] {
            // A conversion to the type that the number has.
            [value] if operands.len() == 1 && value.is_same(&operands[0]) && is_conversion(schema) => {
                return self.set(graph, node, results, symbols);
            }
            [value] => self.recorder.python(op, &operands, symbols, value)?,
            _ => Computed::Unknown,
        };
        let symbol = match made {
            Computed::Number(symbol) => symbol,
            Computed::Constant => return self.set(graph, node, results, &[]),
            Computed::Unknown => return Err(needs_value(&schema.full_name())),
        };
        self.set(graph, node, results, &[Some(symbol)])
    }

    /// Reads the element of a tensor as a symbolic number.
    fn read(&mut self, graph: &Graph, node: NodeId, args: Vec<IValue>) -> Res<()> {
        let tensor = args.iter().find_map(IValue::as_tensor).cloned();
        let results = run_node(graph, node, args, self.callees, self.host)?;
        let (Some(tensor), [value]) = (tensor, &results[..]) else {
            return Err(KernelError::internal("a read of an element without a tensor or result").into());
        };
        let symbol = self.recorder.item(&tensor, value)?;
        self.set(graph, node, results, &[Some(symbol)])
    }

    /// Runs an operator on tensors and records it.
    fn record(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: OpId,
        schema: &FunctionSchema,
        args: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<()> {
        let mut all = args.clone();
        all.extend(resolve::defaults(graph, node)?);
        let name = schema.full_name();
        for (value, arg) in all.iter().zip(&schema.args).filter(|(_, arg)| arg.is_write()) {
            let mut checked = Ok(());
            value.visit_tensors(|tensor| {
                if checked.is_ok() {
                    checked = self.recorder.check_write(&name, tensor);
                }
            });
            checked?;
            self.recorder.check_change(&name, value)?;
            let _ = arg;
        }
        let inputs = self.recorder.arguments(schema, &all, symbols)?;
        let results = run_node(graph, node, args, self.callees, self.host)?;
        self.recorder.made(&results);
        let effects = self.recorder.registry().effects(op);
        let short = schema.name.as_str().rsplit("::").next().unwrap_or_default();
        self.recorder.infer(op, &all, symbols, &results)?;
        let (own, outputs) = self.recorder.results(short, effects, &all, &results)?;
        let texts = self.texts(graph, node);
        self.recorder.scope().builder.node(own, &target_of(schema), inputs, outputs, texts);
        self.set(graph, node, results, &[])
    }

    /// Returns the texts of a node: the active calls with their source lines, and the active modules.
    fn texts(&self, _graph: &Graph, _node: NodeId) -> Map<String> {
        let mut texts = Map::default();
        let mut trace = ExecError::of(&KernelError::internal(""));
        for frame in self.frames.iter().rev().take(16) {
            if let Some(at) = frame.at {
                trace.push_outer(frame.function, Symbol::EMPTY, frame.graph.locs(), frame.graph.loc(at));
            }
        }
        let mut stack = String::new();
        for entry in &trace.trace {
            let Some(range) = &entry.range else { continue };
            let range = range.original().unwrap_or_else(|| range.clone());
            let (line, _) = range.source.line_column(range.range.start as usize);
            let code = range.source.text.lines().nth(line.saturating_sub(range.source.first_line) as usize);
            let function = entry.function.as_str().rsplit('.').next().unwrap_or_default();
            let (name, code) = (&range.source.name, code.unwrap_or_default().trim());
            stack.push_str(&format!("  File \"{name}\", line {line}, in {function}\n    {code}\n"));
        }
        if !stack.is_empty() {
            texts.insert("stack_trace".to_owned(), stack);
        }
        if !self.modules.is_empty() {
            let entries = self.modules.iter().map(|(path, class)| {
                let key =
                    if path.is_empty() { String::new() } else { format!("_{}", path.replace('.', "_")) };
                format!("L__self__{key},{path},{class}")
            });
            texts.insert("nn_module_stack".to_owned(), entries.collect::<Vec<_>>().join(";"));
        }
        texts
    }

    fn varies(&self, value: &IValue) -> bool {
        let mut varies = false;
        value.visit_tensors(|tensor| varies |= self.recorder.varies(tensor));
        varies
    }

    /// Sets the results of a node.
    fn set(
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

    fn open(
        &mut self,
        graph: &Graph,
        block: BlockId,
        inputs: Vec<IValue>,
        symbols: &[Option<Symbolic>],
        kind: Kind,
    ) {
        let frame = self.top();
        for (i, (input, value)) in graph.block_inputs(block).zip(inputs).enumerate() {
            frame.env[input] = value;
            match symbols.get(i).cloned().flatten() {
                Some(symbol) => drop(frame.symbols.insert(input, symbol)),
                None => drop(frame.symbols.remove(&input)),
            }
        }
        frame.blocks.push(Open { next: first(graph, block), kind });
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
                    self.open(graph, block, Vec::new(), &[], Kind::Once(node));
                    Ok(())
                }
            },
            Prim::Loop => {
                if symbols.iter().take(2).any(Option::is_some) {
                    return Err(refused(
                        "the number of iterations of a loop depends on a number that is only known in the call",
                    ));
                }
                let (max, cond) = (int(&args[0])?, truth(&args[1])?);
                self.iterate(graph, node, 0, (max, cond), args.split_off(2), symbols.get(2..).unwrap_or(&[]))
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
                self.push(body, function, args, symbols, After::Future(node))
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
        self.push(graph, function, args, symbols, After::Results(node))?;
        self.top().is_module = is_module;
        Ok(())
    }

    /// Begins a branch on a symbolic condition: with a block that raises, an assertion and the other block.
    fn branch(&mut self, graph: &Arc<Graph>, node: NodeId, condition: Symbolic) -> Res<()> {
        if let Some(holds) = self.recorder.answer(&condition)? {
            let block = graph.block(node, usize::from(!holds));
            self.open(graph, block, Vec::new(), &[], Kind::Once(node));
            return Ok(());
        }
        let blocks = [graph.block(node, 0), graph.block(node, 1)];
        match blocks.map(|block| raised(graph, block, self.host)) {
            [Some(message), None] => {
                self.recorder.assert(&condition, false, &message)?;
                self.open(graph, blocks[1], Vec::new(), &[], Kind::Once(node));
            }
            [None, Some(message)] => {
                self.recorder.assert(&condition, true, &message)?;
                self.open(graph, blocks[0], Vec::new(), &[], Kind::Once(node));
            }
            _ => {
                self.recorder.open_scope()?;
                let kind = Kind::Branch { node, condition: Box::new(condition), first: None };
                self.open(graph, blocks[0], Vec::new(), &[], kind);
            }
        }
        Ok(())
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
        self.open(graph, graph.block(node, 0), carried, &all, Kind::Loop { node, trip, max });
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
            Kind::Once(node) => self.set(&graph, node, outputs, &symbols)?,
            Kind::Loop { node, trip, max } => {
                self.top().at = Some(node);
                if symbols.remove(0).is_some() {
                    return Err(refused(
                        "the condition of a loop depends on a number that is only known in the call",
                    ));
                }
                let cond = truth(&outputs.remove(0))?;
                self.iterate(&graph, node, trip + 1, (max, cond), outputs, &symbols)?;
            }
            Kind::Branch { node, condition, first } => {
                self.top().at = Some(node);
                let side = self.recorder.end_side(outputs, &symbols)?;
                match first {
                    None => {
                        self.recorder.open_scope()?;
                        let kind = Kind::Branch { node, condition, first: Some(Box::new(side)) };
                        self.open(&graph, graph.block(node, 1), Vec::new(), &[], kind);
                    }
                    Some(first) => {
                        let texts = self.texts(&graph, node);
                        let results = self.recorder.cond(&condition, [*first, side], texts)?;
                        self.set(&graph, node, results, &[])?;
                    }
                }
            }
            Kind::Root => return self.end_frame(outputs, symbols),
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
            After::Done => {
                if symbols.iter().any(Option::is_some) {
                    return Err(refused("the result is a number that is only known in the call"));
                }
                return Ok(Some(outputs));
            }
            After::Results(node) => {
                let caller = Arc::clone(&self.top().graph);
                self.set(&caller, node, outputs, &symbols)?;
            }
            After::Future(node) => {
                let caller = Arc::clone(&self.top().graph);
                let elem = caller.ty(caller.result(node, 0)).future_elem().unwrap_or(Type::ANY);
                let future = Future::ready(elem, one_value(outputs.into_iter()));
                self.set(&caller, node, vec![IValue::Future(future)], &[])?;
            }
        }
        Ok(None)
    }
}

/// Returns how an operator is exported.
fn class_of(schema: &FunctionSchema, effects: Effects) -> OpClass {
    let name = schema.name.as_str();
    let takes = |arg: &flambeau_ir::schema::Argument| arg.ty.contains_tensor() && !arg.ty.has_vars();
    let takes_tensors = schema.args.iter().any(takes);
    let computes =
        |arg: &flambeau_ir::schema::Argument| takes(arg) && !matches!(arg.ty.kind(), TypeKind::Dict(..));
    if FROM_NUMBERS.contains(&name) {
        return OpClass::Compute;
    }
    if schema.returns.iter().any(computes) || (takes_tensors && schema.returns.is_empty()) {
        return OpClass::Record;
    }
    if reads_element(schema.name) && takes_tensors {
        return OpClass::ReadElement;
    }
    // A generic parameter or `Any` may be a tensor, as in `format`.
    let takes_any = schema.args.iter().any(|arg| matches!(arg.ty.kind(), TypeKind::Any));
    if (takes_tensors && !name.starts_with("prim::") && !QUESTIONS.contains(&name))
        || takes_any
        || READS_ANY.contains(&name)
    {
        return OpClass::Read;
    }
    let is_lasting = effects.contains(Effects::WRITES_STATE) || effects.contains(Effects::HOST);
    if is_lasting { OpClass::Effect } else { OpClass::Compute }
}

fn is_conversion(schema: &FunctionSchema) -> bool {
    matches!(schema.name.as_str(), "aten::Int" | "aten::Float" | "aten::Bool")
}

fn needs_value(operator: &str) -> Stop {
    refused(format!("`{operator}` needs a number that is only known in the call"))
}

fn first(graph: &Graph, block: BlockId) -> NodeId {
    graph.next(graph.param(block)).expect("invariant: a block ends in prim::Return")
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
