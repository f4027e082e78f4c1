//! Freezing: a module whose attributes are part of its code.
//!
//! All calls of a module's methods on itself and its submodules are put in place, and attributes that nothing changes
//! become constants, so that everything that depends on them alone can be computed once: `training` is false, branches
//! on it go, weights are operands that passes can look at. What is left is a module with the attributes that are still
//! needed, and the methods asked for.
//!
//! An attribute stays one if anything might change it or see it changed: if it is assigned, if it is a tensor whose
//! storage some method writes to, if it is a container, or if the module that has it is used as a value. Objects are
//! told apart by identity, so two modules of one class may freeze differently; each gets a class of its own.

use crate::error::Error;
use crate::module::Module;
use crate::program::Program;
use flambeau_analysis::Analyses;
use flambeau_analysis::alias::AliasDb;
use flambeau_ir::attr::names;
use flambeau_ir::module::{Class, CompilationUnit, Function};
use flambeau_ir::schema::Argument;
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::Object;
use flambeau_ir::{At, Fault, FunctionSchema, Graph, IValue, NodeId, Prim, Symbol, Type, ValueId};
use flambeau_tensor::Tensor;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// Puts calls in place.
const INLINE: &str = "inline";
/// Computes what depends on constants alone.
const FOLD: &str =
    "lower_simple_tuples,constant_propagation,peephole,constant_propagation,constant_pooling,cse,dce";
/// Joins layers whose weights are constants. Frozen convolutions that were normalized take batches alone.
const JOIN: &str = "fold_channels{batched},constant_pooling,dce";
/// Interfaces that hold modules with interfaces: rounds of finding out what they are.
const ROUNDS: usize = 1000;

/// An attribute of one object: its identity and slot.
type Place = (usize, usize);

/// `program`'s module with the methods and attributes in `preserved`, and `forward`.
pub(crate) fn freeze(program: &Program, preserved: &[&str]) -> Result<Program, Error> {
    let root = program.module().ok_or_else(|| Error::misuse("only modules can be frozen"))?;
    if root.named_modules().iter().any(|(_, module)| module.is_training()) {
        return Err(Error::misuse("a module is frozen in eval mode: call `eval` first"));
    }
    if program.has_hooks() {
        let message = "freezing a module that has hooks is not supported";
        return Err(Error::new(Fault::Unsupported, "X0006", message));
    }
    let methods: Vec<String> = root.methods().into_iter().map(|(name, _)| name).collect();
    let unit = (**program.unit()).clone();
    let (kept, whole) = (BTreeSet::new(), BTreeSet::new());
    let assigned = assigned(&unit);
    let mut freezer = Freezer { program, unit, assigned, kept, whole, graphs: Vec::new() };
    let wanted = |name: &&String| *name == "forward" || preserved.contains(&name.as_str());
    for name in methods.iter().filter(wanted) {
        let entry = program.entry(name)?;
        let graph = freezer.inlined((**entry.graph()).clone(), root.object())?;
        freezer.graphs.push((Symbol::new(name), Arc::new(entry.schema().clone()), graph));
    }
    for path in preserved.iter().filter(|name| !methods.iter().any(|m| m == *name)) {
        root.get(path)?;
        freezer.keep_path(&root, path);
    }
    // Numbers first: what only training does goes with its branches, and changes nothing any more.
    let asked = (freezer.kept.clone(), freezer.whole.clone());
    freezer.find_changes(&root);
    freezer.fold(root.object(), Held::Numbers)?;
    (freezer.kept, freezer.whole) = asked;
    freezer.find_changes(&root);
    if freezer.whole.contains(&root.object().id()) {
        let message = "freezing a module that is used as a value, by a call that cannot be put in place, say";
        return Err(Error::new(Fault::Unsupported, "X0006", message));
    }
    freezer.fold(root.object(), Held::Everything)?;
    for (_, _, graph) in &mut freezer.graphs {
        *graph = program.session().apply_text(graph, &freezer.unit, JOIN)?;
    }
    freezer.finish(root.object())
}

/// What attributes are made constants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// Those that hold no tensor.
    Numbers,
    Everything,
}

fn assigned(unit: &CompilationUnit) -> HashSet<(Type, usize)> {
    let mut assigned = HashSet::new();
    for graph in unit.functions().map(|function| &function.graph) {
        for node in graph.nodes_deep().filter(|&node| graph.prim(node) == Some(Prim::SetAttr)) {
            let class = graph.ty(graph.operand(node, 0));
            let name = graph.attr(node, names::name()).and_then(|a| a.as_str()).map(Symbol::new);
            let slot = name.and_then(|name| unit.class(class)?.slot(name));
            assigned.extend(slot.map(|slot| (class, slot)));
        }
    }
    assigned
}

