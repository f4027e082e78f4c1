//! Tracing: a graph of the operators that a run of a closure calls.
//!
//! [`Session::trace`] runs a closure on example arguments. Every operator that the closure calls through its [`Tracer`] runs at
//! once and is recorded, so the closure decides on real values and the graph has no control flow. Tensors are identified by
//! [`Tensor::id`], also after in-place operators: a write to a view is recorded as the write of the view, and the graph has the
//! aliasing of the run. A tensor that no recorded call made is a constant.

mod record;

pub use record::{Recorder, TraceOperand};

use crate::error::Error;
use crate::program::Program;
use crate::session::Session;
use flambeau_exec::{ExecError, Host, run_node};
use flambeau_ir::value::{List, Tuple};
use flambeau_ir::{CallArg, CompilationUnit, IValue, NodeId, Prim, ValueId};
use flambeau_tensor::Tensor;
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

/// A run that is recorded.
pub struct Tracer {
    host: Host,
    recorder: Recorder,
    /// The values of tensors by their identities. The tensors are kept alive, so that identities remain unique.
    values: HashMap<usize, (ValueId, Tensor), FxBuildHasher>,
    /// The values of the run by those of the graph.
    env: HashMap<ValueId, IValue, FxBuildHasher>,
    /// The last node that was evaluated.
    last: Option<NodeId>,
}

impl Session {
    /// Runs a closure on example arguments and returns a program whose entry `forward` is the graph of the operators that
    /// the closure called. Arguments without tensors are constants of the graph. The closure gets a view of a tensor in place
    /// of its second occurrence, so that each is a value of its own.
    ///
    /// ```
    /// use flambeau::{IValue, Session, Tensor};
    ///
    /// let session = Session::standard()?;
    /// let x = IValue::Tensor(Tensor::from_slice(&[1.0_f32, 2.0], &[2])?);
    /// let program = session.trace(&[x], |tracer, inputs| {
    ///     let n = tracer.size(&inputs[0], 0)?;
    ///     let twice = tracer.call("aten::add", &[inputs[0].clone(), inputs[0].clone()])?;
    ///     tracer.call("aten::mul", &[twice, n])
    /// })?;
    /// let y = IValue::Tensor(Tensor::from_slice(&[1.0_f32, 2.0, 3.0], &[3])?);
    /// let result = program.entry("forward")?.call(&[y], &[])?;
    /// // The size is that of the call's argument, not that of the example.
    /// assert_eq!(result.as_tensor().unwrap().to_scalars()?[0].to_f64(), 6.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the closure; `V…` if the graph does not verify, which happens if the result has parts of types that
    /// graphs do not have.
    pub fn trace(
        &self,
        inputs: &[IValue],
        run: impl FnOnce(&mut Tracer, &[IValue]) -> Result<IValue, Error>,
    ) -> Result<Program, Error> {
        let recorder = Recorder::new(self);
        let (values, env) = (HashMap::default(), HashMap::default());
        let mut tracer = Tracer { host: self.host(), recorder, values, env, last: None };
        let mut seen = HashSet::default();
        let inputs: Vec<IValue> = inputs.iter().map(|input| distinct(input, &mut seen)).collect();
        for (i, input) in inputs.iter().enumerate() {
            let value = tracer.recorder.input(&format!("arg{i}"), input.type_of());
            tracer.env.insert(value, input.clone());
            tracer.bind(value, input)?;
        }
        let result = run(&mut tracer, &inputs)?;
        let result = tracer.operand(&result)?;
        tracer.recorder.finish(&result)
    }
}

impl Tracer {
    /// Calls an operator by name (`aten::add`): selects the overload for the arguments, runs it and records it.
    ///
    /// # Errors
    /// `X0003` if no overload fits the arguments; the error of the operator.
    pub fn call(&mut self, operator: &str, args: &[IValue]) -> Result<IValue, Error> {
        self.call_with(operator, args, &[])
    }

    /// As [`Tracer::call`], with arguments by name.
    ///
    /// # Errors
    /// As [`Tracer::call`].
    pub fn call_with(
        &mut self,
        operator: &str,
        args: &[IValue],
        kwargs: &[(&str, IValue)],
    ) -> Result<IValue, Error> {
        let args: Result<Vec<CallArg>, Error> = args.iter().map(|arg| self.argument(arg)).collect();
        let args = args?;
        let kwargs: Result<Vec<(&str, CallArg)>, Error> =
            kwargs.iter().map(|(name, arg)| Ok((*name, self.argument(arg)?))).collect();
        let kwargs = kwargs?;
        let value = self.recorder.call_by_name(operator, &args, &kwargs)?;
        self.evaluated(value)
    }

    /// Calls a function of a program and records it with its control flow.
    ///
    /// # Errors
    /// `X0003` if the arguments do not fit; the error of the function.
    pub fn call_entry(&mut self, entry: &crate::Entry, args: &[IValue]) -> Result<IValue, Error> {
        let graph = entry.optimized("inline")?;
        let operands: Result<Vec<TraceOperand>, Error> = args.iter().map(|arg| self.operand(arg)).collect();
        let result = entry.call_on(args, &[], &mut self.host)?;
        let value = self.recorder.inline(&graph, &operands?)?;
        // The nodes of the function ran with the call.
        self.last = self.recorder.last_node();
        self.env.insert(value, result.clone());
        self.bind(value, &result)?;
        Ok(result)
    }

