//! Writer of `.pt2` files, in the layout and schema of a version of PyTorch.
//!
//! The JSON text is the one that PyTorch writes ([`json`]), after nodes that the version states otherwise are replaced
//! ([`adapt`]); the newest version is the default. Storages are written once,
//! whatever number of tensors share them. The bytes depend on the program and the version only. The example inputs of a
//! file are not read, so a written file has none.

mod adapt;
mod json;
mod supported;

use std::io::Write;
use std::path::Path;

use flambeau_archive::zip::ZipWriter;
use flambeau_archive::{ArchiveError, NamedTensor, replace_file, save_tensors};
use flambeau_ir::Registry;
use flambeau_tensor::{DType, Layout, Tensor};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use crate::container::FileLayout;
use crate::fx::{self, FxGraph, FxOp};
use crate::model::{
    Constant, InputSpec, NodeMetadata, NodeModel, ProgramModel, SchemaVersion, TensorMeta, Weight,
};
use crate::{ExportCode, ExportError};

/// The version of PyTorch that a file is written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileVersion {
    /// PyTorch 2.6: schema 8.2, flat layout.
    Torch26,
    /// PyTorch 2.8: schema 8.8, pickled weights.
    Torch28,
    /// PyTorch 2.9: schema 8.14, raw weights.
    Torch29,
    /// PyTorch 2.15: schema 8.20, raw weights.
    #[default]
    Torch215,
}

impl FileVersion {
    /// All versions, oldest first.
    pub const ALL: [FileVersion; 4] =
        [FileVersion::Torch26, FileVersion::Torch28, FileVersion::Torch29, FileVersion::Torch215];

    /// Returns the minor version of the schema.
    #[must_use]
    pub fn minor(self) -> i64 {
        match self {
            FileVersion::Torch26 => 2,
            FileVersion::Torch28 => 8,
            FileVersion::Torch29 => 14,
            FileVersion::Torch215 => 20,
        }
    }

    /// Returns the newest version of PyTorch whose files all readers of files with this schema can read; the default for a
    /// program that no file states the schema of.
    #[must_use]
    pub fn of_schema(schema: SchemaVersion) -> FileVersion {
        if schema == SchemaVersion::default() {
            return FileVersion::default();
        }
        let readable = FileVersion::ALL.into_iter().rev().find(|version| version.minor() <= schema.minor);
        readable.unwrap_or(FileVersion::Torch26)
    }

    /// Returns the layout of the file.
    #[must_use]
    pub fn layout(self) -> FileLayout {
        match self {
            FileVersion::Torch26 => FileLayout::Flat,
            FileVersion::Torch28 => FileLayout::Pickled,
            FileVersion::Torch29 | FileVersion::Torch215 => FileLayout::Raw,
        }
    }

    /// Returns the name, such as `2.6`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FileVersion::Torch26 => "2.6",
            FileVersion::Torch28 => "2.8",
            FileVersion::Torch29 => "2.9",
            FileVersion::Torch215 => "2.15",
        }
    }

    /// Returns the version called `2.6`, `2.8`, `2.9` or `2.15`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<FileVersion> {
        FileVersion::ALL.into_iter().find(|version| version.name() == name)
    }
}

/// Returns the JSON text of a program in the schema of a version.
///
/// # Errors
/// `E015` for parts that the version cannot contain, or that it cannot read or run; `E006` and `E007` for names that are not defined once.
pub fn program_text(
    program: &ProgramModel,
    version: FileVersion,
    registry: &Registry,
) -> Result<String, ExportError> {
    supported::check(program, version)?;
    let program = adapt::adapted(program, version, registry)?;
    let named =
        if version == FileVersion::Torch215 { node_names(&program, registry)? } else { HashMap::default() };
    json::program(&program, version.minor(), &|node| named.get(&address(&node.metadata)).cloned())
}

/// Writes a program.
///
/// # Errors
/// As [`program_text`]; `E015` for objects among the constants; `A0091` if `out` fails.
pub fn write<W: Write>(
    program: &ProgramModel,
    version: FileVersion,
    registry: &Registry,
    out: W,
) -> Result<W, ExportError> {
    let text = program_text(program, version, registry)?;
    let weights = weights(program);
    let constants = constants(program)?;
    if version.layout() == FileLayout::Flat {
        let mut zip = ZipWriter::flat(out);
        zip.store("serialized_exported_program.json", text.as_bytes())?;
        zip.store("serialized_state_dict.pt", &save_tensors(&weights, Vec::new())?)?;
        zip.store("serialized_constants.pt", &save_tensors(&constants, Vec::new())?)?;
        zip.store("serialized_example_inputs.pt", b"")?;
        zip.store("version", format!("8.{}", version.minor()).as_bytes())?;
        for (name, bytes) in &program.extra_files {
            zip.store(&format!("extra_files/{name}"), bytes)?;
        }
        return Ok(zip.finish()?);
    }
    let mut zip = ZipWriter::new(out, "archive");
    if version.layout() == FileLayout::Pickled {
        zip.store("data/weights/model.pt", &save_tensors(&weights, Vec::new())?)?;
        zip.store("data/constants/model.pt", &save_tensors(&constants, Vec::new())?)?;
    } else {
        raw_tensors(&mut zip, program, version, &weights, "weights", "weight")?;
        raw_tensors(&mut zip, program, version, &constants, "constants", "tensor")?;
    }
    zip.store("models/model.json", text.as_bytes())?;
    zip.store("data/sample_inputs/model.pt", b"")?;
    zip.store("archive_format", b"pt2")?;
    zip.store("archive_version", b"0")?;
    for (name, bytes) in &program.extra_files {
        zip.store(&format!("extra/{name}"), bytes)?;
    }
    zip.store(".data/version", b"6\n")?;
    zip.store("byteorder", b"little")?;
    let id = flambeau_archive::serialization_id(&zip);
    zip.store(".data/serialization_id", id.as_bytes())?;
    Ok(zip.finish()?)
}

