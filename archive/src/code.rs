//! The `code/` records of an archive: finds definitions by qualified name and reads class declarations.
//!
//! The class `__torch__.net.Block` is in `code/__torch__/net.py`, and `__torch__.Net` in `code/__torch__.py`. Files are
//! read and parsed when a name in them is first looked up, so unreferenced code costs nothing. This file interprets the
//! statements of a class body (attributes in slot order, parameters, buffers, constants, methods). It does not
//! interpret types and values, so declarations refer to the syntax trees.

use std::collections::BTreeMap;
use std::sync::Arc;

use flambeau_frontend::{Ast, Parsed, TreeId, TreeKind, view};
use flambeau_ir::Source;

use crate::error::quoted;
use crate::origin::DebugRanges;
use crate::zip::ZipReader;
use crate::{ArchiveCode, ArchiveError, ArchiveLimits};

/// A parsed source file of an archive.
#[derive(Debug)]
pub struct ArchivedSource {
    /// The text under the record's name (`code/__torch__/net.py`), with its trees and problems.
    pub file: Arc<flambeau_frontend::SourceFile>,
    definitions: BTreeMap<String, TreeId>,
}

impl ArchivedSource {
    /// Returns the syntax trees.
    pub fn ast(&self) -> &Ast {
        &self.file.parsed.ast
    }

    /// Returns the name of the record.
    pub fn record(&self) -> &str {
        &self.file.source.name
    }

    /// Returns the names defined at the top level of the file with their [`TreeKind::ClassDef`] or [`TreeKind::Def`], sorted by
    /// name.
    pub fn definitions(&self) -> impl Iterator<Item = (&str, TreeId)> {
        self.definitions.iter().map(|(name, &id)| (name.as_str(), id))
    }

    /// Returns the class or function `name` of this file.
    pub fn find(&self, name: &str) -> Option<TreeId> {
        self.definitions.get(name).copied()
    }
}

/// The source files of an archive, parsed on demand.
#[derive(Debug)]
pub struct Sources<'a> {
    zip: &'a ZipReader<'a>,
    limits: &'a ArchiveLimits,
    front: flambeau_frontend::FrontendLimits,
    files: BTreeMap<String, Option<Arc<ArchivedSource>>>,
}

impl<'a> Sources<'a> {
    /// Creates the source files of `zip`, which are parsed within the limits `front`.
    pub fn new(
        zip: &'a ZipReader<'a>,
        limits: &'a ArchiveLimits,
        front: flambeau_frontend::FrontendLimits,
    ) -> Self {
        Sources { zip, limits, front, files: BTreeMap::new() }
    }

    /// Returns the file and tree of the class or function with this qualified name, if the archive has it.
    ///
    /// # Errors
    ///
    /// Returns `A0013` if the file is not UTF-8, `A0041` if it defines a name twice, `A0090` if it is too large, and
    /// the errors of [`ZipReader::read`]. Syntax errors are not errors here; they are in [`ArchivedSource::file`].
    pub fn find(&mut self, qualified: &str) -> Result<Option<(Arc<ArchivedSource>, TreeId)>, ArchiveError> {
        let Some((module, name)) = qualified.rsplit_once('.') else { return Ok(None) };
        let Some(file) = self.file(module)? else { return Ok(None) };
        let found = file.find(name);
        Ok(found.map(|id| (file, id)))
    }

    /// Returns the file with the definitions directly in `module`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Sources::find`].
    pub fn file(&mut self, module: &str) -> Result<Option<Arc<ArchivedSource>>, ArchiveError> {
        if let Some(known) = self.files.get(module) {
            return Ok(known.clone());
        }
        let file = self.read(module)?;
        self.files.insert(module.to_owned(), file.clone());
        Ok(file)
    }

