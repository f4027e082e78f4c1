//! Parts from which exported programs are built: inputs, nodes, and the removal of what nothing uses.
//!
//! A [`GraphBuilder`] has a graph and its names. A value is defined together with its metadata, so a built graph satisfies
//! the verifier's rule that every value has metadata. The builder knows no operators: the caller passes targets, arguments
//! and results.

use std::collections::BTreeSet;
use std::sync::Arc;

use flambeau_ir::schema::FunctionSchema;

use crate::expr::Exprs;
use crate::fx::Namespace;
use crate::info::symbols_of_metadata;
use crate::model::{
    Argument, GraphModel, NamedArgument, NodeMetadata, NodeModel, Sym, SymBool, SymFloat, SymInt, TensorMeta,
};

/// A graph that is being built.
#[derive(Debug, Default)]
pub struct GraphBuilder {
    /// The graph so far.
    pub graph: GraphModel,
    names: Namespace,
}

/// Metadata of a symbolic number.
#[derive(Clone, Debug, PartialEq)]
pub enum NumberMeta {
    /// An integer.
    Int(SymInt),
    /// A float.
    Float(SymFloat),
    /// A truth value.
    Bool(SymBool),
}

impl GraphBuilder {
    /// Creates the builder of a graph that exists already: new names differ from all names of its nodes and values.
    #[must_use]
    pub fn of(graph: GraphModel) -> GraphBuilder {
        let mut names = Namespace::default();
        let mut take = |name: &str| names.take(name);
        for arg in graph.inputs.iter().chain(&graph.outputs) {
            arg.for_each_name(&mut take);
        }
        for node in &graph.nodes {
            node.name.iter().for_each(|name| take(name));
            node.inputs.iter().for_each(|input| input.arg.for_each_name(&mut take));
            node.outputs.iter().for_each(|output| output.for_each_name(&mut take));
        }
        graph.tensor_values.keys().for_each(|name| take(name));
        graph.sym_int_values.keys().for_each(|name| take(name));
        graph.sym_bool_values.keys().for_each(|name| take(name));
        graph.sym_float_values.keys().for_each(|name| take(name));
        graph.custom_obj_values.keys().for_each(|name| take(name));
        GraphBuilder { graph, names }
    }

    /// Returns the name for an input: unique, and the candidate itself if possible.
    pub fn input_name(&mut self, candidate: &str) -> String {
        self.names.create_input(candidate)
    }

    /// Returns the name for a node: unique, and derived from the candidate as PyTorch does.
    pub fn node_name(&mut self, candidate: &str) -> String {
        self.names.create(candidate)
    }

    /// Adds a tensor as the next input.
    pub fn input(&mut self, name: &str, meta: impl Into<Arc<TensorMeta>>) {
        self.define(name, meta);
        self.graph.inputs.push(Argument::Tensor(name.to_owned()));
    }

    /// Adds the metadata of a tensor.
    pub fn define(&mut self, name: &str, meta: impl Into<Arc<TensorMeta>>) {
        self.graph.tensor_values.insert(name.to_owned(), meta.into());
    }

    /// Adds the metadata of a symbolic number and returns the argument that defines it.
    pub fn define_number(&mut self, name: &str, meta: NumberMeta) -> Argument {
        let sym = name.to_owned();
        match meta {
            NumberMeta::Int(meta) => {
                self.graph.sym_int_values.insert(name.to_owned(), meta);
                Argument::SymInt(Sym::Name(sym))
            }
            NumberMeta::Float(meta) => {
                self.graph.sym_float_values.insert(name.to_owned(), meta);
                Argument::SymFloat(Sym::Name(sym))
            }
            NumberMeta::Bool(meta) => {
                self.graph.sym_bool_values.insert(name.to_owned(), meta);
                Argument::SymBool(Sym::Name(sym))
            }
        }
    }

    /// Appends a node.
    pub fn node(
        &mut self,
        name: Option<String>,
        target: &str,
        inputs: Vec<NamedArgument>,
        outputs: Vec<Argument>,
        metadata: impl Into<NodeMetadata>,
    ) {
        self.graph.nodes.push(NodeModel {
            target: target.to_owned(),
            inputs,
            outputs,
            metadata: metadata.into(),
            is_hop_single_tensor_return: None,
            name,
        });
    }

    /// Removes nodes whose results nothing uses, except those that must run, and the metadata of their results.
    pub fn remove_unused(&mut self, must_run: impl Fn(&NodeModel) -> bool) {
        let graph = &mut self.graph;
        let mut used = BTreeSet::new();
        for output in &graph.outputs {
            output.for_each_name(&mut |name| used.extend([name]));
        }
        let mut keep = vec![false; graph.nodes.len()];
        for (keep, node) in keep.iter_mut().zip(&graph.nodes).rev() {
            *keep = must_run(node);
            for output in &node.outputs {
                output.for_each_name(&mut |name| *keep |= used.contains(name));
            }
            if *keep {
                for input in &node.inputs {
                    input.arg.for_each_name(&mut |name| used.extend([name]));
                }
            }
        }
        let mut dead = BTreeSet::new();
        for (_, node) in keep.iter().zip(&graph.nodes).filter(|(keep, _)| !**keep) {
            for output in &node.outputs {
                output.for_each_name(&mut |name| dead.extend([name.to_owned()]));
            }
        }
        let mut keep = keep.into_iter();
        graph.nodes.retain(|_| keep.next().unwrap_or(true));
        graph.tensor_values.retain(|name, _| !dead.contains(name));
        graph.sym_int_values.retain(|name, _| !dead.contains(name));
        graph.sym_float_values.retain(|name, _| !dead.contains(name));
        graph.sym_bool_values.retain(|name, _| !dead.contains(name));
    }
}

impl GraphBuilder {
    /// Returns the symbols that occur in the metadata of the graph and its subgraphs.
    #[must_use]
    pub fn symbols(&self, exprs: &Exprs) -> BTreeSet<String> {
        symbols_of_metadata(&self.graph, exprs)
    }
}

/// Returns the target of an operator: `torch.ops.NS.NAME.OVERLOAD`.
#[must_use]
pub fn target_of(schema: &FunctionSchema) -> String {
    let overload = if schema.overload.is_empty() { "default" } else { schema.overload.as_str() };
    format!("torch.ops.{}.{overload}", schema.name.as_str().replacen("::", ".", 1))
}
