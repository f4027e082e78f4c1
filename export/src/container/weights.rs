//! Tensors of an exported program: files of `torch.save` within the container, or raw storages with a table in JSON.
//!
//! Tensors of one storage share it in both forms: tied weights have one record, slices of a buffer have sizes, strides and an
//! offset of their own. Every statement of a table is checked: the record must exist and every element of the tensor must
//! be within it. With a mapped file, aligned storages are not copied.

use crate::codes::SchemaEnum;
use std::collections::BTreeMap;

use flambeau_archive::pickle::{CallId, PickleId, Value};
use flambeau_archive::{Archive, ByteOrder, TensorLoader};
use flambeau_tensor::{DType, Layout, Storage, Tensor, TensorError};

use super::Container;
use crate::error::quoted;
use crate::json::{JsonReader, Res};
use crate::model::{Constant, Map, SymInt, TensorMeta, Weight};
use crate::read::Reader;
use crate::{ExportCode, ExportError};

/// Reads the state dict in a file of `torch.save`.
pub(super) fn saved_weights(container: &Container<'_>, record: &str) -> Res<Map<Weight>> {
    let mut out = Map::default();
    for (name, tensor) in saved_tensors(container, record)? {
        out.insert(name, Weight { tensor, is_parameter: None });
    }
    Ok(out)
}

/// Reads the constants in a file of `torch.save`.
pub(super) fn saved_constants(container: &Container<'_>, record: &str) -> Res<Map<Constant>> {
    let tensors = saved_tensors(container, record)?;
    Ok(tensors.into_iter().map(|(name, tensor)| (name, Constant::Tensor(tensor))).collect())
}

/// Reads a dict of tensors, the root of the file of `torch.save` in a record.
fn saved_tensors(container: &Container<'_>, record: &str) -> Res<Map<Tensor>> {
    saved(container, record, |pickle, root, made| {
        let wrong = |id: PickleId, what: &str| {
            let message = format!("expected a dict of tensors by name, found {what}");
            ExportError::new(ExportCode::Weight, message).at(pickle.offset(id) as usize)
        };
        let items = pickle.as_dict(root).ok_or_else(|| wrong(root, pickle.get(root).kind()))?;
        let mut calls: BTreeMap<CallId, Tensor> = BTreeMap::new();
        let mut out = Map::default();
        for &(key, value) in items {
            let name = pickle.as_text(key).ok_or_else(|| wrong(key, "a key that is not a string"))?;
            let Value::Call(call) = pickle.get(value) else {
                return Err(wrong(value, pickle.get(value).kind()).in_field(name));
            };
            let tensor = match calls.get(&call) {
                Some(tensor) => tensor.clone(),
                None => made.rebuild(pickle, call).map_err(|e| ExportError::from(e).in_field(name))?,
            };
            calls.insert(call, tensor.clone());
            out.insert(name.to_owned(), tensor);
        }
        Ok(out)
    })
}

/// Reads one tensor, the root of the file of `torch.save` in a record.
fn saved_tensor(container: &Container<'_>, record: &str) -> Res<Tensor> {
    saved(container, record, |pickle, root, made| match pickle.get(root) {
        Value::Call(call) => Ok(made.rebuild(pickle, call)?),
        other => {
            let message = format!("expected a tensor, found {}", other.kind());
            Err(ExportError::new(ExportCode::Weight, message))
        }
    })
}

