//! Reference evaluator: walks a graph node by node. It is simple and slow; its results define the semantics of a
//! program.
//!
//! Frames and open blocks are on explicit stacks, so neither nesting nor calls consume native stack. All values of a
//! function stay alive until the function returns. Errors unwind the frames: entered objects are exited, forked bodies
//! complete their futures with the error.

use crate::callees::Callees;
use crate::error::{ExecError, Fault, KernelError};
use crate::host::Host;
use crate::kernel::{CallOrigin, KernelCx, Rets};
use crate::resolve;
use crate::structural::{
    self, GuardCheck, SymbolSizes, any_defined, await_value, check_declared, is_refined, one_value,
};
use crate::tape;
use flambeau_ir::value::{Future, IValue};
use flambeau_ir::{BlockId, Graph, NodeId, OpKind, Prim, Symbol, Type, ValueId, ValueMap};
use std::sync::Arc;

/// Runs a graph on arguments.
///
/// # Errors
/// Returns the error that the program raises with the active calls; `Limit` for fuel, memory, cancellation and depth;
/// `Unsupported` for operators without a kernel.
pub fn run(
    graph: &Arc<Graph>,
    args: Vec<IValue>,
    callees: &dyn Callees,
    host: &mut Host,
) -> Result<Vec<IValue>, ExecError> {
    let (observer, policy) = (None, None);
    begin(graph, args, Walk { callees, host, frames: Vec::new(), unwinding: 0, observer, policy })
}

/// Error policy of [`run_with_policy`], applied to the nodes of the graph, of called functions and of subgraphs.
pub trait ErrorPolicy {
    /// Returns the results of a node that is skipped, or `None` if it is run on these operands. For the end of a block,
    /// `prim::Return`, the operands are the block's outputs, and the answer replaces them. `defined` has the values that
    /// the graph has computed so far.
    ///
    /// # Errors
    /// Returns the error that ends the run instead.
    fn skip(
        &mut self,
        graph: &Graph,
        node: NodeId,
        operands: &[IValue],
        defined: &ValueMap<IValue>,
    ) -> PolicyResult;

    /// Returns the results with which the run continues after this error of the node last passed to
    /// [`ErrorPolicy::skip`], or `None` if the error ends the run.
    fn recover(&mut self, graph: &Graph, node: NodeId, error: &KernelError) -> Option<Vec<IValue>>;
}

/// The results of a skipped node, `None` for a node that is run, or the error that ends the run.
pub type PolicyResult = Result<Option<Vec<IValue>>, KernelError>;

/// Runs a graph like [`run`], with a policy for nodes that fail.
///
/// # Errors
/// Returns the errors of [`run`] that the policy does not suppress, and the policy's own.
pub fn run_with_policy(
    graph: &Arc<Graph>,
    args: Vec<IValue>,
    callees: &dyn Callees,
    host: &mut Host,
    policy: &mut dyn ErrorPolicy,
) -> Result<Vec<IValue>, ExecError> {
    let (observer, policy): (_, Option<&mut dyn ErrorPolicy>) = (None, Some(policy));
    begin(graph, args, Walk { callees, host, frames: Vec::new(), unwinding: 0, observer, policy })
}

/// Receives every value that [`run_observed`] computes in its graph, excluding called functions and subgraphs.
pub trait Observer {
    /// Called when a value is defined: in a loop's body, once per iteration.
    fn value(&mut self, id: ValueId, value: &IValue);

    /// Called when a block of a node begins, before its inputs: for a loop's body, once per iteration.
    fn enter(&mut self, _block: BlockId) {}

    /// Called when the innermost open block ends.
    fn leave(&mut self, _block: BlockId) {}
}

/// Runs a graph like [`run`], with an observer.
///
/// # Errors
/// Returns the errors of [`run`].
pub fn run_observed(
    graph: &Arc<Graph>,
    args: Vec<IValue>,
    callees: &dyn Callees,
    host: &mut Host,
    observer: &mut dyn Observer,
) -> Result<Vec<IValue>, ExecError> {
    let seen: &mut dyn Observer = observer;
    let (observer, policy) = (Some((Arc::clone(graph), seen)), None);
    begin(graph, args, Walk { callees, host, frames: Vec::new(), unwinding: 0, observer, policy })
}

