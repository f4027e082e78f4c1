//! Higher-order operators in a program that is decomposed.
//!
//! Their subgraphs are decomposed like the program; a subgraph must not write to its inputs. A region without recording of
//! gradients that writes becomes part of the graph around it, as PyTorch does with every such region. So does a region of
//! automatic mixed precision: its conversions become nodes, because operators have a policy and their decompositions do not,
//! except those of composite operators.

use super::super::{Res, refused};
use super::{Decomposition, Value, Values};
use flambeau_export::fx::Target;
use flambeau_export::lower::constant;
use flambeau_export::model::{Argument, GraphModel, NamedArgument, NodeModel};
use flambeau_ir::{IValue, Registry, Type};

impl Decomposition<'_> {
    pub(super) fn higher_order(&mut self, graph: &GraphModel, node: &NodeModel, name: &str) -> Res<()> {
        let args: Vec<&Argument> = node.inputs.iter().map(|input| &input.arg).collect();
        match (name, args.as_slice()) {
            ("wrap_with_set_grad_enabled", [_, Argument::Graph { graph: body, .. }, operands @ ..])
                if writes(body, self.tracer.recorder.registry()) =>
            {
                self.inline(node, body, operands)
            }
            (
                "wrap_with_autocast",
                [_, dtype, enabled, _, Argument::Graph { graph: body, .. }, operands @ ..],
            ) => {
                let enabled = !matches!(enabled, Argument::Bool(false));
                let dtype = match dtype {
                    Argument::None => IValue::Int(flambeau_tensor::DType::BF16.scalar_type()),
                    other => constant(other, Type::INT)?.0,
                };
                let own = if enabled { dtype.as_int() } else { None };
                let outer = std::mem::replace(&mut self.tracer.autocast, own);
                let result = self.inline(node, body, operands);
                self.tracer.autocast = outer;
                result
            }
            _ => self.keep_higher_order(graph, node),
        }
    }

    /// Makes the nodes of a subgraph nodes of the graph around it.
    fn inline(&mut self, node: &NodeModel, body: &GraphModel, operands: &[&Argument]) -> Res<()> {
        if body.inputs.len() != operands.len() {
            return Err(refused("a subgraph has another number of inputs than its operator has operands"));
        }
        let mut own = Values::default();
        for (input, operand) in body.inputs.iter().zip(operands) {
            if let Some(name) = input.name() {
                let (example, symbol) = self.value(operand, Type::ANY)?;
                own.insert(name.to_owned(), Value { example, symbol });
            }
        }
        let outer = std::mem::replace(&mut self.values, own);
        self.nodes(body)?;
        let inner = std::mem::replace(&mut self.values, outer);
        let names = node.outputs.iter().flat_map(|output| match output {
            Argument::Tensors(names) => names.clone(),
            other => other.name().map(str::to_owned).into_iter().collect(),
        });
        for (name, output) in names.zip(&body.outputs) {
            if let Some(value) = output.name().and_then(|name| inner.get(name)) {
                self.values.insert(name, value.clone());
            }
        }
        Ok(())
    }

    fn keep_higher_order(&mut self, graph: &GraphModel, node: &NodeModel) -> Res<()> {
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for input in &node.inputs {
            let arg = match &input.arg {
                Argument::Graph { name, graph } => {
                    Argument::Graph { name: name.clone(), graph: Box::new(self.subgraph(graph)?) }
                }
                other => self.renamed(other)?,
            };
            inputs.push(NamedArgument { arg, ..input.clone() });
        }
        let builder = &mut self.tracer.recorder.scope().builder;
        let name = match &node.name {
            Some(name) => builder.node_name(name),
            None => builder.node_name(flambeau_export::fx::shown_name(node)),
        };
        let mut outputs = Vec::with_capacity(node.outputs.len());
        for output in &node.outputs {
            outputs.push(self.output_of(graph, output, None)?);
        }
        self.tracer.recorder.scope().builder.graph.nodes.push(NodeModel {
            inputs,
            outputs,
            name: Some(name),
            ..node.clone()
        });
        Ok(())
    }

    /// Decomposes a subgraph.
    fn subgraph(&mut self, graph: &GraphModel) -> Res<GraphModel> {
        self.tracer.recorder.open_scope()?;
        let outer = std::mem::take(&mut self.values);
        for input in &graph.inputs {
            self.input(graph, input)?;
        }
        self.nodes(graph)?;
        let outputs: Vec<Argument> =
            graph.outputs.iter().map(|output| self.renamed(output)).collect::<Res<_>>()?;
        for input in graph.inputs.iter().filter_map(Argument::name) {
            if let Some(Value { example: IValue::Tensor(example), .. }) = self.values.get(input)
                && self.tracer.recorder.aliases.is_written(example)
            {
                return Err(refused(format!("a subgraph writes to its input `{input}`")));
            }
        }
        self.values = outer;
        let registry = self.tracer.recorder.registry().clone();
        let mut scope = self.tracer.recorder.close_scope();
        if !scope.captured.is_empty() {
            return Err(refused("a decomposition of an operator in a subgraph needs a tensor from outside"));
        }
        scope.builder.graph.outputs = outputs;
        scope.builder.graph.is_single_tensor_return = graph.is_single_tensor_return;
        scope.builder.remove_unused(|node| super::super::record::must_run(&registry, node));
        Ok(scope.builder.graph)
    }
}

/// Returns whether a node of a graph or its subgraphs calls an operator that writes to a tensor.
fn writes(graph: &GraphModel, registry: &Registry) -> bool {
    let mut open = vec![graph];
    while let Some(graph) = open.pop() {
        for node in &graph.nodes {
            if let Some(op) = Target::parse(&node.target).operator(registry)
                && registry.schema(op).args.iter().any(|arg| arg.is_write())
            {
                return true;
            }
            open.extend(node.inputs.iter().filter_map(|input| match &input.arg {
                Argument::Graph { graph, .. } => Some(&**graph),
                _ => None,
            }));
        }
    }
    false
}
