//! Reader of the model from the records of a file.
//!
//! [`read`] combines a container with the JSON reader. The schema is strict where its meaning depends on it: required fields
//! must exist, a union has exactly one known tag, numbers of enumerations are known. A field that this crate does not know
//! is kept as text ([`Unknown`]), because minor versions add fields; another major version is an error. If an object has a
//! field twice, the last one counts, as in PyTorch; names of values and weights must be unique.
//!
//! The reader checks the form of a program only. References between its parts are checked by [`verify`](crate::verify).

mod argument;
mod graph;
mod signature;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use flambeau_archive::{ArchiveCode, ArchiveError, Mapping};
use hashbrown::{HashMap, HashSet};

use crate::container::{Container, FileLayout, Limits};
use crate::error::quoted;
use crate::expr::{ExprId, Exprs};
use crate::json::{JsonReader, Res};
use crate::model::{GraphModule, Map, ProgramModel, RangeConstraint, SchemaVersion, TensorMeta, Unknown};
use crate::{ExportCode, ExportError};

/// The major version of the schema that this crate reads.
pub const SCHEMA_MAJOR: i64 = 8;

/// Options for reading a file.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Limits on the container, on pickles and on tensors.
    pub archive: flambeau_archive::ArchiveLimits,
    /// Limits on the program.
    pub limits: Limits,
    /// If true, [`read_file`] shares weights with the mapped file instead of copying them. The file must not be modified
    /// or truncated as long as one of these tensors exists.
    pub map: bool,
    /// The program to read from an archive of several.
    pub model: Option<String>,
    /// If true, the graph is read without weights, constants and additional files.
    pub skip_weights: bool,
}

/// Returns whether `bytes` are an exported program, by the names of their records.
pub fn is_exported(bytes: &[u8], limits: &flambeau_archive::ArchiveLimits) -> bool {
    Container::recognizes(bytes, limits)
}

/// Returns whether the file at `path` is an exported program, by the names of its records.
///
/// # Errors
///
/// Returns `A0091` if the file cannot be read.
pub fn is_exported_file(path: &Path, limits: &flambeau_archive::ArchiveLimits) -> Res<bool> {
    Ok(is_exported(Mapping::open(path)?.bytes(), limits))
}

/// Returns the layout of the file at `path` and the names of its programs. Reads headers only.
///
/// # Errors
///
/// Returns the errors of the container, and `A0091` if the file cannot be read.
pub fn file_layout(path: &Path, options: &ReadOptions) -> Res<(FileLayout, Vec<String>)> {
    let mapping = Mapping::open(path)?;
    let container = Container::open(mapping.bytes(), None, options)?;
    Ok((container.layout(), container.models().into_iter().map(str::to_owned).collect()))
}

/// Reads the program in `bytes`.
///
/// # Errors
///
/// Returns the errors of the container and of its records: codes `E000` to `E016`, and those of archives.
pub fn read(bytes: &[u8], options: &ReadOptions) -> Res<ProgramModel> {
    read_container(&Container::open(bytes, None, options)?, options)
}

/// Reads the program in the file at `path`.
///
/// # Errors
///
/// Returns the same errors as [`read`], and `A0091` if the file cannot be read.
pub fn read_file(path: &Path, options: &ReadOptions) -> Res<ProgramModel> {
    if options.map {
        let mapping = Mapping::open(path)?;
        let container = Container::open(mapping.bytes(), Some(Arc::clone(&mapping)), options)?;
        return read_container(&container, options);
    }
    let bytes = std::fs::read(path)
        .map_err(|e| ArchiveError::new(ArchiveCode::Io, format!("cannot read {}: {e}", path.display())))?;
    read(&bytes, options)
}

/// Reads the program in an opened container.
///
/// # Errors
///
/// Returns the errors of the records.
pub fn read_container(container: &Container<'_>, options: &ReadOptions) -> Res<ProgramModel> {
    let text = container.program()?;
    let record = container.program_record();
    let mut program = read_program(&text, &options.limits).map_err(|e| e.in_record(&record))?;
    program.has_example_inputs = container.has_example_inputs();
    if !options.skip_weights {
        program.state_dict = container.state_dict()?;
        program.constants = container.constants()?;
        program.extra_files = container.extra_files()?;
    }
    Ok(program)
}

