//! Printer: graphs to TorchScript source that compiles to the same graphs.
//!
//! The output is the source that archives contain under `code/` and that `.code` shows. Expressions are nested where
//! this keeps the order of evaluation, variables keep their user-given names, and values without a literal are in a
//! table of constants (`CONSTANTS.c0`). The two main types:
//!
//! - a [`Printer`] is the state shared by the files of one program: the table of constants, the names of types, and the
//!   [`Definition`]s referenced so far, in the order of first reference;
//! - a [`File`] is one source text with the counters for generated names.
//!
//! [`code`] prints one function for display. [`program`] prints definitions and everything they reference, one file per
//! module, for the archive writer. The printer never writes text that PyTorch cannot read: nodes without a source form
//! (created by passes) are reported as an error that names them.
//!
//! The printer does not recurse on the nesting of a graph. The length of the text is linear in the graph except for
//! indentation.

mod body;
mod class;
mod constants;
mod expr;
mod inline;
mod marks;
mod names;
mod overload;
mod types;

use flambeau_ir::module::Function;
use flambeau_ir::{CompilationUnit, Diagnostic, Fault, IValue, Registry, Source, Symbol, Type};
use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

use crate::FrontendLimits;
use crate::emit::{CompileSession, Resolver, SourceFile, Sugar};
use constants::ConstantTable;
pub use marks::SourceMap;
use marks::SourceMapBuilder;
use names::LocalNames;
pub use names::is_identifier;
use types::PrintedTypeNames;

/// Result of printing.
pub(crate) type Res<T> = Result<T, Box<Diagnostic>>;

/// A definition with a qualified name that source can refer to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Definition {
    /// A class, interface, enum or named tuple.
    Type(Type),
    /// A function that is not a method.
    Function(Symbol),
}

/// How the first parameter of a method is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiverForm {
    /// With its type, as in archives.
    Typed,
    /// Without its type, as `.code` shows it.
    Bare,
}

/// State shared by the files of one program.
pub struct Printer<'u> {
    unit: &'u CompilationUnit,
    constants: ConstantTable,
    types: PrintedTypeNames,
    needed: IndexSet<Definition, FxBuildHasher>,
    /// The module of functions with an unqualified name. Set when files are written, because each definition needs a
    /// module.
    home: Option<&'static str>,
}

/// A source text under construction.
#[derive(Default)]
pub struct File {
    text: String,
    names: LocalNames,
    marks: SourceMapBuilder,
}

/// A printed program.
#[derive(Debug, Default)]
pub struct PrintedProgram {
    /// By module (`__torch__.net`): the text and its source map, in order of first reference.
    pub files: IndexMap<String, (String, SourceMap), FxBuildHasher>,
    /// The values of `CONSTANTS.c0`, `CONSTANTS.c1` and so on.
    pub constants: Vec<IValue>,
}

impl<'u> Printer<'u> {
    /// Creates a printer for definitions of `unit`.
    pub fn new(unit: &'u CompilationUnit) -> Self {
        Printer {
            unit,
            constants: ConstantTable::default(),
            types: PrintedTypeNames::default(),
            needed: IndexSet::default(),
            home: None,
        }
    }

    /// Adds a definition to the list of referenced definitions, unless it is in the list.
    pub fn need(&mut self, definition: Definition) {
        self.needed.insert(definition);
    }

    /// Returns the `i`-th referenced definition.
    pub fn needed(&self, i: usize) -> Option<Definition> {
        self.needed.get_index(i).copied()
    }

    /// Returns the table of constants so far.
    pub fn constants(&self) -> &[IValue] {
        self.constants.values()
    }

    /// Returns the name of a definition in the text: its own, or a mangled one if two types share a name.
    pub fn qualified_name(&mut self, definition: Definition) -> Symbol {
        match definition {
            Definition::Type(ty) => self.types.name(ty).unwrap_or(Symbol::EMPTY),
            Definition::Function(name) => match self.home {
                Some(home) if !name.as_str().contains('.') => Symbol::new(&format!("{home}.{name}")),
                _ => name,
            },
        }
    }

    /// Appends a definition to a file.
    ///
    /// # Errors
    ///
    /// Returns `F0120` if a part of the definition has no source form, `F0121` if the unit does not define it.
    pub fn define(&mut self, file: &mut File, definition: Definition) -> Result<(), Box<Diagnostic>> {
        match definition {
            Definition::Function(name) => {
                let Some(function) = self.unit.function(name).cloned() else {
                    return Err(missing(&format!("function `{name}`")));
                };
                self.function(file, &function, ReceiverForm::Typed, 0)
            }
            Definition::Type(ty) => self.type_definition(file, ty),
        }
    }