/// Reads the pickle of the file of `torch.save` in a record, and passes it to `build` with its root.
fn saved<T>(
    container: &Container<'_>,
    record: &str,
    build: impl FnOnce(&flambeau_archive::pickle::Pickle, PickleId, &mut TensorLoader<'_>) -> Res<T>,
) -> Res<T> {
    let within = |e: ExportError| match e.record() {
        Some(inner) if inner != record => {
            let inner = format!("{record}:{inner}");
            e.with_record(&inner)
        }
        _ => e.in_record(record),
    };
    let entry = container.zip.require(record)?;
    let bytes = container.zip.read(entry)?;
    let limits = &container.zip.inner_limits();
    let shared = match &bytes {
        std::borrow::Cow::Borrowed(_) => container.mapping.as_ref().and_then(|m| m.part(entry.data_range())),
        std::borrow::Cow::Owned(_) => None,
    };
    let bytes = shared.as_ref().map_or(&*bytes, |mapped| mapped.bytes());
    let archive = Archive::open(bytes, limits).map_err(|e| within(e.into()))?;
    let pickle = archive.pickle("data.pkl").map_err(|e| within(e.into()))?;
    let mut made = TensorLoader::new(archive.zip(), "data", archive.byte_order(), shared.clone(), limits);
    let built = build(&pickle, pickle.root(), &mut made).map_err(|e| within(e.in_record("data.pkl")));
    container.zip.charge(archive.zip());
    built
}

/// A row of a table of raw tensors.
struct Row {
    path_name: String,
    is_param: bool,
    use_pickle: bool,
    meta: Option<TensorMeta>,
}

/// Reads the weights that a table describes.
pub(super) fn raw_weights(container: &Container<'_>, table: &str) -> Res<Map<Weight>> {
    let mut raw = RawTensors::new(container, "data/weights");
    let mut out = Map::default();
    for (name, row) in rows(container, table)? {
        let tensor = raw.tensor(&row).map_err(|e| e.in_field(&name).in_field("config").in_record(table))?;
        out.insert(name, Weight { tensor, is_parameter: Some(row.is_param) });
    }
    Ok(out)
}

/// Reads the constants that a table describes. Objects are listed and not read.
pub(super) fn raw_constants(container: &Container<'_>, table: &str) -> Res<Map<Constant>> {
    let mut raw = RawTensors::new(container, "data/constants");
    let mut out = Map::default();
    for (name, row) in rows(container, table)? {
        let constant = match row.meta.is_none() && !row.path_name.starts_with("tensor_") {
            true => Constant::Object { what: row.path_name },
            false => Constant::Tensor(
                raw.tensor(&row).map_err(|e| e.in_field(&name).in_field("config").in_record(table))?,
            ),
        };
        out.insert(name, constant);
    }
    Ok(out)
}

/// Reads the rows of a table, in its order.
fn rows(container: &Container<'_>, table: &str) -> Res<Map<Row>> {
    let text = container.text(table, container.limits.json_bytes)?;
    let mut json = JsonReader::new(&text, container.limits.depth);
    // Sizes of weights are integers; an expression in a table is an error, so its arena is not kept.
    let mut reader = Reader::new();
    let mut out: Option<Map<Row>> = None;
    let read = json.object(|json, key| {
        match key {
            "config" => out = Some(reader.map(json, row)?),
            _ => drop(json.skip()?),
        }
        Ok(())
    });
    read.and_then(|()| json.end()).map_err(|e| e.in_record(table))?;
    out.ok_or_else(|| ExportError::new(ExportCode::Field, "the table has no `config`").in_record(table))
}

fn row<'a>(reader: &mut Reader<'a>, json: &mut JsonReader<'a>) -> Res<Row> {
    let mut row = Row { path_name: String::new(), is_param: false, use_pickle: false, meta: None };
    json.object(|json, key| {
        match key {
            "path_name" => row.path_name = json.string()?.into_owned(),
            "is_param" => row.is_param = json.bool()?,
            "use_pickle" => row.use_pickle = json.bool()?,
            "tensor_meta" => row.meta = json.optional(|json| reader.tensor_meta(json))?,
            _ => drop(json.skip()?),
        }
        Ok(())
    })?;
    match row.path_name.is_empty() {
        true => Err(ExportError::new(ExportCode::Field, "`path_name` is missing or empty")),
        false => Ok(row),
    }
}

/// Creates tensors from the raw storages of a folder.
struct RawTensors<'c, 'a> {
    container: &'c Container<'a>,
    folder: &'static str,
    storages: TensorLoader<'c>,
    /// Zeros in place of empty records, by record and size in bytes.
    zeros: BTreeMap<(String, usize), Storage>,
    zero_bytes_left: u64,
    /// Tensors of pickled records: rows that name one record have one tensor.
    pickled: BTreeMap<String, Tensor>,
}

impl<'c, 'a> RawTensors<'c, 'a> {
    fn new(container: &'c Container<'a>, folder: &'static str) -> Self {
        let mapping = container.mapping.clone();
        let limits = &container.archive_limits;
        let storages = TensorLoader::new(&container.zip, folder, ByteOrder::Little, mapping, limits);
        let zero_bytes_left = container.limits.zero_bytes;
        RawTensors {
            container,
            folder,
            storages,
            zeros: BTreeMap::new(),
            zero_bytes_left,
            pickled: BTreeMap::new(),
        }
    }