/// Reads the JSON text of a program, without weights.
///
/// # Errors
///
/// Returns `E001` to `E009` and the errors of expressions, with the path of the field and the byte offset.
pub fn read_program(text: &str, limits: &Limits) -> Res<ProgramModel> {
    let mut json = JsonReader::new(text, limits.depth);
    let mut reader = Reader::new();
    let read = reader.program(&mut json).and_then(|program| json.end().map(|()| program));
    let version = match &read {
        Ok(program) => program.schema_version,
        // Another version may have another structure, so its number explains the error.
        Err(_) => schema_version_of(text).unwrap_or_default(),
    };
    if version.major != SCHEMA_MAJOR && version != SchemaVersion::default() {
        let SchemaVersion { major, minor } = version;
        let message = format!("schema version {major}.{minor} is not supported; {SCHEMA_MAJOR}.x is");
        return Err(ExportError::new(ExportCode::Schema, message).in_field("schema_version"));
    }
    let mut program = read?;
    program.exprs = reader.exprs;
    program.unknown = reader.unknown;
    Ok(program)
}

/// Returns the version in a program that cannot be read otherwise.
fn schema_version_of(text: &str) -> Option<SchemaVersion> {
    let mut found = None;
    let mut json = JsonReader::new(text, 4);
    // An error after the version does not matter.
    let _ = json.object(|json, key| {
        if key == "schema_version" {
            found = Some(schema_version(json)?);
        } else {
            json.skip()?;
        }
        Ok(())
    });
    found
}

fn schema_version(json: &mut JsonReader<'_>) -> Res<SchemaVersion> {
    let (mut major, mut minor) = (None, None);
    json.object(|json, key| {
        match key {
            "major" => major = Some(json.int()?),
            "minor" => minor = Some(json.int()?),
            _ => drop(json.skip()?),
        }
        Ok(())
    })?;
    Ok(SchemaVersion { major: need(major, "major")?, minor: need(minor, "minor")? })
}

/// The state of reading a program: its expressions, and the fields that were not known.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    exprs: Exprs,
    /// The expressions by their text, since most sizes occur many times.
    texts: BTreeMap<String, ExprId>,
    /// Metadata of tensors by its JSON, since most tensors have that of others.
    tensors: Known<'a, Arc<TensorMeta>>,
    /// Keys and strings of the metadata of nodes, most of which occur many times.
    metadata_texts: HashSet<Arc<str>>,
    unknown: Vec<Unknown>,
}

/// Values that were read before, by their JSON.
type Known<'a, T> = HashMap<&'a str, T>;

impl<'a> Reader<'a> {
    pub(crate) fn new() -> Self {
        let (texts, tensors) = (BTreeMap::new(), Known::new());
        Reader { exprs: Exprs::new(), texts, tensors, metadata_texts: HashSet::new(), unknown: Vec::new() }
    }

    fn program(&mut self, json: &mut JsonReader<'a>) -> Res<ProgramModel> {
        let mut out = ProgramModel::default();
        let (mut module, mut version) = (None, None);
        json.object(|json, key| {
            match key {
                "graph_module" => module = Some(self.graph_module(json)?),
                "opset_version" => out.opset_version = self.map(json, |_, json| json.int())?,
                "range_constraints" => out.range_constraints = self.map(json, |r, json| r.range(json))?,
                "schema_version" => version = Some(schema_version(json)?),
                "verifiers" => out.verifiers = strings(json)?,
                "torch_version" => out.torch_version = string(json)?,
                "guards_code" => out.guards_code = json.optional(strings)?.unwrap_or_default(),
                _ => self.keep_unknown("ExportedProgram", json, key)?,
            }
            Ok(())
        })?;
        out.module = need(module, "graph_module")?;
        out.schema_version = need(version, "schema_version")?;
        Ok(out)
    }

    fn range(&mut self, json: &mut JsonReader<'a>) -> Res<RangeConstraint> {
        let mut out = RangeConstraint::default();
        json.object(|json, key| {
            match key {
                "min_val" => out.min = json.optional(JsonReader::int)?,
                "max_val" => out.max = json.optional(JsonReader::int)?,
                _ => self.keep_unknown("RangeConstraint", json, key)?,
            }
            Ok(())
        })?;
        Ok(out)
    }

    fn graph_module(&mut self, json: &mut JsonReader<'a>) -> Res<GraphModule> {
        let mut out = GraphModule::default();
        let (mut graph, mut signature) = (None, None);
        json.object(|json, key| {
            match key {
                "graph" => graph = Some(self.graph(json)?),
                "signature" => signature = Some(self.signature(json)?),
                "module_call_graph" => out.module_call_graph = json.array(|json| self.module_call(json))?,
                "metadata" => {
                    let metadata = json.optional(|json| self.map(json, |_, json| string(json)))?;
                    out.metadata = metadata.unwrap_or_default();
                }
                "treespec_namedtuple_fields" => {
                    let fields = json.optional(|json| self.map(json, |r, json| r.field_names(json)))?;
                    out.namedtuple_fields = fields.unwrap_or_default();
                }
                _ => self.keep_unknown("GraphModule", json, key)?,
            }
            Ok(())
        })?;
        out.graph = need(graph, "graph")?;
        out.signature = need(signature, "signature")?;
        Ok(out)
    }

