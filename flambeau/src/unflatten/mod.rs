//! Exported programs as modules with submodules: the hierarchy that `torch.export` flattened.
//!
//! [`ExportedProgram::unflatten`] starts from the flat module of [`ExportedProgram::to_module`] and divides its method by the module
//! stacks of nodes (`stack.rs`, `regions.rs`). The nodes of each call of a submodule become a method of that module's class, and the
//! caller calls it. Modules have their original paths and classes, tensors their original names. A tensor that has several names is one
//! tensor, and a module reads it by the name that is below its own path; a tensor of another module is an argument.
//!
//! Calls of one module whose nodes are equal share the method `forward`; a call with other nodes, such as one with other constants,
//! has a method of its own, `forward1`. PyTorch makes a copy of the module for it instead. If the program keeps the signature of
//! a call, its method has these arguments and results; otherwise they are the values that cross the border of the region.
//!
//! Nodes keep their order, so the effects of the program are those of the flat module.

mod interface;
mod regions;
mod same;
mod stack;

use crate::error::Error;
use crate::exported::ExportedProgram;
use crate::exported_module::{CLASS, Flat, State, Tree, is_name, unpack};
use crate::program::Program;
use flambeau_export::model::{Constant, InputSpec};
use flambeau_ir::attr::names;
use flambeau_ir::module::{AttributeKind, Function};
use flambeau_ir::schema::Argument;
use flambeau_ir::{
    At, Attr, CloneError, CompilationUnit, Editor, Fault, FunctionSchema, Graph, NodeId, Prim, Symbol, Type,
    ValueId, ValueSubstitution,
};
use flambeau_tensor::Tensor;
use hashbrown::{HashMap, HashSet};
use indexmap::IndexMap;
use interface::{Interface, KeptSignatures};
use regions::{Item, Region, Regions, uses};
use rustc_hash::FxBuildHasher;
use same::{fingerprint, is_same};
use stack::{Stacks, below};
use std::sync::Arc;

type Table<K, V> = HashMap<K, V, FxBuildHasher>;

impl ExportedProgram {
    /// Returns the program as a TorchScript module with the submodules that it was exported with, as `torch.export.unflatten` does.
    /// The module has the same tensors, and can be called, frozen and saved as `.pt`. The program's nodes must state their
    /// modules; those that do not belong to the module of the node before them.
    ///
    /// # Errors
    /// As [`ExportedProgram::to_module`]; `E015` also for paths of modules that cannot be those of attributes.
    pub fn unflatten(&self) -> Result<Program, Error> {
        let mut unit = CompilationUnit::new();
        let tensors = Tensors::new(self);
        let mut tree = tensors.tree()?;
        let mut classes = self.modules(&mut tree)?;
        let object = tree.object(&mut unit, "", &mut |path| classes.name(path))?;
        let mut flat = self.forward(object.class(), &unit)?;
        use_written_operands(Arc::make_mut(&mut flat.function.graph));
        let types = module_types(&unit, object.class());
        let functions = Methods::new(self, &flat, &unit, &types, &tensors).all()?;
        for (class, method, function) in functions {
            let name = function.name;
            unit.define_function(function);
            if let Some(class) = unit.class_mut(class) {
                class.methods.insert(method, name);
            }
        }
        Ok(self.program_of(unit, object))
    }

    /// Adds the modules of the program to the tree, also those without tensors, and returns the names of their classes.
    fn modules(&self, tree: &mut Tree) -> Result<Classes, Error> {
        let mut classes = Classes::default();
        let mut stacks = Stacks::default();
        let graph = self.graph();
        let mut add = |path: &str| {
            let wrong =
                || crate::exported_module::unsupported(format!("the module `{}`", path.escape_debug()));
            tree.module(path).map(|_| ()).ok_or_else(wrong)
        };
        for node in graph.nodes(graph.root()) {
            let text = self.metadata().origin(node).and_then(|origin| origin.metadata.get("nn_module_stack"));
            let Some(text) = text else { continue };
            for frame in stacks.get(text).iter().flat_map(|stack| stack.iter()) {
                if classes.declare(&frame.path, &frame.class) {
                    add(&frame.path)?;
                }
            }
        }
        for call in &self.model().module.module_call_graph {
            let path = call.fqn.split('@').next().unwrap_or_default();
            if !path.is_empty() && classes.declare(path, "") {
                add(path)?;
            }
        }
        Ok(classes)
    }
}

