//! Declares the classes of an archive in a compilation unit, on demand.
//!
//! A class is declared at its first use: by an object in a pickle, the type of an attribute, a type tag, a signature or
//! a call. Declaring a class reads the attributes and constants of its body and first declares the classes that these
//! use. Methods are queued for later, because their bodies may use any class, including their own. Classes used by
//! attributes must be declared before the class itself, so a cycle among attributes is an error.
//!
//! Chains of classes may be long, so the order of declaration is kept on an explicit stack.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use flambeau_frontend::{Ast, TreeId, parse_expression, view};
use flambeau_ir::module::{Attribute, AttributeKind, Class, CompilationUnit, Enumeration};
use flambeau_ir::types::NamedField;
use flambeau_ir::{Diagnostic, Fault, IValue, Symbol, Type};

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::annotation::{class_names, read_type};
use crate::code::{ArchivedSource, ClassDecl, ClassKind, Field, Sources};
use crate::error::quoted;
use crate::literal::{Literals, constant_classes, has_type};
use crate::open::Archive;
use crate::{ArchiveCode, ArchiveError};

/// Reasons why an archive cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The container, a pickle or a class is invalid.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The code does not compile.
    #[error("{0}")]
    Code(Box<Diagnostic>),
}

impl LoadError {
    /// Returns the fault class.
    pub fn fault(&self) -> Fault {
        match self {
            LoadError::Archive(e) => e.fault(),
            LoadError::Code(d) => d.fault,
        }
    }

    /// Sets the record of the error, unless the error has one.
    pub(crate) fn in_record(self, name: &str) -> Self {
        match self {
            LoadError::Archive(e) => LoadError::Archive(e.in_record(name)),
            code => code,
        }
    }

    /// Sets the byte offset in the current record, unless the error has a record.
    pub(crate) fn at(self, offset: u64) -> Self {
        match self {
            LoadError::Archive(e) if e.record().is_none() => LoadError::Archive(e.at(offset)),
            other => other,
        }
    }

    /// Returns the stable code of the broken rule.
    pub fn code(&self) -> &'static str {
        match self {
            LoadError::Archive(e) => e.code().as_str(),
            LoadError::Code(d) => d.code,
        }
    }
}

impl From<Box<Diagnostic>> for LoadError {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        LoadError::Code(diagnostic)
    }
}

/// A declared method or function that has yet to be compiled.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    /// The class or interface it belongs to; `None` for a function.
    pub(crate) owner: Option<Type>,
    /// The file with the definition.
    pub(crate) file: Arc<ArchivedSource>,
    /// The definition.
    pub(crate) def: TreeId,
}

enum State {
    /// On the stack: the classes it uses are being declared.
    Busy,
    Done(Type),
}

enum Task {
    /// Declares a class; the location is where the class is used.
    Visit(String, Option<(Arc<ArchivedSource>, u64)>),
    Finish(String, Arc<ArchivedSource>, TreeId, Box<ClassDecl>),
}

/// Declares the classes of an archive.
pub(crate) struct Importer<'a> {
    archive: &'a Archive<'a>,
    sources: Sources<'a>,
    states: BTreeMap<String, State>,
    /// The table of constants.
    constants: Vec<IValue>,
    /// The declarations so far.
    pub(crate) unit: CompilationUnit,
    /// Methods of declared classes that are not linked yet, in order.
    pub(crate) bodies: VecDeque<Body>,
    state_types: HashMap<Type, Option<Type>, FxBuildHasher>,
    /// Pairs (class, interface) where an object of the class is used as the interface.
    pub(crate) obligations: Vec<(Type, Type)>,
}

impl<'a> Importer<'a> {
    pub(crate) fn new(archive: &'a Archive<'a>, front: flambeau_frontend::FrontendLimits) -> Self {
        Importer {
            archive,
            sources: Sources::new(archive.zip(), archive.limits(), front),
            states: BTreeMap::new(),
            constants: Vec::new(),
            unit: CompilationUnit::new(),
            bodies: VecDeque::new(),
            state_types: HashMap::default(),
            obligations: Vec::new(),
        }
    }

    /// Sets the table of constants, which code and classes refer to.
    pub(crate) fn set_constants(&mut self, constants: Vec<IValue>) {
        self.constants = constants;
    }

    /// Returns the table of constants.
    pub(crate) fn constants(&self) -> &[IValue] {
        &self.constants
    }

