//! Exported programs as TorchScript modules.
//!
//! The module has the parameters, buffers and constants of the program under their names, in submodules along the dots,
//! and one method, `forward`. Its graph is that of the exported program: inputs that are state become reads of
//! attributes, the containers of arguments and results are unpacked and packed in the graph, and new contents of
//! mutated tensors are copied into them at the end. Constants among the arguments remain parameters, whose values are
//! asserted. Conditions on sizes are not part of the module.

use crate::error::Error;
use crate::exported::{ExportedProgram, Input, Output};
use crate::module_forms::{Replaced, replace_operators};
use crate::program::{Program, Root};
use crate::scalar_operands::replace_bools;
use flambeau_archive::UncompiledFunctions;
use flambeau_export::model::InputSpec;
use flambeau_export::tree::{Key, NamedView, TreeSpec, TreeView};
use flambeau_ir::attr::names;
use flambeau_ir::module::{Attribute, AttributeKind, Class, Function};
use flambeau_ir::schema::Argument;
use flambeau_ir::types::NamedField;
use flambeau_ir::value::Object;
use flambeau_ir::{
    At, Attr, CompilationUnit, Editor, Fault, FunctionSchema, Graph, IValue, InsertError, Prim, Symbol, Type,
    ValueId,
};
use flambeau_tensor::Tensor;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// Maximum nesting of submodules.
const MAX_DEPTH: usize = 64;

/// The qualified name of the module's class; submodules have the names of numbered classes beside it.
pub(crate) const CLASS: &str = "__torch__.exported.Program";

/// The method that runs a whole program.
pub(crate) struct Flat {
    pub(crate) function: Function,
    /// The values that are read from attributes, by path: tensors, and the modules that have them.
    pub(crate) reads: Vec<(String, ValueId)>,
    /// The nodes of the program by those that are in their place.
    pub(crate) replaced: Replaced,
}

/// The attributes of a module.
#[derive(Default)]
pub(crate) struct Tree {
    members: IndexMap<String, Member, FxBuildHasher>,
}

enum Member {
    Module(Tree),
    Tensor(Tensor, AttributeKind),
}

impl ExportedProgram {
    /// Returns the program as a TorchScript module with the same tensors, which can be called, frozen and saved as `.pt`.
    ///
    /// # Errors
    /// `E015` for names of tensors, fields and classes that TorchScript cannot have, for dictionaries with keys of several types,
    /// and for operands that no schema of TorchScript accepts.
    pub fn to_module(&self) -> Result<Program, Error> {
        let mut unit = CompilationUnit::new();
        let mut modules = 0;
        let object = self.tree()?.object(&mut unit, "", &mut |path| {
            if path.is_empty() {
                return CLASS.to_owned();
            }
            modules += 1;
            format!("__torch__.exported.Module{}", modules - 1)
        })?;
        let Flat { function, .. } = self.forward(object.class(), &unit)?;
        let name = function.name;
        unit.define_function(function);
        if let Some(class) = unit.class_mut(object.class()) {
            class.methods.insert(Symbol::new("forward"), name);
        }
        Ok(self.program_of(unit, object))
    }

    /// Returns the program of a module that has this program's additional files.
    pub(crate) fn program_of(&self, unit: CompilationUnit, object: Object) -> Program {
        let root = Root {
            object,
            name: "exported".to_owned(),
            version: 0,
            call: None,
            missing: UncompiledFunctions::default(),
            extra_files: self.parts().model.extra_files.iter().map(|(n, b)| (n.clone(), b.clone())).collect(),
        };
        Program::with_root(self.entry().session(), Arc::new(unit), root)
    }

    /// Returns the tensors of the program by the modules that have them.
    pub(crate) fn tree(&self) -> Result<Tree, Error> {
        let model = &self.parts().model;
        let mut tree = Tree::default();
        for (name, weight) in &model.state_dict {
            let is_parameter = weight.is_parameter.unwrap_or(weight.tensor.requires_grad());
            let kind = if is_parameter { AttributeKind::Parameter } else { AttributeKind::Buffer };
            tree.add(name, &weight.tensor, kind)?;
        }
        for spec in &model.module.signature.inputs {
            let (name, kind) = match spec {
                InputSpec::Parameter { target, .. } => (target, AttributeKind::Parameter),
                InputSpec::Buffer { target, .. } => (target, AttributeKind::Buffer),
                InputSpec::TensorConstant { target, .. } => (target, AttributeKind::Plain),
                _ => continue,
            };
            if let Some(tensor) = self.tensor(name) {
                tree.add(name, tensor, kind)?;
            }
        }
        Ok(tree)
    }

