//! The exported graph so far, and the names of tensors in it.
//!
//! A tensor is found by identity ([`Tensor::id`]); the recorder keeps every tensor that has a name alive, so that no other
//! one gets its identity. A tensor without a name that an operator takes is a constant of the program, and becomes an
//! input of the graph (a *lifted* constant) when it is first used.
//!
//! Subgraphs are built in scopes ([`super::scope`]), the innermost last.
//!
//! Storages that depend on arguments, parameters, buffers or random numbers are *varying*. A number that is read from
//! another storage is the same in every call, so it is a constant.

use super::aliases::Aliases;
use super::constraints::Narrowing;
use super::scope::{Marks, Scope};
use super::sizes::{Sizes, SymbolicCall};
use super::state::State;
use super::symbolic::Symbolic;
use super::{DynamicSize, Res, copied, refused};
use flambeau_analysis::shape::Dim;
use flambeau_export::ExportError;
use flambeau_export::expr::Exprs;
use flambeau_export::model::{
    Argument, Constant, GraphModel, InputSpec, Map, NodeModel, OutputSpec, RangeConstraint, Sym, TensorMeta,
    Weight,
};
use flambeau_ir::module::AttributeKind;
use flambeau_ir::value::Object;
use flambeau_ir::{Effects, IValue, OpId, Registry};
use flambeau_tensor::Tensor;
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

type Table<V> = HashMap<usize, V, FxBuildHasher>;
type IdSet = HashSet<usize, FxBuildHasher>;

/// Prefixes of placeholders, as in PyTorch.
const PARAMETER: &str = "p_";
const BUFFER: &str = "b_";
pub(super) const CONSTANT: &str = "c_";

pub(super) struct Recorder {
    registry: Arc<Registry>,
    pub(super) state: Option<State>,
    pub(super) scopes: Vec<Scope>,
    /// The tensors that have a name, and containers whose identities are stored.
    kept: Vec<IValue>,
    /// Storages that depend on arguments, state or random numbers, by address.
    varying: IdSet,
    /// Names of the attributes that are plain tensors, by identity.
    plain: Table<String>,
    /// Constants of functions by identity.
    literals: IdSet,
    /// Storages of constants, which must not be written.
    fixed: IdSet,
    inputs: Vec<(Argument, InputSpec)>,
    /// The parameters and buffers among the inputs.
    state_inputs: Vec<(Tensor, InputSpec)>,
    /// Whether operators of the graph must not write.
    pub(super) is_functional: bool,
    constants: Vec<(String, String, Tensor)>,
    pub(super) marks: Marks,
    pub(super) exprs: Exprs,
    pub(super) sizes: Sizes,
    /// Views and their memory, in a program without writes.
    pub(super) aliases: Aliases,
    /// Ranges of symbolic floats.
    pub(super) ranges: Map<RangeConstraint>,
    /// The sizes that the caller lets vary.
    pub(super) dynamic: Vec<DynamicSize>,
    /// Branches that restrict sizes beyond the bounds that the caller states.
    pub(super) narrowings: Vec<Narrowing>,
    /// Symbolic elements of lists and tuples, by identity.
    pub(super) symbols: Table<Vec<Option<Symbolic>>>,
    /// Paths of the modules that were called, in order, each once.
    called: indexmap::IndexSet<String, FxBuildHasher>,
}

/// The parts of a recorded program.
pub(super) struct Parts {
    pub(super) graph: GraphModel,
    /// Inputs of the graph before those of the user.
    pub(super) inputs: Vec<(Argument, InputSpec)>,
    pub(super) exprs: Exprs,
    pub(super) ranges: Map<RangeConstraint>,
    pub(super) state_dict: Map<Weight>,
    pub(super) constants: Map<Constant>,
    pub(super) called: Vec<String>,
}