    /// Returns the file and definition of a qualified name of a class or function.
    pub(crate) fn find(
        &mut self,
        qualified: &str,
    ) -> Result<Option<(Arc<ArchivedSource>, TreeId)>, LoadError> {
        let Some((file, id)) = self.sources.find(qualified)? else { return Ok(None) };
        check_syntax(&file)?;
        Ok(Some((file, id)))
    }

    /// Returns the type of the class, enum, interface or named tuple `name`; declares it at first use.
    pub(crate) fn declare(&mut self, name: &str) -> Result<Type, LoadError> {
        let mut stack = vec![Task::Visit(name.to_owned(), None)];
        while let Some(task) = stack.pop() {
            match task {
                Task::Visit(name, needed) => {
                    let visited = match self.states.get(&name) {
                        Some(State::Done(_)) => Ok(()),
                        Some(State::Busy) => {
                            let message = format!(
                                "the attributes of {} contain the class itself, possibly through other classes",
                                quoted(&name)
                            );
                            Err(ArchiveError::new(ArchiveCode::Class, message).into())
                        }
                        None => self.visit(name, &mut stack),
                    };
                    visited.map_err(|e| match needed {
                        Some((file, at)) => e.at(at).in_record(file.record()),
                        None => e,
                    })?;
                }
                Task::Finish(name, file, id, decl) => {
                    let ty = self.finish(&name, &file, id, &decl).map_err(|e| e.in_record(file.record()))?;
                    self.states.insert(name, State::Done(ty));
                }
            }
        }
        match self.states.get(name) {
            Some(State::Done(ty)) => Ok(*ty),
            _ => {
                Err(ArchiveError::new(ArchiveCode::Class, format!("unknown type name {}", quoted(name)))
                    .into())
            }
        }
    }

    /// Returns the type declared under a name, if it is declared already.
    pub(crate) fn known(&self, name: &str) -> Option<Type> {
        match self.states.get(name) {
            Some(State::Done(ty)) => Some(*ty),
            _ => None,
        }
    }

    /// Returns all declared types, sorted by name.
    pub(crate) fn declared(&self) -> impl Iterator<Item = (&str, Type)> {
        self.states.iter().filter_map(|(name, state)| match state {
            State::Done(ty) => Some((name.as_str(), *ty)),
            State::Busy => None,
        })
    }

    fn visit(&mut self, name: String, stack: &mut Vec<Task>) -> Result<(), LoadError> {
        if name.starts_with("__torch__.torch.classes.") {
            let message = format!("the custom class {} is not supported", quoted(&name));
            return Err(ArchiveError::new(ArchiveCode::Value, message).into());
        }
        let Some((file, id)) = self.find(&name)? else {
            let message =
                format!("unknown type name {}: the archive's code does not define it", quoted(&name));
            return Err(ArchiveError::new(ArchiveCode::Class, message).into());
        };
        let ast = file.ast();
        let decl = ClassDecl::of(ast, id).map_err(|e| e.in_record(file.record()))?;
        let mut needs = BTreeMap::new();
        for field in decl.attributes.iter().chain(&decl.constants) {
            let mut names = Vec::new();
            class_names(ast, field.ty, &mut names);
            if let Some(value) = field.value {
                constant_classes(ast, value, &mut names);
            }
            for name in names {
                needs.entry(name).or_insert(u64::from(ast.span(field.ty).start));
            }
        }
        self.states.insert(name.clone(), State::Busy);
        stack.push(Task::Finish(name, Arc::clone(&file), id, Box::new(decl)));
        let visit = |(name, at)| Task::Visit(name, Some((Arc::clone(&file), at)));
        stack.extend(needs.into_iter().rev().map(visit));
        Ok(())
    }

