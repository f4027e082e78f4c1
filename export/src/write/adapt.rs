//! Programs in the form of a version: nodes that a version states otherwise are replaced before a program is written.
//!
//! A scan of PyTorch 2.6 has operands that state dimension and direction. Later versions have none: a scan takes the slices of
//! the first dimension in order, so flips and views around it give the same results.

use std::borrow::Cow;
use std::sync::Arc;

use flambeau_ir::{LoweringRole, Registry};

use super::FileVersion;
use crate::build::{GraphBuilder, target_of};
use crate::error::quoted;
use crate::fx::shown_name;
use crate::info::for_each_graph;
use crate::model::{Argument, GraphModel, NamedArgument, NodeModel, ProgramModel, SymInt, TensorMeta};
use crate::scan::{self, BEFORE_ORDER, Order};
use crate::{ExportCode, ExportError};

/// Returns the program in the form of a version.
///
/// # Errors
/// `E015` with the node for a scan that the version cannot state.
pub(super) fn adapted<'p>(
    program: &'p ProgramModel,
    version: FileVersion,
    registry: &Registry,
) -> Result<Cow<'p, ProgramModel>, ExportError> {
    let is_stated = version == FileVersion::Torch26;
    let mut has_others = false;
    for_each_graph(&program.module.graph, &mut |graph| {
        let mut scans = graph.nodes.iter().filter(|node| node.target == scan::TARGET);
        has_others |= scans.any(|node| states_order(node) != is_stated);
    });
    if !has_others {
        return Ok(Cow::Borrowed(program));
    }
    let mut program = program.clone();
    program.module.graph = match is_stated {
        true => with_order(program.module.graph),
        false => without_order(program.module.graph, registry)?,
    };
    Ok(Cow::Owned(program))
}

fn states_order(node: &NodeModel) -> bool {
    let operands = node.inputs.iter().map(|input| &input.arg);
    !matches!(scan::order_of(operands.skip(BEFORE_ORDER)), Ok((_, 0)))
}

/// States the default order in every scan.
fn with_order(mut graph: GraphModel) -> GraphModel {
    for node in &mut graph.nodes {
        for input in &mut node.inputs {
            if let Argument::Graph { graph, .. } = &mut input.arg {
                // The reader bounds the nesting of graphs, and with it this recursion.
                **graph = with_order(std::mem::take(&mut **graph));
            }
        }
        if node.target == scan::TARGET && !states_order(node) {
            let Order { dim, is_reversed } = Order::default();
            let order = [Argument::Int(dim), Argument::Bool(is_reversed)].map(unnamed);
            let at = node.inputs.len().min(BEFORE_ORDER);
            node.inputs.splice(at..at, order);
        }
    }
    graph
}

/// Replaces every scan that states an order by one over turned tensors.
fn without_order(graph: GraphModel, registry: &Registry) -> Result<GraphModel, ExportError> {
    let mut builder = GraphBuilder::of(graph);
    for mut node in std::mem::take(&mut builder.graph.nodes) {
        for input in &mut node.inputs {
            if let Argument::Graph { graph, .. } = &mut input.arg {
                **graph = without_order(std::mem::take(&mut **graph), registry)?;
            }
        }
        if node.target == scan::TARGET && states_order(&node) {
            let name = shown_name(&node).to_owned();
            turned(&mut builder, node, registry).map_err(|e| e.at_node(&name))?;
        } else {
            builder.graph.nodes.push(node);
        }
    }
    Ok(builder.graph)
}

/// Appends a scan, before it nodes that turn the tensors of which it takes slices, and after it nodes that turn the results.
fn turned(builder: &mut GraphBuilder, mut node: NodeModel, registry: &Registry) -> Result<(), ExportError> {
    let operands = node.inputs.iter().map(|input| &input.arg);
    let (order, count) = scan::order_of(operands.skip(BEFORE_ORDER))
        .map_err(|name| refused(format!("a scan along a dimension that is not a constant, {name}")))?;
    node.inputs.drain(BEFORE_ORDER..BEFORE_ORDER + count);
    if order == Order::default() {
        builder.graph.nodes.push(node);
        return Ok(());
    }
    let (carried, Argument::Tensors(sliced)) = (operand_count(&node.inputs[1].arg), &node.inputs[2].arg)
    else {
        return Err(refused(
            "a scan of other values than tensors in another order than the first".to_owned(),
        ));
    };
    let mut turn = Turn { builder, like: &node, registry };
    let sliced = sliced.iter().map(|name| turn.operand(name, order)).collect::<Result<Vec<_>, _>>()?;
    let mut outputs = node.outputs.clone();
    let mut results: Vec<&mut String> = Vec::new();
    for output in &mut outputs {
        match output {
            Argument::Tensor(name) => results.push(name),
            Argument::Tensors(names) => results.extend(names),
            _ => return Err(refused("a scan with other results than tensors".to_owned())),
        }
    }
    let mut named = Vec::new();
    if order.is_reversed {
        for name in results.into_iter().skip(carried) {
            let turned = std::mem::take(name);
            *name = turn.new_value("getitem", turn.meta(&turned)?);
            named.push((name.clone(), turned));
        }
    }
    let mut scan = node.clone();
    scan.inputs[2].arg = Argument::Tensors(sliced);
    scan.outputs = outputs;
    builder.graph.nodes.push(scan);
    let mut turn = Turn { builder, like: &node, registry };
    for (from, to) in named {
        turn.flip(&from, 0, to)?;
    }
    Ok(())
}