/// Replaces results that are the written operand itself (`add_(Tensor(a!) self) -> Tensor(a!)`) by the operand. A buffer that several calls
/// write is then the buffer in all of them, and not the result of the call before.
fn use_written_operands(graph: &mut Graph) {
    let registry = Arc::clone(graph.registry());
    let nodes: Vec<NodeId> = graph.nodes(graph.root()).collect();
    for node in nodes {
        let Some(op) = graph.op(node).row() else { continue };
        let schema = registry.schema(op);
        for (i, result) in schema.returns.iter().enumerate().take(graph.result_count(node)) {
            let Some(alias) = result.alias.as_ref().filter(|alias| alias.write && alias.contained.is_empty())
            else {
                continue;
            };
            let operand = schema.args.iter().position(|arg| arg.alias.as_ref() == Some(alias));
            let (result, Some(operand)) = (graph.result(node, i), operand) else { continue };
            let operand = graph.operand(node, operand);
            if graph.ty(operand) == graph.ty(result) {
                graph.edit().replace_all_uses(result, operand);
            }
        }
    }
}

/// The names of classes: those of the program, each once.
#[derive(Default)]
struct Classes {
    by_path: IndexMap<String, String, FxBuildHasher>,
    used: HashSet<String, FxBuildHasher>,
}

impl Classes {
    /// Records the class of a module. Returns false if the module is known.
    fn declare(&mut self, path: &str, class: &str) -> bool {
        if self.by_path.contains_key(path) {
            return false;
        }
        self.by_path.insert(path.to_owned(), class.to_owned());
        true
    }

    /// Returns the name of the class of a module, which no other module's class has.
    fn name(&mut self, path: &str) -> String {
        if path.is_empty() {
            self.used.insert(CLASS.to_owned());
            return CLASS.to_owned();
        }
        let stated = self.by_path.get(path).map_or("", String::as_str);
        let is_qualified = stated.split('.').all(is_name);
        let (module, name) = match stated.rsplit_once('.') {
            _ if !is_qualified => ("exported", "Module"),
            Some((module, name)) => (module, name),
            None => ("exported", stated),
        };
        let own = format!("__torch__.{module}.{name}");
        if self.used.insert(own.clone()) {
            return own;
        }
        let mut number = self.used.len();
        loop {
            let mangled = format!("__torch__.{module}.___torch_mangle_{number}.{name}");
            if self.used.insert(mangled.clone()) {
                return mangled;
            }
            number += 1;
        }
    }
}

/// Returns the types of all modules by path.
fn module_types(unit: &CompilationUnit, root: Type) -> Table<String, Type> {
    let mut types = Table::default();
    let mut open = vec![(String::new(), root)];
    while let Some((path, ty)) = open.pop() {
        for attribute in unit.class(ty).map_or(&[][..], |class| &class.attributes) {
            if unit.class(attribute.ty).is_some() {
                let name = attribute.name.as_str();
                let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                open.push((path, attribute.ty));
            }
        }
        types.insert(path, ty);
    }
    types
}

/// The tensors of a program with all of their names.
struct Tensors {
    /// By name, in the order of the state dict and then of the constants.
    by_name: IndexMap<String, (Tensor, AttributeKind), FxBuildHasher>,
    /// By name: all names of the same tensor.
    names: Table<String, Arc<[String]>>,
}

