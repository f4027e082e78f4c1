//! Writes programs as `.pt` archives, which PyTorch can load.
//!
//! The code is printed from the graphs, so the results of passes are included. The pickle needs the classes of its
//! objects even if no code names them, so the classes of all objects and enum members are printed as well. For objects
//! with `__getstate__`, that method provides the state.

use crate::error::Error;
use crate::program::Program;
use flambeau_archive::{ArchiveError, CodeFile, SaveModule, States, replace_file, save, version_of_operator};
use flambeau_frontend::print::{Definition, PrintedProgram, SourceMap, program as print_program};
use flambeau_ir::attr::names;
use flambeau_ir::module::CompilationUnit;
use flambeau_ir::value::Object;
use flambeau_ir::{Attr, Graph, IValue, Symbol, Type};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

impl Program {
    /// Writes the module as a `.pt` archive to `path`, which is replaced atomically. The same program gives the same
    /// bytes.
    ///
    /// # Errors
    /// `X0003` for programs without a module, the errors of functions that could not be compiled, `F012…` for code
    /// without a source form, `A0044` for values that archives cannot hold, `A0091` if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let name =
            path.file_stem().map_or_else(|| "archive".into(), |stem| stem.to_string_lossy().into_owned());
        let parts = Parts::of(self)?;
        Ok(replace_file(path, |out| parts.write(self, &name, out))?)
    }

    /// Returns the source that [`Program::save`] writes: the text of each code module by its name (`__torch__.net`), and the
    /// values of `CONSTANTS.c0`, `CONSTANTS.c1` and so on in these texts.
    ///
    /// # Errors
    /// `X0003` for programs without a module, the errors of functions that could not be compiled, `F012…` for code
    /// without a source form.
    pub fn archive_sources(&self) -> Result<(Vec<(String, String)>, Vec<IValue>), Error> {
        let printed = Parts::of(self)?.printed;
        let files = printed.files.into_iter().map(|(module, (text, _))| (module, text)).collect();
        Ok((files, printed.constants))
    }

    /// Returns the bytes that [`Program::save`] writes to a file.
    ///
    /// # Errors
    /// As [`Program::save`].
    pub fn to_archive(&self, name: &str) -> Result<Vec<u8>, Error> {
        Ok(Parts::of(self)?.write(self, name, Vec::new())?)
    }
}

/// The parts of an archive.
struct Parts {
    root: Object,
    states: States,
    printed: PrintedProgram,
}

impl Parts {
    fn of(program: &Program) -> Result<Parts, Error> {
        let module =
            program.module().ok_or_else(|| Error::misuse("only modules can be saved as archives"))?;
        if let Some((_, problem)) = program.missing().next() {
            return Err(problem);
        }
        let root = module.object().clone();
        let (states, types) = states_and_types(program, &root)?;
        let roots = types.into_iter().map(Definition::Type);
        let printed = print_program(program.unit(), roots)?;
        Ok(Parts { root, states, printed })
    }

    fn write<W: Write>(&self, program: &Program, name: &str, out: W) -> Result<W, ArchiveError> {
        let file = |(module, (text, origins)): (&String, &(String, SourceMap))| CodeFile {
            record: format!("code/{}.py", module.replace('.', "/")),
            text: text.clone(),
            origins: origins.clone(),
        };
        let code: Vec<_> = self.printed.files.iter().map(file).collect();
        let module = SaveModule {
            name,
            root: &self.root,
            unit: program.unit(),
            constants: &self.printed.constants,
            code: &code,
            version: version(program.unit()),
            extra_files: program.extra_files(),
            states: &self.states,
        };
        save(&module, out)
    }
}

/// Returns the format version that the operators of a program need. Programs without operators that changed can be loaded by old
/// releases of PyTorch.
fn version(unit: &CompilationUnit) -> u64 {
    let mut graphs: Vec<&Graph> = unit.functions().map(|function| &*function.graph).collect();
    let mut version = version_of_operator(Symbol::new(""));
    while let Some(graph) = graphs.pop() {
        for node in graph.nodes_deep() {
            version = version.max(version_of_operator(graph.op_name(node)));
            graphs.extend(graph.attr(node, names::subgraph()).and_then(Attr::as_graph).map(|task| &**task));
        }
    }
    version
}

/// Returns the states of all objects below `root` with `__getstate__`, and the types of values, in order.
fn states_and_types(program: &Program, root: &Object) -> Result<(States, Vec<Type>), Error> {
    let (get, set) = (Symbol::new("__getstate__"), Symbol::new("__setstate__"));
    let unit = program.unit();
    let mut states = States::default();
    let mut types = Vec::new();
    let mut named = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut stack = vec![IValue::Object(root.clone())];
    while let Some(value) = stack.pop() {
        if value.identity().is_some_and(|identity| !seen.insert(identity)) {
            continue;
        }
        let ty = match &value {
            IValue::Object(object) => object.class(),
            IValue::Enum(member) => member.ty(),
            _ => Type::NONE,
        };
        if ty != Type::NONE && named.insert(ty.annotation_str()) {
            types.push(ty);
        }
        if let IValue::Object(object) = &value
            && unit.method(ty, get).is_some()
            && unit.method(ty, set).is_some()
        {
            let state = program.call_method(object, get.as_str(), Vec::new())?;
            stack.push(state.clone());
            states.insert(object.id(), state);
            continue;
        }
        stack.extend(value.sub_values().into_iter().rev());
    }
    Ok((states, types))
}
