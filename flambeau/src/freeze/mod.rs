//! Freezing: folds the attributes of a module into its code.
//!
//! Freezing inlines all calls of methods of the module and its submodules. Attributes that no code changes become
//! constants, so that every expression that depends only on them can be computed once: `training` is false, branches on
//! it are removed, and passes can read the weights. The result is a module with the attributes that are still needed,
//! and the requested methods.
//!
//! An attribute is kept if it might change or a change of it might be observed: if it is assigned, if it is a tensor
//! whose storage some method writes, if it is a container, or if its module is used as a value. Objects are
//! distinguished by identity, so two modules of one class may freeze differently; each gets its own class.
//!
//! Hooks of submodules are inlined in the code of their callers. Hooks of the module itself are frozen like its
//! methods, and a call from the embedder runs them as before. Tasks are frozen where they are forked.

mod bodies;
mod copies;
mod owned;

use self::bodies::{Body, assemble, body_of, clear_body_indices, set_body_index, tasks};
use self::copies::{Copies, Names};
use crate::error::Error;
use crate::module::Module;
use crate::program::Program;
use flambeau_analysis::alias::AliasDb;
use flambeau_analysis::{Analyses, ConstantOwner};
use flambeau_ir::attr::names;
use flambeau_ir::module::{CompilationUnit, Function};
use flambeau_ir::schema::Argument;
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::Object;
use flambeau_ir::{At, Fault, Graph, IValue, NodeId, Prim, Symbol, Type, ValueId};
use flambeau_tensor::Tensor;
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Inlines calls.
const INLINE: &str = "inline";
/// Folds constants.
const FOLD: &str =
    "lower_simple_tuples,constant_propagation,peephole,constant_propagation,constant_pooling,cse,dce";
/// Merges layers whose weights are constants. Frozen convolutions that were merged with a normalization accept only
/// batches.
const JOIN: &str = "fold_channels{batched},constant_pooling,dce";
/// Limit on the rounds that resolve interfaces nested in interfaces.
const ROUNDS: usize = 1000;

/// An attribute of one object: its identity and slot.
type AttributeSlot = (usize, usize);

/// Freezes `program`'s module with `forward` and the methods and attributes in `preserved`.
pub(crate) fn freeze(program: &Program, preserved: &[&str]) -> Result<Program, Error> {
    let root = program.module().ok_or_else(|| Error::misuse("only modules can be frozen"))?;
    if root.named_modules().iter().any(|(_, module)| module.is_training()) {
        return Err(Error::misuse("a module in training mode cannot be frozen: call `eval` first"));
    }
    let methods: Vec<String> = root.methods().into_iter().map(|(name, _)| name).collect();
    let unit = (**program.unit()).clone();
    let (kept, whole) = (BTreeSet::new(), BTreeSet::new());
    let assigned = assigned(&unit);
    let hooks = hooks(&unit, root.object().class());
    let (of_code, owner) = (owned::memory_of_code(&unit), ConstantOwner::default());
    let mut freezer = Freezer { program, unit, assigned, of_code, owner, kept, whole, bodies: Vec::new() };
    let wanted = |name: &&String| {
        *name == "forward" || preserved.contains(&name.as_str()) || hooks.contains(&Symbol::new(name))
    };
    for name in methods.iter().filter(wanted) {
        let entry = program.entry(name)?;
        let body = Body::method(name, entry.schema().clone(), (**entry.graph()).clone(), root.object());
        freezer.bodies.push(body);
    }
    let mut paths = Vec::new();
    for path in preserved.iter().filter(|name| !methods.iter().any(|m| m == *name)) {
        match freezer.method_of_part(&root, path)? {
            Some(body) => freezer.bodies.push(body),
            None => paths.push(path),
        }
    }
    freezer.flatten()?;
    for path in paths {
        root.get(path)?;
        freezer.keep_path(&root, path);
    }
    // Attributes without tensors first: this removes the branches that only training executes, and with them their
    // writes.
    let asked = (freezer.kept.clone(), freezer.whole.clone());
    freezer.find_changes(&root);
    freezer.fold(Held::Numbers)?;
    (freezer.kept, freezer.whole) = asked;
    freezer.find_changes(&root);
    if freezer.whole.contains(&root.object().id()) {
        let message =
            "freezing a module that is used as a value, for example by a call that cannot be inlined";
        return Err(Error::new(Fault::Unsupported, "X0006", message));
    }
    freezer.owner = freezer.constant_owner(&root);
    freezer.fold(Held::Everything)?;
    freezer.apply(JOIN)?;
    freezer.finish(root.object())
}

