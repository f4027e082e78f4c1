//! Tensors by name, without code: state dicts and tensors of `torch.save`, and safetensors.
//!
//! A file of `torch.save` is an archive whose pickle is plain data: an ordered dict of tensors, nested dicts and lists
//! of tensors, or one tensor. The name of a tensor is its path (`layer.0.weight`). Values other than tensors (epochs,
//! names, options) are skipped. A pickle that names a global outside of the allow-list is rejected, as for other
//! archives.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use flambeau_ir::IValue;
use flambeau_ir::value::Dict;
use flambeau_ir::{CompilationUnit, Type};
use flambeau_tensor::Tensor;
use indexmap::IndexMap;
use rawzip::{ErrorKind, ReaderAt, ZipArchive};
use rustc_hash::FxBuildHasher;

use crate::error::quoted;
use crate::map::Mapping;
use crate::open::Archive;
use crate::paths::tensors;
use crate::save::{NamedTensor, Pickled, serialization_id, write_tensors, write_values};
use crate::tensors::TensorLoader;
use crate::zip::ZipWriter;
use crate::{ArchiveCode, ArchiveError, ArchiveLimits, safetensors};

/// Tensors by name, in the order of the file.
pub type Weights = IndexMap<String, Tensor, FxBuildHasher>;

/// Returns true if the file at `path` is an archive with code, whose tensors are read by loading the module. Reads only
/// the names in the directory of the container, and does not check anything else: a damaged archive is found on loading.
///
/// # Errors
///
/// Returns `A0091` if the file cannot be read.
pub fn has_code_file(path: &Path, limits: &ArchiveLimits) -> Result<bool, ArchiveError> {
    let failed = |e: &std::io::Error| {
        ArchiveError::new(ArchiveCode::Io, format!("cannot read {}: {e}", path.display()))
    };
    let file = File::open(path).map_err(|e| failed(&e))?;
    let mut buffer = vec![0; rawzip::RECOMMENDED_BUFFER_SIZE];
    match ZipArchive::from_file(file, &mut buffer).and_then(|a| lists_code(&a, &mut buffer, limits)) {
        Ok(found) => Ok(found),
        Err(error) => match error.kind() {
            ErrorKind::IO(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => Err(failed(e)),
            _ => Ok(false),
        },
    }
}

/// Returns true if `bytes` are an archive with code. Checks as little as [`has_code_file`].
pub fn has_code(bytes: &[u8], limits: &ArchiveLimits) -> bool {
    let mut buffer = vec![0; rawzip::RECOMMENDED_BUFFER_SIZE];
    let archive = ZipArchive::from_seekable(std::io::Cursor::new(bytes), &mut buffer);
    archive.and_then(|a| lists_code(&a, &mut buffer, limits)).unwrap_or(false)
}

/// Returns true if a record below the top folder is in the folder `code`. Looks at no more than `limits.records` records.
fn lists_code<R: ReaderAt>(
    archive: &ZipArchive<R>,
    buffer: &mut [u8],
    limits: &ArchiveLimits,
) -> Result<bool, rawzip::Error> {
    let mut entries = archive.entries(buffer);
    for _ in 0..limits.records {
        let Some(entry) = entries.next_entry()? else { break };
        let path = entry.file_path();
        let mut folders = path.as_ref().split(|&b| b == b'/');
        if folders.nth(1) == Some(b"code") && folders.next().is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Loads the tensors in `bytes`, a file of `torch.save` or safetensors.
///
/// # Errors
///
/// Returns the errors of the container, the pickle and the tensors, and `A0005` if two tensors have the same name.
pub fn load_weights(bytes: &[u8], limits: &ArchiveLimits) -> Result<Weights, ArchiveError> {
    weights(bytes, None, limits)
}

/// Loads the tensors in the file at `path`. If `map` is true, they are shared with the mapped file, which must not be
/// modified or truncated as long as one of these tensors exists.
///
/// # Errors
///
/// Returns the same errors as [`load_weights`], and `A0091` if the file cannot be read.
pub fn load_weights_file(path: &Path, map: bool, limits: &ArchiveLimits) -> Result<Weights, ArchiveError> {
    if map {
        let mapping = Mapping::open(path)?;
        return weights(mapping.bytes(), Some(Arc::clone(&mapping)), limits);
    }
    let failed = |e: std::io::Error| {
        ArchiveError::new(ArchiveCode::Io, format!("cannot read {}: {e}", path.display()))
    };
    weights(&std::fs::read(path).map_err(failed)?, None, limits)
}

fn weights(
    bytes: &[u8],
    mapping: Option<Arc<Mapping>>,
    limits: &ArchiveLimits,
) -> Result<Weights, ArchiveError> {
    if !bytes.starts_with(b"PK") {
        return safetensors::read(bytes, mapping.as_ref(), limits);
    }
    let archive = Archive::open(bytes, limits)?;
    let pickle = archive.pickle("data.pkl")?;
    let mut made = TensorLoader::new(archive.zip(), "data", archive.byte_order(), mapping, limits);
    let mut by_call = std::collections::BTreeMap::new();
    let mut out = Weights::default();
    for found in tensors(&pickle, (), |_, _| ()) {
        let tensor: &Tensor = match by_call.entry(found.call) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                let tensor = made.rebuild(&pickle, found.call);
                new.insert(tensor.map_err(|e| e.under(&found.path).in_record("data.pkl"))?)
            }
        };
        if out.insert(found.path.clone(), tensor.clone()).is_some() {
            let message = format!("two tensors have the name {}", quoted(&found.path));
            return Err(ArchiveError::new(ArchiveCode::Duplicate, message).in_record("data.pkl"));
        }
    }
    Ok(out)
}

/// Writes tensors as a state dict that `torch.load` reads.
///
/// # Errors
///
/// Returns `A0091` if `out` fails, and [`ArchiveCode::Value`] if a name or tensor cannot be stored.
pub fn save_state_dict<W: Write>(weights: &Weights, out: W) -> Result<W, ArchiveError> {
    let mut zip = ZipWriter::new(out, "archive");
    let dict = Dict::new(Type::STR, Type::TENSOR);
    for (name, tensor) in weights {
        dict.insert(IValue::str(name), IValue::Tensor(tensor.clone()))
            .map_err(|e| ArchiveError::new(ArchiveCode::Value, e.to_string()))?;
    }
    let unit = CompilationUnit::new();
    write_values(&mut zip, "data", &Pickled::plain(&unit), &IValue::Dict(dict))?;
    finish_saved(zip)
}

/// Writes tensors as a state dict that `torch.load` reads, in which some are parameters.
///
/// # Errors
///
/// Returns `A0091` if `out` fails.
pub fn save_tensors<W: Write>(entries: &[NamedTensor<'_>], out: W) -> Result<W, ArchiveError> {
    let mut zip = ZipWriter::new(out, "archive");
    write_tensors(&mut zip, "data", entries)?;
    finish_saved(zip)
}

/// Writes the last records of a file of `torch.save`.
fn finish_saved<W: Write>(mut zip: ZipWriter<W>) -> Result<W, ArchiveError> {
    zip.store("byteorder", b"little")?;
    zip.store("version", b"3\n")?;
    let id = serialization_id(&zip);
    zip.store(".data/serialization_id", id.as_bytes())?;
    zip.finish()
}

/// Maximum number of temporary files of one process for one target file.
const PARTS: usize = 1000;

/// Lets `write` fill a temporary file, which then replaces `path` atomically after it is synced to disk. Readers of
/// `path` see the old or the new file, never a partial one.
///
/// # Errors
///
/// Returns the errors of `write`, and `A0091` if the file cannot be created, written or renamed; `path` is then
/// unchanged.
pub fn replace_file(
    path: &Path,
    write: impl FnOnce(std::io::BufWriter<File>) -> Result<std::io::BufWriter<File>, ArchiveError>,
) -> Result<(), ArchiveError> {
    let failed = |e: std::io::Error| {
        ArchiveError::new(ArchiveCode::Io, format!("cannot write {}: {e}", path.display()))
    };
    let name =
        path.file_name().ok_or_else(|| failed(std::io::Error::other("the path does not name a file")))?;
    let name = name.to_string_lossy();
    // Other threads may be writing the same file, and a killed process may have left a temporary file.
    let part = |n: usize| path.with_file_name(format!(".{name}.{}.{n}.part", std::process::id()));
    let mut made = (0..PARTS).map(part).map(|part| (File::create_new(&part), part));
    let taken = |made: &std::io::Result<File>| {
        made.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::AlreadyExists)
    };
    let made = made.find(|(file, _)| !taken(file));
    let (file, temporary) = made
        .ok_or_else(|| failed(std::io::Error::other("there are too many temporary files in the folder")))?;
    let file = file.map_err(failed)?;
    let finish = || {
        let file = write(std::io::BufWriter::new(file))?.into_inner().map_err(|e| failed(e.into_error()))?;
        file.sync_all().map_err(failed)?;
        std::fs::rename(&temporary, path).map_err(failed)
    };
    let written = finish();
    if written.is_err() {
        // Report the error of writing; a failure to remove the temporary file is ignored.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}
