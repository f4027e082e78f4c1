//! Branches on symbolic conditions.
//!
//! Both blocks run on the example, each in a scope of its own, and become the two subgraphs of a `cond`; its operands are
//! the values from outside that either uses. A block that raises becomes an assertion instead. The results must be tensors of the same
//! sizes and dtype, or one value from outside, or equal constants.

use super::record::{Captured, Recorder, Scope, sym_argument};
use super::symbolic::{Computed, Symbolic};
use super::{Res, refused};
use flambeau_exec::{EvalLimits, Host, eval_node};
use flambeau_export::build::target_of;
use flambeau_export::model::{Argument, Map, NamedArgument, Sym};
use flambeau_ir::attr::names;
use flambeau_ir::{BlockId, Graph, IValue, NodeId, Prim, ValueId};
use flambeau_tensor::{DType, Tensor};

/// Maximum height of an expression that computes a message.
const MAX_HEIGHT: usize = 8;

/// A block that has run.
pub(super) struct Side {
    scope: Scope,
    values: Vec<IValue>,
    /// The values that are tensors, as outputs of the subgraph.
    outputs: Vec<Option<Argument>>,
}

impl Recorder {
    /// Ends the scope of a block with these results.
    pub(super) fn end_side(&mut self, values: Vec<IValue>, symbols: &[Option<Symbolic>]) -> Res<Side> {
        if symbols.iter().any(Option::is_some) {
            return Err(refused(
                "a branch on a value that is only known in the call returns a symbolic number",
            ));
        }
        let mut outputs = Vec::with_capacity(values.len());
        for value in &values {
            outputs.push(match value {
                IValue::Tensor(tensor) => Some(self.owned(tensor)?),
                _ => None,
            });
        }
        Ok(Side { scope: self.close_scope(), values, outputs })
    }

    /// Returns a tensor as an output of the subgraph: a copy if it is an input.
    fn owned(&mut self, tensor: &Tensor) -> Res<Argument> {
        let name = self.name_of(tensor)?;
        let is_input = |captured: &Captured| matches!(captured, Captured::Tensor(t) if t.id() == tensor.id());
        if !self.scope().captured.iter().any(is_input) {
            return Ok(Argument::Tensor(name));
        }
        let inputs = vec![positional("self", Argument::Tensor(name))];
        Ok(Argument::Tensor(self.call("aten::clone", inputs, tensor)?))
    }

    /// Appends a call of an operator with one result, like `result`, which keeps its name.
    fn call(&mut self, op: &str, inputs: Vec<NamedArgument>, result: &Tensor) -> Res<String> {
        let id = self.registry().lookup(op).ok_or_else(|| refused(format!("`{op}` is not registered")))?;
        let schema = self.registry().schema(id).clone();
        let plain = schema.name.as_str().rsplit("::").next().unwrap_or(op).to_owned();
        let meta = flambeau_export::model::TensorMeta { requires_grad: false, ..self.meta(result)? };
        let scope = self.scope();
        let name = scope.builder.node_name(&plain);
        scope.builder.define(&name, meta);
        let output = vec![Argument::Tensor(name.clone())];
        scope.builder.node(Some(name.clone()), &target_of(&schema), inputs, output, Map::default());
        Ok(name)
    }

    /// Returns a condition as an argument: a tensor of one truth value, or a symbolic one.
    fn condition(&mut self, condition: &Symbolic) -> Res<Argument> {
        let Some(tensor) = condition.tensor.clone() else { return self.number(condition) };
        let name = self.name_of(&tensor)?;
        if tensor.dtype() == DType::Bool {
            return Ok(Argument::Tensor(name));
        }
        let inputs = vec![positional("self", Argument::Tensor(name)), positional("other", Argument::Int(0))];
        let like = Tensor::full(tensor.sizes(), flambeau_tensor::Scalar::Bool(true), DType::Bool);
        let like = like.map_err(flambeau_exec::KernelError::from)?;
        Ok(Argument::Tensor(self.call("aten::ne.Scalar", inputs, &like)?))
    }

