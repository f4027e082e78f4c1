//! Graphs back to TorchScript source that compiles to the same graphs.
//!
//! What is printed is what archives hold under `code/` and what `.code` shows: expressions are nested where that keeps
//! the order of evaluation, variables keep the names people gave them, and what has no literal stands in a table of
//! constants (`CONSTANTS.c0`). Two parts:
//!
//! - a [`Printer`] is what the files of one program share: the table of constants, the names of types, and the list of
//!   [`Definition`]s that were mentioned so far, in the order of first mention;
//! - a [`File`] is text being written, with the counters behind the names it invents.
//!
//! [`code`] prints one function for people, [`program`] everything that some definitions need, file by file, which is
//! what an archive's writer takes. Text that PyTorch could not read back is never written: nodes without a source form
//! (those that passes make) are an error that names them.
//!
//! Nothing here recurses on the nesting of a graph, and the text is linear in the graph but for indentation.

mod body;
mod class;
mod constants;
mod expr;
mod inline;
mod marks;
mod names;
mod types;

use flambeau_ir::module::Function;
use flambeau_ir::{CompilationUnit, Diagnostic, Fault, IValue, Registry, Source, Symbol, Type};
use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

use crate::Limits;
use crate::emit::{Resolver, Session, SourceFile, Sugar};
use constants::Constants;
use marks::Marks;
pub use marks::Places;
use names::LocalNames;
pub use names::is_identifier;
use types::TypeNames;

/// Results of printing.
pub(crate) type Res<T> = Result<T, Box<Diagnostic>>;

/// Something with a qualified name that source can refer to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Definition {
    /// A class, interface, enum or named tuple.
    Type(Type),
    /// A function that is no method.
    Function(Symbol),
}

/// How a method's first parameter is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receiver {
    /// With its type, as in archives.
    Typed,
    /// Without, as `.code` shows it.
    Bare,
}

/// What the files of one program share.
pub struct Printer<'u> {
    unit: &'u CompilationUnit,
    constants: Constants,
    types: TypeNames,
    needed: IndexSet<Definition, FxBuildHasher>,
    /// The module of functions whose names say none; where files are written, each definition needs one.
    home: Option<&'static str>,
}

/// A source text being written.
#[derive(Default)]
pub struct File {
    text: String,
    names: LocalNames,
    marks: Marks,
}

/// A program as source.
#[derive(Debug, Default)]
pub struct Printed {
    /// Text by module (`__torch__.net`) with what it was made from, in order of first mention.
    pub files: IndexMap<String, (String, Places), FxBuildHasher>,
    /// What `CONSTANTS.c0` and so on mean.
    pub constants: Vec<IValue>,
}

impl<'u> Printer<'u> {
    /// A printer for what `unit` defines.
    pub fn new(unit: &'u CompilationUnit) -> Self {
        Printer {
            unit,
            constants: Constants::default(),
            types: TypeNames::default(),
            needed: IndexSet::default(),
            home: None,
        }
    }

    /// Asks for a definition to be printed; does nothing the second time.
    pub fn need(&mut self, what: Definition) {
        self.needed.insert(what);
    }

    /// The `i`-th definition that was mentioned or asked for.
    pub fn needed(&self, i: usize) -> Option<Definition> {
        self.needed.get_index(i).copied()
    }

    /// The table of constants so far.
    pub fn constants(&self) -> &[IValue] {
        self.constants.values()
    }

