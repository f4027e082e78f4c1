//! Compilation units: the functions, classes, interfaces and enumerations a program consists of.
//!
//! Types are only names; what a class holds and which function a method is stands here. A unit is built once, by the
//! frontend or an archive, and then shared; graphs refer to functions and classes by qualified name and type.

use crate::graph::Graph;
use crate::schema::{Argument, FunctionSchema};
use crate::symbol::Symbol;
use crate::types::{ClassEnv, Type};
use crate::value::IValue;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// A function or method with its graph.
#[derive(Clone, Debug)]
pub struct Function {
    /// The qualified name: `__torch__.m.C.forward`, or `f` for a free function.
    pub name: Symbol,
    /// Arguments (a method's `self` first) and returns.
    pub schema: Arc<FunctionSchema>,
    /// The body.
    pub graph: Arc<Graph>,
}

impl Function {
    /// A function of a graph that came without a schema: parameters are called as the inputs are, or `arg0`, `arg1`.
    pub fn of_graph(name: Symbol, graph: Arc<Graph>) -> Function {
        let args = graph.inputs().enumerate().map(|(i, v)| {
            let name = graph.name(v).symbol().unwrap_or_else(|| Symbol::new(&format!("arg{i}")));
            Argument::new(name, graph.ty(v))
        });
        let returns = graph.outputs().map(|v| Argument::new(Symbol::EMPTY, graph.ty(v)));
        let schema = FunctionSchema {
            name,
            overload: Symbol::EMPTY,
            args: args.collect(),
            returns: returns.collect(),
            vararg: false,
            varret: false,
        };
        Function { name, schema: Arc::new(schema), graph }
    }
}

/// What an attribute of a module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    /// Any other attribute.
    Plain,
    /// A parameter.
    Parameter,
    /// A buffer.
    Buffer,
}

/// An attribute of a class: one slot of its objects.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// The name.
    pub name: Symbol,
    /// The declared type.
    pub ty: Type,
    /// Parameter, buffer or neither.
    pub kind: AttributeKind,
}

/// A property of a class.
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// The name.
    pub name: Symbol,
    /// The method that reads it.
    pub getter: Symbol,
    /// The method that writes it.
    pub setter: Option<Symbol>,
}

/// A class or module.
#[derive(Clone, Debug)]
pub struct Class {
    /// The class's type.
    pub ty: Type,
    /// Whether it derives from `Module`.
    pub is_module: bool,
    /// Slots, in order.
    pub attributes: Vec<Attribute>,
    /// Constants by name.
    pub constants: Vec<(Symbol, IValue)>,
    /// Methods by name, as keys of [`CompilationUnit::function`].
    pub methods: IndexMap<Symbol, Symbol, FxBuildHasher>,
    /// Static methods by name, as keys of [`CompilationUnit::function`].
    pub static_methods: IndexMap<Symbol, Symbol, FxBuildHasher>,
    /// Properties.
    pub properties: Vec<Property>,
    /// Methods that run before `forward` when the object, a module, is called from outside.
    pub pre_hooks: Vec<Symbol>,
    /// Methods that run behind `forward` then.
    pub hooks: Vec<Symbol>,
}

impl Class {
    /// A class without anything in it.
    pub fn new(ty: Type, is_module: bool) -> Self {
        Class {
            ty,
            is_module,
            attributes: Vec::new(),
            constants: Vec::new(),
            methods: IndexMap::default(),
            static_methods: IndexMap::default(),
            properties: Vec::new(),
            pre_hooks: Vec::new(),
            hooks: Vec::new(),
        }
    }

    /// The slot of an attribute.
    pub fn slot(&self, name: Symbol) -> Option<usize> {
        self.attributes.iter().position(|a| a.name == name)
    }

    /// An attribute by name.
    pub fn attribute(&self, name: Symbol) -> Option<&Attribute> {
        self.attributes.iter().find(|a| a.name == name)
    }

