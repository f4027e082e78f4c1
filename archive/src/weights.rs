//! Tensors by name, without code: state dicts and tensors of `torch.save`, and safetensors.
//!
//! What `torch.save` writes is an archive whose pickle is plain data: an ordered dict of tensors, nested dicts and lists
//! of them, or one tensor. Names are the paths that lead to the tensors (`layer.0.weight`); values that are no tensors
//! (epochs, names, options) are passed over. Classes are none of a checkpoint's business, so an archive whose pickle
//! names a class that is not on the allow-list is refused as ever.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use flambeau_ir::IValue;
use flambeau_ir::value::Dict;
use flambeau_ir::{CompilationUnit, Type};
use flambeau_tensor::Tensor;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::error::quoted;
use crate::map::Mapping;
use crate::open::Archive;
use crate::paths::tensors;
use crate::save::{Pickled, serialization_id, write_values};
use crate::tensors::Tensors;
use crate::zip::ZipWriter;
use crate::{ArchiveError, Code, Limits, safetensors};

/// Tensors by name, in the order of the file.
pub type Weights = IndexMap<String, Tensor, FxBuildHasher>;

/// Whether the file at `path` is an archive with code, whose tensors are found by loading it.
///
/// # Errors
/// `A0091` if the file cannot be read.
pub fn has_code_file(path: &Path, limits: &Limits) -> Result<bool, ArchiveError> {
    let mapping = Mapping::open(path)?;
    Ok(has_code(mapping.bytes(), limits))
}

/// Whether `bytes` are those of an archive with code.
pub fn has_code(bytes: &[u8], limits: &Limits) -> bool {
    let archive = Archive::open(bytes, limits);
    archive.is_ok_and(|a| a.zip().records().iter().any(|r| r.name().starts_with("code/")))
}

/// The tensors in `bytes`, which `torch.save` or a safetensors writer wrote.
///
/// # Errors
/// Those of the container, the pickle and the tensors; `A0005` where two tensors have one name.
pub fn load_weights(bytes: &[u8], limits: &Limits) -> Result<Weights, ArchiveError> {
    weights(bytes, None, limits)
}

/// The tensors in the file at `path`, shared with the mapped file if `map`; then nobody may change the file as long as
/// a tensor of it lives.
///
/// # Errors
/// As [`load_weights`], and `A0091` if the file cannot be read.
pub fn load_weights_file(path: &Path, map: bool, limits: &Limits) -> Result<Weights, ArchiveError> {
    if map {
        let mapping = Mapping::open(path)?;
        return weights(mapping.bytes(), Some(Arc::clone(&mapping)), limits);
    }
    let failed =
        |e: std::io::Error| ArchiveError::new(Code::Io, format!("cannot read {}: {e}", path.display()));
    weights(&std::fs::read(path).map_err(failed)?, None, limits)
}

fn weights(bytes: &[u8], mapping: Option<Arc<Mapping>>, limits: &Limits) -> Result<Weights, ArchiveError> {
    if !bytes.starts_with(b"PK") {
        return safetensors::read(bytes, mapping.as_ref(), limits);
    }
    let archive = Archive::open(bytes, limits)?;
    let pickle = archive.pickle("data.pkl")?;
    let mut made = Tensors::new(archive.zip(), "data", archive.byte_order(), mapping, limits);
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
            return Err(ArchiveError::new(Code::Duplicate, message).in_record("data.pkl"));
        }
    }
    Ok(out)
}

/// Writes tensors as the state dict that `torch.load` reads.
///
/// # Errors
/// `A0091` if `out` fails.
pub fn save_state_dict<W: Write>(weights: &Weights, out: W) -> Result<W, ArchiveError> {
    let mut zip = ZipWriter::new(out, "archive");
    let dict = Dict::new(Type::STR, Type::TENSOR);
    for (name, tensor) in weights {
        dict.insert(IValue::str(name), IValue::Tensor(tensor.clone()))
            .map_err(|e| ArchiveError::new(Code::Value, e.to_string()))?;
    }
    let unit = CompilationUnit::new();
    write_values(&mut zip, "data", &Pickled::plain(&unit), &IValue::Dict(dict))?;
    zip.store("byteorder", b"little")?;
    zip.store("version", b"3\n")?;
    let id = serialization_id(&zip);
    zip.store(".data/serialization_id", id.as_bytes())?;
    zip.finish()
}

/// Unfinished files of one name that one process may leave or be at.
const PARTS: usize = 1000;

/// Lets `write` fill a new file that takes the place of `path` when it is whole and on disk: whoever opens `path` sees
/// the old file or the new one, never a part.
///
/// # Errors
/// Those of `write`, and `A0091` if the file cannot be made, written or moved; `path` is then as it was.
pub fn replace_file(
    path: &Path,
    write: impl FnOnce(std::io::BufWriter<File>) -> Result<std::io::BufWriter<File>, ArchiveError>,
) -> Result<(), ArchiveError> {
    let failed =
        |e: std::io::Error| ArchiveError::new(Code::Io, format!("cannot write {}: {e}", path.display()));
    let name = path.file_name().ok_or_else(|| failed(std::io::Error::other("this names no file")))?;
    let name = name.to_string_lossy();
    // Others of this process may be writing the same file, and one that was killed has left its part.
    let part = |n: usize| path.with_file_name(format!(".{name}.{}.{n}.part", std::process::id()));
    let mut made = (0..PARTS).map(part).map(|part| (File::create_new(&part), part));
    let taken = |made: &std::io::Result<File>| {
        made.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::AlreadyExists)
    };
    let made = made.find(|(file, _)| !taken(file));
    let (file, temporary) =
        made.ok_or_else(|| failed(std::io::Error::other("too many unfinished files lie beside it")))?;
    let file = file.map_err(failed)?;
    let finish = || {
        let file = write(std::io::BufWriter::new(file))?.into_inner().map_err(|e| failed(e.into_error()))?;
        file.sync_all().map_err(failed)?;
        std::fs::rename(&temporary, path).map_err(failed)
    };
    let written = finish();
    if written.is_err() {
        // The error is what counts; that the part stays behind too is not worth another.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}