impl Recorder {
    pub(super) fn new(registry: &Arc<Registry>, state: Option<State>, dynamic: &[DynamicSize]) -> Recorder {
        let mut plain = Table::default();
        let mut kept = Vec::new();
        for found in state.iter().flat_map(State::plain) {
            kept.push(IValue::Tensor(found.tensor.clone()));
            plain.entry(found.tensor.id()).or_insert(found.path);
        }
        Recorder {
            registry: Arc::clone(registry),
            state,
            scopes: vec![Scope::default()],
            kept,
            varying: IdSet::default(),
            plain,
            literals: IdSet::default(),
            fixed: IdSet::default(),
            inputs: Vec::new(),
            state_inputs: Vec::new(),
            is_functional: false,
            constants: Vec::new(),
            marks: Marks::default(),
            narrowings: Vec::new(),
            exprs: Exprs::new(),
            sizes: Sizes::default(),
            aliases: Aliases::default(),
            ranges: Map::default(),
            dynamic: dynamic.to_vec(),
            symbols: Table::default(),
            called: indexmap::IndexSet::default(),
        }
    }

    pub(super) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub(super) fn receiver(&self) -> Option<IValue> {
        self.state.as_ref().map(|state| IValue::Object(state.receiver().clone()))
    }

    pub(super) fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("invariant: the root scope is open until the end")
    }

    /// Adds an input for a leaf of the arguments.
    pub(super) fn user_input(&mut self, path: &str, leaf: &IValue) -> Res<(Argument, InputSpec)> {
        let name = self.scope().builder.input_name(&path.to_lowercase());
        if let IValue::Tensor(tensor) = leaf {
            self.vary(path, tensor)?;
            let meta = self.meta(tensor)?;
            self.scope().builder.define(&name, meta);
            self.varying.insert(tensor.storage().address());
            // A tensor that is passed twice has the first name.
            self.kept.push(leaf.clone());
            self.aliases.input(tensor);
            self.scope().names.entry(tensor.id()).or_insert_with(|| name.clone());
            let arg = Argument::Tensor(name);
            return Ok((arg.clone(), InputSpec::UserInput { arg }));
        }
        let value = constant(leaf).map_err(|e| e.in_field(&name))?;
        Ok((value.clone(), InputSpec::ConstantInput { name, value }))
    }

    /// Makes sizes of an argument symbolic, as the caller requests.
    fn vary(&mut self, path: &str, tensor: &Tensor) -> Res<()> {
        let mut dims: Vec<Dim> = tensor.sizes().iter().map(|&n| Dim::Known(n)).collect();
        for own in self.dynamic.iter().filter(|own| own.input == path) {
            let Some(&size) = tensor.sizes().get(own.dim) else {
                return Err(refused(format!("`{path}` has no dimension {}", own.dim)));
            };
            dims[own.dim] = self.sizes.create_dynamic_dim(own, size, &mut self.exprs)?;
        }
        self.sizes.set(tensor, dims, &[]);
        Ok(())
    }

    /// Returns the metadata of a tensor.
    pub(super) fn meta(&mut self, tensor: &Tensor) -> Result<TensorMeta, ExportError> {
        self.sizes.meta(tensor, &mut self.exprs).ok_or_else(|| {
            let message = format!("tensors of dtype {} cannot be written", tensor.dtype().name());
            ExportError::new(flambeau_export::ExportCode::Version, message)
        })
    }

    /// Adds inputs for the parameters and buffers of the module.
    pub(super) fn add_state(&mut self) -> Result<(), ExportError> {
        for kind in [AttributeKind::Parameter, AttributeKind::Buffer] {
            let found = self.state.as_ref().map(|state| state.of_kind(kind)).unwrap_or_default();
            for own in found {
                let prefix = if kind == AttributeKind::Parameter { PARAMETER } else { BUFFER };
                let arg = self.placeholder(prefix, &own.path, &own.tensor)?;
                let target = own.path.clone();
                let spec = match kind {
                    AttributeKind::Parameter => InputSpec::Parameter { arg: arg.clone(), target },
                    _ => InputSpec::Buffer { arg: arg.clone(), target, persistent: true },
                };
                self.varying.insert(own.tensor.storage().address());
                self.state_inputs.push((own.tensor, spec.clone()));
                self.inputs.push((Argument::Tensor(arg), spec));
            }
        }
        Ok(())
    }

    /// Names a tensor that is an input of the root graph.
    pub(super) fn placeholder(
        &mut self,
        prefix: &str,
        path: &str,
        tensor: &Tensor,
    ) -> Result<String, ExportError> {
        let plain: String = path
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .collect();
        let meta = self.meta(tensor)?;
        let root = &mut self.scopes[0];
        let name = root.builder.input_name(&format!("{prefix}{plain}"));
        root.builder.define(&name, meta);
        root.names.insert(tensor.id(), name.clone());
        self.kept.push(IValue::Tensor(tensor.clone()));
        self.aliases.input(tensor);
        Ok(name)
    }

    /// Gives a tensor a name in the innermost scope, with metadata that is known.
    pub(super) fn bind(&mut self, tensor: &Tensor, name: &str, meta: impl Into<Arc<TensorMeta>>) {
        let scope = self.scope();
        scope.builder.define(name, meta);
        scope.names.insert(tensor.id(), name.to_owned());
        self.kept.push(IValue::Tensor(tensor.clone()));
        self.mark_varying(tensor);
    }

    /// Sets the symbolic sizes of a tensor that a node of the innermost scope has made.
    pub(super) fn resize(&mut self, tensor: &Tensor, dims: Vec<Dim>) -> Res<()> {
        self.sizes.set(tensor, dims, &[]);
        let name = self.name_of(tensor)?;
        let meta = self.meta(tensor)?;
        if let Some(known) = self.scope().builder.graph.tensor_values.get_mut(&name) {
            let known = Arc::make_mut(known);
            (known.sizes, known.strides) = (meta.sizes, meta.strides);
        }
        Ok(())
    }

    /// Returns the constants that the run has lifted, with the inputs for them.
    pub(super) fn lifted(&self) -> &[(String, String, Tensor)] {
        &self.constants
    }

    /// Numbers lifted constants from a number on, after those that a program has.
    pub(super) fn lift_from(&mut self, number: usize) {
        self.marks.lifted = number;
    }

    /// Keeps tensors alive whose identities are stored.
    pub(super) fn keep(&mut self, values: &[IValue]) {
        self.kept.extend_from_slice(values);
    }

    /// Gives the name of a tensor to another one, which takes its place among the views.
    pub(super) fn rename(&mut self, from: &Tensor, to: &Tensor) -> Res<()> {
        let name = self.name_of(from)?;
        let scope = self.scope();
        scope.names.remove(&from.id());
        scope.names.insert(to.id(), name);
        self.aliases.replace(from, to);
        let dims = self.sizes.of(from).map(<[Dim]>::to_vec);
        if let Some(dims) = dims {
            self.sizes.set(to, dims, &[from]);
        }
        self.kept.push(IValue::Tensor(to.clone()));
        Ok(())
    }

    /// Returns another tensor with the memory and the name of a tensor, for its value at this time.
    pub(super) fn snapshot(&mut self, tensor: &Tensor) -> Res<Tensor> {
        let name = self.name_of(tensor)?;
        let made = Tensor::from_storage(tensor.storage().clone(), tensor.dtype(), tensor.layout().clone());
        let made = copied(&made.map_err(flambeau_exec::KernelError::from)?)?;
        let dims = self.sizes.of(tensor).map(<[Dim]>::to_vec);
        if let Some(dims) = dims {
            self.sizes.set(&made, dims, &[]);
        }
        if self.varies(tensor) {
            self.mark_varying(&made);
        }
        self.scope().names.insert(made.id(), name);
        self.kept.push(IValue::Tensor(made.clone()));
        Ok(made)
    }

    /// Returns the name of a tensor that becomes a constant of the program, and whether its content never changes.
    pub(super) fn constant_name(&mut self, tensor: &Tensor) -> (String, bool) {
        let attribute = self.plain.get(&tensor.id()).cloned();
        let is_fixed = attribute.is_some() || self.literals.contains(&tensor.id());
        let name = attribute.unwrap_or_else(|| {
            self.marks.lifted += 1;
            format!("lifted_tensor_{}", self.marks.lifted - 1)
        });
        if is_fixed {
            self.fixed.insert(tensor.storage().address());
        }
        (name, is_fixed)
    }

    /// Adds a constant of the program.
    pub(super) fn lifted_constant(&mut self, arg: String, target: String, contents: Tensor) {
        self.constants.push((arg, target, contents));
    }

    /// Removes constants whose placeholders have these names; returns their number.
    pub(super) fn discard_constants(&mut self, names: &[String]) -> usize {
        let before = self.constants.len();
        self.constants.retain(|(arg, ..)| !names.contains(arg));
        for name in names {
            self.scopes[0].builder.graph.tensor_values.shift_remove(name);
        }
        before - self.constants.len()
    }

    /// Returns whether a tensor is a constant of the program.
    pub(super) fn is_constant(&self, tensor: &Tensor) -> bool {
        self.fixed.contains(&tensor.storage().address()) || self.plain.contains_key(&tensor.id())
    }

    /// Marks a tensor as a constant of a function.
    pub(super) fn literal(&mut self, tensor: &Tensor) {
        if self.literals.insert(tensor.id()) {
            self.kept.push(IValue::Tensor(tensor.clone()));
        }
    }

    /// Returns whether the contents of a tensor depend on the arguments of the call.
    pub(super) fn varies(&self, tensor: &Tensor) -> bool {
        self.varying.contains(&tensor.storage().address())
    }

    /// Records the results of an operator, and that they depend on the operands.
    pub(super) fn results(
        &mut self,
        name: &str,
        effects: Effects,
        operands: &[IValue],
        results: &[IValue],
    ) -> Res<(Option<String>, Vec<Argument>)> {
        let mut varies = effects.contains(Effects::RANDOM);
        operands.iter().for_each(|value| value.visit_tensors(|tensor| varies |= self.varies(tensor)));
        if varies {
            if effects.contains(Effects::WRITES) {
                operands.iter().for_each(|v| v.visit_tensors(|tensor| self.mark_varying(tensor)));
            }
            results.iter().for_each(|v| v.visit_tensors(|tensor| self.mark_varying(tensor)));
        }
        let mut outputs = Vec::with_capacity(results.len());
        if let [IValue::Tensor(tensor)] = results {
            let own = self.scope().builder.node_name(name);
            self.define(&own, tensor)?;
            outputs.push(Argument::Tensor(own.clone()));
            return Ok((Some(own), outputs));
        }
        let own = self.scope().builder.node_name(name);
        for result in results {
            outputs.push(match result {
                IValue::None => Argument::None,
                IValue::Tensor(tensor) => Argument::Tensor(self.element(tensor)?),
                IValue::List(list) => {
                    let tensors = list.to_tensors();
                    let tensors = tensors.ok_or_else(|| {
                        refused(format!("`{name}` returns a list with other values than tensors"))
                    })?;
                    Argument::Tensors(tensors.iter().map(|tensor| self.element(tensor)).collect::<Res<_>>()?)
                }
                other => return Err(refused(format!("`{name}` returns tensors and a {}", other.tag()))),
            });
        }
        Ok((Some(own), outputs))
    }

    /// Infers the symbolic sizes of an operator's results.
    pub(super) fn infer(
        &mut self,
        op: OpId,
        operands: &[IValue],
        symbols: &[Option<Symbolic>],
        results: &[IValue],
    ) -> Res<()> {
        let numbers: Vec<Option<Dim>> = symbols.iter().map(|s| s.as_ref().and_then(Symbolic::dim)).collect();
        let dims = |symbols: &Vec<Option<Symbolic>>| {
            symbols.iter().map(|symbol| symbol.as_ref().and_then(Symbolic::dim)).collect()
        };
        let lists: Vec<Option<Vec<Option<Dim>>>> =
            operands.iter().map(|value| self.symbols_of(value).map(dims)).collect();
        let registry = Arc::clone(&self.registry);
        let call = SymbolicCall { op, operands, numbers, lists, results };
        self.sizes.infer(&registry, &call, &mut self.exprs, &mut self.marks.unbacked)
    }

    fn element(&mut self, tensor: &Tensor) -> Res<String> {
        let name = self.scope().builder.node_name("getitem");
        self.define(&name, tensor)?;
        Ok(name)
    }

    /// Names a tensor that a node of the innermost scope defines.
    pub(super) fn define(&mut self, name: &str, tensor: &Tensor) -> Res<()> {
        // Only inputs are leaves of the computation of gradients.
        let meta = TensorMeta { requires_grad: false, ..self.meta(tensor)? };
        let scope = self.scope();
        scope.builder.define(name, meta);
        scope.names.insert(tensor.id(), name.to_owned());
        self.kept.push(IValue::Tensor(tensor.clone()));
        Ok(())
    }

    /// Marks the results of a node of a subgraph as varying.
    pub(super) fn mark_varying(&mut self, tensor: &Tensor) {
        self.varying.insert(tensor.storage().address());
    }

    /// Stores symbolic elements of a list or tuple.
    pub(super) fn set_symbols(&mut self, container: &IValue, symbols: Vec<Option<Symbolic>>) {
        if let Some(id) = container_id(container) {
            self.kept.push(container.clone());
            self.symbols.insert(id, symbols);
        }
    }

    /// Returns the symbolic elements of a list or tuple.
    pub(super) fn symbols_of(&self, container: &IValue) -> Option<&Vec<Option<Symbolic>>> {
        if self.symbols.is_empty() {
            return None;
        }
        self.symbols.get(&container_id(container)?)
    }

    /// Returns the next number for names of subgraphs.
    pub(super) fn subgraph_number(&mut self) -> usize {
        self.marks.subgraphs += 1;
        self.marks.subgraphs - 1
    }

    pub(super) fn called(&mut self, path: &str) {
        if !path.is_empty() && !self.called.contains(path) {
            self.called.insert(path.to_owned());
        }
    }

    /// Returns the buffers that the program replaced, with their new values, and the changed attributes that are not tensors.
    pub(super) fn changed_attributes(&self) -> Res<(Vec<(Tensor, Tensor)>, Vec<String>)> {
        let (mut replaced, mut other_attributes) = (Vec::new(), Vec::new());
        for changed in self.state.as_ref().map(State::changed).unwrap_or_default() {
            if !changed.is_state {
                other_attributes.push(changed.path);
                continue;
            }
            let fits =
                |(old, new): &(Tensor, Tensor)| old.sizes() == new.sizes() && old.dtype() == new.dtype();
            replaced.push(changed.tensors.filter(fits).ok_or_else(|| {
                refused(format!(
                    "the program changes the attribute `{}`, which is not a buffer, or gives it another size or dtype",
                    changed.path
                ))
            })?);
        }
        Ok((replaced, other_attributes))
    }

    /// Returns the outputs for the inputs that the program writes: buffers and parameters, then arguments.
    pub(super) fn mutations(
        &mut self,
        user: &[(Argument, InputSpec)],
        leaves: &[(String, IValue)],
    ) -> Res<Vec<OutputSpec>> {
        let mut found = Vec::new();
        for (tensor, spec) in self.state_inputs.clone() {
            if !self.aliases.is_written(&tensor) {
                continue;
            }
            let arg = self.name_of(&tensor)?;
            found.push(match spec {
                InputSpec::Parameter { target, .. } => OutputSpec::ParameterMutation { arg, target },
                InputSpec::Buffer { target, .. } => OutputSpec::BufferMutation { arg, target },
                _ => continue,
            });
        }
        let mut seen = HashSet::<usize, FxBuildHasher>::default();
        for ((arg, _), (_, leaf)) in user.iter().zip(leaves) {
            if let (IValue::Tensor(tensor), Some(target)) = (leaf, arg.name())
                && self.aliases.is_written(tensor)
                && seen.insert(tensor.id())
            {
                let arg = self.name_of(tensor)?;
                found.push(OutputSpec::UserInputMutation { arg, target: target.to_owned() });
            }
        }
        Ok(found)
    }

    /// Returns the output of the graph for a leaf of the result.
    pub(super) fn output(&mut self, leaf: &IValue) -> Res<Argument> {
        match leaf {
            IValue::Tensor(tensor) => Ok(Argument::Tensor(self.name_of(tensor)?)),
            other => Ok(constant(other).map_err(|e| e.in_field("the result"))?),
        }
    }

    /// Returns the graph with these outputs and everything around it.
    pub(super) fn finish(mut self, outputs: Vec<Argument>) -> Parts {
        let registry = Arc::clone(&self.registry);
        let mut root = self.scopes.swap_remove(0).builder;
        root.graph.outputs = outputs;
        root.remove_unused(|node| must_run(&registry, node));
        let mut used = std::collections::BTreeSet::new();
        let operands = root.graph.nodes.iter().flat_map(|node| &node.inputs).map(|input| &input.arg);
        for arg in operands.chain(&root.graph.outputs) {
            arg.for_each_name(&mut |name| used.extend([name.to_owned()]));
        }
        let mut constants = Map::default();
        for (arg, target, tensor) in self.constants {
            if !used.contains(&arg) {
                root.graph.tensor_values.shift_remove(&arg);
                continue;
            }
            constants.insert(target.clone(), Constant::Tensor(tensor));
            self.inputs.push((Argument::Tensor(arg.clone()), InputSpec::TensorConstant { arg, target }));
        }
        let symbols = root.symbols(&self.exprs);
        self.ranges.extend(self.sizes.ranges());
        self.ranges.retain(|symbol, _| symbols.contains(symbol));
        Parts {
            graph: root.graph,
            inputs: self.inputs,
            exprs: self.exprs,
            ranges: self.ranges,
            state_dict: self.state.map(|state| state.state_dict).unwrap_or_default(),
            constants,
            called: self.called.into_iter().collect(),
        }
    }

    /// Returns path and class of a module.
    pub(super) fn module(&self, object: &Object) -> Option<(String, String)> {
        self.state.as_ref()?.module(object).cloned()
    }
}

