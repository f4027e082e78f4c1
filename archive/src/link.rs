//! Linking: declares everything that the code of the declared classes uses.
//!
//! A method body may name any class or function of the archive: `__torch__.net.f(x)`, `__torch__.Colour.RED`. Before
//! anything is compiled, bodies are searched for such names, the named classes and functions are declared, and their
//! bodies are searched in turn. Afterwards name resolution is a table lookup ([`QualifiedNames`]), so compilation does not
//! access the archive.

use std::collections::BTreeMap;
use std::sync::Arc;

use flambeau_frontend::{Ast, TreeId, TreeKind, view};
use flambeau_ir::module::Interface;
use flambeau_ir::schema::Argument;
use flambeau_ir::types::{TypeKind, is_subtype_why};
use flambeau_ir::{FunctionSchema, Symbol, Type};

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::annotation::dotted;
use crate::code::ArchivedSource;
use crate::import::{Body, Importer, LoadError};
use crate::{ArchiveCode, ArchiveError};

/// The meaning of a qualified name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QualifiedItem {
    /// A class, enum, interface or named tuple.
    Type(Type),
    /// A function.
    Function(Symbol),
}

/// All qualified names in the code of a loaded module.
pub(crate) type QualifiedNames = BTreeMap<String, QualifiedItem>;

/// A function or method to compile.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    /// The qualified name.
    pub(crate) name: Symbol,
    /// The file with the definition.
    pub(crate) file: Arc<ArchivedSource>,
    /// The definition.
    pub(crate) def: TreeId,
    /// The class of a method; `None` for functions and static methods.
    pub(crate) owner: Option<Type>,
}

/// Declares everything that the methods of declared classes use, transitively. Sets the schemas of interfaces and the
/// methods of classes.
pub(crate) fn link(importer: &mut Importer<'_>) -> Result<(QualifiedNames, Vec<Definition>), LoadError> {
    let mut names = QualifiedNames::new();
    let mut definitions = Vec::new();
    let mut interfaces: IndexMap<Type, IndexMap<_, _, FxBuildHasher>, FxBuildHasher> = IndexMap::default();
    while let Some(body) = importer.bodies.pop_front() {
        let Body { owner, file, def } = body;
        let mut used = Vec::new();
        qualified_names(file.ast(), def, importer.archive().limits().name_bytes, &mut used);
        for chain in used {
            find(importer, &chain, &mut names).map_err(|e| e.in_record(file.record()))?;
        }
        let method = Symbol::new(file.ast().name(def));
        match owner.map(|ty| (ty, ty.kind())) {
            Some((ty, TypeKind::Interface(_))) => {
                let schema = Arc::new(schema_of(importer, &file, def, ty)?);
                interfaces.entry(ty).or_default().insert(method, schema);
            }
            Some((ty, _)) => {
                let name = Symbol::new(&format!("{}.{method}", ty.annotation()));
                let is_static = !has_self(file.ast(), def, ty);
                if let Some(class) = importer.unit.class_mut(ty) {
                    let methods = if is_static { &mut class.static_methods } else { &mut class.methods };
                    if methods.insert(method, name).is_some() {
                        return Err(defined_twice(&file, def));
                    }
                }
                let owner = owner.filter(|_| !is_static);
                definitions.push(Definition { name, file, def, owner });
            }
            None => {
                let name = body_name(&names, &file, def);
                definitions.push(Definition { name, file, def, owner: None });
            }
        }
    }
    for (ty, methods) in interfaces {
        if let Some(declared) = importer.unit.interface(ty) {
            let interface = Interface { ty, is_module: declared.is_module, methods };
            importer.unit.define_interface(interface);
        }
    }
    names.extend(importer.declared().map(|(name, ty)| (name.to_owned(), QualifiedItem::Type(ty))));
    Ok((names, definitions))
}

/// Returns the qualified name of a function from its file and definition.
fn body_name(names: &QualifiedNames, file: &ArchivedSource, def: TreeId) -> Symbol {
    let module = file.record().trim_start_matches("code/").trim_end_matches(".py").replace('/', ".");
    let name = format!("{module}.{}", file.ast().name(def));
    debug_assert!(names.contains_key(&name), "invariant: functions are queued when they are named");
    Symbol::new(&name)
}

/// Declares the shortest prefix of `chain` that the archive defines. A chain without one is left to the compiler.
fn find(importer: &mut Importer<'_>, chain: &str, names: &mut QualifiedNames) -> Result<(), LoadError> {
    let ends = chain.match_indices('.').map(|(at, _)| at).chain([chain.len()]).skip(1);
    for end in ends {
        let name = &chain[..end];
        if names.contains_key(name) {
            return Ok(());
        }
        let Some((file, id)) = importer.find(name)? else { continue };
        let named = if file.ast().kind(id) == TreeKind::ClassDef {
            QualifiedItem::Type(importer.declare(name)?)
        } else {
            importer.bodies.push_back(Body { owner: None, file, def: id });
            QualifiedItem::Function(Symbol::new(name))
        };
        names.insert(name.to_owned(), named);
        return Ok(());
    }
    Ok(())
}

