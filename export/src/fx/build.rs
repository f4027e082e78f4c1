//! Construction of FX graphs from the model.

use flambeau_ir::Registry;
use flambeau_ir::schema::FunctionSchema;
use hashbrown::HashMap;
use std::borrow::Cow;

use super::names::{Namespace, is_keyword};
use super::{FxArg, FxGraph, FxNode, FxOp, NodeIndex, Operators, Target, Val};
use crate::error::quoted;
use crate::json::Res;
use crate::model::{
    Argument, ArgumentKind, GraphModel, InputSpec, Map, NamedArgument, NodeMetadata, NodeModel, ProgramModel,
    Signature, Sym,
};
use crate::print::Style;
use crate::{ExportCode, ExportError};

/// The Python function that takes an element of a result.
const GETITEM: &str = "_operator.getitem";

/// Builds the FX graph of a program.
///
/// # Errors
///
/// Returns `E006` if two values have one name, and `E007` if an argument names a value that is not defined before.
pub(crate) fn build<'m>(program: &'m ProgramModel, registry: &Registry) -> Res<FxGraph<'m>> {
    let names = Names { are_made: true, style: Style::of(program.schema_version) };
    build_with(&program.module.graph, Some(&program.module.signature), registry, names)
}

/// Checks that the FX graph of a program can be built, which takes half the time without names of nodes.
///
/// # Errors
///
/// Returns the errors of [`build`].
pub(crate) fn check(program: &ProgramModel, registry: &Registry) -> Res<()> {
    let names = Names { are_made: false, style: Style::of(program.schema_version) };
    build_with(&program.module.graph, Some(&program.module.signature), registry, names).map(drop)
}

/// The names of nodes.
#[derive(Clone, Copy)]
struct Names {
    are_made: bool,
    /// The version of PyTorch whose names they are.
    style: Style,
}

/// Builds the FX graph of a graph. `signature` is that of the whole program; subgraphs have none.
fn build_with<'m>(
    model: &'m GraphModel,
    signature: Option<&'m Signature>,
    registry: &Registry,
    names: Names,
) -> Res<FxGraph<'m>> {
    let nodes = Vec::with_capacity(model.inputs.len() + model.nodes.len() + 1);
    let mut builder = Builder {
        graph: FxGraph { nodes, subgraphs: Map::default(), model },
        operators: Operators::new(registry),
        names: names.are_made.then(Namespace::default),
        style: names.style,
        by_name: HashMap::new(),
    };
    for (n, input) in model.inputs.iter().enumerate() {
        builder.placeholder(n, input, signature).map_err(|e| e.in_item(n).in_field("inputs"))?;
    }
    for (n, node) in model.nodes.iter().enumerate() {
        builder.node(node).map_err(|e| e.in_item(n).in_field("nodes").at_node(shown_name(node)))?;
    }
    builder.output()?;
    Ok(builder.graph)
}

/// Returns the name by which an error refers to a node: its first result, or its operator.
pub fn shown_name(node: &NodeModel) -> &str {
    let first = node.outputs.first().and_then(|output| match output {
        Argument::Tensors(names) => names.first().map(String::as_str),
        other => other.name(),
    });
    node.name.as_deref().filter(|name| !name.is_empty()).or(first).unwrap_or(&node.target)
}

struct Builder<'m, 'r> {
    graph: FxGraph<'m>,
    operators: Operators<'m, 'r>,
    /// `None` if nodes get no names.
    names: Option<Namespace>,
    style: Style,
    /// Nodes by the names of the values that they define.
    by_name: HashMap<&'m str, NodeIndex>,
}

impl<'m, 'r> Builder<'m, 'r> {
    fn push(
        &mut self,
        op: FxOp,
        candidate: &str,
        target: &'m str,
        metadata: Option<&'m NodeMetadata>,
    ) -> NodeIndex {
        let name = self.names.as_mut().map_or_else(String::new, |names| names.create(candidate));
        let index = self.graph.nodes.len() as NodeIndex;
        let (args, kwargs) = (Vec::new(), Vec::new());
        self.graph.nodes.push(FxNode { op, name, target, args, kwargs, val: Val::None, metadata });
        index
    }