/// The attributes that become constants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// Attributes without tensors.
    Numbers,
    Everything,
}

/// Returns the methods that run before and after `forward`.
fn hooks(unit: &CompilationUnit, class: Type) -> Vec<Symbol> {
    unit.class(class).map_or_else(Vec::new, |class| [&class.pre_hooks[..], &class.hooks].concat())
}

fn assigned(unit: &CompilationUnit) -> HashSet<(Type, usize), FxBuildHasher> {
    let mut assigned = HashSet::default();
    let of_function = |function: &Arc<Function>| {
        (Arc::clone(&function.graph), function.name.as_str().ends_with(CONSTRUCTOR))
    };
    let mut graphs: Vec<(Arc<Graph>, bool)> = unit.functions().map(of_function).collect();
    let mut at = 0;
    while let Some((graph, _)) = graphs.get(at).cloned() {
        graphs.extend(tasks(&graph).map(|(_, task)| (Arc::clone(task), false)));
        at += 1;
    }
    // An object is not an attribute while its constructor runs.
    let only_constructs = graphs.iter().all(|(graph, _)| constructs_new_objects(graph));
    for (graph, is_constructor) in &graphs {
        let own = graph.inputs().next().filter(|_| *is_constructor && only_constructs);
        for node in graph.nodes_deep().filter(|&node| graph.prim(node) == Some(Prim::SetAttr)) {
            if own == Some(graph.operand(node, 0)) {
                continue;
            }
            let class = graph.ty(graph.operand(node, 0));
            let name = graph.attr(node, names::name()).and_then(|a| a.as_str()).map(Symbol::new);
            let slot = name.and_then(|name| unit.class(class)?.slot(name));
            assigned.extend(slot.map(|slot| (class, slot)));
        }
    }
    assigned
}

/// The end of the names of constructors.
const CONSTRUCTOR: &str = ".__init__";

/// Returns whether a graph calls constructors only of objects that it makes.
fn constructs_new_objects(graph: &Graph) -> bool {
    let mut calls = graph.nodes_deep().filter(|&node| {
        let name = graph.attr(node, names::name()).and_then(|name| name.as_str());
        graph.prim(node) == Some(Prim::CallMethod)
            && name.is_some_and(|name| CONSTRUCTOR.strip_prefix('.') == Some(name))
    });
    calls.all(|call| graph.is_prim(graph.def(graph.operand(call, 0)), Prim::CreateObject))
}

fn holds_tensors(value: &IValue) -> bool {
    let mut any = false;
    value.visit_tensors(|_| any = true);
    any
}

struct Freezer<'a> {
    program: &'a Program,
    unit: CompilationUnit,
    /// Slots of classes that any function assigns, called or not.
    assigned: HashSet<(Type, usize), FxBuildHasher>,
    /// Memory of constants that the code had before freezing.
    of_code: BTreeSet<usize>,
    /// Facts about the constants that replaced attributes.
    owner: ConstantOwner,
    /// Attributes that are kept.
    kept: BTreeSet<AttributeSlot>,
    /// Objects that are kept unchanged with all that they contain: they are used as values, or were requested.
    whole: BTreeSet<usize>,
    /// Methods, followed by tasks.
    bodies: Vec<Body>,
}