fn holds_tensors(value: &IValue) -> bool {
    let mut any = false;
    value.visit_tensors(|_| any = true);
    any
}

struct Freezer<'a> {
    program: &'a Program,
    unit: CompilationUnit,
    /// Slots of classes that some function assigns, whether it is ever called or not.
    assigned: HashSet<(Type, usize)>,
    /// Attributes that stay.
    kept: BTreeSet<Place>,
    /// Objects that stay as they are, with all they hold: they are used as values, or were asked for.
    whole: BTreeSet<usize>,
    graphs: Vec<(Symbol, Arc<FunctionSchema>, Graph)>,
}

impl Freezer<'_> {
    /// The graph with all calls of known objects' methods in place.
    fn inlined(&self, mut graph: Graph, root: &Object) -> Result<Graph, Error> {
        for _ in 0..ROUNDS {
            graph = self.program.session().apply_text(&graph, &self.unit, INLINE)?;
            let known = self.known(&graph, root);
            let hidden: Vec<_> = known
                .iter()
                .filter(|(value, _)| matches!(graph.ty(**value).kind(), TypeKind::Interface(_)))
                .map(|(&value, object)| (value, object.class()))
                .collect();
            if hidden.is_empty() {
                return Ok(graph);
            }
            let mut edit = graph.edit();
            hidden.into_iter().for_each(|(value, class)| edit.set_type(value, class));
        }
        Ok(graph)
    }

    fn slot(&self, object: &Object, name: Symbol) -> Option<usize> {
        self.unit.class(object.class())?.slot(name)
    }

    /// The attribute that a `GetAttr` or `SetAttr` is of, where its object is known.
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

    /// Values that are certain modules, whichever way the program goes. An attribute that is assigned a module may be
    /// another one later: then what is read from it is not known.
    fn known(&self, graph: &Graph, root: &Object) -> BTreeMap<ValueId, Object> {
        let mut known = BTreeMap::new();
        known.extend(graph.inputs().next().map(|value| (value, root.clone())));
        for node in graph.nodes_deep() {
            let Some((object, slot)) = self.place(graph, node, &known) else { continue };
            if graph.prim(node) == Some(Prim::GetAttr)
                && !self.assigned.contains(&(object.class(), slot))
                && let IValue::Object(inner) = object.get(slot)
                && self.unit.class(inner.class()).is_some_and(|class| class.is_module)
            {
                known.insert(graph.result(node, 0), inner);
            }
        }
        known
    }

    fn keep_path(&mut self, root: &Module, path: &str) {
        let mut object = root.object().clone();
        for name in path.split('.') {
            let Some(slot) = self.slot(&object, Symbol::new(name)) else { return };
            self.kept.insert((object.id(), slot));
            match object.get(slot) {
                IValue::Object(inner) => object = inner,
                _ => return,
            }
        }
        self.keep_all(&object);
    }

    /// Keeps everything at and below an object.
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

    /// Finds the attributes that may change, or be seen to change.
    fn find_changes(&mut self, root: &Module) {
        let mut written = BTreeSet::new();
        let mut assigned_classes: Vec<Type> = Vec::new();
        let mut kept = Vec::new();
        let mut escaped = Vec::new();
        for (_, _, graph) in &self.graphs {
            let known = self.known(graph, root.object());
            let mut analyses = Analyses::new();
            let aliases = analyses.get::<AliasDb>(graph);
            for (&value, object) in &known {
                let as_receiver = |u: &flambeau_ir::Use| {
                    matches!(graph.prim(u.user), Some(Prim::GetAttr | Prim::SetAttr)) && u.index == 0
                };
                if !graph.uses(value).all(|u| as_receiver(&u)) {
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
                            // Which module this is is not known: the one there now is as good as used as a value.
                            kept.push((object.id(), slot));
                            escaped.extend(object.get(slot).as_object().cloned());
                        }
                        // What is read from a module that is known is judged where it is read, not the module.
                        if !known.contains_key(&value) && aliases.has_writers(value) {
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

    /// Puts constants in the place of attributes that stay as they are, and computes what follows from them.
    fn fold(&mut self, root: &Object, held: Held) -> Result<(), Error> {
        for i in 0..self.graphs.len() {
            let graph = &self.graphs[i].2;
            let known = self.known(graph, root);
            let fixed: Vec<_> = graph
                .nodes_deep()
                .filter(|&node| graph.prim(node) == Some(Prim::GetAttr))
                .filter_map(|node| {
                    let (object, slot) = self.place(graph, node, &known)?;
                    let stays = self.kept.contains(&(object.id(), slot));
                    let value = constant(&object.get(slot)).filter(|_| !stays)?;
                    (held == Held::Everything || !holds_tensors(&value)).then_some((node, value))
                })
                .collect();
            let graph = &mut self.graphs[i].2;
            for (node, value) in fixed {
                let (old, loc) = (graph.result(node, 0), graph.loc(node));
                let mut edit = graph.edit();
                edit.at(At::before(node)).loc(loc);
                let new = edit.constant(value);
                edit.replace_all_uses(old, new);
                edit.erase(node);
            }
            let folded = self.program.session().apply_text(&self.graphs[i].2, &self.unit, FOLD)?;
            self.graphs[i].2 = folded;
        }
        Ok(())
    }

    /// The program that is left: objects with the attributes that the graphs still use or that were asked for.
    fn finish(mut self, root: &Object) -> Result<Program, Error> {
        let mut used = self.kept.clone();
        for (_, _, graph) in &self.graphs {
            let known = self.known(graph, root);
            let places = graph.nodes_deep().filter_map(|node| self.place(graph, node, &known));
            used.extend(places.map(|(object, slot)| (object.id(), slot)));
        }
        let mut copies = Copies { used, whole: std::mem::take(&mut self.whole), made: BTreeMap::new() };
        // The root is always made anew: its methods are others.
        copies.whole.remove(&root.id());
        let frozen = copies.object(&mut self.unit, root);
        let class = frozen.class();
        for (name, schema, mut graph) in std::mem::take(&mut self.graphs) {
            let known = self.known(&graph, root);
            let mut edit = graph.edit();
            for (value, object) in known {
                if let Some(copy) = copies.made.get(&object.id()) {
                    edit.set_type(value, copy.class());
                }
            }
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
        Ok(self.program.with_unit(self.unit, frozen))
    }
}

/// Objects of the frozen module, by the identity of those they were made from.
struct Copies {
    used: BTreeSet<Place>,
    whole: BTreeSet<usize>,
    made: BTreeMap<usize, Object>,
}

impl Copies {
    /// A copy of a module with the attributes that are used, inner modules first.
    fn object(&mut self, unit: &mut CompilationUnit, root: &Object) -> Object {
        let mut stack = vec![(root.clone(), false)];
        while let Some((object, ready)) = stack.pop() {
            if self.made.contains_key(&object.id()) || self.whole.contains(&object.id()) {
                continue;
            }
            if ready {
                let copy = self.copy(unit, &object);
                self.made.insert(object.id(), copy);
                continue;
            }
            stack.push((object.clone(), true));
            let slots = object.read().clone();
            let inner =
                slots.into_iter().enumerate().filter(|(slot, _)| self.used.contains(&(object.id(), *slot)));
            stack.extend(inner.filter_map(|(_, value)| match value {
                IValue::Object(o) if unit.class(o.class()).is_some_and(|c| c.is_module) => Some((o, false)),
                _ => None,
            }));
        }
        self.made[&root.id()].clone()
    }

    fn copy(&self, unit: &mut CompilationUnit, object: &Object) -> Object {
        let Some(old) = unit.class(object.class()).cloned() else { return object.clone() };
        let ty = Type::class(mangled(unit, &old.ty.annotation_str()), 0);
        let mut class = Class::new(ty, old.is_module);
        class.constants = old.constants.clone();
        let mut values = Vec::new();
        for (slot, attribute) in old.attributes.iter().enumerate() {
            if !self.used.contains(&(object.id(), slot)) {
                continue;
            }
            let (value, ty) = match object.get(slot) {
                IValue::Object(inner) => match self.made.get(&inner.id()) {
                    Some(copy) => (IValue::Object(copy.clone()), copy.class()),
                    None => (IValue::Object(inner), attribute.ty),
                },
                value => (value, attribute.ty),
            };
            class.attributes.push(flambeau_ir::module::Attribute { ty, ..*attribute });
            values.push(value);
        }
        unit.define_class(class);
        Object::new(ty, values)
    }
}

/// A name of its own for a class made from the one named `name`: `__torch__.___torch_mangle_0.Net`.
fn mangled(unit: &CompilationUnit, name: &str) -> Symbol {
    let (module, last) = name.rsplit_once('.').unwrap_or(("__torch__", name));
    let taken: BTreeSet<String> = unit.classes().map(|class| class.ty.annotation_str()).collect();
    let names = (0..=taken.len()).map(|n| format!("{module}.___torch_mangle_{n}.{last}"));
    let free = names.into_iter().find(|name| !taken.contains(name));
    Symbol::new(&free.expect("invariant: there is one name more than there are classes"))
}

/// The value as a constant of a program, if it can never be seen to change: containers and objects can.
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