    /// Returns the method `forward` of the module's class, with all nodes of the program in it.
    pub(crate) fn forward(&self, class: Type, unit: &CompilationUnit) -> Result<Flat, Error> {
        let parts = self.parts();
        let mut graph = Graph::clone(self.graph());
        let replaced = replace_operators(&mut graph, self.entry().session())?;
        replace_bools(&mut graph, self.metadata())?;
        let root = graph.root();
        let old: Vec<ValueId> = graph.inputs().collect();
        let outputs: Vec<ValueId> = graph.outputs().collect();
        let receiver = graph.edit().insert_block_input(root, 0, class);
        graph.edit().set_name(receiver, "self");
        let mut schema = vec![Argument::new(Symbol::new("self"), class)];
        let mut leaves = Vec::new();
        let leaf_types: Vec<Type> = parts.spec.leaf_types().map(|(ty, _)| ty).collect();
        let mut types = leaf_types.iter().copied();
        let specs = parts.spec.args().iter().enumerate().map(|(i, spec)| {
            let name = parts.spec.arg_names().get(i).cloned();
            (name.filter(|n| is_name(n)).unwrap_or_else(|| format!("arg{i}")), spec)
        });
        let named = parts.spec.kwargs().iter().map(|(name, spec)| (name.clone(), spec));
        // Arguments are unpacked in order at the start of the graph; the cursor stays behind the nodes inserted so far.
        let first = graph.next(graph.param(root)).unwrap_or(graph.ret(root));
        for (name, spec) in specs.chain(named) {
            let ty = type_of(spec, &mut || types.next().unwrap_or(Type::NONE))?;
            let value = graph.edit().add_input(ty);
            graph.edit().set_name(value, name.as_str());
            schema.push(Argument::new(Symbol::new(&name), ty));
            let mut edit = graph.edit();
            edit.at(At::before(first));
            unpack(&mut edit, spec, value, &leaf_types, &mut leaves)?;
        }
        for ((_, constant), &leaf) in parts.spec.leaf_types().zip(&leaves) {
            if let Some(constant) = constant.filter(|value| !value.is_none()) {
                let mut edit = graph.edit();
                assert_equal(edit.at(At::before(first)), leaf, constant)?;
            }
        }
        let mut state = State::new(receiver, class, unit);
        for (input, &value) in parts.inputs.iter().zip(&old) {
            let mut edit = graph.edit();
            edit.at(At::before(first));
            let new = match input {
                Input::State(name, _) => state.read(&mut edit, name)?,
                Input::Leaf(leaf) => leaves[*leaf],
            };
            edit.replace_all_uses(value, new);
        }
        // An output may be an input of the graph, whose uses were replaced.
        let outputs: Vec<ValueId> = (0..outputs.len()).map(|i| graph.operand(graph.ret(root), i)).collect();
        let mut edit = graph.edit();
        edit.at(At::end(root));
        let mut mutated = vec![None; outputs.len()];
        for ((output, &value), target) in parts.outputs.iter().zip(&outputs).zip(&mut mutated) {
            let tensor = match output {
                Output::Result | Output::Mutated(_) | Output::Gradient => continue,
                Output::State(name, _) => state.read(&mut edit, name)?,
                Output::Leaf(leaf) => leaves[*leaf],
            };
            edit.call("aten::copy_", &[tensor.into(), value.into()]).map_err(inserted)?;
            *target = Some(tensor);
        }
        let results = parts.outputs.iter().zip(&outputs).filter_map(|(output, &value)| match output {
            Output::Result => Some(value),
            Output::Mutated(at) => mutated[*at],
            Output::State(..) | Output::Leaf(_) | Output::Gradient => None,
        });
        let result = pack(&mut edit, parts.spec.output(), &mut results.collect::<Vec<_>>().into_iter())?;
        let reads = state.reads;
        edit.retain_block_outputs(root, |i| i >= outputs.len());
        edit.retain_block_inputs(root, |i| i == 0 || i > old.len());
        edit.add_output(result);
        let returns = vec![Argument::new(Symbol::EMPTY, graph.ty(result))];
        let name = Symbol::new(&format!("{CLASS}.forward"));
        let schema = FunctionSchema {
            name: Symbol::new("forward"),
            overload: Symbol::EMPTY,
            args: schema,
            returns,
            vararg: false,
            varret: false,
        };
        let function = Function { name, schema: Arc::new(schema), graph: Arc::new(graph) };
        let reads = reads.into_iter().map(|(path, (value, _))| (path, value)).collect();
        Ok(Flat { function, reads, replaced })
    }
}