fn operand_count(operands: &Argument) -> usize {
    let mut count = 0;
    operands.for_each_name(&mut |_| count += 1);
    count
}

/// Insertion of nodes around a node.
struct Turn<'a> {
    builder: &'a mut GraphBuilder,
    /// The node whose metadata the inserted nodes have.
    like: &'a NodeModel,
    registry: &'a Registry,
}

impl Turn<'_> {
    /// Returns the name of a tensor whose first dimension has the slices in order.
    fn operand(&mut self, name: &str, order: Order) -> Result<String, ExportError> {
        let meta = self.meta(name)?;
        let rank = meta.sizes.len();
        let dim = if order.dim < 0 { order.dim + rank as i64 } else { order.dim };
        let at = usize::try_from(dim).ok().filter(|&at| at < rank).ok_or_else(|| {
            let message =
                format!("the tensor {} of a scan has {rank} dimensions and no {}", quoted(name), order.dim);
            ExportError::new(ExportCode::Argument, message)
        })?;
        let mut current = name.to_owned();
        if order.is_reversed {
            let flipped = self.new_value("flip", Arc::clone(&meta));
            self.flip(&current, dim, flipped.clone())?;
            current = flipped;
        }
        if at != 0 {
            let mut moved = TensorMeta::clone(&meta);
            for column in [&mut moved.sizes, &mut moved.strides] {
                let own = column.get(at).cloned().unwrap_or(SymInt::Int(1));
                column.remove(at);
                column.insert(0, own);
            }
            let result = self.new_value("movedim", Arc::new(moved));
            self.node(LoweringRole::MoveDim, &current, &[Argument::Int(dim), Argument::Int(0)], &result)?;
            current = result;
        }
        Ok(current)
    }

    fn flip(&mut self, tensor: &str, dim: i64, result: String) -> Result<(), ExportError> {
        self.node(LoweringRole::Flip, tensor, &[Argument::Ints(vec![dim])], &result)
    }

    fn meta(&self, name: &str) -> Result<Arc<TensorMeta>, ExportError> {
        let found = self.builder.graph.tensor_values.get(name).cloned();
        found.ok_or_else(|| {
            ExportError::new(ExportCode::Metadata, format!("the tensor {} has no metadata", quoted(name)))
        })
    }

    /// Returns the name of a new tensor.
    fn new_value(&mut self, candidate: &str, meta: Arc<TensorMeta>) -> String {
        let name = self.builder.node_name(candidate);
        self.builder.define(&name, meta);
        name
    }

    /// Appends a call of the operator with a role on a tensor and constants.
    fn node(
        &mut self,
        role: LoweringRole,
        tensor: &str,
        rest: &[Argument],
        result: &str,
    ) -> Result<(), ExportError> {
        let op = self.registry.column::<LoweringRole>().iter().find(|(_, own)| **own == role);
        let (op, _) = op.ok_or_else(|| {
            ExportError::new(ExportCode::Operator, format!("no registered operator has the role {role:?}"))
        })?;
        let schema = self.registry.schema(op);
        let values = std::iter::once(Argument::Tensor(tensor.to_owned())).chain(rest.iter().cloned());
        let inputs = schema.args.iter().zip(values).map(|(parameter, arg)| NamedArgument {
            name: parameter.name.to_string(),
            arg,
            kind: Some(crate::model::ArgumentKind::Positional),
        });
        let (inputs, outputs) = (inputs.collect(), vec![Argument::Tensor(result.to_owned())]);
        let metadata = Arc::clone(&self.like.metadata);
        self.builder.node(Some(result.to_owned()), &target_of(schema), inputs, outputs, metadata);
        Ok(())
    }
}

fn unnamed(arg: Argument) -> NamedArgument {
    NamedArgument { name: String::new(), arg, kind: None }
}

#[cold]
fn refused(what: String) -> ExportError {
    ExportError::new(ExportCode::Version, format!("files since PyTorch 2.8 cannot contain {what}"))
}