    fn at(&mut self, node: NodeIndex) -> &mut FxNode<'m> {
        &mut self.graph.nodes[node as usize]
    }

    /// Gives a node another name, which gets a suffix if it is taken.
    fn rename(&mut self, node: NodeIndex, candidate: &str) {
        if let Some(names) = &mut self.names {
            let name = names.create(candidate);
            self.at(node).name = name;
        }
    }

    /// Gives a node the name of the value that it defines.
    fn define(&mut self, name: &'m str, node: NodeIndex) -> Res<()> {
        if self.by_name.insert(name, node).is_some() {
            let message = format!("two values have the name {}", quoted(name));
            return Err(ExportError::new(ExportCode::DuplicateName, message));
        }
        let val = val_of(self.graph.model, name);
        let is_named = self.names.as_mut().map(|names| names.take(name)).is_some();
        let node = self.at(node);
        if is_named {
            name.clone_into(&mut node.name);
        }
        node.val = val;
        Ok(())
    }

    fn find(&self, name: &str) -> Res<NodeIndex> {
        self.by_name.get(name).copied().ok_or_else(|| {
            let message = format!("the value {} is not defined before its use", quoted(name));
            ExportError::new(ExportCode::UndefinedName, message)
        })
    }

    fn placeholder(&mut self, n: usize, input: &'m Argument, signature: Option<&'m Signature>) -> Res<()> {
        if let Some(name) = input.name() {
            let node = self.push(FxOp::Placeholder, name, name, None);
            return self.define(name, node);
        }
        match signature.and_then(|s| s.inputs.get(n)) {
            Some(InputSpec::ConstantInput { name, .. }) => {
                self.push(FxOp::Placeholder, name, name, None);
                Ok(())
            }
            _ => {
                let message = "an input that is a constant has no name in the signature";
                Err(ExportError::new(ExportCode::Field, message))
            }
        }
    }

    fn node(&mut self, node: &'m NodeModel) -> Res<()> {
        let target = Target::parse(&node.target);
        let (args, kwargs) = match target {
            Target::Operator { .. } => match self.operators.find(&node.target) {
                Some(id) => self.by_schema(node, self.operators.registry().schema(id))?,
                None => self.by_kind(node)?,
            },
            Target::HigherOrder(_) => self.by_name(node)?,
            Target::Function(_) => self.by_kind(node)?,
        };
        let single = single_result(node, target);
        let candidate = match (&node.name, single) {
            (Some(name), _) => Cow::Borrowed(name.as_str()),
            (None, Some(name)) => Cow::Borrowed(name),
            (None, None) => Cow::Owned(default_name(target)),
        };
        let index = self.push(FxOp::Call, &candidate, &node.target, Some(&node.metadata));
        let made = self.at(index);
        (made.args, made.kwargs) = (args, kwargs);
        match (single, &node.outputs[..]) {
            (Some(name), _) => self.define(name, index),
            (None, []) => Ok(()),
            (None, [Argument::None]) if self.style > Style::Torch26 => {
                self.rename(index, &format!("{}_unused", default_name(target)));
                Ok(())
            }
            (None, [Argument::Tensors(names)]) => self.elements(index, node, names),
            (None, outputs) => self.results(index, node, outputs),
        }
    }

    /// Makes a `getitem` node per element of a list of tensors.
    fn elements(&mut self, of: NodeIndex, node: &'m NodeModel, names: &'m [String]) -> Res<()> {
        for (n, name) in names.iter().enumerate() {
            let item = self.getitem(of, n, name, node);
            self.define(name, item)?;
        }
        Ok(())
    }

    /// Makes a `getitem` node per result.
    fn results(&mut self, of: NodeIndex, node: &'m NodeModel, outputs: &'m [Argument]) -> Res<()> {
        for (n, output) in outputs.iter().enumerate() {
            match output {
                Argument::None => {
                    self.getitem(of, n, "as_none", node);
                }
                Argument::Tensors(names) => {
                    let list = self.getitem(of, n, "getitem", node);
                    self.elements(list, node, names)?;
                }
                other => match other.name() {
                    Some(name) => {
                        let item = self.getitem(of, n, name, node);
                        self.define(name, item)?;
                    }
                    None => {
                        let message = "a result of a node is neither a value nor a list of values";
                        return Err(ExportError::new(ExportCode::Field, message)
                            .in_item(n)
                            .in_field("outputs"));
                    }
                },
            }
        }
        Ok(())
    }

    fn getitem(&mut self, of: NodeIndex, n: usize, name: &str, node: &'m NodeModel) -> NodeIndex {
        let item = self.push(FxOp::Call, name, GETITEM, Some(&node.metadata));
        self.at(item).args = vec![FxArg::Node(of), FxArg::Int(n as i64)];
        item
    }

    /// Sorts arguments by the schema of their operator.
    fn by_schema(&mut self, node: &'m NodeModel, schema: &FunctionSchema) -> Res<Passed<'m>> {
        let mut by_parameter: Vec<Option<(&'m NamedArgument, FxArg<'m>)>> = Vec::new();
        by_parameter.resize_with(schema.args.len(), || None);
        for (n, input) in node.inputs.iter().enumerate() {
            let value = self.argument(&input.arg, node).map_err(|e| in_input(e, n))?;
            let parameter = schema.args.iter().position(|a| a.name.as_str() == input.name);
            let Some(parameter) = parameter else {
                let operator = quoted(&node.target);
                let message = format!("{operator} has no parameter {}", quoted(&input.name));
                return Err(in_input(ExportError::new(ExportCode::Argument, message), n));
            };
            by_parameter[parameter] = Some((input, value));
        }
        let (mut args, mut kwargs) = (Vec::new(), Vec::new());
        for (parameter, found) in schema.args.iter().zip(by_parameter) {
            let required = parameter.default.is_none() && !parameter.kwarg_only;
            let Some((input, value)) = found else {
                if required {
                    let name = quoted(parameter.name.as_str());
                    let message = format!("the argument {name} of {} is missing", quoted(&node.target));
                    return Err(ExportError::new(ExportCode::Argument, message).in_field("inputs"));
                }
                continue;
            };
            let keyword = match input.kind {
                Some(ArgumentKind::Positional) => false,
                Some(ArgumentKind::Keyword) => !is_keyword(&input.name),
                None => !required && !is_keyword(&input.name),
            };
            match keyword {
                true => kwargs.push((&*input.name, value)),
                false => args.push(value),
            }
        }
        Ok((args, kwargs))
    }

    /// Sorts arguments of a function without a schema.
    fn by_kind(&mut self, node: &'m NodeModel) -> Res<Passed<'m>> {
        self.sorted(node, |input| input.kind == Some(ArgumentKind::Keyword))
    }

    /// Sorts arguments of a higher-order operator: those with a name are keyword arguments.
    fn by_name(&mut self, node: &'m NodeModel) -> Res<Passed<'m>> {
        self.sorted(node, |input| !input.name.is_empty())
    }

    fn sorted(&mut self, node: &'m NodeModel, by_name: fn(&NamedArgument) -> bool) -> Res<Passed<'m>> {
        let (mut args, mut kwargs) = (Vec::new(), Vec::new());
        for (n, input) in node.inputs.iter().enumerate() {
            let value = self.argument(&input.arg, node).map_err(|e| in_input(e, n))?;
            match by_name(input) {
                true => kwargs.push((&*input.name, value)),
                false => args.push(value),
            }
        }
        Ok((args, kwargs))
    }

    /// Resolves an argument of a node. A subgraph becomes a node before it.
    fn argument(&mut self, arg: &'m Argument, node: &'m NodeModel) -> Res<FxArg<'m>> {
        if let Argument::Graph { name, graph } = arg {
            let names = Names { are_made: self.names.is_some(), style: self.style };
            let built = build_with(graph, None, self.operators.registry(), names)
                .map_err(|e| e.in_field("graph").in_field("as_graph"))?;
            self.graph.subgraphs.insert(name.clone(), built);
            return Ok(FxArg::Node(self.push(FxOp::GetAttr, name, name, Some(&node.metadata))));
        }
        self.value(arg)
    }

    fn value(&mut self, arg: &'m Argument) -> Res<FxArg<'m>> {
        Ok(match arg {
            Argument::None | Argument::OptionalTensor(None) => FxArg::None,
            Argument::Tensor(name) | Argument::OptionalTensor(Some(name)) => FxArg::Node(self.find(name)?),
            Argument::CustomObj { name, .. } => match self.by_name.get(name.as_str()) {
                Some(&node) => FxArg::Node(node),
                None => FxArg::Object(name),
            },
            Argument::Tensors(names) => self.names_list(names)?,
            Argument::OptionalTensors(names) => {
                let item = |name: &'m Option<String>| match name {
                    Some(name) => self.find(name).map(FxArg::Node),
                    None => Ok(FxArg::None),
                };
                FxArg::List(names.iter().map(item).collect::<Res<_>>()?)
            }
            Argument::NestedTensors(lists) => {
                FxArg::List(lists.iter().map(|names| self.names_list(names)).collect::<Res<_>>()?)
            }
            Argument::Int(v) => FxArg::Int(*v),
            Argument::Ints(v) => list(v, FxArg::Int),
            Argument::IntLists(lists) => FxArg::List(lists.iter().map(|v| list(v, FxArg::Int)).collect()),
            Argument::Float(v) => FxArg::Float(*v),
            Argument::Floats(v) => list(v, FxArg::Float),
            Argument::FloatLists(lists) => FxArg::List(lists.iter().map(|v| list(v, FxArg::Float)).collect()),
            Argument::Complex { real, imag } => FxArg::Complex(*real, *imag),
            Argument::String(v) => FxArg::Str(v),
            Argument::Strings(v) => FxArg::List(v.iter().map(|v| FxArg::Str(v)).collect()),
            Argument::Bool(v) => FxArg::Bool(*v),
            Argument::Bools(v) => list(v, FxArg::Bool),
            Argument::SymInt(v) => self.sym(v, FxArg::Int)?,
            Argument::SymInts(v) => {
                FxArg::List(v.iter().map(|v| self.sym(v, FxArg::Int)).collect::<Res<_>>()?)
            }
            Argument::SymFloat(v) => self.sym(v, FxArg::Float)?,
            Argument::SymFloats(v) => {
                FxArg::List(v.iter().map(|v| self.sym(v, FxArg::Float)).collect::<Res<_>>()?)
            }
            Argument::SymBool(v) => self.sym(v, FxArg::Bool)?,
            Argument::SymBools(v) => {
                FxArg::List(v.iter().map(|v| self.sym(v, FxArg::Bool)).collect::<Res<_>>()?)
            }
            Argument::ScalarType(v) => FxArg::ScalarType(*v),
            Argument::MemoryFormat(v) => FxArg::MemoryFormat(*v),
            Argument::Layout(v) => FxArg::Layout(*v),
            Argument::Device(v) => FxArg::Device(v),
            Argument::Operator(v) => FxArg::Operator(v),
            Argument::Dict(items) => {
                let mut out = Vec::with_capacity(items.len());
                for (key, item) in items {
                    out.push((&**key, self.value(item).map_err(|e| e.in_field(key))?));
                }
                FxArg::Dict(out)
            }
            Argument::Graph { .. } => {
                let message = "a subgraph is not an argument of a node";
                return Err(ExportError::new(ExportCode::Argument, message));
            }
        })
    }

    fn names_list(&self, names: &'m [String]) -> Res<FxArg<'m>> {
        Ok(FxArg::List(names.iter().map(|name| self.find(name).map(FxArg::Node)).collect::<Res<_>>()?))
    }

    fn sym<T: Copy>(&self, value: &'m Sym<T>, constant: fn(T) -> FxArg<'m>) -> Res<FxArg<'m>> {
        Ok(match value {
            Sym::Name(name) => FxArg::Node(self.find(name)?),
            Sym::Value(v) => constant(*v),
        })
    }

    /// Makes the output node: a tuple, or a bare value in some subgraphs.
    fn output(&mut self) -> Res<()> {
        let model = self.graph.model;
        let mut values = Vec::with_capacity(model.outputs.len());
        for (n, output) in model.outputs.iter().enumerate() {
            values.push(self.value(output).map_err(|e| e.in_item(n).in_field("outputs"))?);
        }
        let value = match (model.is_single_tensor_return, &values[..]) {
            (true, [only]) => only.clone(),
            _ => FxArg::Tuple(values),
        };
        let node = self.push(FxOp::Output, "output", "output", None);
        self.at(node).args = vec![value];
        Ok(())
    }
}

/// Positional and keyword arguments.
type Passed<'m> = (Vec<FxArg<'m>>, Vec<(&'m str, FxArg<'m>)>);

fn in_input(error: ExportError, n: usize) -> ExportError {
    error.in_field("arg").in_item(n).in_field("inputs")
}

fn list<'m, T: Copy>(values: &[T], item: fn(T) -> FxArg<'m>) -> FxArg<'m> {
    FxArg::List(values.iter().map(|&v| item(v)).collect())
}