impl Tree {
    /// Adds a tensor at a dotted path, unless it is there already.
    pub(crate) fn add(&mut self, path: &str, tensor: &Tensor, kind: AttributeKind) -> Result<(), Error> {
        let wrong = || unsupported(format!("the tensor name `{}`", path.escape_debug()));
        let (module, name) = match path.rsplit_once('.') {
            Some((module, name)) => (self.module(module).ok_or_else(wrong)?, name),
            None => (self, path),
        };
        if !is_word(name) {
            return Err(wrong());
        }
        match module.members.entry(name.to_owned()).or_insert_with(|| Member::Tensor(tensor.clone(), kind)) {
            Member::Tensor(..) => Ok(()),
            Member::Module(_) => Err(wrong()),
        }
    }

    /// Returns the module at a dotted path, which is added with those above it if it is not there. `None` if the path cannot
    /// be that of a module.
    pub(crate) fn module(&mut self, path: &str) -> Option<&mut Tree> {
        let mut at = self;
        for (depth, step) in path.split('.').enumerate() {
            if !is_word(step) || depth + 1 >= MAX_DEPTH {
                return None;
            }
            let inner = at.members.entry(step.to_owned());
            at = match inner.or_insert_with(|| Member::Module(Tree::default())) {
                Member::Module(inner) => inner,
                Member::Tensor(..) => return None,
            };
        }
        Some(at)
    }

    /// Returns an object with these attributes, of a class of its own that has the name that `names` gives for the module's path;
    /// the path of this module itself is `path`. The recursion is bounded by [`MAX_DEPTH`].
    pub(crate) fn object(
        &self,
        unit: &mut CompilationUnit,
        path: &str,
        names: &mut dyn FnMut(&str) -> String,
    ) -> Result<Object, Error> {
        let ty = Type::class(Symbol::new(&names(path)), 0);
        let mut class = Class::new(ty, true);
        let training =
            Attribute { name: Symbol::new("training"), ty: Type::BOOL, kind: AttributeKind::Plain };
        class.attributes.push(training);
        let mut slots = vec![IValue::Bool(false)];
        for (name, member) in &self.members {
            let (value, ty, kind) = match member {
                Member::Tensor(tensor, kind) => (IValue::Tensor(tensor.clone()), Type::TENSOR, *kind),
                Member::Module(tree) => {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    let object = tree.object(unit, &path, names)?;
                    let ty = object.class();
                    (IValue::Object(object), ty, AttributeKind::Plain)
                }
            };
            if name == "training" {
                return Err(unsupported("a tensor called `training`".to_owned()));
            }
            class.attributes.push(Attribute { name: Symbol::new(name), ty, kind });
            slots.push(value);
        }
        unit.define_class(class);
        Ok(Object::new(ty, slots))
    }
}

/// Reads of the module's attributes, each once.
pub(crate) struct State<'u> {
    receiver: ValueId,
    class: Type,
    unit: &'u CompilationUnit,
    reads: IndexMap<String, (ValueId, Type), FxBuildHasher>,
}

