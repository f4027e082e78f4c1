//! Branches on symbolic conditions.
//!
//! Both blocks run on the example, each in a scope of its own, and become the two subgraphs of a `cond`; its operands are
//! the tensors from outside that either uses. A block that raises becomes an assertion instead. Results are those of
//! [`super::joined`]. A block that writes to memory from outside returns the new content in addition, and the program
//! continues with the content that the `cond` returns.

use super::joined::{Leaf, Leaves};
use super::record::Recorder;
use super::scope::Scope;
use super::symbolic::{Computed, Symbolic, operand};
use super::{Res, copied, refused};
use flambeau_exec::{EvalLimits, Host, KernelError, eval_node};
use flambeau_export::build::target_of;
use flambeau_export::model::{Argument, NamedArgument, NodeMetadata, TensorMeta};
use flambeau_ir::attr::names;
use flambeau_ir::{BlockId, Graph, IValue, NodeId, Prim, ValueId};
use flambeau_tensor::{DType, Scalar, Tensor};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

/// The place that errors name.
const PLACE: &str = "a branch";

/// Maximum height of an expression that computes a message.
const MAX_HEIGHT: usize = 8;

/// A block that has run.
pub(super) struct Side {
    scope: Scope,
    leaves: Vec<Leaves>,
    /// New contents of the memory that the block wrote, in the order of [`Scope::written`].
    contents: Vec<Tensor>,
}

/// The results of a branch or loop.
#[derive(Default)]
pub(super) struct Results {
    pub(super) values: Vec<IValue>,
    pub(super) symbols: Vec<Option<Symbolic>>,
    /// The tensors from outside whose memory was written, and their new contents.
    pub(super) written: Vec<(Tensor, Tensor)>,
}

/// A result of the node of a higher-order operator: its example value in each block and the tensor of the program.
struct Joined {
    outputs: [Argument; 2],
    tensor: Tensor,
}

impl Recorder {
    /// Ends the scope of a block with these results.
    pub(super) fn end_side(&mut self, values: &[IValue], symbols: &[Option<Symbolic>]) -> Res<Side> {
        let leaves = values.iter().enumerate();
        let leaves =
            leaves.map(|(i, value)| self.leaves(value, symbols.get(i).and_then(Option::as_ref))).collect();
        let contents = self.undo_writes()?;
        Ok(Side { leaves, contents, scope: self.close_scope() })
    }

    /// Returns a tensor as an output of the subgraph: a copy if it is an input or a view of one.
    pub(super) fn owned(&mut self, tensor: &Tensor) -> Res<Argument> {
        let name = self.name_of(tensor)?;
        if !self.is_input_name(&name) && !self.scope().has_outer_memory(tensor) {
            return Ok(Argument::Tensor(name));
        }
        let inputs = vec![operand("self", Argument::Tensor(name))];
        Ok(Argument::Tensor(self.call("aten::clone", inputs, tensor)?))
    }

    /// Appends a call of an operator with one result, and gives it the name of `result` in the innermost scope.
    pub(super) fn call(&mut self, op: &str, inputs: Vec<NamedArgument>, result: &Tensor) -> Res<String> {
        let id = self.registry().lookup(op).ok_or_else(|| refused(format!("`{op}` is not registered")))?;
        let schema = self.registry().schema(id).clone();
        let plain = schema.name.as_str().rsplit("::").next().unwrap_or(op).to_owned();
        let name = self.scope().builder.node_name(&plain);
        let before = self.scope().names.get(&result.id()).cloned();
        self.define(&name, result)?;
        if let Some(before) = before {
            // A copy of a tensor for an output is not the tensor.
            self.scope().names.insert(result.id(), before);
        }
        let output = vec![Argument::Tensor(name.clone())];
        self.scope().builder.node(
            Some(name.clone()),
            &target_of(&schema),
            inputs,
            output,
            NodeMetadata::default(),
        );
        Ok(name)
    }

    /// Records whether the element of a tensor is not zero.
    pub(super) fn nonzero(&mut self, tensor: &Tensor) -> Res<Tensor> {
        let is_true = match tensor.item().map_err(KernelError::from)? {
            Scalar::Int(n) => n != 0,
            Scalar::Float(x) => x != 0.0,
            Scalar::Bool(b) => b,
            Scalar::Complex(z) => z.re != 0.0 || z.im != 0.0,
        };
        let made =
            Tensor::full(tensor.sizes(), Scalar::Bool(is_true), DType::Bool).map_err(KernelError::from)?;
        let name = self.name_of(tensor)?;
        let inputs = vec![operand("self", Argument::Tensor(name)), operand("other", Argument::Int(0))];
        self.call("aten::ne.Scalar", inputs, &made)?;
        self.mark_varying(&made);
        Ok(made)
    }

