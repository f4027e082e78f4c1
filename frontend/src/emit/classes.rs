//! Class declarations: classes, named tuples, enums and interfaces.
//!
//! Attributes of a class are those annotated in its body and those that `__init__` assigns at its top level. The latter
//! are added when `__init__` is compiled. `name: Final[T] = value` in the body is a constant of the class.
//!
//! The body of a module class can have the forms of archived code: the lists `__parameters__` and `__buffers__` of names,
//! and `__annotations__["0"] = T` for an attribute whose name is not an identifier. The list `__elements__` makes it a container: the
//! names of the attributes that iteration visits.

use std::ops::ControlFlow;
use std::sync::Arc;

use flambeau_ir::module::{Attribute, AttributeKind, Class, Enumeration, Interface, Property};
use flambeau_ir::schema::Argument;
use flambeau_ir::types::NamedField;
use flambeau_ir::value::{PrintStyle, print_value_with};
use flambeau_ir::{Diagnostic, Fault, IValue, Source, Symbol, Type};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

use super::deep_compile;
use super::fun::{Res, SourceFile};
use super::session::CompileSession;
use super::types::TypeReader;
use crate::tree::TreeId;
use crate::view;

struct ClassDeclaration<'s> {
    session: &'s CompileSession<'s>,
    file: &'s Arc<SourceFile>,
    name: Symbol,
}

pub(crate) fn declare(
    session: &CompileSession<'_>,
    name: Symbol,
    file: &Arc<SourceFile>,
    tree: TreeId,
) -> Res<Type> {
    let this = ClassDeclaration { session, file, name };
    let ast = &file.parsed.ast;
    let Some(class) = view::ClassDef::of(ast, tree) else { return this.fail(tree, "this is not a class") };
    check_decorators(session, file, class.decorators(), DecoratedKind::Class)?;
    let bases: Vec<Option<String>> = class.bases().iter().map(|&b| this.reader().dotted(b)).collect();
    if let Some(&second) = class.bases().get(1) {
        let range = file.range(ast.span(second));
        let message = "a class with several bases is not supported";
        return Err(Box::new(Diagnostic::new(Fault::Unsupported, "F0106", message).at(range)));
    }
    let base = bases.first().map_or("object", |b| b.as_deref().map_or("an expression", last_part));
    if this.decorators(class.decorators()).iter().any(|d| last_part(d) == "interface") {
        return this.interface(class, base == "Module");
    }
    match base {
        "Interface" => this.interface(class, false),
        "ModuleInterface" => this.interface(class, true),
        "NamedTuple" => this.named_tuple(class),
        "Enum" | "IntEnum" => this.enumeration(class),
        "object" => this.class(class, false),
        "Module" => this.class(class, true),
        _ => {
            let range = file.range(class.span());
            let message = format!("a class that derives from `{base}` is not supported");
            Err(Box::new(Diagnostic::new(Fault::Unsupported, "F0106", message).at(range)))
        }
    }
}

/// The kinds of definitions that have decorators.
#[derive(Clone, Copy)]
pub(super) enum DecoratedKind {
    Function,
    Class,
    Method,
}

impl DecoratedKind {
    /// Returns the decorators with a meaning, without `torch.jit.`. The others change or replace the definition in Python.
    fn known(self) -> &'static [&'static str] {
        match self {
            DecoratedKind::Function => &["script", "script_if_tracing", "export"],
            DecoratedKind::Class => &["script", "interface"],
            DecoratedKind::Method => &["script", "script_method", "export", "property", "staticmethod"],
        }
    }
}

/// Checks that the decorators of a definition have a meaning here.
pub(super) fn check_decorators(
    session: &CompileSession<'_>,
    file: &Arc<SourceFile>,
    decorators: &[TreeId],
    kind: DecoratedKind,
) -> Res<()> {
    let reader = TypeReader { session, file };
    for &tree in decorators {
        let name = reader.dotted(tree);
        let is_known = name.as_deref().is_some_and(|name| {
            let setter = matches!(kind, DecoratedKind::Method) && name.ends_with(".setter");
            setter || kind.known().contains(&name.trim_start_matches("torch.").trim_start_matches("jit."))
        });
        if !is_known {
            let shown =
                name.map_or_else(|| "this decorator".to_owned(), |name| format!("the decorator `{name}`"));
            let message = format!("{shown} is not supported; supported are {}", kind.known().join(", "));
            let range = file.range(file.parsed.ast.span(tree));
            return Err(Box::new(Diagnostic::new(Fault::Unsupported, "F0101", message).at(range)));
        }
    }
    Ok(())
}

/// Returns `c` of `a.b.c`.
fn last_part(dotted: &str) -> &str {
    dotted.rsplit('.').next().unwrap_or(dotted)
}