    fn field_names(&mut self, json: &mut JsonReader<'a>) -> Res<Vec<String>> {
        let mut out = None;
        json.object(|json, key| {
            match key {
                "field_names" => out = Some(strings(json)?),
                _ => self.keep_unknown("NamedTupleDef", json, key)?,
            }
            Ok(())
        })?;
        need(out, "field_names")
    }

    /// Reads an object whose member names are data. Two members of the same name are an error.
    pub(crate) fn map<V>(
        &mut self,
        json: &mut JsonReader<'a>,
        mut value: impl FnMut(&mut Self, &mut JsonReader<'a>) -> Res<V>,
    ) -> Res<Map<V>> {
        let mut out = Map::default();
        json.object(|json, key| {
            let at = json.offset();
            if out.insert(key.to_owned(), value(self, json)?).is_some() {
                return Err(occurs_twice(key).at(at));
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// Reads a value, or copies the one that was read before from the same JSON. `known` is the table for values of this kind.
    /// A value with unknown fields is not remembered, since each of them is reported with its position.
    fn shared<T: Clone>(
        &mut self,
        json: &mut JsonReader<'a>,
        known: fn(&mut Self) -> &mut Known<'a, T>,
        read: impl FnOnce(&mut Self, &mut JsonReader<'a>) -> Res<T>,
    ) -> Res<T> {
        json.kind()?;
        let from = json.offset();
        // Malformed JSON is an error of `read`, which states the position in more detail.
        let text = json.skip().ok();
        if let Some(text) = text
            && let Some(value) = known(self).get(text)
        {
            return Ok(value.clone());
        }
        json.seek(from);
        let before = self.unknown.len();
        let value = read(self, json)?;
        if let Some(text) = text.filter(|_| self.unknown.len() == before) {
            known(self).insert(text, value.clone());
        }
        Ok(value)
    }

    /// Keeps a field that is not in the schema.
    fn keep_unknown(&mut self, object: &'static str, json: &mut JsonReader<'a>, name: &str) -> Res<()> {
        json.kind()?;
        let offset = json.offset();
        let value = json.skip()?.to_owned();
        self.unknown.push(Unknown { object, name: name.to_owned(), value, offset });
        Ok(())
    }

    /// Parses the text of an expression.
    fn expr(&mut self, text: &str) -> Res<ExprId> {
        if let Some(&known) = self.texts.get(text) {
            return Ok(known);
        }
        let id = self.exprs.parse(text)?;
        self.texts.insert(text.to_owned(), id);
        Ok(id)
    }
}

fn occurs_twice(name: &str) -> ExportError {
    ExportError::new(ExportCode::DuplicateName, format!("the name {} occurs twice", quoted(name)))
}

/// Returns a required field.
fn need<T>(value: Option<T>, name: &str) -> Res<T> {
    value.ok_or_else(|| ExportError::new(ExportCode::Field, format!("the field {} is missing", quoted(name))))
}

fn string(json: &mut JsonReader<'_>) -> Res<String> {
    Ok(json.string()?.into_owned())
}

fn strings(json: &mut JsonReader<'_>) -> Res<Vec<String>> {
    json.array(string)
}

/// Reads a union: an object with exactly one member, whose name is the tag.
fn union<'a, T>(
    json: &mut JsonReader<'a>,
    mut read: impl FnMut(&mut JsonReader<'a>, &str) -> Res<T>,
) -> Res<T> {
    let mut out = None;
    json.kind()?;
    let at = json.offset();
    let broken = |message: &str| ExportError::new(ExportCode::Tag, message).at(at);
    json.object(|json, tag| {
        if out.is_some() {
            return Err(broken("a union has two tags"));
        }
        out = Some(read(json, tag)?);
        Ok(())
    })?;
    out.ok_or_else(|| broken("a union has no tag"))
}

/// Returns the error for an unknown tag of a union.
fn unknown_tag(json: &JsonReader<'_>, of: &str) -> ExportError {
    ExportError::new(ExportCode::Tag, format!("the tag of this {of} is not known")).at(json.offset())
}
