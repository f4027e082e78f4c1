//! Loads modules: objects with their tensors, and code.
//!
//! The table of constants is read first, because classes refer to it. The objects come second and declare their
//! classes. The methods of all declared classes are compiled last and may declare further classes.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use flambeau_frontend::CompileSession;
use flambeau_ir::module::{CompilationUnit, Function};
use flambeau_ir::value::Object;
use flambeau_ir::{Diagnostic, Fault, IValue, Registry, Symbol, Type};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::hooks::call_with_hooks;
use crate::import::{Importer, LoadError};
use crate::link::{Definition, check_obligations, link};
use crate::map::Mapping;
use crate::numbers::restore_numbers;
use crate::open::Archive;
use crate::resolve::ArchiveResolver;
use crate::values::{PendingState, ValueConverter};
use crate::{ArchiveCode, ArchiveError, ArchiveLimits, TensorLoader};

/// Options for loading an archive.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Limits on the archive.
    pub limits: ArchiveLimits,
    /// Limits on its source code.
    pub source_limits: flambeau_frontend::FrontendLimits,
    /// If true, [`load_file`] shares tensors with the mapped file instead of copying them. The file must not be
    /// modified or truncated as long as one of these tensors exists; replacing it by another file is allowed.
    /// [`ArchiveLimits::mapped_checks`] determines which checksums are verified.
    pub map: bool,
    /// If true, methods are compiled. If false, only the objects are loaded, which needs only class declarations.
    pub code: bool,
    /// If true, extra files are read, within the limits.
    pub extra_files: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            limits: ArchiveLimits::default(),
            source_limits: flambeau_frontend::FrontendLimits::default(),
            map: false,
            code: true,
            extra_files: false,
        }
    }
}

/// A module loaded from an archive.
#[derive(Clone)]
pub struct LoadedModule {
    /// The name of the archive: its top folder.
    pub name: String,
    /// The format version, which determines the semantics of operators.
    pub version: u64,
    /// The classes and functions.
    pub unit: Arc<CompilationUnit>,
    /// The module.
    pub root: Object,
    /// The values of `CONSTANTS.cN` in the code.
    pub constants: Vec<IValue>,
    /// The entry point that runs the hooks of the module's class around `forward`, as PyTorch calls modules. `None` if
    /// there are no hooks. The parameters are those of `forward`.
    pub call: Option<Arc<Function>>,
    /// Functions that were not compiled because they need something unsupported (such as an operator that is not
    /// registered), each with the diagnostic. They and all their callers are not in the unit.
    pub missing: UncompiledFunctions,
    /// The extra files of the archive by name, in the order of the archive, if [`LoadOptions::extra_files`] was set.
    pub extra_files: Vec<(String, Vec<u8>)>,
    /// Objects whose classes define `__setstate__`, which must be called on each in order before any other use.
    pub pending: Vec<PendingState>,
}

impl std::fmt::Debug for LoadedModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoadedModule({}: {}, version {})", self.name, self.root.class(), self.version)
    }
}

impl LoadedModule {
    /// Returns a method of the module; archives of functions have only `forward`.
    pub fn method(&self, name: &str) -> Option<&Arc<Function>> {
        self.unit.method(self.root.class(), Symbol::new(name))
    }

    /// Returns the diagnostic of a method of the module that could not be compiled.
    pub fn missing_in(&self, name: &str) -> Option<&Diagnostic> {
        let function = self.unit.class(self.root.class())?.methods.get(&Symbol::new(name))?;
        self.missing.get(function).map(|problem| &**problem)
    }

    /// Returns the attribute at a dotted path below the module, such as `layer.weight`.
    pub fn attribute(&self, path: &str) -> Option<IValue> {
        let mut value = IValue::Object(self.root.clone());
        for name in path.split('.') {
            let object = value.as_object()?.clone();
            let slot = self.unit.class(object.class())?.slot(Symbol::new(name))?;
            value = object.get(slot);
        }
        Some(value)
    }
}

/// Loads the module in `bytes`.
///
/// # Errors
///
/// Returns a [`LoadError`] with record and location if the archive is invalid, or the diagnostic if its code does not
/// compile.
pub fn load(
    bytes: &[u8],
    registry: &Arc<Registry>,
    options: &LoadOptions,
) -> Result<LoadedModule, LoadError> {
    load_from(bytes, None, registry, options)
}