impl Freezer<'_> {
    /// Inlines all calls of methods of known objects, and takes tasks out as further bodies.
    fn flatten(&mut self) -> Result<(), Error> {
        let mut at = 0;
        while at < self.bodies.len() {
            self.inline(at)?;
            let known = self.known(&self.bodies[at]);
            let graph = &self.bodies[at].graph;
            let found: Vec<(NodeId, Body)> = tasks(graph)
                .map(|(node, task)| {
                    let given = graph.operands(node).enumerate();
                    let given =
                        given.filter_map(|(i, value)| Some((i, known.get(&value)?.clone()))).collect();
                    (node, Body { graph: (**task).clone(), given, method: None })
                })
                .collect();
            for (node, body) in found {
                let index = self.bodies.len();
                set_body_index(&mut self.bodies[at].graph, node, index);
                self.bodies.push(body);
            }
            at += 1;
        }
        assemble(&mut self.bodies, |_| Ok(()))
    }

    fn inline(&mut self, at: usize) -> Result<(), Error> {
        for _ in 0..ROUNDS {
            let inlined = self.program.session.apply_text(&self.bodies[at].graph, &self.unit, INLINE)?;
            self.bodies[at].graph = inlined;
            let known = self.known(&self.bodies[at]);
            let graph = &mut self.bodies[at].graph;
            let hidden: Vec<_> = known
                .iter()
                .filter(|(value, _)| matches!(graph.ty(**value).kind(), TypeKind::Interface(_)))
                .map(|(&value, object)| (value, object.class()))
                .collect();
            if hidden.is_empty() {
                break;
            }
            let mut edit = graph.edit();
            hidden.into_iter().for_each(|(value, class)| edit.set_type(value, class));
        }
        Ok(())
    }

    /// Runs passes over all bodies.
    fn apply(&mut self, pipeline: &str) -> Result<(), Error> {
        let (session, unit, owner) = (&self.program.session, &self.unit, &self.owner);
        assemble(&mut self.bodies, |body| {
            body.graph = session.apply_owned(&body.graph, unit, pipeline, owner.clone())?;
            Ok(())
        })
    }

    fn slot(&self, object: &Object, name: Symbol) -> Option<usize> {
        self.unit.class(object.class())?.slot(name)
    }

    /// Returns the attribute that a `GetAttr` or `SetAttr` accesses, if its object is known.
    fn place(
        &self,
        graph: &Graph,
        node: NodeId,
        known: &BTreeMap<ValueId, Object>,
    ) -> Option<(Object, usize)> {
        if !matches!(graph.prim(node), Some(Prim::GetAttr | Prim::SetAttr)) {
            return None;
        }
        let object = known.get(&graph.operand(node, 0))?;
        let name = graph.attr(node, names::name())?.as_str().map(Symbol::new)?;
        Some((object.clone(), self.slot(object, name)?))
    }

    /// Returns the values that are known modules, or objects of other classes, on every path. An attribute to which a module is assigned may later be
    /// another module, so values read from it are not known.
    fn known(&self, body: &Body) -> BTreeMap<ValueId, Object> {
        let graph = &body.graph;
        let input = |(i, object): &(usize, Object)| Some((graph.inputs().nth(*i)?, object.clone()));
        let mut known: BTreeMap<_, _> = body.given.iter().filter_map(input).collect();
        for node in graph.nodes_deep() {
            let Some((object, slot)) = self.place(graph, node, &known) else { continue };
            if graph.prim(node) == Some(Prim::GetAttr)
                && !self.assigned.contains(&(object.class(), slot))
                && let IValue::Object(inner) = object.get(slot)
                && self.unit.class(inner.class()).is_some()
            {
                known.insert(graph.result(node, 0), inner);
            }
        }
        known
    }

    /// Returns the body of a method of a submodule, if `path` names one. The submodule stays an attribute.
    fn method_of_part(&mut self, root: &Module, path: &str) -> Result<Option<Body>, Error> {
        let Some((part, name)) = path.rsplit_once('.') else { return Ok(None) };
        let object = root.submodule_at(part)?.object().clone();
        let Some(method) = self.program.unit().method(object.class(), Symbol::new(name)) else {
            return Ok(None);
        };
        let (schema, graph) = ((*method.schema).clone(), (*method.graph).clone());
        self.keep_slots(root, part);
        Ok(Some(Body::method(name, schema, graph, &object)))
    }

    fn keep_path(&mut self, root: &Module, path: &str) {
        if let Some(object) = self.keep_slots(root, path) {
            self.keep_all(&object);
        }
    }

    /// Keeps the attributes that a path names, and returns the object at its end, if there is one.
    fn keep_slots(&mut self, root: &Module, path: &str) -> Option<Object> {
        let mut object = root.object().clone();
        for name in path.split('.') {
            let slot = self.slot(&object, Symbol::new(name))?;
            self.kept.insert((object.id(), slot));
            match object.get(slot) {
                IValue::Object(inner) => object = inner,
                _ => return None,
            }
        }
        Some(object)
    }

    /// Keeps an object and all objects below it.
    fn keep_all(&mut self, object: &Object) {
        let mut stack = vec![object.clone()];
        while let Some(object) = stack.pop() {
            self.whole.insert(object.id());
            let slots = object.read().clone();
            for (slot, value) in slots.into_iter().enumerate() {
                if self.kept.insert((object.id(), slot))
                    && let IValue::Object(inner) = value
                {
                    stack.push(inner);
                }
            }
        }
    }

    /// Finds the attributes that may change, or whose change may be observed.
    fn find_changes(&mut self, root: &Module) {
        let mut written = BTreeSet::new();
        let mut assigned_classes: Vec<Type> = Vec::new();
        let mut kept = Vec::new();
        let mut escaped = Vec::new();
        for body in &self.bodies {
            let (graph, known) = (&body.graph, self.known(body));
            let (separated, substitutes) = self.separate_storages(graph, &known);
            let mut analyses = Analyses::new();
            let aliases = analyses.get::<AliasDb>(&separated);
            for (&value, object) in &known {
                // Operands of a task are analysed in the body of the task.
                let is_followed = |u: &flambeau_ir::Use| {
                    let accesses = matches!(graph.prim(u.user), Some(Prim::GetAttr | Prim::SetAttr));
                    accesses && u.index == 0 || body_of(graph, u.user).is_some()
                };
                if !graph.uses(value).all(|u| is_followed(&u)) {
                    escaped.push(object.clone());
                }
            }
            for node in graph.nodes_deep() {
                let place = self.place(graph, node, &known);
                match (graph.prim(node), place) {
                    (Some(Prim::SetAttr), Some((object, slot))) => kept.push((object.id(), slot)),
                    (Some(Prim::SetAttr), None) => {
                        assigned_classes.push(graph.ty(graph.operand(node, 0)));
                    }
                    (Some(Prim::GetAttr), Some((object, slot))) => {
                        let value = graph.result(node, 0);
                        if self.assigned.contains(&(object.class(), slot)) {
                            // The module is not known statically: treat the current one as used as a value.
                            kept.push((object.id(), slot));
                            escaped.extend(object.get(slot).as_object().cloned());
                        }
                        // For a known module, the reads of its attributes are analysed instead of the module.
                        let substitute = substitutes.get(&value).copied().unwrap_or(value);
                        if !known.contains_key(&value) && aliases.has_writers(substitute) {
                            kept.push((object.id(), slot));
                            object.get(slot).visit_tensors(|t| {
                                written.insert(t.storage().address());
                            });
                        }
                    }
                    _ => {}
                }
            }
        }
        self.kept.extend(kept);
        escaped.iter().for_each(|object| self.keep_all(object));
        for (_, module) in root.named_modules() {
            let object = module.object();
            for (slot, (_, value)) in module.attributes().into_iter().enumerate() {
                let shares = value.as_tensor().is_some_and(|t| written.contains(&t.storage().address()));
                if shares || assigned_classes.contains(&object.class()) {
                    self.kept.insert((object.id(), slot));
                }
            }
        }
    }

    /// Returns a copy of the graph with a separate constant for each storage whose attributes it reads, and the values
    /// that these constants represent. Knowledge about modules separates the storages; the graph alone does not. An
    /// assigned attribute may be any tensor.
    fn separate_storages(
        &self,
        graph: &Graph,
        known: &BTreeMap<ValueId, Object>,
    ) -> (Graph, BTreeMap<ValueId, ValueId>) {
        let mut separated = graph.clone();
        let mut edit = separated.edit();
        edit.at(At::start(graph.root()));
        let (mut storages, mut substitutes) = (BTreeMap::new(), BTreeMap::new());
        for node in graph.nodes_deep().filter(|&node| graph.prim(node) == Some(Prim::GetAttr)) {
            let Some((object, slot)) = self.place(graph, node, known) else { continue };
            let value = object.get(slot);
            let Some(tensor) = value.as_tensor() else { continue };
            if self.assigned.contains(&(object.class(), slot)) {
                continue;
            }
            let result = graph.result(node, 0);
            let substitute = *storages
                .entry(tensor.storage().address())
                .or_insert_with(|| edit.value(Prim::AutogradZero, &[], Type::TENSOR));
            edit.replace_all_uses(result, substitute);
            substitutes.insert(result, substitute);
        }
        (separated, substitutes)
    }

    /// Replaces attributes that do not change by constants, and folds expressions of them.
    fn fold(&mut self, held: Held) -> Result<(), Error> {
        for i in 0..self.bodies.len() {
            let known = self.known(&self.bodies[i]);
            let graph = &self.bodies[i].graph;
            let fixed: Vec<_> = graph
                .nodes_deep()
                .filter(|&node| graph.prim(node) == Some(Prim::GetAttr))
                .filter_map(|node| {
                    let (object, slot) = self.place(graph, node, &known)?;
                    let stays = self.kept.contains(&(object.id(), slot));
                    let value = constant(&object.get(slot)).filter(|_| !stays)?;
                    // Writes to tensors of objects that are not modules are not followed.
                    let is_module = self.unit.class(object.class()).is_some_and(|class| class.is_module);
                    if !is_module && holds_tensors(&value) {
                        return None;
                    }
                    (held == Held::Everything || !holds_tensors(&value)).then_some((node, value))
                })
                .collect();
            let graph = &mut self.bodies[i].graph;
            for (node, value) in fixed {
                let (old, loc) = (graph.result(node, 0), graph.loc(node));
                let mut edit = graph.edit();
                edit.at(At::before(node)).loc(loc);
                let new = edit.constant(value);
                edit.replace_all_uses(old, new);
                edit.erase(node);
            }
        }
        self.apply(FOLD)
    }

    /// Builds the resulting program: objects with the attributes that the graphs still use or that were requested.
    fn finish(mut self, root: &Object) -> Result<Program, Error> {
        let mut used = self.kept.clone();
        for body in &self.bodies {
            let (graph, known) = (&body.graph, self.known(body));
            let places = graph.nodes_deep().filter_map(|node| self.place(graph, node, &known));
            used.extend(places.map(|(object, slot)| (object.id(), slot)));
        }
        let whole = std::mem::take(&mut self.whole);
        let (made, names) = (BTreeMap::new(), Names::default());
        let mut copies = Copies { used, whole, made, root: root.id(), names };
        // The root is always copied, because its methods differ.
        copies.whole.remove(&root.id());
        let frozen = copies.object(&mut self.unit, root);
        for i in 0..self.bodies.len() {
            let known = self.known(&self.bodies[i]);
            let mut edit = self.bodies[i].graph.edit();
            for (value, object) in known {
                if let Some(copy) = copies.made.get(&object.id()) {
                    edit.set_type(value, copy.class());
                }
            }
        }
        let mut bodies = std::mem::take(&mut self.bodies);
        assemble(&mut bodies, |body| {
            clear_body_indices(body);
            Ok::<(), Error>(())
        })?;
        for Body { graph, method, given } in bodies {
            let Some((name, schema)) = method else { continue };
            // A module that is kept unchanged has its methods.
            let Some(class) = given.first().and_then(|(_, owner)| copies.made.get(&owner.id())) else {
                continue;
            };
            let class = class.class();
            let mut schema = (*schema).clone();
            if let Some(receiver) = schema.args.first_mut() {
                *receiver = Argument::new(receiver.name, class);
            }
            let function = Symbol::new(&format!("{}.{name}", class.annotation()));
            self.unit.define_function(Function {
                name: function,
                schema: Arc::new(schema),
                graph: Arc::new(graph),
            });
            if let Some(class) = self.unit.class_mut(class) {
                class.methods.insert(name, function);
            }
        }
        self.program.with_unit(self.unit, frozen)
    }
}

/// Returns the value as a constant of a program, if no change of it can be observed. Containers and objects may change.
fn constant(value: &IValue) -> Option<IValue> {
    match value {
        IValue::Tensor(t) => {
            let detached = Tensor::from_storage(t.storage().clone(), t.dtype(), t.layout().clone());
            detached.ok().map(IValue::Tensor)
        }
        IValue::Tuple(t) => t.items().iter().all(|item| constant(item).is_some()).then(|| value.clone()),
        IValue::None
        | IValue::Bool(_)
        | IValue::Int(_)
        | IValue::Float(_)
        | IValue::Complex(_)
        | IValue::Str(_)
        | IValue::Device(_)
        | IValue::Enum(_) => Some(value.clone()),
        _ => None,
    }
}