impl Tensors {
    fn new(program: &ExportedProgram) -> Tensors {
        let model = program.model();
        let mut by_name: IndexMap<String, (Tensor, AttributeKind), FxBuildHasher> = IndexMap::default();
        let mut kinds: Table<&str, AttributeKind> = Table::default();
        for spec in &model.module.signature.inputs {
            match spec {
                InputSpec::Parameter { target, .. } => kinds.insert(target, AttributeKind::Parameter),
                InputSpec::Buffer { target, .. } => kinds.insert(target, AttributeKind::Buffer),
                _ => None,
            };
        }
        // Names of the same elements are names of one tensor: the first. A buffer over the memory of a parameter is another
        // tensor, which has no gradient.
        let mut first: Table<(usize, i64, Vec<i64>, Vec<i64>, flambeau_tensor::DType, bool), Tensor> =
            Table::default();
        let mut add = |name: &String, tensor: &Tensor, kind: AttributeKind| {
            let key = (
                tensor.storage().address(),
                tensor.offset(),
                tensor.sizes().to_vec(),
                tensor.strides().to_vec(),
                tensor.dtype(),
                kind == AttributeKind::Parameter || tensor.requires_grad(),
            );
            let tensor = first.entry(key).or_insert_with(|| tensor.clone()).clone();
            by_name.insert(name.clone(), (tensor, kind));
        };
        for (name, weight) in &model.state_dict {
            let is_parameter = weight.is_parameter.unwrap_or(weight.tensor.requires_grad());
            let own = if is_parameter { AttributeKind::Parameter } else { AttributeKind::Buffer };
            add(name, &weight.tensor, kinds.get(name.as_str()).copied().unwrap_or(own));
        }
        for (name, constant) in &model.constants {
            if let Constant::Tensor(tensor) = constant {
                add(name, tensor, kinds.get(name.as_str()).copied().unwrap_or(AttributeKind::Plain));
            }
        }
        let mut by_tensor: IndexMap<_, Vec<String>, FxBuildHasher> = IndexMap::default();
        for (name, (tensor, _)) in &by_name {
            by_tensor.entry(tensor.id()).or_default().push(name.clone());
        }
        let mut names = Table::default();
        for all in by_tensor.into_values() {
            let all: Arc<[String]> = all.into();
            all.iter().for_each(|name| drop(names.insert(name.clone(), Arc::clone(&all))));
        }
        Tensors { by_name, names }
    }

    fn tree(&self) -> Result<Tree, Error> {
        let mut tree = Tree::default();
        for (name, (tensor, kind)) in &self.by_name {
            tree.add(name, tensor, *kind)?;
        }
        Ok(tree)
    }

    /// Returns the path, relative to a module, by which the module itself has a tensor.
    fn within<'t>(&'t self, name: &str, module: &str) -> Option<&'t str> {
        self.names.get(name)?.iter().find_map(|name| below(name, module))
    }
}

/// A method of a submodule, or the arguments and results of its call.
struct Method {
    name: Symbol,
    interface: Interface,
    result: Type,
}

/// The methods of all modules of a program.
struct Methods<'p> {
    flat: &'p Flat,
    unit: &'p CompilationUnit,
    types: &'p Table<String, Type>,
    tensors: &'p Tensors,
    regions: Regions<'p>,
    /// By value of the flat method: the name of the tensor that it is.
    state: Table<ValueId, &'p str>,
    /// By region.
    interfaces: Vec<Interface>,
    /// By region, once it is made.
    made: Vec<Option<Method>>,
    /// By module: its methods with their fingerprints.
    known: Table<String, Vec<(u64, Symbol, Arc<Graph>)>>,
    functions: Vec<(Type, Symbol, Function)>,
}