/// Writes a program to the file at `path`, which is replaced atomically.
///
/// # Errors
/// As [`fn@write`]; `path` is then unchanged.
pub fn write_file(
    program: &ProgramModel,
    version: FileVersion,
    registry: &Registry,
    path: &Path,
) -> Result<(), ExportError> {
    let bytes = write(program, version, registry, Vec::new())?;
    let failed = |e: std::io::Error| {
        ArchiveError::new(flambeau_archive::ArchiveCode::Io, format!("cannot write {}: {e}", path.display()))
    };
    Ok(replace_file(path, |mut file| {
        file.write_all(&bytes).map_err(failed)?;
        Ok(file)
    })?)
}

/// Returns the tensors of the state dict.
fn weights(program: &ProgramModel) -> Vec<NamedTensor<'_>> {
    let parameters: HashSet<&str, FxBuildHasher> = program
        .module
        .signature
        .inputs
        .iter()
        .filter_map(|spec| match spec {
            InputSpec::Parameter { target, .. } => Some(target.as_str()),
            _ => None,
        })
        .collect();
    // A parameter under a second name is not in the signature; files of 2.6 and 2.8 do not mark it, but it requires a
    // gradient, which buffers do not.
    let is_parameter = |name: &String, weight: &Weight| {
        parameters.contains(name.as_str()) || weight.is_parameter.unwrap_or(weight.tensor.requires_grad())
    };
    let mut entries = Vec::with_capacity(program.state_dict.len());
    for (name, weight) in &program.state_dict {
        let is_parameter = is_parameter(name, weight);
        entries.push(NamedTensor { name, tensor: &weight.tensor, is_parameter });
    }
    entries
}

/// Returns the tensors among the constants, which must all be tensors.
fn constants(program: &ProgramModel) -> Result<Vec<NamedTensor<'_>>, ExportError> {
    let entries = program.constants.iter().map(|(name, constant)| match constant {
        Constant::Tensor(tensor) => Ok(NamedTensor { name, tensor, is_parameter: false }),
        Constant::Object { what } => Err(json::cannot_write(what).in_field(name).in_field("constants")),
    });
    entries.collect()
}

/// Writes the storages of tensors as records `data/FOLDER/PREFIX_N`, and the table of the tensors.
fn raw_tensors<W: Write>(
    zip: &mut ZipWriter<W>,
    program: &ProgramModel,
    version: FileVersion,
    entries: &[NamedTensor<'_>],
    folder: &str,
    prefix: &str,
) -> Result<(), ExportError> {
    let mut numbers: HashMap<usize, usize, FxBuildHasher> = HashMap::default();
    let mut table = String::from("{\"config\": {");
    for (i, entry) in entries.iter().enumerate() {
        let storage = entry.tensor.storage();
        let next = numbers.len();
        let number = *numbers.entry(storage.address()).or_insert(next);
        if number == next {
            zip.store(&format!("data/{folder}/{prefix}_{number}"), &bytes_of(entry.tensor)?)?;
        }
        table.push_str(if i > 0 { ", " } else { "" });
        json::string(&mut table, entry.name);
        let meta = json::tensor_meta(program, version.minor(), &meta_of(entry)?)?;
        table.push_str(&format!(
            ": {{\"path_name\": \"{prefix}_{number}\", \"is_param\": {}, \"use_pickle\": false, \"tensor_meta\": {meta}}}",
            entry.is_parameter
        ));
    }
    table.push_str("}}");
    Ok(zip.store(&format!("data/{folder}/model_{folder}_config.json"), table.as_bytes())?)
}

/// Returns the bytes of a tensor's whole storage.
fn bytes_of(tensor: &Tensor) -> Result<Vec<u8>, ExportError> {
    let failed = |e: flambeau_tensor::TensorError| ExportError::new(ExportCode::Weight, e.to_string());
    let layout = Layout::contiguous(&[tensor.storage().nbytes() as i64]).map_err(failed)?;
    let bytes = Tensor::from_storage(tensor.storage().clone(), DType::U8, layout).map_err(failed)?;
    bytes.to_bytes().map_err(failed)
}

fn meta_of(entry: &NamedTensor<'_>) -> Result<TensorMeta, ExportError> {
    TensorMeta::of(entry.tensor).ok_or_else(|| json::cannot_write(entry.tensor.dtype().name()))
}

/// Appends a string as a JSON string.
pub(crate) fn json_string(out: &mut String, text: &str) {
    json::string(out, text);
}

fn address(metadata: &NodeMetadata) -> usize {
    std::ptr::from_ref(metadata) as usize
}

/// Returns the names of the FX nodes by the address of the metadata of their node in the model.
fn node_names(
    program: &ProgramModel,
    registry: &Registry,
) -> Result<HashMap<usize, String, FxBuildHasher>, ExportError> {
    let has_all_names = |nodes: &[NodeModel]| nodes.iter().all(|node| node.name.is_some());
    let mut names = HashMap::default();
    if has_all_names(&program.module.graph.nodes) {
        return Ok(names);
    }
    let root = fx::build(program, registry)?;
    let mut open: Vec<&FxGraph<'_>> = vec![&root];
    while let Some(graph) = open.pop() {
        open.extend(graph.subgraphs.values());
        for node in &graph.nodes {
            // The node itself comes before the nodes of its elements, which have the same metadata.
            if let (FxOp::Call, Some(metadata)) = (node.op, node.metadata) {
                names.entry(address(metadata)).or_insert_with(|| node.name.clone());
            }
        }
    }
    Ok(names)
}