impl State<'_> {
    /// Creates an empty set of reads of `receiver`, an object of `class`.
    pub(crate) fn new(receiver: ValueId, class: Type, unit: &CompilationUnit) -> State<'_> {
        State { receiver, class, unit, reads: IndexMap::default() }
    }

    /// Returns the tensor or module at a dotted path.
    pub(crate) fn read(&mut self, edit: &mut Editor<'_>, path: &str) -> Result<ValueId, Error> {
        let (mut value, mut class) = (self.receiver, self.class);
        let mut end = 0;
        for step in path.split('.') {
            end += step.len();
            let prefix = &path[..end];
            end += 1;
            if let Some(&(known, ty)) = self.reads.get(prefix) {
                (value, class) = (known, ty);
                continue;
            }
            let name = Symbol::new(step);
            let ty = self.unit.class(class).and_then(|c| c.attribute(name)).map(|a| a.ty);
            let ty = ty.ok_or_else(|| unsupported(format!("the tensor name `{}`", path.escape_debug())))?;
            let attrs = edit.attrs([(names::name(), Attr::str(step))]);
            let node = edit.insert(Prim::GetAttr, &[value], attrs, &[ty]);
            (value, class) = (edit.graph().result(node, 0), ty);
            self.reads.insert(prefix.to_owned(), (value, ty));
        }
        Ok(value)
    }
}

/// Returns the type of a structure whose leaves have these types.
pub(crate) fn type_of(spec: &TreeSpec, leaf: &mut impl FnMut() -> Type) -> Result<Type, Error> {
    let mut all = |children: &[TreeSpec]| -> Result<Vec<Type>, Error> {
        children.iter().map(|child| type_of(child, leaf)).collect()
    };
    Ok(match spec.view() {
        TreeView::Leaf => leaf(),
        TreeView::Tuple(children) => Type::tuple(&all(children)?),
        TreeView::List(children) => Type::list(element(&all(children)?)?),
        TreeView::Dict(keys, children) => Type::dict(key_type(keys)?, element(&all(children)?)?),
        TreeView::Named(named) => named_type(named, &all(named.children)?)?,
    })
}

/// Returns the type of the elements of a list or dictionary: a union if they have several types.
fn element(types: &[Type]) -> Result<Type, Error> {
    match types {
        [] => Ok(Type::TENSOR),
        types => Some(Type::union(types))
            .filter(|ty| *ty != Type::OVERFLOW)
            .ok_or_else(|| unsupported(format!("a list or dictionary of values of {} types", types.len()))),
    }
}

fn key_type(keys: &[Key]) -> Result<Type, Error> {
    let mut types = keys.iter().map(|key| key.value().type_of());
    let first = types.next().unwrap_or(Type::STR);
    if types.all(|ty| ty == first) {
        Ok(first)
    } else {
        Err(unsupported("a dictionary with keys of several types".to_owned()))
    }
}

/// Returns the named tuple for a tuple with field names or a dataclass, whose elements have these types. TorchScript has no
/// dataclasses; fields that are `None` follow the others, as in results of the program itself.
fn named_type(named: NamedView<'_>, types: &[Type]) -> Result<Type, Error> {
    let Some(fields) = named.fields else { return Ok(Type::tuple(types)) };
    let words = fields.iter().chain(named.none).map(String::as_str).chain(named.class.split('.'));
    if let Some(wrong) = words.into_iter().find(|word| !is_name(word)) {
        let (class, wrong) = (named.class.escape_debug(), wrong.escape_debug());
        return Err(unsupported(format!("the name `{wrong}` in the class `{class}`")));
    }
    let none = named.none.iter().map(|name| (name, Type::NONE));
    let fields: Vec<(NamedField, Type)> = (fields.iter().zip(types.iter().copied()).chain(none))
        .map(|(name, ty)| (NamedField { name: Symbol::new(name), default: None }, ty))
        .collect();
    Ok(Type::named_tuple(Symbol::new(&format!("__torch__.{}", named.class)), &fields))
}