    /// The name that a definition has in the text: its own, or another where two types share one.
    pub fn qualified_name(&mut self, what: Definition) -> Symbol {
        match what {
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
    /// `F0120` for what has no source form, `F0121` for what the unit does not define.
    pub fn define(&mut self, file: &mut File, what: Definition) -> Result<(), Box<Diagnostic>> {
        match what {
            Definition::Function(name) => {
                let Some(function) = self.unit.function(name).cloned() else {
                    return Err(missing(&format!("function `{name}`")));
                };
                self.function(file, &function, Receiver::Typed, 0)
            }
            Definition::Type(ty) => self.type_definition(file, ty),
        }
    }

    /// Appends a function.
    ///
    /// # Errors
    /// As [`Printer::define`].
    pub fn code(
        &mut self,
        file: &mut File,
        function: &Function,
        receiver: Receiver,
    ) -> Result<(), Box<Diagnostic>> {
        self.function(file, function, receiver, 0)
    }
}

impl File {
    /// An empty text.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Takes what was written.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// One function as source, with what its text refers to. It resolves these names, so it can be compiled again in the
/// unit that it came from.
#[derive(Debug)]
pub struct Code {
    /// The source.
    pub text: String,
    /// What `CONSTANTS.c0` and so on mean.
    pub constants: Vec<IValue>,
    /// The types that the text names.
    pub types: IndexMap<Symbol, Type, FxBuildHasher>,
}

impl Code {
    /// Compiles the source again, in the unit that the function came from.
    ///
    /// # Errors
    /// The problems of the source: none, unless the printer is wrong.
    pub fn compile(
        &self,
        unit: &CompilationUnit,
        registry: &Arc<Registry>,
        limits: &Limits,
    ) -> Result<Arc<Function>, Vec<Diagnostic>> {
        let file = SourceFile::new(Source::new("printed.py", self.text.clone()), limits);
        let problems = file.diagnostics();
        if !problems.is_empty() {
            return Err(problems);
        }
        let session = Session::new(Arc::clone(registry), self, *limits);
        session.with_unit(|all| *all = unit.clone());
        // The unit has a function of the text's name already, so this one goes by another.
        let name = Symbol::new("__printed__");
        let def = file.parsed.ast.children(file.parsed.root).first().copied();
        session.declare(name, &file, def.unwrap_or(file.parsed.root), None);
        session.compile(name).map_err(|problem| vec![*problem])
    }
}

impl Resolver for Code {
    fn value(&self, name: &str) -> Option<Sugar> {
        let number = name.strip_prefix("CONSTANTS.c")?.parse::<usize>().ok()?;
        self.constants.get(number).cloned().map(Sugar::Constant)
    }

    fn ty(&self, name: &str) -> Option<Type> {
        self.types.get(&Symbol::new(name)).copied()
    }

    fn knows_python_functions(&self) -> bool {
        false
    }
}

/// One function as `.code` shows it.
///
/// # Errors
/// As [`Printer::define`].
pub fn code(
    unit: &CompilationUnit,
    function: &Function,
    receiver: Receiver,
) -> Result<Code, Box<Diagnostic>> {
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
    Ok(Code { text: file.text, constants: printer.constants.into_values(), types })
}

/// `roots` and everything they need, a file for each module.
///
/// # Errors
/// As [`Printer::define`].
pub fn program(
    unit: &CompilationUnit,
    roots: impl IntoIterator<Item = Definition>,
) -> Result<Printed, Box<Diagnostic>> {
    let mut printer = Printer { home: Some("__torch__"), ..Printer::new(unit) };
    let mut files: IndexMap<String, File, FxBuildHasher> = IndexMap::default();
    roots.into_iter().for_each(|root| printer.need(root));
    // Printing a definition may ask for more, behind the last.
    for i in 0.. {
        let Some(what) = printer.needed(i) else { break };
        let name = printer.qualified_name(what);
        let module = name.as_str().rsplit_once('.').map_or("", |(module, _)| module);
        let file = files.entry(module.to_owned());
        let file = file.or_insert_with(|| File { marks: Marks::wanted(), ..File::default() });
        printer.define(file, what)?;
    }
    let written = |(module, file): (String, File)| (module, (file.text, file.marks.into_places()));
    let files = files.into_iter().map(written).collect();
    Ok(Printed { files, constants: printer.constants.into_values() })
}

/// An error for something that source cannot say.
fn unprintable(what: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Fault::Unsupported, "F0120", format!("{what} has no source form")))
}

/// An error for something that is named and not defined.
fn missing(what: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Fault::Misuse, "F0121", format!("the program does not define {what}")))
}