    /// Records that a condition has a value, with the message of the error.
    pub(super) fn assert(&mut self, condition: &Symbolic, wanted: bool, message: &str) -> Res<()> {
        let mut arg = self.condition(condition)?;
        let message = Argument::String(message.to_owned());
        if let (false, Argument::Tensor(name)) = (wanted, &arg) {
            let tensor = condition.tensor.clone().ok_or_else(|| refused("a condition without a tensor"))?;
            let like = Tensor::full(tensor.sizes(), flambeau_tensor::Scalar::Bool(true), DType::Bool);
            let like = like.map_err(flambeau_exec::KernelError::from)?;
            let inputs = vec![positional("self", Argument::Tensor(name.clone()))];
            arg = Argument::Tensor(self.call("aten::logical_not", inputs, &like)?);
        } else if !wanted {
            let not = self.registry().lookup("aten::__not__");
            let not = not.ok_or_else(|| refused("`aten::__not__` is not registered"))?;
            let (operands, symbols) = ([condition.value.clone()], [Some(condition.clone())]);
            let value = IValue::Bool(condition.value.as_bool() == Some(false));
            let Computed::Number(negated) = self.python(not, &operands, &symbols, &value)? else {
                return Err(refused("an assertion on a symbolic condition without a negation"));
            };
            arg = self.number(&negated)?;
        }
        let (op, first) = match arg {
            Argument::Tensor(_) => ("aten::_assert_async.msg", "self"),
            _ => ("aten::_assert_scalar", "self"),
        };
        let id = self.registry().lookup(op).ok_or_else(|| refused(format!("`{op}` is not registered")))?;
        let target = target_of(self.registry().schema(id));
        let inputs = vec![positional(first, arg), positional("assert_msg", message)];
        self.scope().builder.node(None, &target, inputs, Vec::new(), Map::default());
        Ok(())
    }

    /// Records the branch and returns its results, which are those of the block that the example takes.
    pub(super) fn cond(
        &mut self,
        condition: &Symbolic,
        mut sides: [Side; 2],
        texts: Map<String>,
    ) -> Res<Vec<IValue>> {
        let taken = usize::from(condition.value.as_bool() != Some(true));
        let count = sides[0].values.len();
        let mut results = Vec::with_capacity(count);
        let mut computed = Vec::new();
        for i in 0..count {
            let (a, b) = (&sides[0].values[i], &sides[1].values[i]);
            match (a, b) {
                _ if a.is_same(b) => results.push(a.clone()),
                (IValue::Str(x), IValue::Str(y)) if x == y => results.push(a.clone()),
                (IValue::Tensor(x), IValue::Tensor(y)) => {
                    if x.sizes() != y.sizes() || x.dtype() != y.dtype() {
                        return Err(refused(format!(
                            "the blocks of a branch on a value that is only known in the call return tensors of different sizes or dtypes, \
                             {} {:?} and {} {:?}",
                            x.dtype().name(),
                            x.sizes(),
                            y.dtype().name(),
                            y.sizes()
                        )));
                    }
                    // Each result is a tensor of its own, also if the branch returns one tensor twice.
                    let own = sides[taken].values[i].as_tensor().unwrap_or(x);
                    let sizes = self.sizes.common(x, y);
                    let own = own.clone_data().map_err(flambeau_exec::KernelError::from)?;
                    self.sizes.set(&own, sizes, &[]);
                    computed.push((i, own.clone()));
                    results.push(IValue::Tensor(own));
                }
                _ => {
                    return Err(refused(format!(
                        "the blocks of a branch on a value that is only known in the call return a {} and a {} that are no tensors",
                        a.tag(),
                        b.tag()
                    )));
                }
            }
        }
        let registry = self.registry().clone();
        for side in &mut sides {
            let outputs = computed.iter().filter_map(|(i, _)| side.outputs[*i].clone());
            side.scope.builder.graph.outputs = outputs.collect();
            side.scope.builder.remove_unused(|node| super::record::must_run(&registry, node));
        }
        if computed.is_empty() && sides.iter().all(|side| side.scope.builder.graph.nodes.is_empty()) {
            return Ok(results);
        }
        self.cond_node(condition, sides, &computed, texts)?;
        Ok(results)
    }