    fn tensor(&mut self, row: &Row) -> Res<Tensor> {
        if row.use_pickle {
            if let Some(known) = self.pickled.get(&row.path_name) {
                return Ok(known.clone());
            }
            let tensor = saved_tensor(self.container, &format!("{}/{}", self.folder, row.path_name))?;
            self.pickled.insert(row.path_name.clone(), tensor.clone());
            return Ok(tensor);
        }
        let missing = || ExportError::new(ExportCode::Field, "a raw tensor has no `tensor_meta`");
        let meta = row.meta.as_ref().ok_or_else(missing)?;
        let weight = |e: TensorError| ExportError::new(ExportCode::Weight, e.to_string());
        let dtype = supported(meta)?;
        let sizes = ints(&meta.sizes, "sizes", self.container)?;
        let strides = ints(&meta.strides, "strides", self.container)?;
        let offset = int(&meta.storage_offset).ok_or_else(|| symbolic("storage_offset"))?;
        let layout = Layout::new(&sizes, &strides, offset).map_err(weight)?;
        let storage = self.storage(row, dtype, &layout)?;
        let tensor = Tensor::from_storage(storage, dtype, layout).map_err(weight)?;
        let differentiable = dtype.is_floating() || dtype.is_complex();
        tensor.set_requires_grad(row.is_param && meta.requires_grad && differentiable);
        Ok(tensor)
    }

    /// Returns the storage of a row: that of its record, or zeros if the record is empty.
    fn storage(&mut self, row: &Row, dtype: DType, layout: &Layout) -> Res<Storage> {
        let storage = self.storages.whole(&row.path_name)?;
        if !storage.nbytes().is_multiple_of(dtype.size()) {
            let message = format!(
                "the record {} has {} bytes, which is not a whole number of elements of {}",
                quoted(&row.path_name),
                storage.nbytes(),
                dtype.name()
            );
            return Err(ExportError::new(ExportCode::Weight, message));
        }
        if storage.nbytes() > 0 || layout.numel() == 0 {
            return Ok(storage);
        }
        let bytes = layout.storage_end().checked_mul(dtype.size()).ok_or_else(|| {
            ExportError::new(ExportCode::Weight, "the size of a tensor does not fit into 64 bits")
        })?;
        if let Some(known) = self.zeros.get(&(row.path_name.clone(), bytes)) {
            return Ok(known.clone());
        }
        self.zero_bytes_left = self.zero_bytes_left.checked_sub(bytes as u64).ok_or_else(|| {
            let limit = self.container.limits.zero_bytes;
            ExportError::new(
                ExportCode::Limit,
                format!("weights with empty records, which are read as zeros, take more than {limit} bytes (limit `zero_bytes`)"),
            )
        })?;
        let made = Storage::zeroed(bytes).map_err(|e| ExportError::new(ExportCode::Limit, e.to_string()))?;
        self.zeros.insert((row.path_name.clone(), bytes), made.clone());
        Ok(made)
    }
}

/// Returns the dtype of a tensor that this crate supports.
fn supported(meta: &TensorMeta) -> Res<DType> {
    use crate::model::Layout as Kind;
    let unsupported = |what: &str| {
        let message = format!("tensors of {what} are not supported");
        Err(ExportError::new(ExportCode::Archive(flambeau_archive::ArchiveCode::TensorKind), message))
    };
    match meta.dtype.dtype() {
        _ if meta.layout != Kind::Strided => unsupported(&format!("layout {}", meta.layout.name())),
        Some(dtype) => Ok(dtype),
        None => unsupported(meta.dtype.name()),
    }
}

fn int(value: &SymInt) -> Option<i64> {
    match value {
        SymInt::Int(n) => Some(*n),
        SymInt::Expr { .. } => None,
    }
}

fn symbolic(field: &str) -> ExportError {
    ExportError::new(ExportCode::Weight, "a weight has a symbolic size, stride or offset").in_field(field)
}

fn ints(values: &[SymInt], field: &str, container: &Container<'_>) -> Res<Vec<i64>> {
    if values.len() > container.archive_limits.tensor_rank {
        let message = format!("a tensor of {} dimensions exceeds the limit", values.len());
        return Err(ExportError::new(ExportCode::Limit, message));
    }
    values.iter().map(|v| int(v).ok_or_else(|| symbolic(field))).collect()
}