    fn finish(
        &mut self,
        name: &str,
        file: &Arc<ArchivedSource>,
        id: TreeId,
        decl: &ClassDecl,
    ) -> Result<Type, LoadError> {
        let ast = file.ast();
        let symbol = Symbol::new(name);
        let known = |name: &str| self.known(name);
        match decl.kind {
            ClassKind::NamedTuple => {
                let mut fields = Vec::new();
                for Field { name, ty, .. } in &decl.attributes {
                    let field = NamedField { name: Symbol::new(name), default: None };
                    fields.push((field, read_type(ast, *ty, &known)?));
                }
                Ok(Type::named_tuple(symbol, &fields))
            }
            ClassKind::Enum => {
                let literals = self.literals(ast, &known);
                let read = |(name, value): &(String, TreeId)| {
                    Ok((Symbol::new(name), literals.read(*value, Type::ANY)?))
                };
                let members = decl.members.iter().map(read).collect::<Result<Vec<_>, ArchiveError>>()?;
                let Some(value_type) = members.first().map(|(_, v)| v.type_of()) else {
                    return Err(class_error(file, id, &format!("the enum `{name}` has no members")).into());
                };
                if members.iter().any(|(_, v)| v.type_of() != value_type) {
                    return Err(class_error(
                        file,
                        id,
                        &format!("the members of the enum `{name}` have values of several types"),
                    )
                    .into());
                }
                let ty = Type::enumeration(symbol, 0, value_type);
                self.unit.define_enum(Enumeration { ty, members });
                Ok(ty)
            }
            ClassKind::Interface | ClassKind::ModuleInterface => {
                let ty = Type::interface(symbol, 0);
                let is_module = decl.kind == ClassKind::ModuleInterface;
                self.unit.define_interface(flambeau_ir::module::Interface {
                    ty,
                    is_module,
                    methods: Default::default(),
                });
                self.queue(ty, file, decl);
                Ok(ty)
            }
            ClassKind::Module | ClassKind::Plain => {
                let ty = Type::class(symbol, 0);
                let class = self.class(ty, file, decl)?;
                self.unit.define_class(class);
                self.queue(ty, file, decl);
                Ok(ty)
            }
        }
    }

    fn literals<'l>(&'l self, ast: &'l Ast, class: &'l dyn Fn(&str) -> Option<Type>) -> Literals<'l> {
        Literals { ast, constants: &self.constants, class, unit: &self.unit }
    }

    fn class(&self, ty: Type, file: &Arc<ArchivedSource>, decl: &ClassDecl) -> Result<Class, LoadError> {
        let ast = file.ast();
        let known = |name: &str| self.known(name);
        let mut class = Class::new(ty, decl.kind == ClassKind::Module);
        let symbols = |names: &[String]| names.iter().map(|name| Symbol::new(name)).collect();
        (class.pre_hooks, class.hooks) = (symbols(&decl.pre_hooks), symbols(&decl.hooks));
        let mut roles = BTreeMap::new();
        roles.extend(decl.buffers.iter().map(|name| (name.as_str(), AttributeKind::Buffer)));
        roles.extend(decl.parameters.iter().map(|name| (name.as_str(), AttributeKind::Parameter)));
        for Field { name, ty, .. } in &decl.attributes {
            let kind = roles.remove(name.as_str()).unwrap_or(AttributeKind::Plain);
            class.attributes.push(Attribute {
                name: Symbol::new(name),
                ty: read_type(ast, *ty, &known)?,
                kind,
            });
        }
        for field in &decl.constants {
            let declared = read_type(ast, field.ty, &known)?;
            let Some(value) = field.value else { continue };
            let constant = self.literals(ast, &known).read(value, declared)?;
            if !has_type(&constant, declared) {
                let message = format!("the constant {} is not of type {declared}", quoted(&field.name));
                return Err(class_error(file, value, &message).into());
            }
            class.constants.push((Symbol::new(&field.name), constant));
        }
        Ok(class)
    }

    fn queue(&mut self, owner: Type, file: &Arc<ArchivedSource>, decl: &ClassDecl) {
        let body = |&def| Body { owner: Some(owner), file: Arc::clone(file), def };
        self.bodies.extend(decl.methods.iter().map(body));
    }

    /// Returns the type that a text such as `Dict[str, __torch__.C]` denotes; declares the classes in it.
    pub(crate) fn type_of_text(&mut self, text: &str) -> Result<Type, LoadError> {
        let parsed = parse_expression(text, &flambeau_frontend::FrontendLimits::default());
        if let Some(problem) = parsed.problems.first() {
            let message = format!("the type tag {} is not a type: {}", quoted(text), problem.message);
            return Err(ArchiveError::new(ArchiveCode::Type, message).into());
        }
        let mut needs = Vec::new();
        class_names(&parsed.ast, parsed.root, &mut needs);
        for name in needs {
            self.declare(&name)?;
        }
        let ty = read_type(&parsed.ast, parsed.root, &|name| self.known(name));
        ty.map_err(|e| {
            let message = format!("the type tag {} is not a type: {}", quoted(text), e.message());
            ArchiveError::new(e.code(), message).into()
        })
    }

    /// Returns the type of the annotation `id` in `file`; declares the classes in it.
    pub(crate) fn type_of_tree(&mut self, file: &Arc<ArchivedSource>, id: TreeId) -> Result<Type, LoadError> {
        let mut needs = Vec::new();
        class_names(file.ast(), id, &mut needs);
        for name in needs {
            self.declare(&name)?;
        }
        Ok(read_type(file.ast(), id, &|name| self.known(name)).map_err(|e| e.in_record(file.record()))?)
    }

    /// Returns the type of the state that `__setstate__` of the class takes, or `None` if the class has no
    /// `__setstate__`.
    pub(crate) fn state_type(&mut self, class: Type) -> Result<Option<Type>, LoadError> {
        if let Some(&known) = self.state_types.get(&class) {
            return Ok(known);
        }
        let found = self.find_state_type(class)?;
        self.state_types.insert(class, found);
        Ok(found)
    }

    /// Returns the declaration of a class and its file.
    fn declaration(&mut self, class: Type) -> Result<Option<(Arc<ArchivedSource>, ClassDecl)>, LoadError> {
        let Some(nominal) = class.as_class() else { return Ok(None) };
        let Some((file, id)) = self.find(nominal.name.as_str())? else { return Ok(None) };
        let decl = ClassDecl::of(file.ast(), id).map_err(|e| e.in_record(file.record()))?;
        Ok(Some((file, decl)))
    }

    fn find_state_type(&mut self, class: Type) -> Result<Option<Type>, LoadError> {
        let Some((file, decl)) = self.declaration(class)? else { return Ok(None) };
        let Some(&def) = decl.methods.iter().find(|&&def| file.ast().name(def) == "__setstate__") else {
            return Ok(None);
        };
        let params = view::Def::of(file.ast(), def)
            .and_then(|def| view::Decl::of(file.ast(), def.decl()))
            .map(|decl| decl.params().to_vec())
            .unwrap_or_default();
        let annotation =
            params.get(1).and_then(|&p| view::Param::of(file.ast(), p)).and_then(view::Param::annotation);
        match annotation {
            Some(annotation) => self.type_of_tree(&file, annotation).map(Some),
            None => Err(class_error(
                &file,
                def,
                &format!("`__setstate__` of the class `{}` has no type for its state", class.annotation()),
            )
            .into()),
        }
    }

    /// Returns the archive being loaded.
    pub(crate) fn archive(&self) -> &'a Archive<'a> {
        self.archive
    }
}