    fn cond_node(
        &mut self,
        condition: &Symbolic,
        sides: [Side; 2],
        computed: &[(usize, Tensor)],
        texts: Map<String>,
    ) -> Res<()> {
        let pred = self.condition(condition)?;
        let [mut yes, mut no] = sides.map(|side| side.scope);
        let mut operands = yes.captured.clone();
        let is_new = |captured: &&Captured| !operands.iter().any(|own| own.is_same(captured));
        let more: Vec<Captured> = no.captured.iter().filter(is_new).cloned().collect();
        operands.extend(more);
        let mut described = Vec::with_capacity(operands.len());
        for operand in &operands {
            let meta = match operand {
                Captured::Tensor(tensor) => Some(self.meta(tensor)?),
                Captured::Number(_) => None,
            };
            described.push((operand.clone(), meta));
        }
        yes.arrange(&described);
        no.arrange(&described);
        let list = self.operand_list(&operands)?;
        let number = self.subgraph_number();
        let graph = |name: &str, scope: Scope| Argument::Graph {
            name: format!("{name}_{number}"),
            graph: Box::new(scope.builder.graph),
        };
        let args = [pred, graph("true_graph", yes), graph("false_graph", no), list];
        let inputs = args.into_iter().map(|arg| positional("", arg)).collect();
        let name = self.scope().builder.node_name("cond");
        let mut outputs = Vec::with_capacity(computed.len());
        for (_, tensor) in computed {
            let own = self.scope().builder.node_name("getitem");
            self.define(&own, tensor)?;
            self.mark_varying(tensor);
            outputs.push(own);
        }
        // A tuple of one tensor is a list, because one tensor alone would be the result itself.
        let outputs = match outputs.len() {
            1 => vec![Argument::Tensors(outputs)],
            _ => outputs.into_iter().map(Argument::Tensor).collect(),
        };
        let builder = &mut self.scope().builder;
        builder.node(Some(name), "torch.ops.higher_order.cond", inputs, outputs, texts);
        if let Some(node) = builder.graph.nodes.last_mut() {
            node.is_hop_single_tensor_return = Some(false);
        }
        Ok(())
    }

    /// Returns the operands of a higher-order operator in the innermost scope.
    fn operand_list(&mut self, operands: &[Captured]) -> Res<Argument> {
        let mut tensors = Vec::new();
        let mut numbers = Vec::new();
        for operand in operands {
            match operand {
                Captured::Tensor(tensor) => tensors.push(self.name_of(tensor)?),
                Captured::Number(symbol) => {
                    let name = self.number_name(symbol)?;
                    let Argument::SymInt(_) = sym_argument(symbol, name.clone()) else {
                        return Err(refused(
                            "a branch uses a symbolic number from outside that is no integer",
                        ));
                    };
                    numbers.push(Sym::Name(name));
                }
            }
        }
        match (tensors.is_empty(), numbers.is_empty()) {
            (_, true) => Ok(Argument::Tensors(tensors)),
            (true, false) => Ok(Argument::SymInts(numbers)),
            (false, false) => Err(refused("a branch uses tensors and symbolic numbers from outside")),
        }
    }
}

impl Captured {
    fn is_same(&self, other: &Captured) -> bool {
        match (self, other) {
            (Captured::Tensor(a), Captured::Tensor(b)) => a.id() == b.id(),
            (Captured::Number(a), Captured::Number(b)) => a.is_same(b),
            _ => false,
        }
    }
}

/// Returns the message of a block that raises; `None` if it does not raise. A message that is computed from the values of
/// the program is replaced.
pub(super) fn raised(graph: &Graph, block: BlockId, host: &mut Host) -> Option<String> {
    let raise = graph.nodes(block).find(|&node| graph.is_prim(node, Prim::RaiseException))?;
    let message = graph.operands(raise).next().and_then(|value| constant(graph, value, host, 0));
    let text = message.and_then(|value| Some(value.as_str()?.to_text().into_owned()));
    Some(text.filter(|text| !text.is_empty()).unwrap_or_else(|| "the program raises an error".to_owned()))
}

/// Returns the value of an expression of constants.
fn constant(graph: &Graph, value: ValueId, host: &mut Host, height: usize) -> Option<IValue> {
    if let Some(known) = graph.constant(value) {
        return Some(known);
    }
    let node = graph.def(value);
    if height > MAX_HEIGHT {
        return None;
    }
    let operands: Option<Vec<IValue>> =
        graph.operands(node).map(|operand| constant(graph, operand, host, height + 1)).collect();
    eval_node(graph, node, &operands?, EvalLimits::default(), host).ok()?.into_iter().next()
}

/// Returns an argument that is passed by position.
fn positional(name: &str, arg: Argument) -> NamedArgument {
    NamedArgument { name: name.to_owned(), arg, kind: Some(flambeau_export::model::ArgumentKind::Positional) }
}

/// Returns the name that a node's attribute states.
pub(super) fn attribute_name(graph: &Graph, node: NodeId) -> &str {
    graph.attr(node, names::name()).and_then(|attr| attr.as_str()).unwrap_or("")
}