impl ClassDeclaration<'_> {
    fn reader(&self) -> TypeReader<'_> {
        TypeReader { session: self.session, file: self.file }
    }

    fn fail<T>(&self, tree: TreeId, message: &str) -> Res<T> {
        let range = self.file.range(self.file.parsed.ast.span(tree));
        Err(Box::new(Diagnostic::new(Fault::Input, "F0107", message).at(range)))
    }

    /// Returns name, annotation and value of a `name: T = value` in a class body.
    fn field(&self, tree: TreeId) -> Option<(Symbol, Option<TreeId>, Option<TreeId>)> {
        let ast = &self.file.parsed.ast;
        let assign = view::Assign::of(ast, tree)?;
        let target = view::Var::of(ast, *assign.targets().first()?)?;
        Some((Symbol::new(target.name()), assign.annotation(), assign.value()))
    }

    /// Returns the names that a class body assigns.
    fn field_names<'b>(&'b self, class: view::ClassDef<'b>) -> impl Iterator<Item = Symbol> + 'b {
        class.body().iter().filter_map(|&tree| Some(self.field(tree)?.0))
    }

    /// Returns name and type of an `__annotations__["name"] = T` in a class body.
    fn annotations_entry(&self, tree: TreeId) -> Option<(Symbol, TreeId)> {
        let ast = &self.file.parsed.ast;
        let assign = view::Assign::of(ast, tree)?;
        let target = view::Subscript::of(ast, *assign.targets().first()?)?;
        let is_entry = view::Var::of(ast, target.value())?.name() == "__annotations__";
        let name = view::StringLiteral::of(ast, *target.subscripts().first()?)?;
        assign.value().filter(|_| is_entry).map(|ty| (Symbol::new(name.value()), ty))
    }

    /// Returns the names in the lists `list = ["name", ...]` of a class body.
    fn names(&self, class: view::ClassDef<'_>, list: &str) -> Vec<Symbol> {
        let ast = &self.file.parsed.ast;
        let lists = class.body().iter().filter_map(|&tree| match self.field(tree)? {
            (name, None, Some(value)) if name.as_str() == list => view::ListLiteral::of(ast, value),
            _ => None,
        });
        let items = lists.flat_map(|list| list.elements().iter());
        items.filter_map(|&item| Some(Symbol::new(view::StringLiteral::of(ast, item)?.value()))).collect()
    }

    /// Returns true for the annotation `Final[T]`.
    fn is_final(&self, annotation: TreeId) -> bool {
        let subscript = view::Subscript::of(&self.file.parsed.ast, annotation);
        let base = subscript.and_then(|s| self.reader().dotted(s.value()));
        base.is_some_and(|name| last_part(&name) == "Final")
    }

    /// Returns the decorators that are dotted names.
    fn decorators(&self, trees: &[TreeId]) -> Vec<String> {
        trees.iter().filter_map(|&d| self.reader().dotted(d)).collect()
    }

    /// Declares an interface: the signatures of its methods. The method bodies are ignored.
    fn interface(&self, class: view::ClassDef<'_>, is_module: bool) -> Res<Type> {
        let ty = Type::interface(self.name, 0);
        self.session.name_type(self.name, ty);
        self.session.name_type(Symbol::new(class.name()), ty);
        let mut interface = Interface { ty, is_module, methods: Default::default() };
        for &tree in class.body() {
            let Some(def) = view::Def::of(&self.file.parsed.ast, tree) else { continue };
            let method = Symbol::new(def.name());
            let function = Symbol::new(&format!("{}.{method}", self.name));
            let schema = deep_compile::declared_schema(self.session, function, self.file, tree, Some(ty))?;
            interface.methods.insert(method, Arc::new(schema));
        }
        self.session.with_unit(|u| u.define_interface(interface));
        Ok(ty)
    }

    fn named_tuple(&self, class: view::ClassDef<'_>) -> Res<Type> {
        let mut fields = Vec::new();
        for &tree in class.body() {
            let Some((name, Some(annotation), value)) = self.field(tree) else { continue };
            let ty = self.reader().read(annotation)?;
            let default = match value {
                Some(value) => {
                    let field = Argument::new(name, ty);
                    let default = self.reader().parameter_default(value, &field)?;
                    let Some(text) = default_text(&default) else {
                        return self.fail(value, "the default of a field must be a number, string, enum member or device, or a container of these");
                    };
                    Some(Symbol::new(&text))
                }
                None => None,
            };
            fields.push((NamedField { name, default }, ty));
        }
        let ty = Type::named_tuple(self.name, &fields);
        self.session.name_type(self.name, ty);
        Ok(ty)
    }

    fn enumeration(&self, class: view::ClassDef<'_>) -> Res<Type> {
        let mut members = Vec::new();
        for &tree in class.body() {
            let Some((name, _, Some(value))) = self.field(tree) else { continue };
            members.push((name, self.reader().default(value, Type::ANY)?));
        }
        let Some(value_type) = members.first().map(|(_, v)| v.type_of()) else {
            return self.fail(class.id(), "an enum needs members");
        };
        if members.iter().any(|(_, v)| v.type_of() != value_type) {
            return self.fail(
                class.id(),
                "Could not unify type list: the members of an enum must have values of one type",
            );
        }
        let ty = Type::enumeration(self.name, 0, value_type);
        self.session.with_unit(|u| u.define_enum(Enumeration { ty, members }));
        self.session.name_type(self.name, ty);
        Ok(ty)
    }

    fn class(&self, class: view::ClassDef<'_>, is_module: bool) -> Res<Type> {
        let ast = &self.file.parsed.ast;
        let ty = Type::class(self.name, 0);
        self.session.name_type(self.name, ty);
        // Methods can also refer to the class by its unqualified name.
        self.session.name_type(Symbol::new(class.name()), ty);
        let mut made = Class::new(ty, is_module);
        if is_module && self.field_names(class).any(|name| name == "__elements__") {
            self.session.set_elements(ty, self.names(class, "__elements__"));
        }
        let listed = |list: &str| -> HashSet<Symbol, FxBuildHasher> {
            let names = if is_module { self.names(class, list) } else { Vec::new() };
            names.into_iter().collect()
        };
        let (parameters, buffers) = (listed("__parameters__"), listed("__buffers__"));
        if is_module {
            made.pre_hooks = self.names(class, "__forward_pre_hooks__").into_iter().collect();
            made.hooks = self.names(class, "__forward_hooks__").into_iter().collect();
        }
        let kind = |name: Symbol| match (parameters.contains(&name), buffers.contains(&name)) {
            (true, _) => AttributeKind::Parameter,
            (_, true) => AttributeKind::Buffer,
            _ => AttributeKind::Plain,
        };
        for &tree in class.body() {
            let entry = self.annotations_entry(tree).map(|(name, ty)| (name, Some(ty), None));
            if let Some((name, Some(annotation), value)) = entry.or_else(|| self.field(tree)) {
                let held = self.reader().read(annotation)?;
                if let Some(value) = value
                    && self.is_final(annotation)
                {
                    let constant = self.reader().parameter_default(value, &Argument::new(name, held))?;
                    made.constants.push((name, constant));
                    continue;
                }
                if let Some(why) = refused_attribute(ty, name, held) {
                    return self.fail(annotation, &why);
                }
                made.attributes.push(Attribute { name, ty: held, kind: kind(name) });
            }
        }
        for &tree in class.body() {
            let Some(def) = view::Def::of(ast, tree) else { continue };
            check_decorators(self.session, self.file, def.decorators(), DecoratedKind::Method)?;
            let decorators = self.decorators(def.decorators());
            let has = |name: &str| decorators.iter().any(|d| d == name);
            let name = Symbol::new(def.name());
            let setter = decorators.iter().any(|d| d.ends_with(".setter"));
            // The accessors of a property have the names that archives use.
            let method = match (has("property"), setter) {
                (true, _) => Symbol::new(&format!("__{name}_getter")),
                (_, true) => Symbol::new(&format!("__{name}_setter")),
                _ => name,
            };
            let function = Symbol::new(&format!("{}.{method}", self.name));
            let own = !has("staticmethod");
            self.session.declare(function, self.file, tree, own.then_some(ty));
            if !own {
                made.static_methods.insert(method, function);
                continue;
            }
            if has("property") {
                made.properties.push(Property { name, getter: method, setter: None });
            }
            if setter && let Some(property) = made.properties.iter_mut().find(|p| p.name == name) {
                property.setter = Some(method);
            }
            made.methods.insert(method, function);
        }
        self.session.with_unit(|u| u.define_class(made));
        Ok(ty)
    }
}

