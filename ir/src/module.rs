//! Compilation units: the functions, classes, interfaces and enumerations of a program.
//!
//! A [`Type`] is only a name; the contents of a class and the functions behind its methods are stored here. The
//! frontend or an archive builds a unit once, and then the unit is shared. Graphs refer to functions by qualified name
//! and to classes by type.

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
    /// Arguments (`self` first for a method) and returns.
    pub schema: Arc<FunctionSchema>,
    /// The body.
    pub graph: Arc<Graph>,
}

impl Function {
    /// Creates a function from a graph without a schema. Parameters take the debug names of the graph's inputs, or
    /// `arg0`, `arg1` where an input has none.
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

/// The kind of an attribute of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    /// Any other attribute.
    Plain,
    /// A parameter.
    Parameter,
    /// A buffer.
    Buffer,
}

/// An attribute of a class. Each attribute is one slot of the class's objects.
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
    /// Attributes in slot order.
    pub attributes: Vec<Attribute>,
    /// Constants by name.
    pub constants: Vec<(Symbol, IValue)>,
    /// Methods by name, as keys of [`CompilationUnit::function`].
    pub methods: IndexMap<Symbol, Symbol, FxBuildHasher>,
    /// Static methods by name, as keys of [`CompilationUnit::function`].
    pub static_methods: IndexMap<Symbol, Symbol, FxBuildHasher>,
    /// Properties, in order of definition.
    pub properties: Vec<Property>,
    /// Names of methods that run before `forward` when the module is called from outside.
    pub pre_hooks: Vec<Symbol>,
    /// Names of methods that run after `forward` in such a call.
    pub hooks: Vec<Symbol>,
}

impl Class {
    /// Creates a class without attributes, constants and methods.
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

    /// Returns the slot of an attribute.
    pub fn slot(&self, name: Symbol) -> Option<usize> {
        self.attributes.iter().position(|a| a.name == name)
    }

    /// Returns the attribute with a name.
    pub fn attribute(&self, name: Symbol) -> Option<&Attribute> {
        self.attributes.iter().find(|a| a.name == name)
    }

    /// Returns the constant with a name.
    pub fn constant(&self, name: Symbol) -> Option<&IValue> {
        self.constants.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }
}

/// An interface: the methods that a class must have to satisfy it.
#[derive(Clone, Debug)]
pub struct Interface {
    /// The interface's type.
    pub ty: Type,
    /// Whether only modules satisfy the interface.
    pub is_module: bool,
    /// Schemas of the methods (including `self`), by name.
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

/// All definitions of a program.
#[derive(Clone, Debug, Default)]
pub struct CompilationUnit {
    functions: IndexMap<Symbol, Arc<Function>, FxBuildHasher>,
    classes: IndexMap<Type, Class, FxBuildHasher>,
    interfaces: IndexMap<Type, Interface, FxBuildHasher>,
    enums: IndexMap<Type, Enumeration, FxBuildHasher>,
}

impl CompilationUnit {
    /// Creates an empty unit.
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

    /// Returns the function with a qualified name.
    pub fn function(&self, name: Symbol) -> Option<&Arc<Function>> {
        self.functions.get(&name)
    }

    /// Returns all functions in order of definition.
    pub fn functions(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.values()
    }

    /// Returns the class of a type.
    pub fn class(&self, ty: Type) -> Option<&Class> {
        self.classes.get(&ty)
    }

    /// Returns the class of a type for modification.
    pub fn class_mut(&mut self, ty: Type) -> Option<&mut Class> {
        self.classes.get_mut(&ty)
    }

    /// Returns all classes in order of definition.
    pub fn classes(&self) -> impl Iterator<Item = &Class> {
        self.classes.values()
    }

    /// Returns the interface of a type.
    pub fn interface(&self, ty: Type) -> Option<&Interface> {
        self.interfaces.get(&ty)
    }

    /// Returns all interfaces in order of definition.
    pub fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.values()
    }

    /// Returns the enumeration of a type.
    pub fn enumeration(&self, ty: Type) -> Option<&Enumeration> {
        self.enums.get(&ty)
    }

    /// Returns all enumerations in order of definition.
    pub fn enumerations(&self) -> impl Iterator<Item = &Enumeration> {
        self.enums.values()
    }

    /// Returns the function behind method `name` of the class `ty`.
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