/// Returns the name of the value that the node itself is: its only result, which is no element of a tuple.
fn single_result<'m>(node: &'m NodeModel, target: Target<'_>) -> Option<&'m str> {
    let [only] = &node.outputs[..] else { return None };
    let is_tuple =
        matches!(target, Target::HigherOrder(_)) && node.is_hop_single_tensor_return == Some(false);
    only.name().filter(|_| !is_tuple)
}

/// Returns the name that a node gets from its operator.
fn default_name(target: Target<'_>) -> String {
    match target {
        Target::Operator { name, overload, .. } => Namespace::of_target(&format!("{name}.{overload}")),
        Target::HigherOrder(name) => Namespace::of_target(name),
        Target::Function(path) => Namespace::of_target(path.rsplit('.').next().unwrap_or(path)),
    }
}

/// Returns the metadata of a value.
pub(crate) fn val_of<'m>(model: &'m GraphModel, name: &str) -> Val<'m> {
    if let Some(meta) = model.tensor_values.get(name) {
        return Val::Tensor(meta);
    }
    if let Some(value) = model.sym_int_values.get(name) {
        return Val::Int(value);
    }
    if let Some(value) = model.sym_float_values.get(name) {
        return Val::Float(value);
    }
    model.sym_bool_values.get(name).map_or(Val::None, Val::Bool)
}