impl crate::values::ClassLookup for Importer<'_> {
    type Error = LoadError;

    fn resolve(&mut self, qualified: &str, at: u64) -> Result<Type, LoadError> {
        self.declare(qualified).map_err(|e| e.at(at))
    }

    fn type_of_text(&mut self, text: &str, at: u64) -> Result<Type, LoadError> {
        Importer::type_of_text(self, text).map_err(|e| e.at(at))
    }

    fn slots(&self, class: Type) -> Vec<(Symbol, Type)> {
        let class = self.unit.class(class);
        class.map(|c| c.attributes.iter().map(|a| (a.name, a.ty)).collect()).unwrap_or_default()
    }

    fn members(&self, ty: Type) -> Vec<(Symbol, IValue)> {
        self.unit.enumeration(ty).map(|e| e.members.clone()).unwrap_or_default()
    }

    fn state_type(&mut self, class: Type) -> Result<Option<Type>, LoadError> {
        Importer::state_type(self, class)
    }

    fn must_implement(&mut self, class: Type, interface: Type) {
        self.obligations.push((class, interface));
    }
}

/// Returns the first syntax problem of a file as an error.
fn check_syntax(file: &ArchivedSource) -> Result<(), LoadError> {
    if file.file.parsed.problems.is_empty() {
        return Ok(());
    }
    match file.file.diagnostics().into_iter().next() {
        Some(first) => Err(LoadError::Code(Box::new(first))),
        None => Ok(()),
    }
}

fn class_error(file: &ArchivedSource, id: TreeId, message: &str) -> ArchiveError {
    let at = u64::from(file.ast().span(id).start);
    ArchiveError::new(ArchiveCode::Class, message).in_record(file.record()).at(at)
}