    /// Appends a function to a file.
    ///
    /// # Errors
    ///
    /// Returns the same diagnostics as [`Printer::define`].
    pub fn code(
        &mut self,
        file: &mut File,
        function: &Function,
        receiver: ReceiverForm,
    ) -> Result<(), Box<Diagnostic>> {
        self.function(file, function, receiver, 0)
    }
}

impl File {
    /// Creates an empty text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text, consuming the file.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// The source of one function with the constants and types that it references. As a [`Resolver`] it resolves these
/// names, so the source can be compiled again in the unit of the function.
#[derive(Debug)]
pub struct FunctionSource {
    /// The source.
    pub text: String,
    /// The values of `CONSTANTS.c0`, `CONSTANTS.c1` and so on.
    pub constants: Vec<IValue>,
    /// The types that the text names.
    pub types: IndexMap<Symbol, Type, FxBuildHasher>,
}

impl FunctionSource {
    /// Compiles the source in the unit of the original function.
    ///
    /// # Errors
    ///
    /// Returns the problems of the source. A problem is a defect of the printer.
    pub fn compile(
        &self,
        unit: &CompilationUnit,
        registry: &Arc<Registry>,
        limits: &FrontendLimits,
    ) -> Result<Arc<Function>, Vec<Diagnostic>> {
        let file = SourceFile::new(Source::new("printed.py", self.text.clone()), limits);
        let problems = file.diagnostics();
        if !problems.is_empty() {
            return Err(problems);
        }
        let session = CompileSession::new(Arc::clone(registry), self, *limits);
        session.with_unit(|all| *all = unit.clone());
        // The unit already has a function of the original name.
        let name = Symbol::new("__printed__");
        let def = file.parsed.ast.children(file.parsed.root).first().copied();
        session.declare(name, &file, def.unwrap_or(file.parsed.root), None);
        session.compile(name).map_err(|problem| vec![*problem])
    }
}

impl Resolver for FunctionSource {
    fn value(&self, name: &str) -> Option<Sugar> {
        let number = name.strip_prefix("CONSTANTS.c")?.parse::<usize>().ok()?;
        self.constants.get(number).cloned().map(Sugar::Constant)
    }

    fn ty(&self, name: &str) -> Option<Type> {
        self.types.get(&Symbol::new(name)).copied()
    }

    fn supports_python_functions(&self) -> bool {
        false
    }
}

/// Prints one function as `.code` shows it.
///
/// # Errors
///
/// Returns the same diagnostics as [`Printer::define`].
pub fn code(
    unit: &CompilationUnit,
    function: &Function,
    receiver: ReceiverForm,
) -> Result<FunctionSource, Box<Diagnostic>> {
    let mut printer = Printer::new(unit);
    let mut file = File::new();
    printer.function(&mut file, function, receiver, 0)?;
    let mut types = IndexMap::default();
    for i in 0..printer.needed.len() {
        if let Some(Definition::Type(ty)) = printer.needed(i)
            && let Some(name) = printer.types.name(ty)
        {
            types.insert(name, ty);
        }
    }
    Ok(FunctionSource { text: file.text, constants: printer.constants.into_values(), types })
}

/// Prints `roots` and all definitions they reference, one file per module.
///
/// # Errors
///
/// Returns the same diagnostics as [`Printer::define`].
pub fn program(
    unit: &CompilationUnit,
    roots: impl IntoIterator<Item = Definition>,
) -> Result<PrintedProgram, Box<Diagnostic>> {
    let mut printer = Printer { home: Some("__torch__"), ..Printer::new(unit) };
    let mut files: IndexMap<String, File, FxBuildHasher> = IndexMap::default();
    roots.into_iter().for_each(|root| printer.need(root));
    // Printing a definition may append further references.
    for i in 0.. {
        let Some(definition) = printer.needed(i) else { break };
        let name = printer.qualified_name(definition);
        let module = name.as_str().rsplit_once('.').map_or("", |(module, _)| module);
        let file = files.entry(module.to_owned());
        let file = file.or_insert_with(|| File { marks: SourceMapBuilder::recorded(), ..File::default() });
        printer.define(file, definition)?;
    }
    let written = |(module, file): (String, File)| (module, (file.text, file.marks.into_source_map()));
    let files = files.into_iter().map(written).collect();
    Ok(PrintedProgram { files, constants: printer.constants.into_values() })
}

/// Creates the error for a construct without a source form.
fn unprintable(construct: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Fault::Unsupported, "F0120", format!("{construct} has no source form")))
}

/// Creates the error for a definition that is referenced but missing.
fn missing(item: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Fault::Misuse, "F0121", format!("the program does not define {item}")))
}