    fn read(&self, module: &str) -> Result<Option<Arc<ArchivedSource>>, ArchiveError> {
        let Some(record) = self.zip.find(&format!("code/{}.py", module.replace('.', "/"))) else {
            return Ok(None);
        };
        let name = record.name();
        if record.size() > self.limits.source_bytes as u64 {
            let message = format!("source of more than {} bytes", self.limits.source_bytes);
            return Err(ArchiveError::new(ArchiveCode::Limit, message).in_record(name));
        }
        let text = String::from_utf8(self.zip.read(record)?.into_owned()).map_err(|e| {
            let at = e.utf8_error().valid_up_to() as u64;
            ArchiveError::new(ArchiveCode::Text, "source code is not UTF-8").in_record(name).at(at)
        })?;
        let source = match self.zip.find(&format!("{name}.debug_pkl")) {
            Some(ranges) => {
                let origin = DebugRanges::new(self.zip.detach(ranges), self.limits);
                Source::printed(name, text, Arc::new(origin))
            }
            None => Source::new(name, text),
        };
        let file = flambeau_frontend::SourceFile::new(source, &self.front);
        let definitions = definitions(&file.parsed).map_err(|e| e.in_record(name))?;
        Ok(Some(Arc::new(ArchivedSource { file, definitions })))
    }
}

fn definitions(parsed: &Parsed) -> Result<BTreeMap<String, TreeId>, ArchiveError> {
    let ast = &parsed.ast;
    let mut out = BTreeMap::new();
    for &id in ast.children(parsed.root) {
        if !matches!(ast.kind(id), TreeKind::ClassDef | TreeKind::Def) {
            continue;
        }
        let name = ast.name(id);
        if out.insert(name.to_owned(), id).is_some() {
            let message = format!("{} is defined twice", quoted(name));
            return Err(ArchiveError::new(ArchiveCode::Class, message).at(u64::from(ast.span(id).start)));
        }
    }
    Ok(out)
}

/// The kind of a class definition, determined by its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassKind {
    /// `class M(Module)`.
    Module,
    /// `class C`.
    Plain,
    /// `class T(NamedTuple)`.
    NamedTuple,
    /// `class E(Enum)`.
    Enum,
    /// `class I(Interface)`.
    Interface,
    /// `class I(ModuleInterface)`.
    ModuleInterface,
}

/// A name with the tree of its type: an attribute of a class or a field of a named tuple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name; not necessarily an identifier.
    pub name: String,
    /// The type expression.
    pub ty: TreeId,
    /// The value of a constant, or the default of a named tuple field.
    pub value: Option<TreeId>,
}

/// The declarations in the body of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassDecl {
    /// The kind of class.
    pub kind: ClassKind,
    /// Attributes in slot order, or fields of a named tuple.
    pub attributes: Vec<Field>,
    /// Attributes declared `Final`; `ty` is the type in the brackets.
    pub constants: Vec<Field>,
    /// Members of an enum, with the trees of their values.
    pub members: Vec<(String, TreeId)>,
    /// Names in `__parameters__`.
    pub parameters: Vec<String>,
    /// Names in `__buffers__`.
    pub buffers: Vec<String>,
    /// Methods that run before `forward`, in order.
    pub pre_hooks: Vec<String>,
    /// Methods that run after `forward`, in order.
    pub hooks: Vec<String>,
    /// The [`TreeKind::Def`]s of the methods, in order.
    pub methods: Vec<TreeId>,
}

impl ClassDecl {
    /// Reads the class definition `id`.
    ///
    /// # Errors
    ///
    /// Returns `A0041`, with the byte offset in the source, if the class does not have the form that PyTorch's printer
    /// writes.
    pub fn of(ast: &Ast, id: TreeId) -> Result<ClassDecl, ArchiveError> {
        let class = view::ClassDef::of(ast, id).ok_or_else(|| bad(ast, id, "this is not a class"))?;
        let mut decl = ClassDecl {
            kind: class_kind(ast, class)?,
            attributes: Vec::new(),
            constants: Vec::new(),
            members: Vec::new(),
            parameters: Vec::new(),
            buffers: Vec::new(),
            pre_hooks: Vec::new(),
            hooks: Vec::new(),
            methods: Vec::new(),
        };
        for &statement in class.body() {
            match ast.kind(statement) {
                TreeKind::Def => decl.methods.push(statement),
                TreeKind::Pass => {}
                TreeKind::Assign => decl.assign(ast, statement)?,
                _ => return Err(bad(ast, statement, "this statement is not allowed in an archived class")),
            }
        }
        Ok(decl)
    }