/// Loads the module in the file at `path`; shares its tensors with the mapped file if [`LoadOptions::map`] is set.
///
/// # Errors
///
/// Returns the same errors as [`load`], and `A0091` if the file cannot be read.
pub fn load_file(
    path: &Path,
    registry: &Arc<Registry>,
    options: &LoadOptions,
) -> Result<LoadedModule, LoadError> {
    if options.map {
        let mapping = Mapping::open(path)?;
        return load_from(mapping.bytes(), Some(Arc::clone(&mapping)), registry, options);
    }
    let failed = |e: std::io::Error| {
        ArchiveError::new(ArchiveCode::Io, format!("cannot read {}: {e}", path.display()))
    };
    let bytes = std::fs::read(path).map_err(failed)?;
    load_from(&bytes, None, registry, options)
}

fn load_from(
    bytes: &[u8],
    mapping: Option<Arc<Mapping>>,
    registry: &Arc<Registry>,
    options: &LoadOptions,
) -> Result<LoadedModule, LoadError> {
    let archive = Archive::open(bytes, &options.limits)?;
    let mut importer = Importer::new(&archive, options.source_limits);
    let mut pending = Vec::new();
    let constants = read_values(&mut importer, "constants", &mapping, &mut pending)?;
    let Some(constants) = constants.as_tuple() else {
        let error = ArchiveError::new(ArchiveCode::Root, "the table of constants is not a tuple");
        return Err(error.in_record("constants.pkl").into());
    };
    importer.set_constants(constants.items().to_vec());
    let root = read_values(&mut importer, "data", &mapping, &mut pending)?;
    let IValue::Object(root) = root else {
        let message = format!("expected a module, found a value of type {}", root.type_of());
        return Err(ArchiveError::new(ArchiveCode::Root, message).in_record("data.pkl").into());
    };
    let mut missing = IndexMap::default();
    let mut call = None;
    if options.code {
        missing = compile(&mut importer, registry, options)?;
        call = call_with_hooks(&importer.unit, registry, root.class())?.map(Arc::new);
    }
    let extra_files = if options.extra_files { extra_files(&archive)? } else { Vec::new() };
    Ok(LoadedModule {
        name: archive.zip().top_folder().to_owned(),
        version: archive.version(),
        constants: importer.constants().to_vec(),
        unit: Arc::new(importer.unit),
        root,
        call,
        missing,
        extra_files,
        pending,
    })
}

/// Returns the records below `extra/`.
fn extra_files(archive: &Archive<'_>) -> Result<Vec<(String, Vec<u8>)>, LoadError> {
    let named = archive.zip().records().iter().filter_map(|r| Some((r.name().strip_prefix("extra/")?, r)));
    named.map(|(name, record)| Ok((name.to_owned(), archive.zip().read(record)?.into_owned()))).collect()
}

/// Functions that could not be compiled, in order of definition, each with its diagnostic.
pub type UncompiledFunctions = IndexMap<Symbol, Box<Diagnostic>, FxBuildHasher>;

/// Compiles the methods of all declared classes and the functions they use. A function that needs an unsupported
/// feature is recorded as missing together with its callers; any other problem is an error.
fn compile(
    importer: &mut Importer<'_>,
    registry: &Arc<Registry>,
    options: &LoadOptions,
) -> Result<UncompiledFunctions, LoadError> {
    let (names, definitions) = link(importer)?;
    let version = importer.archive().version();
    let resolver = ArchiveResolver::new(names, importer.constants().to_vec(), version);
    let session = CompileSession::new(Arc::clone(registry), &resolver, options.source_limits);
    session.with_unit(|unit| std::mem::swap(unit, &mut importer.unit));
    for Definition { name, file, def, owner } in definitions {
        session.declare(name, &file.file, def, owner);
    }
    let mut missing = UncompiledFunctions::default();
    if let Err(problems) = session.finish() {
        if let Some(first) = problems.into_iter().find(|p| p.fault != Fault::Unsupported) {
            return Err(LoadError::Code(Box::new(first)));
        }
        missing.extend(session.failures());
    }
    check_obligations(&importer.obligations, &session)?;
    importer.unit = session.into_unit();
    restore_numbers(&mut importer.unit);
    Ok(missing)
}

/// Reads the value of the pickle `name.pkl`, whose storages are the records in `name/`.
fn read_values(
    importer: &mut Importer<'_>,
    name: &str,
    mapping: &Option<Arc<Mapping>>,
    pending: &mut Vec<PendingState>,
) -> Result<IValue, LoadError> {
    let archive = importer.archive();
    let record: Cow<'_, str> = format!("{name}.pkl").into();
    let pickle = archive.pickle(&record)?;
    let limits = archive.limits();
    let mut tensors = TensorLoader::new(archive.zip(), name, archive.byte_order(), mapping.clone(), limits);
    let mut converter = ValueConverter::new(&pickle, &mut tensors, importer, limits);
    let value = converter.convert(pickle.root(), Type::ANY).map_err(|e| e.in_record(&record))?;
    pending.extend(converter.into_pending());
    Ok(value)
}