fn begin(graph: &Arc<Graph>, args: Vec<IValue>, mut walk: Walk<'_>) -> Result<Vec<IValue>, ExecError> {
    let budget = walk.host.budget().cloned();
    let outer = walk.host.begin_run();
    let result = match budget {
        Some(budget) => budget.run(|| walk.start(graph, Symbol::EMPTY, args)),
        None => walk.start(graph, Symbol::EMPTY, args),
    };
    walk.host.end_run(outer);
    result
}

/// The destination of a frame's results.
enum ReturnTarget {
    /// The results of the calling node.
    Results(NodeId),
    /// A future, which is the result of the node.
    Future(NodeId, Future),
    /// An awaitable, and the results of the waiting node.
    Awaited(NodeId, Future),
    /// The results of the run.
    Done,
}

/// An open block.
struct OpenBlock {
    next: NodeId,
    kind: OpenBlockKind,
}

enum OpenBlockKind {
    Root,
    /// A block that runs once; its outputs are the node's results.
    Once(NodeId),
    Loop {
        node: NodeId,
        trip: i64,
        max: i64,
    },
}

struct Frame {
    graph: Arc<Graph>,
    function: Symbol,
    env: ValueMap<IValue>,
    blocks: Vec<OpenBlock>,
    entered: Vec<IValue>,
    after: ReturnTarget,
    /// The current node, for traces.
    at: Option<NodeId>,
}

struct Walk<'w> {
    callees: &'w dyn Callees,
    host: &'w mut Host,
    frames: Vec<Frame>,
    unwinding: u32,
    /// The observer and the graph whose values it receives.
    observer: Option<(Arc<Graph>, &'w mut dyn Observer)>,
    policy: Option<&'w mut dyn ErrorPolicy>,
}

/// Maximal nesting of errors raised by context managers' exits during unwinding.
const MAX_UNWINDING: u32 = 8;

type Step = Result<Option<Vec<IValue>>, KernelError>;