    fn assign(&mut self, ast: &Ast, id: TreeId) -> Result<(), ArchiveError> {
        let assign = view::Assign::of(ast, id).ok_or_else(|| bad(ast, id, "this is not an assignment"))?;
        let &[target] = assign.targets() else {
            return Err(bad(ast, id, "several targets in the body of a class"));
        };
        if let Some(subscript) = view::Subscript::of(ast, target) {
            let field = annotations_entry(ast, subscript, assign)
                .ok_or_else(|| bad(ast, id, "this subscript is not `__annotations__[name]`"))?;
            self.attributes.push(field);
            return Ok(());
        }
        let name = view::Var::of(ast, target)
            .ok_or_else(|| bad(ast, target, "this is not a name"))?
            .name()
            .to_owned();
        match (assign.annotation(), assign.value()) {
            (Some(ty), Some(value)) => match final_type(ast, ty) {
                Some(inner) => self.constants.push(Field { name, ty: inner, value: Some(value) }),
                None if self.kind == ClassKind::NamedTuple => {
                    self.attributes.push(Field { name, ty, value: Some(value) });
                }
                None => {
                    let message = format!("the attribute {} has a value but is not `Final`", quoted(&name));
                    return Err(bad(ast, id, &message));
                }
            },
            (Some(ty), None) => self.attributes.push(Field { name, ty, value: None }),
            (None, Some(value)) => self.special(ast, &name, value)?,
            (None, None) => return Err(untyped(ast, id, &name)),
        }
        Ok(())
    }

    /// Reads `__parameters__ = […]` and similar lists, or a member of an enum.
    fn special(&mut self, ast: &Ast, name: &str, value: TreeId) -> Result<(), ArchiveError> {
        let list = match name {
            "__parameters__" => &mut self.parameters,
            "__buffers__" => &mut self.buffers,
            "__forward_pre_hooks__" => &mut self.pre_hooks,
            "__forward_hooks__" => &mut self.hooks,
            "__annotations__" => return Ok(()),
            _ if self.kind == ClassKind::Enum => {
                self.members.push((name.to_owned(), value));
                return Ok(());
            }
            _ => return Err(untyped(ast, value, name)),
        };
        let items = view::ListLiteral::of(ast, value)
            .ok_or_else(|| bad(ast, value, "this is not a list of names"))?;
        for &item in items.elements() {
            let text =
                view::StringLiteral::of(ast, item).ok_or_else(|| bad(ast, item, "this is not a string"))?;
            list.push(text.value().to_owned());
        }
        Ok(())
    }
}

fn class_kind(ast: &Ast, class: view::ClassDef<'_>) -> Result<ClassKind, ArchiveError> {
    let base = match class.bases() {
        [] => return Ok(ClassKind::Plain),
        [base] => view::Var::of(ast, *base).map(|v| v.name()),
        [_, second, ..] => return Err(bad(ast, *second, "a class with two bases")),
    };
    Ok(match base {
        Some("Module") => ClassKind::Module,
        Some("NamedTuple") => ClassKind::NamedTuple,
        Some("Enum") => ClassKind::Enum,
        Some("Interface") => ClassKind::Interface,
        Some("ModuleInterface") => ClassKind::ModuleInterface,
        other => {
            let found = match other {
                Some(name) => format!("unknown base class {}", quoted(name)),
                None => "the base class is not a name".to_owned(),
            };
            let expected = "expected `Module`, `NamedTuple`, `Enum`, `Interface` or `ModuleInterface`";
            return Err(bad(ast, class.id(), &format!("{found}; {expected}")));
        }
    })
}

/// Returns the attribute of `__annotations__["0"] = T`, the form for names that are not identifiers.
fn annotations_entry(ast: &Ast, target: view::Subscript<'_>, assign: view::Assign<'_>) -> Option<Field> {
    let of = view::Var::of(ast, target.value())?;
    let &[key] = target.subscripts() else { return None };
    let key = view::StringLiteral::of(ast, key)?;
    let ty = assign.value().filter(|_| of.name() == "__annotations__" && assign.annotation().is_none())?;
    Some(Field { name: key.value().to_owned(), ty, value: None })
}