/// Collects every `__torch__.a.b` in a tree in order, cut at `limit` bytes. Visits each node once.
fn qualified_names(ast: &Ast, root: TreeId, limit: usize, out: &mut Vec<String>) {
    let mut stack = vec![root];
    while let Some(id) = stack.pop() {
        if ast.kind(id) != TreeKind::Select {
            stack.extend(ast.children(id).iter().rev());
            continue;
        }
        let mut parts = Vec::new();
        let mut at = id;
        while let Some(select) = view::Select::of(ast, at) {
            parts.push(select.name());
            at = select.value();
        }
        if ast.kind(at) != TreeKind::Var {
            stack.push(at);
        } else if ast.name(at) == "__torch__" {
            let mut chain = String::from("__torch__");
            for part in parts.into_iter().rev() {
                if chain.len() + part.len() >= limit {
                    break;
                }
                chain.push('.');
                chain.push_str(part);
            }
            out.push(chain);
        }
    }
}

/// Returns true if a function in class `owner` takes the object as its first parameter, which need not be named `self`.
fn has_self(ast: &Ast, def: TreeId, owner: Type) -> bool {
    let Some(&first) = params(ast, def).first() else { return false };
    let annotation = view::Param::of(ast, first).and_then(view::Param::annotation);
    ast.name(first) == "self"
        || annotation.and_then(|ty| dotted(ast, ty)).is_some_and(|name| name == owner.annotation_str())
}

fn params(ast: &Ast, def: TreeId) -> &[TreeId] {
    view::Def::of(ast, def).and_then(|def| view::Decl::of(ast, def.decl())).map_or(&[], |decl| decl.params())
}

/// Returns the schema of an interface method.
fn schema_of(
    importer: &mut Importer<'_>,
    file: &Arc<ArchivedSource>,
    def: TreeId,
    owner: Type,
) -> Result<FunctionSchema, LoadError> {
    let ast = file.ast();
    let mut args = Vec::new();
    for (n, &param) in params(ast, def).iter().enumerate() {
        let name = Symbol::new(ast.name(param));
        let ty = match view::Param::of(ast, param).and_then(view::Param::annotation) {
            _ if n == 0 => owner,
            Some(annotation) => importer.type_of_tree(file, annotation)?,
            None => Type::TENSOR,
        };
        args.push(Argument::new(name, ty));
    }
    let decl = view::Def::of(ast, def).and_then(|def| view::Decl::of(ast, def.decl()));
    let result = match decl.and_then(view::Decl::result) {
        Some(annotation) => importer.type_of_tree(file, annotation)?,
        None => Type::TENSOR,
    };
    Ok(FunctionSchema {
        name: Symbol::new(ast.name(def)),
        overload: Symbol::new(""),
        args,
        returns: vec![Argument::new(Symbol::new(""), result)],
        vararg: false,
        varret: false,
    })
}

/// Checks that classes used as interfaces implement them. Called when the methods are known.
pub(crate) fn check_obligations(
    obligations: &[(Type, Type)],
    env: &dyn flambeau_ir::types::ClassEnv,
) -> Result<(), LoadError> {
    for &(class, interface) in obligations {
        let (holds, why) = is_subtype_why(class, interface, env);
        if !holds {
            let (class, interface) = (class.annotation(), interface.annotation());
            let message = format!("{class} does not implement {interface}: {why}");
            return Err(ArchiveError::new(ArchiveCode::Type, message).in_record("data.pkl").into());
        }
    }
    Ok(())
}

fn defined_twice(file: &ArchivedSource, def: TreeId) -> LoadError {
    let at = u64::from(file.ast().span(def).start);
    ArchiveError::new(ArchiveCode::Class, "a method is defined twice").in_record(file.record()).at(at).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Archive, ArchiveLimits};

    #[test]
    fn names_used_by_code_are_declared() {
        let bytes = include_bytes!("../tests/data/classes.pt");
        let archive = Archive::open(bytes, &ArchiveLimits::default()).expect("an archive");
        let mut importer = Importer::new(&archive, flambeau_frontend::FrontendLimits::default());
        let root = importer.declare("__torch__.Classes").expect("a class");
        let (names, definitions) = link(&mut importer).expect("all there");
        let known: Vec<_> = names.keys().map(String::as_str).collect();
        assert_eq!(
            known,
            [
                "__torch__.Classes",
                "__torch__.Colour",
                "__torch__.Counter",
                "__torch__.Point",
                "__torch__.Step"
            ]
        );
        let mut methods: Vec<_> = definitions.iter().map(|d| d.name.as_str()).collect();
        methods.sort_unstable();
        assert_eq!(
            methods,
            ["__torch__.Classes.forward", "__torch__.Counter.__init__", "__torch__.Counter.bump"]
        );
        let class = importer.unit.class(root).expect("declared");
        assert!(class.methods.contains_key(&Symbol::new("forward")));
        let interface = importer.unit.interfaces().next().expect("named by an attribute");
        let schema = interface.methods.values().next().expect("it has a method");
        assert_eq!((schema.args.len(), schema.returns[0].ty), (2, Type::TENSOR));
    }

    #[test]
    fn each_name_of_a_chain_is_resolved_once() {
        let text = format!("def f(x):\n  return x{}\n", ".a".repeat(100_000));
        let parsed = flambeau_frontend::parse(&text, &flambeau_frontend::FrontendLimits::default());
        let mut out = Vec::new();
        qualified_names(&parsed.ast, parsed.root, 4096, &mut out);
        assert!(out.is_empty());
        let text = format!("def f(x):\n  return __torch__{}\n", ".a".repeat(100_000));
        let parsed = flambeau_frontend::parse(&text, &flambeau_frontend::FrontendLimits::default());
        qualified_names(&parsed.ast, parsed.root, 4096, &mut out);
        assert!(out.len() == 1 && out[0].len() < 4096);
    }
}