    /// Returns the size of a tensor as a zero-dimensional tensor whose value is recorded.
    ///
    /// # Errors
    /// `X0003` if the argument is not a tensor, the operator's error if it has no such dimension.
    pub fn size(&mut self, tensor: &IValue, dim: i64) -> Result<IValue, Error> {
        let tensor = self.operand(tensor)?;
        let size = self.recorder.size(&tensor, dim)?;
        self.evaluated(size)
    }

    /// Sets the scope of the next nodes, such as `__module.head`.
    pub fn set_scope(&mut self, scope: &str) {
        self.recorder.set_location(None, scope);
    }

    /// Returns the graph as recorded so far.
    pub fn graph(&self) -> &crate::Graph {
        self.recorder.graph()
    }

    /// Runs the nodes that were recorded since the last call.
    fn run_recorded(&mut self) -> Result<(), Error> {
        let graph = self.recorder.graph();
        let first = match self.last {
            Some(node) => graph.next(node),
            None => graph.next(graph.param(graph.root())),
        };
        let mut at = first.filter(|&node| !graph.is_prim(node, Prim::Return));
        while let Some(node) = at {
            let value = |v| self.env.get(&v).cloned().unwrap_or_default();
            let args: Vec<IValue> = graph.operands(node).map(value).collect();
            let results = run_node(graph, node, args, &CompilationUnit::new(), &mut self.host);
            let results = results.map_err(|error| Error::from(ExecError::of(&error)))?;
            self.env.extend(graph.results(node).zip(results));
            self.last = Some(node);
            at = graph.next(node).filter(|&node| !graph.is_prim(node, Prim::Return));
        }
        Ok(())
    }

    /// Runs the recorded nodes that have not run, and returns a value of the graph.
    fn evaluated(&mut self, value: ValueId) -> Result<IValue, Error> {
        self.run_recorded()?;
        let result = self.env.get(&value).cloned().unwrap_or_default();
        self.bind(value, &result)?;
        Ok(result)
    }

    fn argument(&mut self, value: &IValue) -> Result<CallArg, Error> {
        match self.operand(value)? {
            TraceOperand::Constant(value) => Ok(CallArg::Constant(value)),
            operand => self.recorder.value_of(&operand).map(CallArg::Value),
        }
    }

    /// Describes a value: recorded tensors are values, containers with such tensors are made of their elements.
    fn operand(&self, value: &IValue) -> Result<TraceOperand, Error> {
        if let IValue::Tensor(tensor) = value
            && let Some((value, _)) = self.values.get(&tensor.id())
        {
            return Ok(TraceOperand::Value(*value));
        }
        let mut recorded = false;
        value.visit_tensors(|tensor| recorded |= self.values.contains_key(&tensor.id()));
        let all =
            |items: Vec<IValue>| items.iter().map(|item| self.operand(item)).collect::<Result<Vec<_>, _>>();
        Ok(match value {
            IValue::List(list) if recorded => TraceOperand::List(all(list.to_vec())?),
            IValue::Tuple(tuple) if recorded => TraceOperand::Tuple(all(tuple.items().to_vec())?),
            IValue::Dict(dict) if recorded => {
                let read = dict.read();
                let entries = read.iter().map(|(k, v)| Ok((self.operand(k)?, self.operand(v)?)));
                TraceOperand::Dict(entries.collect::<Result<Vec<_>, Error>>()?)
            }
            IValue::Tensor(tensor) if tensor.requires_grad() => {
                return Err(Error::misuse(
                    "a tensor that requires a gradient cannot be a constant of a trace; pass it as an argument",
                ));
            }
            other => TraceOperand::Constant(other.clone()),
        })
    }

    /// Makes a value of the graph that of all tensors in a value of the run.
    fn bind(&mut self, value: ValueId, found: &IValue) -> Result<(), Error> {
        let mut tensors = false;
        found.visit_tensors(|_| tensors = true);
        if !tensors {
            return Ok(());
        }
        let items = match found {
            IValue::Tensor(tensor) => {
                self.values.insert(tensor.id(), (value, tensor.clone()));
                return Ok(());
            }
            IValue::List(list) => list.to_vec(),
            IValue::Tuple(tuple) => tuple.items().to_vec(),
            IValue::Dict(dict) => {
                for (key, item) in dict.to_vec() {
                    let operands = [CallArg::Value(value), CallArg::Constant(key)];
                    let part = self.recorder.call_by_name("aten::__getitem__", &operands, &[])?;
                    self.run_recorded()?;
                    self.bind(part, &item)?;
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        let parts = self.recorder.unpack(value, items.len())?;
        self.run_recorded()?;
        // The recursion is bounded by the depth of types.
        parts.iter().zip(&items).try_for_each(|(&part, item)| {
            self.env.insert(part, item.clone());
            self.bind(part, item)
        })
    }
}

/// Returns an argument in which a tensor that occurred before, here or in an earlier argument, is replaced by a view.
fn distinct(value: &IValue, seen: &mut HashSet<usize, FxBuildHasher>) -> IValue {
    match value {
        IValue::Tensor(tensor) if seen.insert(tensor.id()) => value.clone(),
        IValue::Tensor(tensor) => {
            let view = tensor.alias();
            seen.insert(view.id());
            IValue::Tensor(view)
        }
        IValue::List(list) if list.elem_type().is_tensor() => {
            let items = list.to_vec().iter().map(|item| distinct(item, seen)).collect();
            IValue::List(List::from_values(list.elem_type(), items))
        }
        IValue::Tuple(tuple) => {
            let items: Vec<IValue> = tuple.items().iter().map(|item| distinct(item, seen)).collect();
            IValue::Tuple(match tuple.named_type() {
                Some(ty) => Tuple::named(ty, items),
                None => Tuple::new(items),
            })
        }
        other => other.clone(),
    }
}