    /// A constant by name.
    pub fn constant(&self, name: Symbol) -> Option<&IValue> {
        self.constants.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }
}

/// An interface: the methods a class must have to be used through it.
#[derive(Clone, Debug)]
pub struct Interface {
    /// The interface's type.
    pub ty: Type,
    /// Whether only modules satisfy it.
    pub is_module: bool,
    /// Schemas of the methods (with `self`), by name.
    pub methods: IndexMap<Symbol, Arc<FunctionSchema>, FxBuildHasher>,
}

/// An enumeration.
#[derive(Clone, Debug)]
pub struct Enumeration {
    /// The enumeration's type.
    pub ty: Type,
    /// Members in order of definition, with their values.
    pub members: Vec<(Symbol, IValue)>,
}

/// All that a program consists of.
#[derive(Clone, Debug, Default)]
pub struct CompilationUnit {
    functions: IndexMap<Symbol, Arc<Function>, FxBuildHasher>,
    classes: IndexMap<Type, Class, FxBuildHasher>,
    interfaces: IndexMap<Type, Interface, FxBuildHasher>,
    enums: IndexMap<Type, Enumeration, FxBuildHasher>,
}

impl CompilationUnit {
    /// An empty unit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a function.
    pub fn define_function(&mut self, function: Function) -> Arc<Function> {
        let function = Arc::new(function);
        self.functions.insert(function.name, Arc::clone(&function));
        function
    }

    /// Adds or replaces a class.
    pub fn define_class(&mut self, class: Class) {
        self.classes.insert(class.ty, class);
    }

    /// Adds or replaces an interface.
    pub fn define_interface(&mut self, interface: Interface) {
        self.interfaces.insert(interface.ty, interface);
    }

    /// Adds or replaces an enumeration.
    pub fn define_enum(&mut self, enumeration: Enumeration) {
        self.enums.insert(enumeration.ty, enumeration);
    }

    /// A function by qualified name.
    pub fn function(&self, name: Symbol) -> Option<&Arc<Function>> {
        self.functions.get(&name)
    }

    /// All functions in order of definition.
    pub fn functions(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.values()
    }

    /// A class by type.
    pub fn class(&self, ty: Type) -> Option<&Class> {
        self.classes.get(&ty)
    }

    /// A class by type, to complete it.
    pub fn class_mut(&mut self, ty: Type) -> Option<&mut Class> {
        self.classes.get_mut(&ty)
    }

    /// All classes in order of definition.
    pub fn classes(&self) -> impl Iterator<Item = &Class> {
        self.classes.values()
    }

    /// An interface by type.
    pub fn interface(&self, ty: Type) -> Option<&Interface> {
        self.interfaces.get(&ty)
    }

    /// All interfaces in order of definition.
    pub fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.values()
    }

    /// An enumeration by type.
    pub fn enumeration(&self, ty: Type) -> Option<&Enumeration> {
        self.enums.get(&ty)
    }

    /// All enumerations in order of definition.
    pub fn enumerations(&self) -> impl Iterator<Item = &Enumeration> {
        self.enums.values()
    }

    /// The function behind method `name` of the class `ty`.
    pub fn method(&self, ty: Type, name: Symbol) -> Option<&Arc<Function>> {
        self.function(*self.classes.get(&ty)?.methods.get(&name)?)
    }
}

impl ClassEnv for CompilationUnit {
    fn interface_methods(&self, interface: Type) -> Option<Vec<Symbol>> {
        Some(self.interface(interface)?.methods.keys().copied().collect())
    }

    fn method(&self, class: Type, name: Symbol) -> Option<Arc<FunctionSchema>> {
        match self.interface(class) {
            Some(interface) => interface.methods.get(&name).cloned(),
            None => CompilationUnit::method(self, class, name).map(|f| Arc::clone(&f.schema)),
        }
    }

    fn is_module(&self, class: Type) -> bool {
        self.class(class).is_some_and(|c| c.is_module) || self.interface(class).is_some_and(|i| i.is_module)
    }
}