/// Returns `T` of `Final[T]`.
fn final_type(ast: &Ast, ty: TreeId) -> Option<TreeId> {
    let subscript = view::Subscript::of(ast, ty)?;
    let head = view::Var::of(ast, subscript.value())?;
    match subscript.subscripts() {
        &[inner] if head.name() == "Final" => Some(inner),
        _ => None,
    }
}

fn untyped(ast: &Ast, id: TreeId, name: &str) -> ArchiveError {
    bad(ast, id, &format!("the attribute {} has no type", quoted(name)))
}

fn bad(ast: &Ast, id: TreeId, message: &str) -> ArchiveError {
    ArchiveError::new(ArchiveCode::Class, message).at(u64::from(ast.span(id).start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_frontend::parse;

    fn decl(text: &str) -> (Parsed, Result<ClassDecl, ArchiveError>) {
        let parsed = parse(text, &flambeau_frontend::FrontendLimits::default());
        assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
        let id = parsed.ast.children(parsed.root)[0];
        let decl = ClassDecl::of(&parsed.ast, id);
        (parsed, decl)
    }

    fn names(fields: &[Field]) -> Vec<&str> {
        fields.iter().map(|f| f.name.as_str()).collect()
    }

    #[test]
    fn a_module() {
        let text = "class M(Module):\n  __parameters__ = [\"w\", ]\n  __buffers__ = []\n  w : Tensor\n  \
                    training : bool\n  __annotations__ = []\n  __annotations__[\"0\"] = __torch__.N\n  \
                    k : Final[Tuple[int, int]] = (1, 2)\n  def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n    \
                    return x\n";
        let (parsed, decl) = decl(text);
        let decl = decl.expect("a module");
        assert_eq!(decl.kind, ClassKind::Module);
        assert_eq!(names(&decl.attributes), ["w", "training", "0"]);
        assert_eq!(decl.parameters, ["w"]);
        assert_eq!(names(&decl.constants), ["k"]);
        assert_eq!(parsed.ast.kind(decl.constants[0].ty), TreeKind::Subscript);
        assert_eq!(parsed.ast.name(decl.methods[0]), "forward");
    }

    #[test]
    fn enums_named_tuples_and_interfaces() {
        let (_, e) = decl("class E(Enum):\n  RED = 1\n  GREEN = 2\n");
        assert_eq!(e.expect("an enum").members.len(), 2);
        let (_, t) = decl("class T(NamedTuple):\n  x : Tensor\n  y : int\n");
        assert_eq!(names(&t.expect("a named tuple").attributes), ["x", "y"]);
        let (_, i) = decl("class I(ModuleInterface):\n  def f(self, x: Tensor) -> Tensor:\n    pass\n");
        assert_eq!(i.expect("an interface").kind, ClassKind::ModuleInterface);
    }

    #[test]
    fn unexpected_class_bodies_are_refused() {
        for (text, message) in [
            ("class M(Module):\n  x = 1\n", "the attribute `x` has no type"),
            ("class M(Module):\n  x : int = 1\n", "the attribute `x` has a value but is not `Final`"),
            ("class M(Module):\n  print(1)\n", ""),
            ("class M(Module):\n  __parameters__ = 3\n", "this is not a list of names"),
            ("class M(Module):\n  __parameters__ = [w]\n", "this is not a string"),
            ("class M(Module):\n  y[\"0\"] = int\n", "this subscript is not `__annotations__[name]`"),
            ("class M(Module):\n  a = b = 1\n", "several targets"),
            ("class M(Other):\n  pass\n", "unknown base class `Other`; expected `Module`"),
            ("class M(a.B):\n  pass\n", "the base class is not a name; expected `Module`"),
            ("class M(Module, Enum):\n  pass\n", "a class with two bases"),
        ] {
            let (_, decl) = decl(text);
            let error = decl.expect_err("refused");
            assert_eq!(error.code(), ArchiveCode::Class, "{text}");
            assert!(error.to_string().contains(message), "{text}: {error}");
        }
    }
}