/// Returns the reason why a class cannot have an attribute of type `held`, if there is one: a class must not contain
/// itself.
pub(crate) fn refused_attribute(class: Type, name: Symbol, held: Type) -> Option<String> {
    let mut seen: HashSet<Type, FxBuildHasher> = HashSet::default();
    let mut todo = vec![held];
    while let Some(ty) = todo.pop() {
        if ty == class {
            let class = class.annotation();
            return Some(format!(
                "Assignment to attribute '{name}' cannot be of a type that contains class '{class}'"
            ));
        }
        if seen.insert(ty) {
            todo.extend(ty.kind().contained());
        }
    }
    None
}

/// Returns the literal of a default value, or `None` if it has none. [`default_of`] reads it.
fn default_text(value: &IValue) -> Option<String> {
    let odd = value.visit(|part| match part {
        IValue::None
        | IValue::Bool(_)
        | IValue::Int(_)
        | IValue::Float(_)
        | IValue::Complex(_)
        | IValue::Str(_)
        | IValue::Device(_)
        | IValue::Enum(_)
        | IValue::Tuple(_)
        | IValue::List(_)
        | IValue::Dict(_) => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    let mut text = String::new();
    let written = print_value_with(&mut text, value, PrintStyle::Exact, &mut |_, _| Ok(false));
    (odd.is_continue() && written.is_ok()).then_some(text)
}

/// Reads the literal of a field's default value of type `ty`. A type in IR text can have any text as a default.
pub(crate) fn default_of(session: &CompileSession<'_>, text: &str, ty: Type) -> Option<IValue> {
    let source = Source::new("<default>", text);
    let parsed = crate::parse_expression(&source.text, &session.limits);
    let (root, valid) = (parsed.root, parsed.problems.is_empty());
    let file = Arc::new(SourceFile { source, parsed });
    valid.then(|| TypeReader { session, file: &file }.default(root, ty).ok()).flatten()
}