impl<'p> Methods<'p> {
    fn new(
        program: &'p ExportedProgram,
        flat: &'p Flat,
        unit: &'p CompilationUnit,
        types: &'p Table<String, Type>,
        tensors: &'p Tensors,
    ) -> Methods<'p> {
        let graph = &*flat.function.graph;
        let read: Table<ValueId, &str> =
            flat.reads.iter().map(|(path, value)| (*value, path.as_str())).collect();
        let mut stacks = Stacks::default();
        let own = program.graph();
        let stack = |node| {
            let node = flat.replaced.get(&node).copied().unwrap_or(node);
            if !own.has_node(node) {
                // What packs results and writes buffers belongs to the program.
                return Some([].into());
            }
            let origin = program.metadata().origin(node)?;
            stacks.get(origin.metadata.get("nn_module_stack")?)
        };
        // Constants and reads of attributes are made where they are used.
        let is_free = |node| {
            graph.is_prim(node, Prim::Constant)
                || graph.results(node).next().is_some_and(|value| read.contains_key(&value))
        };
        let mut regions = Regions::new(graph, stack, is_free);
        let state: Table<ValueId, &str> =
            read.into_iter().filter(|(_, path)| tensors.by_name.contains_key(*path)).collect();
        let is_own = |region: &Region, value: ValueId| {
            state.get(&value).is_some_and(|name| tensors.within(name, region.path()).is_some())
        };
        let kept = KeptSignatures::new(program, graph);
        let none = Interface::Flat { inputs: Vec::new(), outputs: Vec::new() };
        let mut interfaces = vec![none; regions.regions.len()];
        regions.connect(is_own, |regions, index| {
            interfaces[index] = kept.interface(regions, &regions.regions[index]);
            interfaces[index].taken()
        });
        let made = regions.regions.iter().map(|_| None).collect();
        let (known, functions) = (Table::default(), Vec::new());
        Methods { flat, unit, types, tensors, regions, state, interfaces, made, known, functions }
    }

    /// Makes all methods. Regions are made in the order in which they end, and after the regions that they call.
    fn all(mut self) -> Result<Vec<(Type, Symbol, Function)>, Error> {
        for index in self.regions.by_end() {
            self.method(index)?;
        }
        self.forward()?;
        Ok(self.functions)
    }

    /// Makes the method of the program.
    fn forward(&mut self) -> Result<(), Error> {
        let flat = &self.flat.function;
        let mut graph = Graph::new(Arc::clone(flat.graph.registry()));
        let mut body = Body::default();
        let mut receiver = None;
        for value in flat.graph.inputs() {
            let new = input(&mut graph, flat.graph.ty(value), flat.graph.name(value).symbol());
            body.map.set(value, new);
            receiver.get_or_insert((new, flat.graph.ty(value)));
        }
        let (receiver, class) = receiver.ok_or_else(|| internal("a method has no receiver"))?;
        let mut state = State::new(receiver, class, self.unit);
        self.items(0, &mut graph, &mut body, &mut state)?;
        for value in flat.graph.outputs() {
            self.need(&mut graph.edit_end(), 0, &mut body, &mut state, value)?;
            let new = mapped(&body, value)?;
            graph.edit().add_output(new);
        }
        let function = Function { name: flat.name, schema: Arc::clone(&flat.schema), graph: Arc::new(graph) };
        self.functions.push((class, Symbol::new("forward"), function));
        Ok(())
    }

    /// Makes the method of a region, or finds the method of another call that is the same.
    fn method(&mut self, index: usize) -> Result<(), Error> {
        let source = self.regions.graph;
        let path = self.regions.regions[index].path().to_owned();
        let class = self.types.get(&path).copied().ok_or_else(|| internal("a module has no class"))?;
        let interface = self.interfaces[index].clone();
        let mut graph = Graph::new(Arc::clone(source.registry()));
        let receiver = input(&mut graph, class, Some(Symbol::new("self")));
        let mut args = vec![Argument::new(Symbol::new("self"), class)];
        let mut body = Body::default();
        for parameter in interface.parameters(source)? {
            let value = input(&mut graph, parameter.ty, Some(parameter.name));
            args.push(Argument::new(parameter.name, parameter.ty));
            let mut leaves = Vec::new();
            match &parameter.spec {
                Some(spec) => {
                    let types = interface::leaf_types(source, &parameter.leaves);
                    unpack(&mut graph.edit_end(), spec, value, &types, &mut leaves)?;
                }
                None => leaves.push(value),
            }
            for (leaf, new) in parameter.leaves.iter().zip(leaves) {
                if let Some(value) = leaf.value().filter(|value| body.map.get(*value).is_none()) {
                    body.map.set(value, new);
                }
            }
        }
        let mut state = State::new(receiver, class, self.unit);
        self.items(index, &mut graph, &mut body, &mut state)?;
        for value in interface.results() {
            self.need(&mut graph.edit_end(), index, &mut body, &mut state, value)?;
        }
        let result = interface.pack_results(&mut graph.edit_end(), |value| mapped(&body, value))?;
        graph.edit().add_output(result);
        let result = graph.ty(result);
        let name = self.named(&path, class, graph, args);
        self.made[index] = Some(Method { name, interface, result });
        Ok(())
    }

    /// Returns the name of a method of a class, which is defined unless the class has the same method.
    fn named(&mut self, path: &str, class: Type, graph: Graph, args: Vec<Argument>) -> Symbol {
        let known = self.known.entry(path.to_owned()).or_default();
        let hash = fingerprint(&graph);
        let same = known.iter().find(|(other, _, method)| *other == hash && is_same(method, &graph));
        if let Some((_, name, _)) = same {
            return *name;
        }
        let name = match known.len() {
            0 => "forward".to_owned(),
            number => format!("forward{number}"),
        };
        let graph = Arc::new(graph);
        known.push((hash, Symbol::new(&name), Arc::clone(&graph)));
        let returns = graph.outputs().map(|value| Argument::new(Symbol::EMPTY, graph.ty(value))).collect();
        let schema = FunctionSchema {
            name: Symbol::new(&name),
            overload: Symbol::EMPTY,
            args,
            returns,
            vararg: false,
            varret: false,
        };
        let qualified = Symbol::new(&format!("{}.{name}", class.annotation_str()));
        let function = Function { name: qualified, schema: Arc::new(schema), graph };
        self.functions.push((class, Symbol::new(&name), function));
        Symbol::new(&name)
    }

    /// Appends the nodes and calls of a region to its method.
    fn items(
        &self,
        index: usize,
        graph: &mut Graph,
        body: &mut Body,
        state: &mut State<'_>,
    ) -> Result<(), Error> {
        let source = self.regions.graph;
        for item in &self.regions.regions[index].items {
            let mut edit = graph.edit_end();
            match *item {
                Item::Node(position) => {
                    let node = self.regions.nodes[position];
                    let mut used = Vec::new();
                    uses(source, node, |value| used.push(value));
                    for value in used {
                        self.need(&mut edit, index, body, state, value)?;
                    }
                    edit.copy_from(source, [node], &mut body.map).map_err(copied)?;
                }
                Item::Call(called) => self.call(&mut edit, index, called, body, state)?,
            }
        }
        Ok(())
    }

    /// Appends a call of the method of a region.
    fn call(
        &self,
        edit: &mut Editor<'_>,
        caller: usize,
        called: usize,
        body: &mut Body,
        state: &mut State<'_>,
    ) -> Result<(), Error> {
        let region = &self.regions.regions[called];
        let method = self.made[called].as_ref().ok_or_else(|| internal("a call has no method"))?;
        let path = below(region.path(), self.regions.regions[caller].path());
        let object = state.read(edit, path.ok_or_else(|| internal("a call is not below its caller"))?)?;
        for parameter in method.interface.parameters(self.regions.graph)? {
            for value in parameter.leaves.iter().filter_map(interface::Leaf::value) {
                self.need(edit, caller, body, state, value)?;
            }
        }
        let mut operands = vec![object];
        operands.extend(method.interface.arguments(edit, self.regions.graph, |value| mapped(body, value))?);
        let attrs = edit.attrs([(names::name(), Attr::str(method.name.as_str()))]);
        let node = edit.insert(Prim::CallMethod, &operands, attrs, &[method.result]);
        let result = edit.graph().result(node, 0);
        for (value, new) in method.interface.unpack_results(edit, self.regions.graph, result)? {
            if body.map.get(value).is_none() {
                body.map.set(value, new);
            }
        }
        Ok(())
    }

    /// Makes a value available in a method: a constant is copied, and a tensor of the module is read.
    fn need(
        &self,
        edit: &mut Editor<'_>,
        index: usize,
        body: &mut Body,
        state: &mut State<'_>,
        value: ValueId,
    ) -> Result<(), Error> {
        if body.map.get(value).is_some() {
            return Ok(());
        }
        let source = self.regions.graph;
        if source.is_prim(source.def(value), Prim::Constant) {
            return edit.copy_from(source, [source.def(value)], &mut body.map).map_err(copied);
        }
        let module = self.regions.regions[index].path();
        let name = self.state.get(&value).and_then(|name| self.tensors.within(name, module));
        let name = name.ok_or_else(|| {
            let of = if module.is_empty() { "the program" } else { module };
            crate::exported_module::unsupported(format!(
                "a call in `{}` passes a value that its module does not have",
                of.escape_debug()
            ))
        })?;
        let read = state.read(edit, name)?;
        body.map.set(value, read);
        Ok(())
    }
}

/// The values of a method that is being made, by value of the flat method.
#[derive(Default)]
struct Body {
    map: ValueSubstitution,
}

/// Editing at the end of a graph.
trait EditEnd {
    fn edit_end(&mut self) -> Editor<'_>;
}

impl EditEnd for Graph {
    fn edit_end(&mut self) -> Editor<'_> {
        let end = At::end(self.root());
        let mut edit = self.edit();
        edit.at(end);
        edit
    }
}

fn input(graph: &mut Graph, ty: Type, name: Option<Symbol>) -> ValueId {
    let mut edit = graph.edit();
    let value = edit.add_input(ty);
    if let Some(name) = name {
        edit.set_name(value, name);
    }
    value
}

fn mapped(body: &Body, value: ValueId) -> Result<ValueId, Error> {
    body.map.get(value).ok_or_else(|| internal("a value of a region is not defined"))
}

fn copied(error: CloneError) -> Error {
    internal(&error.to_string())
}

fn internal(message: &str) -> Error {
    Error::new(Fault::Internal, "X0001", message)
}