    /// Returns a condition as an argument: a tensor of one truth value, or a symbolic one.
    fn condition(&mut self, condition: &Symbolic) -> Res<Argument> {
        match condition.tensor.clone() {
            Some(tensor) => Ok(Argument::Tensor(self.name_of(&tensor)?)),
            None => self.number(condition),
        }
    }

    /// Records that a condition has a value, with the message of the error.
    pub(super) fn assert(&mut self, condition: &Symbolic, wanted: bool, message: &str) -> Res<()> {
        let mut arg = self.condition(condition)?;
        let message = Argument::String(message.to_owned());
        if let (false, Argument::Tensor(name)) = (wanted, &arg) {
            let tensor = condition.tensor.clone().ok_or_else(|| refused("a condition without a tensor"))?;
            let like = Tensor::full(tensor.sizes(), Scalar::Bool(true), DType::Bool);
            let like = like.map_err(KernelError::from)?;
            let inputs = vec![operand("self", Argument::Tensor(name.clone()))];
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
        let op = match arg {
            Argument::Tensor(_) => "aten::_assert_async.msg",
            _ => "aten::_assert_scalar",
        };
        let id = self.registry().lookup(op).ok_or_else(|| refused(format!("`{op}` is not registered")))?;
        let target = target_of(self.registry().schema(id));
        let inputs = vec![operand("self", arg), operand("assert_msg", message)];
        self.scope().builder.node(None, &target, inputs, Vec::new(), NodeMetadata::default());
        Ok(())
    }

    /// Records the branch and returns its results, which are those of the block that the example takes.
    pub(super) fn cond(
        &mut self,
        condition: &Symbolic,
        mut sides: [Side; 2],
        metadata: NodeMetadata,
    ) -> Res<Results> {
        let taken = usize::from(condition.value.as_bool() != Some(true));
        let mut joined = Vec::new();
        let count = sides[0].leaves.len();
        let mut leaves: Vec<(Leaves, Vec<Option<usize>>)> = Vec::with_capacity(count);
        for i in 0..count {
            let (a, b) = Leaves::aligned(&sides[0].leaves[i], &sides[1].leaves[i], PLACE)?;
            let mut own = if taken == 0 { a.clone() } else { b.clone() };
            let mut positions = Vec::with_capacity(own.items.len());
            for (leaf, pair) in own.items.iter_mut().zip(a.items.iter().zip(&b.items)) {
                if pair.0.is_same(pair.1) {
                    positions.push(None);
                    continue;
                }
                let first = if taken == 0 { pair } else { (pair.1, pair.0) };
                *leaf = first.0.joined(first.1, PLACE)?.clone();
                positions.push(Some(joined.len()));
                joined.push(self.join(pair.into(), leaf, &mut sides)?);
            }
            leaves.push((own, positions));
        }
        let written = self.join_written(taken, &mut sides, &mut joined)?;
        let registry = self.registry().clone();
        for (k, side) in sides.iter_mut().enumerate() {
            let builder = &mut side.scope.builder;
            builder.graph.outputs = joined.iter().map(|result| result.outputs[k].clone()).collect();
            builder.remove_unused(|node| super::record::must_run(&registry, node));
            side.scope.forget_unused_inputs();
        }
        if !joined.is_empty() || sides.iter().any(|side| !side.scope.builder.graph.nodes.is_empty()) {
            let tensors: Vec<Tensor> = joined.iter().map(|result| result.tensor.clone()).collect();
            self.cond_node(condition, sides.map(|side| side.scope), &tensors, metadata)?;
        }
        let mut results = Results { written, ..Results::default() };
        for (own, positions) in leaves {
            let tensors = positions.into_iter().map(|at| at.map(|at| joined[at].tensor.clone()));
            let result = self.rebuilt(&own, &tensors.collect::<Vec<_>>())?;
            results.push(result);
        }
        Ok(results)
    }

    /// Joins the memory that either block wrote: its content in a block that did not write is the former one.
    fn join_written(
        &mut self,
        taken: usize,
        sides: &mut [Side; 2],
        joined: &mut Vec<Joined>,
    ) -> Res<Vec<(Tensor, Tensor)>> {
        let mut roots: Vec<Tensor> = Vec::new();
        for written in sides.iter().flat_map(|side| &side.scope.written) {
            if !roots.iter().any(|root| root.id() == written.root.id()) {
                roots.push(written.root.clone());
            }
        }
        let mut written = Vec::with_capacity(roots.len());
        for root in roots {
            let mut outputs = [Argument::None, Argument::None];
            for (side, output) in sides.iter_mut().zip(&mut outputs) {
                *output = self.within(&mut side.scope, |this| this.owned(&root))?;
            }
            let side = &sides[taken];
            let place = side.scope.written.iter().position(|own| own.root.id() == root.id());
            let content = copied(place.map_or(&root, |place| &side.contents[place]))?;
            self.give_sizes(&root, &content);
            joined.push(Joined { outputs, tensor: content.clone() });
            written.push((root, content));
        }
        Ok(written)
    }

    /// Joins two leaves: an output of each subgraph, and the tensor that the program continues with, which has the value
    /// of `like`.
    fn join(&mut self, pair: [&Leaf; 2], like: &Leaf, sides: &mut [Side; 2]) -> Res<Joined> {
        let mut outputs = [Argument::None, Argument::None];
        for ((leaf, side), output) in pair.iter().zip(sides.iter_mut()).zip(&mut outputs) {
            *output = self.within(&mut side.scope, |this| this.leaf_output(leaf, like))?;
        }
        let tensor = self.leaf_tensor(like)?;
        if let [Some(x), Some(y)] = pair.map(Leaf::tensor) {
            let sizes = self.sizes.common(x, y);
            self.sizes.set(&tensor, sizes, &[]);
        }
        let is_outer = |(leaf, side): (&&Leaf, &Side)| {
            leaf.tensor().is_some_and(|tensor| side.scope.has_outer_memory(tensor))
        };
        if pair.iter().zip(sides.iter()).any(is_outer) {
            // A write to the result may be a write to the tensor from outside.
            self.aliases.share_memory(&tensor);
        }
        Ok(Joined { outputs, tensor })
    }

    fn cond_node(
        &mut self,
        condition: &Symbolic,
        scopes: [Scope; 2],
        results: &[Tensor],
        metadata: NodeMetadata,
    ) -> Res<()> {
        let pred = self.condition(condition)?;
        let [mut yes, mut no] = scopes;
        let operands = self.described(&[&yes, &no])?;
        yes.arrange(&operands);
        no.arrange(&operands);
        let list = self.operand_list(&operands)?;
        let number = self.subgraph_number();
        let graphs = [(format!("true_graph_{number}"), yes), (format!("false_graph_{number}"), no)];
        let graphs = graphs.map(|(name, scope)| subgraph(name, scope));
        let [yes, no] = graphs;
        let args = vec![pred, yes, no, list];
        self.higher_order("cond", args, results, metadata)
    }

    /// Returns the operands of a node: the tensors that its subgraphs capture, each once, with their metadata.
    pub(super) fn described(&mut self, scopes: &[&Scope]) -> Res<Vec<(Tensor, TensorMeta)>> {
        let mut seen = HashSet::<usize, FxBuildHasher>::default();
        let mut operands = Vec::new();
        for tensor in scopes.iter().flat_map(|scope| &scope.captured) {
            if seen.insert(tensor.id()) {
                operands.push((tensor.clone(), self.meta(tensor)?));
            }
        }
        Ok(operands)
    }

    /// Returns operands as an argument of a higher-order operator in the innermost scope.
    pub(super) fn operand_list(&mut self, operands: &[(Tensor, TensorMeta)]) -> Res<Argument> {
        let names = operands.iter().map(|(tensor, _)| self.name_of(tensor));
        Ok(Argument::Tensors(names.collect::<Res<_>>()?))
    }

    /// Appends the node of a higher-order operator whose results are tensors.
    pub(super) fn higher_order(
        &mut self,
        operator: &str,
        args: Vec<Argument>,
        results: &[Tensor],
        metadata: NodeMetadata,
    ) -> Res<()> {
        let inputs = args.into_iter().map(|arg| operand("", arg)).collect();
        let name = self.scope().builder.node_name(operator);
        let mut outputs = Vec::with_capacity(results.len());
        for tensor in results {
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
        let target = format!("torch.ops.higher_order.{operator}");
        builder.node(Some(name), &target, inputs, outputs, metadata);
        if let Some(node) = builder.graph.nodes.last_mut() {
            node.is_hop_single_tensor_return = Some(false);
        }
        Ok(())
    }
}

/// Returns the graph of a scope as an argument.
pub(super) fn subgraph(name: String, scope: Scope) -> Argument {
    Argument::Graph { name, graph: Box::new(scope.builder.graph) }
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

/// Returns the name that a node's attribute states.
pub(super) fn attribute_name(graph: &Graph, node: NodeId) -> &str {
    graph.attr(node, names::name()).and_then(|attr| attr.as_str()).unwrap_or("")
}