/// Inserts nodes that take a value apart, and appends its leaves, whose types are those of `types` at their positions.
pub(crate) fn unpack(
    edit: &mut Editor<'_>,
    spec: &TreeSpec,
    value: ValueId,
    types: &[Type],
    leaves: &mut Vec<ValueId>,
) -> Result<(), Error> {
    // An element of a union has the type of its place.
    let narrowed = |edit: &mut Editor<'_>, child: &TreeSpec, item: ValueId, first: usize| {
        let mut types = types.iter().skip(first).copied();
        let ty = type_of(child, &mut || types.next().unwrap_or(Type::NONE))?;
        let is_same = edit.graph().ty(item) == ty;
        Ok::<ValueId, Error>(if is_same { item } else { edit.value(Prim::UncheckedCast, &[item], ty) })
    };
    // The nesting of specs is bounded, and with it this recursion.
    match spec.view() {
        TreeView::Leaf => leaves.push(value),
        TreeView::Tuple(children) | TreeView::Named(NamedView { children, .. }) => {
            let items = edit.unpack_tuple(value);
            for (child, item) in children.iter().zip(items) {
                unpack(edit, child, item, types, leaves)?;
            }
        }
        TreeView::List(children) => {
            let elem = edit.graph().ty(value).list_elem().unwrap_or(Type::TENSOR);
            let node = edit.node(Prim::ListUnpack, &[value], &vec![elem; children.len()]);
            for (i, child) in children.iter().enumerate() {
                let item = edit.graph().result(node, i);
                let item = narrowed(edit, child, item, leaves.len())?;
                unpack(edit, child, item, types, leaves)?;
            }
        }
        TreeView::Dict(keys, children) => {
            for (key, child) in keys.iter().zip(children) {
                let item = edit.call("aten::__getitem__", &[value.into(), key.value().into()]);
                let item = narrowed(edit, child, item.map_err(inserted)?, leaves.len())?;
                unpack(edit, child, item, types, leaves)?;
            }
        }
    }
    Ok(())
}

/// Inserts nodes that build a value from its leaves.
pub(crate) fn pack(
    edit: &mut Editor<'_>,
    spec: &TreeSpec,
    leaves: &mut impl Iterator<Item = ValueId>,
) -> Result<ValueId, Error> {
    let too_few = || Error::new(Fault::Internal, "X0001", "the graph has fewer results than its signature");
    let mut all = |edit: &mut Editor<'_>, children: &[TreeSpec]| -> Result<Vec<ValueId>, Error> {
        children.iter().map(|child| pack(edit, child, leaves)).collect()
    };
    Ok(match spec.view() {
        TreeView::Leaf => leaves.next().ok_or_else(too_few)?,
        TreeView::Tuple(children) => {
            let items = all(edit, children)?;
            edit.tuple(&items)
        }
        TreeView::List(children) => {
            let items = all(edit, children)?;
            let elem = element(&types_of(edit, &items))?;
            edit.value(Prim::ListConstruct, &items, Type::list(elem))
        }
        TreeView::Dict(keys, children) => {
            let items = all(edit, children)?;
            let (key_type, elem) = (key_type(keys)?, element(&types_of(edit, &items))?);
            let mut operands = Vec::with_capacity(2 * items.len());
            for (key, item) in keys.iter().zip(items) {
                operands.push(edit.constant(key.value()));
                operands.push(item);
            }
            edit.value(Prim::DictConstruct, &operands, Type::dict(key_type, elem))
        }
        TreeView::Named(named) => {
            let mut items = all(edit, named.children)?;
            let ty = named_type(named, &types_of(edit, &items))?;
            if named.fields.is_some() {
                items.extend(named.none.iter().map(|_| edit.constant(IValue::None)));
            }
            edit.value(Prim::TupleConstruct, &items, ty)
        }
    })
}

fn types_of(edit: &Editor<'_>, items: &[ValueId]) -> Vec<Type> {
    items.iter().map(|&item| edit.graph().ty(item)).collect()
}

/// Inserts nodes that raise an error unless a value is the constant.
fn assert_equal(edit: &mut Editor<'_>, value: ValueId, constant: &IValue) -> Result<(), Error> {
    let differs = edit.call("aten::ne", &[value.into(), constant.clone().into()]).map_err(inserted)?;
    let message = format!("Expected input to be equal to {constant:?}");
    let node = edit.node(Prim::If, &[differs], &[]);
    let (raises, _passes) = (edit.add_block(node), edit.add_block(node));
    let next = edit.cursor();
    edit.at(At::end(raises));
    let message = edit.constant(IValue::str(&message));
    let class = edit.constant(IValue::None);
    edit.node(Prim::RaiseException, &[message, class], &[]);
    edit.at(At::before(next));
    Ok(())
}

/// Returns true for a text that may be the name of an attribute. It may begin with a digit, as those of sequences of modules.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
        && text != "self"
}

pub(crate) fn inserted(error: InsertError) -> Error {
    Error::new(Fault::Internal, "X0001", error.to_string())
}

pub(crate) fn unsupported(what: String) -> Error {
    Error::new(Fault::Unsupported, "E015", format!("{what} cannot be part of a TorchScript module"))
}