/// Returns whether a node must run although nothing uses its results.
pub(super) fn must_run(registry: &Registry, node: &NodeModel) -> bool {
    let Some(op) = flambeau_export::fx::Target::parse(&node.target).operator(registry) else {
        return node.target.starts_with("torch.ops.higher_order.");
    };
    let effects = registry.effects(op);
    node.outputs.is_empty()
        || effects.contains(Effects::WRITES)
        || effects.contains(Effects::RANDOM)
        || effects.has_side_effects()
}

/// Returns the identity of a value that can be changed.
pub(super) fn container_id(value: &IValue) -> Option<usize> {
    match value {
        IValue::List(list) => Some(list.id()),
        IValue::Dict(dict) => Some(dict.id()),
        IValue::Tuple(tuple) => Some(tuple.id()),
        IValue::Object(object) => Some(object.id()),
        _ => None,
    }
}

/// Returns a leaf of arguments or results that is not a tensor.
fn constant(leaf: &IValue) -> Result<Argument, ExportError> {
    Ok(match leaf {
        IValue::None => Argument::None,
        IValue::Bool(b) => Argument::Bool(*b),
        IValue::Int(n) => Argument::Int(*n),
        IValue::Float(x) => Argument::Float(*x),
        IValue::Str(text) => Argument::String(text.to_text().into_owned()),
        other => {
            let message = format!("a {} cannot be an argument or result of an exported program", other.tag());
            return Err(ExportError::new(flambeau_export::ExportCode::Export, message));
        }
    })
}

/// Returns the argument for a symbolic number.
pub(super) fn sym_argument(symbol: &Symbolic, name: String) -> Argument {
    match symbol.value {
        IValue::Float(_) => Argument::SymFloat(Sym::Name(name)),
        IValue::Bool(_) => Argument::SymBool(Sym::Name(name)),
        _ => Argument::SymInt(Sym::Name(name)),
    }
}