impl Walk<'_> {
    fn start(
        &mut self,
        graph: &Arc<Graph>,
        function: Symbol,
        args: Vec<IValue>,
    ) -> Result<Vec<IValue>, ExecError> {
        let bottom = self.frames.len();
        if let Err(e) = self.push(Arc::clone(graph), function, args, ReturnTarget::Done) {
            return Err(ExecError::of(&e));
        }
        loop {
            match self.step() {
                Ok(None) => {}
                Ok(Some(results)) => return Ok(results),
                Err(e) => self.unwind(&e, bottom)?,
            }
        }
    }

    fn push(
        &mut self,
        graph: Arc<Graph>,
        function: Symbol,
        args: Vec<IValue>,
        after: ReturnTarget,
    ) -> Result<(), KernelError> {
        if self.frames.len() >= self.host.max_depth() {
            return Err(KernelError::new(Fault::Limit, "RecursionError", "too many nested calls"));
        }
        if graph.inputs().len() != args.len() {
            let (wanted, found) = (graph.inputs().len(), args.len());
            return Err(KernelError::input(format!("expected {wanted} arguments but {found} were given")));
        }
        let mut env = ValueMap::for_values(&graph, IValue::None);
        let mut symbols = SymbolSizes::new();
        for (i, (input, arg)) in graph.inputs().zip(args).enumerate() {
            if is_refined(graph.ty(input)) {
                check_declared(&graph, i, &arg, graph.ty(input), &mut symbols)?;
            }
            env[input] = arg;
        }
        let blocks = vec![OpenBlock { next: first(&graph, graph.root()), kind: OpenBlockKind::Root }];
        let inputs = graph.param(graph.root());
        self.frames.push(Frame { graph, function, env, blocks, entered: Vec::new(), after, at: None });
        self.observe(inputs);
        Ok(())
    }

    /// Passes the results of a node of the current frame to the observer, if the frame is observed.
    fn observe(&mut self, node: NodeId) {
        if let Some((observer, frame)) = self.observed() {
            frame.graph.results(node).for_each(|v| observer.value(v, &frame.env[v]));
        }
    }

    fn observed(&mut self) -> Option<(&mut dyn Observer, &Frame)> {
        let (graph, observer) = self.observer.as_mut()?;
        let [frame] = &self.frames[..] else { return None };
        (self.unwinding == 0 && Arc::ptr_eq(graph, &frame.graph)).then_some((&mut **observer, frame))
    }

    fn top(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("invariant: a run has a frame")
    }

    /// Runs one node or ends one block.
    fn step(&mut self) -> Step {
        let frame = self.top();
        let open = frame.blocks.last_mut().expect("invariant: a frame has an open block");
        let node = open.next;
        if frame.graph.is_prim(node, Prim::Return) {
            return self.leave(node);
        }
        open.next = frame.graph.next(node).expect("invariant: a block ends in prim::Return");
        frame.at = Some(node);
        let graph = Arc::clone(&frame.graph);
        let args = self.operands(&graph, node);
        if let Some(results) = self.skip(&graph, node, &args)? {
            self.set_results(&graph, node, results)?;
            return Ok(None);
        }
        match graph.op(node).kind() {
            OpKind::Prim(prim) if structural::is_control(prim) => self.control(&graph, node, prim, args)?,
            kind => match self.compute(&graph, node, kind, args) {
                Ok(rets) => self.set_results(&graph, node, rets)?,
                Err(e) => {
                    let results = self.policy.as_mut().and_then(|policy| policy.recover(&graph, node, &e));
                    self.set_results(&graph, node, results.ok_or(e)?)?;
                }
            },
        }
        Ok(None)
    }

    /// Computes the results of a node without control flow.
    fn compute(
        &mut self,
        graph: &Graph,
        node: NodeId,
        kind: OpKind,
        mut args: Vec<IValue>,
    ) -> Result<Rets, KernelError> {
        let mut rets = Rets::new();
        if let OpKind::Prim(prim) = kind {
            let mut cx = KernelCx::new(&mut args, &mut rets, CallOrigin::Node(graph, node), self.host);
            structural::run(prim, &mut cx, self.callees)?;
            return Ok(rets);
        }
        self.host.poll()?;
        let kernel = resolve::kernel(graph, graph.op(node))?;
        args.extend(resolve::defaults(graph, node)?);
        let mut cx = KernelCx::new(&mut args, &mut rets, CallOrigin::Node(graph, node), self.host);
        match graph.op(node).row() {
            Some(row) => tape::call(kernel, row, graph.registry().schema(row), &mut cx)?,
            None => kernel.call(&mut cx)?,
        }
        Ok(rets)
    }

    /// Returns the results of a node that the policy skips.
    fn skip(&mut self, graph: &Graph, node: NodeId, operands: &[IValue]) -> PolicyResult {
        let Some(policy) = self.policy.as_mut() else { return Ok(None) };
        let frame = self.frames.last().expect("invariant: a run has a frame");
        policy.skip(graph, node, operands, &frame.env)
    }

    fn operands(&mut self, graph: &Graph, node: NodeId) -> Vec<IValue> {
        let env = &self.top().env;
        graph.operands(node).map(|v| env[v].clone()).collect()
    }

    fn set_results(&mut self, graph: &Graph, node: NodeId, values: Vec<IValue>) -> Result<(), KernelError> {
        if graph.result_count(node) != values.len() {
            let (name, n) = (graph.op_name(node), values.len());
            let wanted = graph.result_count(node);
            return Err(KernelError::internal(format!("`{name}` returned {n} results; expected {wanted}")));
        }
        let env = &mut self.top().env;
        for (result, value) in graph.results(node).zip(values) {
            env[result] = value;
        }
        self.observe(node);
        Ok(())
    }

    fn open(&mut self, graph: &Graph, block: BlockId, inputs: Vec<IValue>, kind: OpenBlockKind) {
        let frame = self.top();
        for (input, value) in graph.block_inputs(block).zip(inputs) {
            frame.env[input] = value;
        }
        frame.blocks.push(OpenBlock { next: first(graph, block), kind });
        if let Some((observer, _)) = self.observed() {
            observer.enter(block);
        }
        self.observe(graph.param(block));
    }

    /// Enters the block or callee that a structural operator runs, or sets its results if it runs none.
    fn control(
        &mut self,
        graph: &Arc<Graph>,
        node: NodeId,
        prim: Prim,
        mut args: Vec<IValue>,
    ) -> Result<(), KernelError> {
        match prim {
            Prim::If => {
                let cond = truth(&args[0])?;
                self.open(
                    graph,
                    graph.block(node, usize::from(!cond)),
                    Vec::new(),
                    OpenBlockKind::Once(node),
                );
                Ok(())
            }
            Prim::Loop => {
                let (max, cond) = (int(&args[0])?, truth(&args[1])?);
                self.iterate(graph, node, 0, max, cond, args.split_off(2))
            }
            Prim::GradOf => {
                if args.iter().any(any_defined) {
                    self.open(graph, graph.block(node, 0), Vec::new(), OpenBlockKind::Once(node));
                    return Ok(());
                }
                self.set_results(graph, node, vec![IValue::None; graph.result_count(node)])
            }
            Prim::CallFunction | Prim::CallMethod | Prim::Enter | Prim::Exit => {
                self.call_node(graph, node, prim, args)
            }
            Prim::Fork | Prim::AwaitableWait => self.task_node(graph, node, prim, args),
            Prim::BailOut => {
                let value = args.remove(0);
                if GuardCheck::of(graph, node).holds(&value) {
                    return self.set_results(graph, node, vec![value]);
                }
                let body = resolve::subgraph(graph, node)?;
                let old = self.frames.pop().expect("invariant: a run has a frame");
                self.push(body, old.function, args, old.after)?;
                self.top().entered = old.entered;
                Ok(())
            }
            _ => {
                let body = resolve::subgraph(graph, node)?;
                let function = self.top().function;
                self.push(body, function, args, ReturnTarget::Results(node))
            }
        }
    }

    /// Calls the function or method that a node names.
    fn call_node(
        &mut self,
        graph: &Arc<Graph>,
        node: NodeId,
        prim: Prim,
        mut args: Vec<IValue>,
    ) -> Result<(), KernelError> {
        match prim {
            Prim::CallFunction => {
                let name = resolve::callee(graph, node)?;
                args.remove(0);
                self.call(name, args, ReturnTarget::Results(node))
            }
            Prim::CallMethod => {
                let name = resolve::name_attr(graph, node)?;
                let function = resolve::method(self.callees, &args, name)?;
                self.call(function, args, ReturnTarget::Results(node))
            }
            Prim::Enter => {
                let function = resolve::method(self.callees, &args, Symbol::new("__enter__"))?;
                self.top().entered.push(args[0].clone());
                self.call(function, args, ReturnTarget::Results(node))
            }
            _ => {
                let object = self.top().entered.pop().unwrap_or_else(|| args.swap_remove(0));
                let args = vec![object, IValue::None, IValue::None, IValue::None];
                let function = resolve::method(self.callees, &args, Symbol::new("__exit__"))?;
                self.call(function, args, ReturnTarget::Results(node))
            }
        }
    }

    /// Starts a task, or waits for one: both run its graph to the end.
    fn task_node(
        &mut self,
        graph: &Arc<Graph>,
        node: NodeId,
        prim: Prim,
        args: Vec<IValue>,
    ) -> Result<(), KernelError> {
        match prim {
            Prim::Fork => {
                let body = resolve::subgraph(graph, node)?;
                let elem = graph.ty(graph.result(node, 0)).future_elem().unwrap_or(Type::ANY);
                let function = self.top().function;
                self.host.tick(1)?;
                self.push(body, function, args, ReturnTarget::Future(node, Future::new(elem)))
            }
            _ => match await_value(&args)? {
                (_, Ok(value)) => self.set_results(graph, node, vec![value]),
                (future, Err(task)) => {
                    let function = self.top().function;
                    self.host.tick(1)?;
                    self.push(task.graph, function, task.args, ReturnTarget::Awaited(node, future))
                }
            },
        }
    }

    fn call(&mut self, function: Symbol, args: Vec<IValue>, after: ReturnTarget) -> Result<(), KernelError> {
        self.host.tick(1)?;
        let graph = self.callees.function(function)?;
        let graph = graph.ok_or_else(|| KernelError::input(format!("unknown function '{function}'")))?;
        self.push(graph, function, args, after)
    }

    /// Begins iteration `trip`, or ends the loop.
    fn iterate(
        &mut self,
        graph: &Graph,
        node: NodeId,
        trip: i64,
        max: i64,
        cond: bool,
        mut carried: Vec<IValue>,
    ) -> Result<(), KernelError> {
        if !cond || trip >= max {
            return self.set_results(graph, node, carried);
        }
        // The machine consumes fuel where a loop jumps back.
        self.host.tick(u64::from(trip > 0))?;
        carried.insert(0, IValue::Int(trip));
        self.open(graph, graph.block(node, 0), carried, OpenBlockKind::Loop { node, trip, max });
        Ok(())
    }

    /// Ends a block: its outputs become results of the node, start the next iteration, or end the frame.
    fn leave(&mut self, ret: NodeId) -> Step {
        let graph = Arc::clone(&self.top().graph);
        let mut outputs = self.operands(&graph, ret);
        if let Some(others) = self.skip(&graph, ret, &outputs)? {
            outputs = others;
        }
        let open = self.top().blocks.pop().expect("invariant: a frame has an open block");
        if let Some((observer, _)) = self.observed().filter(|_| !matches!(open.kind, OpenBlockKind::Root)) {
            observer.leave(graph.parent(ret));
        }
        match open.kind {
            OpenBlockKind::Once(node) => self.set_results(&graph, node, outputs)?,
            OpenBlockKind::Loop { node, trip, max } => {
                self.top().at = Some(node);
                let cond = truth(&outputs.remove(0))?;
                self.iterate(&graph, node, trip + 1, max, cond, outputs)?;
            }
            OpenBlockKind::Root => {
                let done = self.frames.pop().expect("invariant: a run has a frame");
                match done.after {
                    ReturnTarget::Done => return Ok(Some(outputs)),
                    ReturnTarget::Results(node) => {
                        let caller = Arc::clone(&self.top().graph);
                        self.set_results(&caller, node, outputs)?;
                    }
                    ReturnTarget::Future(node, future) => {
                        future.complete(Ok(one_value(outputs.into_iter())));
                        let caller = Arc::clone(&self.top().graph);
                        self.set_results(&caller, node, vec![IValue::Future(future)])?;
                    }
                    ReturnTarget::Awaited(node, future) => {
                        let value = one_value(outputs.into_iter());
                        future.complete(Ok(value.clone()));
                        let caller = Arc::clone(&self.top().graph);
                        self.set_results(&caller, node, vec![value])?;
                    }
                }
            }
        }
        Ok(None)
    }

    /// Ends frames until one completes a future with the error; returns the error if there is none.
    fn unwind(&mut self, error: &KernelError, bottom: usize) -> Result<(), ExecError> {
        let mut raised = ExecError::of(error);
        while self.frames.len() > bottom {
            let frame = self.frames.pop().expect("invariant: above the bottom");
            if let Some(node) = frame.at {
                raised.push_outer(
                    frame.function,
                    frame.graph.op_name(node),
                    frame.graph.locs(),
                    frame.graph.loc(node),
                );
            }
            for object in frame.entered.into_iter().rev() {
                self.exit(object);
            }
            if let ReturnTarget::Future(node, future) = frame.after
                && raised.fault != Fault::Limit
            {
                future.complete(Err(Arc::new(raised)));
                let caller = Arc::clone(&self.top().graph);
                let set = self.set_results(&caller, node, vec![IValue::Future(future)]);
                return set.map_err(|e| ExecError::of(&e));
            }
        }
        Err(raised)
    }

    /// Runs `__exit__` of an entered object; its result or error is ignored.
    fn exit(&mut self, object: IValue) {
        let args = vec![object, IValue::None, IValue::None, IValue::None];
        let Ok(function) = resolve::method(self.callees, &args, Symbol::new("__exit__")) else { return };
        let Ok(Some(graph)) = self.callees.function(function) else { return };
        if self.unwinding < MAX_UNWINDING {
            self.unwinding += 1;
            let _ = self.start(&graph, function, args);
            self.unwinding -= 1;
        }
    }
}

fn first(graph: &Graph, block: BlockId) -> NodeId {
    graph.next(graph.param(block)).expect("invariant: a block ends in prim::Return")
}

fn truth(value: &IValue) -> Result<bool, KernelError> {
    value.as_bool().ok_or_else(|| {
        KernelError::input(format!("expected a bool as a condition but found {}", value.tag()))
    })
}

fn int(value: &IValue) -> Result<i64, KernelError> {
    value.as_int().ok_or_else(|| {
        KernelError::input(format!("expected an integer as a trip count but found {}", value.tag()))
    })
}
