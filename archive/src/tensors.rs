//! Creation of tensors from their descriptions in a pickle.
//!
//! A tensor is `_rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks)`. Its storage is a persistent
//! id `('storage', type, key, device, numel)` that names a record. Everything is checked: the record must exist and
//! have exactly the number of bytes that type and count require, and sizes, strides and offset must stay within it.
//! Tensors with the same key share their storage, as they did when they were saved.
//!
//! By default storages are copied out of the file and their checksums are verified. With a [`Mapping`], a storage that
//! is uncompressed, aligned and in native byte order is shared with the file until the first write to it, and only the
//! first [`ArchiveLimits::mapped_checks`] bytes are verified.

use std::collections::BTreeMap;
use std::sync::Arc;

use flambeau_tensor::{DType, Device, Layout, Storage, Tensor, TensorError};

use crate::error::quoted;
use crate::map::Mapping;
use crate::pickle::{CallId, Global, Pickle, PickleId, StorageType, Value};
use crate::zip::{Method, Record, ZipReader};
use crate::{ArchiveCode, ArchiveError, ArchiveLimits};

/// Byte order of the storages of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first, the usual order.
    Little,
    /// Most significant byte first.
    Big,
}

/// Alignment in bytes that mapped storages need to be used in place; sufficient for every dtype.
const ALIGNMENT: usize = 16;

/// Creates the tensors of one pickle of an archive.
#[derive(Debug)]
pub struct TensorLoader<'a> {
    zip: &'a ZipReader<'a>,
    folder: &'a str,
    order: ByteOrder,
    mapping: Option<Arc<Mapping>>,
    limits: &'a ArchiveLimits,
    /// Bytes of the storages shared with the mapping so far.
    shared: u64,
    /// The storages created so far, by key and by the width in bytes of the swapped elements (1 if not swapped).
    made: BTreeMap<(String, usize), Storage>,
}

impl<'a> TensorLoader<'a> {
    /// Creates tensors of a pickle whose storages are the records `folder/KEY`. If `mapping` is given, which must be of
    /// the same file, storages are shared with it where possible.
    pub fn new(
        zip: &'a ZipReader<'a>,
        folder: &'a str,
        order: ByteOrder,
        mapping: Option<Arc<Mapping>>,
        limits: &'a ArchiveLimits,
    ) -> Self {
        TensorLoader { zip, folder, order, mapping, limits, shared: 0, made: BTreeMap::new() }
    }

    /// Creates the tensor that a call of [`Global::RebuildTensor`] or [`Global::RebuildParameter`] describes. Each call
    /// of this function creates a new tensor; the caller must keep one per [`CallId`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`TensorDescription::of`], `A0011` if the storage has no record, `A0030` if the record has
    /// another size, `A0031` if the tensor is not within its storage, and the errors of [`ZipReader::read`].
    pub fn rebuild(&mut self, pickle: &Pickle, id: CallId) -> Result<Tensor, ArchiveError> {
        let description = TensorDescription::of(pickle, id, self.limits)?;
        let at = pickle.offset(pickle.call(id).args);
        let storage =
            self.storage(&description).map_err(|e| if e.record().is_none() { e.at(at) } else { e })?;
        let geometry = |e: TensorError| ArchiveError::new(ArchiveCode::Geometry, e.to_string()).at(at);
        let TensorDescription { dtype, sizes, strides, offset, requires_grad, .. } = description;
        let layout = Layout::new(&sizes, &strides, offset).map_err(geometry)?;
        let tensor = Tensor::from_storage(storage, dtype, layout).map_err(geometry)?;
        tensor.set_requires_grad(requires_grad);
        Ok(tensor)
    }

    /// Returns the storage of all bytes of the record `folder/KEY`, in the byte order of the file. A second call with the
    /// same key returns the same storage.
    ///
    /// # Errors
    ///
    /// Returns `A0011` if there is no such record, and the errors of [`ZipReader::read`].
    pub fn whole(&mut self, key: &str) -> Result<Storage, ArchiveError> {
        self.cached(key, 1)
    }

    fn storage(&mut self, of: &TensorDescription) -> Result<Storage, ArchiveError> {
        let width = match self.order {
            ByteOrder::Little => 1,
            ByteOrder::Big if of.dtype.is_complex() => of.dtype.size() / 2,
            ByteOrder::Big => of.dtype.size(),
        };
        let made = self.cached(&of.key, width)?;
        if made.nbytes() != of.storage_bytes {
            let (found, wanted, key) = (made.nbytes(), of.storage_bytes, quoted(&of.key));
            let message = format!("the storage {key} should have {wanted} bytes and has {found}");
            return Err(ArchiveError::new(ArchiveCode::Storage, message));
        }
        Ok(made)
    }

    fn cached(&mut self, key: &str, width: usize) -> Result<Storage, ArchiveError> {
        let slot = (key.to_owned(), width);
        if let Some(made) = self.made.get(&slot) {
            return Ok(made.clone());
        }
        let made = self.make(key, width)?;
        self.made.insert(slot, made.clone());
        Ok(made)
    }

    fn make(&mut self, key: &str, width: usize) -> Result<Storage, ArchiveError> {
        let name = format!("{}/{key}", self.folder);
        let record = self.zip.find(&name).ok_or_else(|| {
            // The caller adds the location of the reference in the pickle.
            let message = format!("the archive has no record {} for a tensor's storage", quoted(&name));
            ArchiveError::new(ArchiveCode::Missing, message)
        })?;
        let failed =
            |e: TensorError| ArchiveError::new(ArchiveCode::Limit, e.to_string()).in_record(record.name());
        if let Some(foreign) = self.share(record, width) {
            self.shared = self.shared.saturating_add(record.size());
            if self.shared <= self.limits.mapped_checks {
                self.zip.read(record)?;
            }
            return Storage::foreign(foreign).map_err(failed);
        }
        let bytes = self.zip.read(record)?;
        if width > 1 {
            let mut swapped = bytes.into_owned();
            swapped.chunks_exact_mut(width).for_each(<[u8]>::reverse);
            return Storage::from_bytes(&swapped).map_err(failed);
        }
        Storage::from_bytes(&bytes).map_err(failed)
    }

    fn share(&self, record: &Record, width: usize) -> Option<flambeau_tensor::ForeignBytes> {
        let mapping = self.mapping.as_ref()?;
        let aligned = (self.zip.raw(record).as_ptr() as usize).is_multiple_of(ALIGNMENT);
        if record.method() != Method::Stored || !aligned || width > 1 {
            return None;
        }
        mapping.share(record.data_range())
    }
}

/// The description of a tensor in a pickle, not checked against the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorDescription {
    /// The dtype.
    pub dtype: DType,
    /// The sizes.
    pub sizes: Vec<i64>,
    /// The strides, in elements.
    pub strides: Vec<i64>,
    /// Offset of the first element in the storage, in elements.
    pub offset: i64,
    /// True if the tensor requires gradients.
    pub requires_grad: bool,
    /// The key of the storage.
    pub key: String,
    /// Size of the storage in bytes that the description requires.
    pub storage_bytes: usize,
    /// The device of the storage.
    pub device: String,
}

impl TensorDescription {
    /// Returns the description in a call of a function that rebuilds a tensor, such as [`Global::RebuildTensor`]. Attributes
    /// that a tensor has in Python are not part of it.
    ///
    /// # Errors
    ///
    /// Returns `A0027` if the call has another shape, `A0030` if the storage is malformed, `A0031` if a dtype cannot
    /// require gradients, `A0032` if the kind of tensor is not supported, and `A0090` if it has too many dimensions.
    pub fn of(pickle: &Pickle, id: CallId, limits: &ArchiveLimits) -> Result<Self, ArchiveError> {
        let call = pickle.call(id);
        match pickle.global(call.function) {
            Global::RebuildTensor => Self::of_args(pickle, call.args, limits),
            Global::RebuildParameter => {
                let args = pickle.as_tuple(call.args).unwrap_or_default();
                let &[tensor, trained, ..] = args else {
                    return Err(arity(pickle, call.args, "a parameter", "a tensor and a flag"));
                };
                let inner = match pickle.get(tensor) {
                    Value::Call(inner) => pickle.call(inner),
                    other => return Err(wrong(pickle, tensor, "a parameter wraps", "a tensor", other)),
                };
                if *pickle.global(inner.function) != Global::RebuildTensor {
                    return Err(wrong(pickle, tensor, "a parameter wraps", "a tensor", pickle.get(tensor)));
                }
                let requires_grad = pickle.get(trained) == Value::Bool(true);
                Ok(TensorDescription { requires_grad, ..Self::of_args(pickle, inner.args, limits)? })
            }
            Global::RebuildWithAttributes => {
                let args = pickle.as_tuple(call.args).unwrap_or_default();
                let &[function, class, inner, _attributes] = args else {
                    return Err(arity(pickle, call.args, "a tensor with attributes", "four arguments"));
                };
                let names = |id: PickleId, global: &Global| match pickle.get(id) {
                    Value::Global(named) => pickle.global(named) == global,
                    _ => false,
                };
                if !names(function, &Global::RebuildTensor) || !names(class, &Global::TensorClass) {
                    let message = "a tensor with attributes is of another class than those of PyTorch";
                    return Err(
                        ArchiveError::new(ArchiveCode::TensorKind, message).at(pickle.offset(function))
                    );
                }
                Self::of_args(pickle, inner, limits)
            }
            Global::RebuildOther(name) => {
                let message = format!("tensors made by {name} are not supported");
                Err(ArchiveError::new(ArchiveCode::TensorKind, message).at(pickle.offset(call.args)))
            }
            _ => {
                Err(ArchiveError::new(ArchiveCode::Operand, "this is not a tensor")
                    .at(pickle.offset(call.args)))
            }
        }
    }

    fn of_args(pickle: &Pickle, args: PickleId, limits: &ArchiveLimits) -> Result<Self, ArchiveError> {
        let items = pickle.as_tuple(args).unwrap_or_default();
        let &[storage, offset, sizes, strides, requires_grad, _hooks, ref metadata @ ..] = items else {
            return Err(arity(pickle, args, "a tensor", "six arguments"));
        };
        check_metadata(pickle, metadata)?;
        let mut description = Self::of_storage(pickle, storage)?;
        description.offset = pickle
            .as_int(offset)
            .ok_or_else(|| wrong(pickle, offset, "a storage offset is", "an int", pickle.get(offset)))?;
        description.sizes = dims(pickle, sizes, limits)?;
        description.strides = dims(pickle, strides, limits)?;
        let trainable = description.dtype.is_floating() || description.dtype.is_complex();
        description.requires_grad = match pickle.get(requires_grad) {
            Value::Bool(wanted) if trainable || !wanted => wanted,
            Value::Bool(_) => {
                let message = format!("a tensor of {} cannot require a gradient", description.dtype.name());
                return Err(ArchiveError::new(ArchiveCode::Geometry, message).at(pickle.offset(args)));
            }
            other => return Err(wrong(pickle, requires_grad, "requires_grad is", "a bool", other)),
        };
        Ok(description)
    }

    /// Returns the part of a description that is in the persistent id of the storage.
    fn of_storage(pickle: &Pickle, id: PickleId) -> Result<Self, ArchiveError> {
        let at = pickle.offset(id);
        let bad = |message: String| ArchiveError::new(ArchiveCode::Storage, message).at(at);
        let Value::Persistent(description) = pickle.get(id) else {
            return Err(wrong(pickle, id, "a tensor needs", "a persistent id", pickle.get(id)));
        };
        let items = pickle.as_tuple(description).unwrap_or_default();
        let &[tag, class, key, device, numel] = items else {
            return Err(arity(pickle, description, "a storage", "five parts"));
        };
        if pickle.as_text(tag) != Some("storage") {
            return Err(bad("a persistent id does not begin with 'storage'".into()));
        }
        let Value::Global(class) = pickle.get(class) else {
            return Err(wrong(pickle, class, "a storage's type is", "a global", pickle.get(class)));
        };
        let &Global::Storage(kind) = pickle.global(class) else {
            return Err(bad("a storage's type is not one of torch's storages".into()));
        };
        let dtype = dtype_of(kind).ok_or_else(|| {
            ArchiveError::new(ArchiveCode::TensorKind, format!("storages of {kind:?} are not supported"))
                .at(at)
        })?;
        let key = pickle.as_text(key).ok_or_else(|| bad("a storage's key is not a string".into()))?;
        let device =
            pickle.as_text(device).ok_or_else(|| bad("a storage's device is not a string".into()))?;
        if !Device::is_known(device) {
            return Err(bad(format!("a storage's device {device:?} is unknown")));
        }
        if device.starts_with("meta") {
            return Err(ArchiveError::new(
                ArchiveCode::TensorKind,
                "a storage of the device `meta` has no bytes",
            )
            .at(at));
        }
        let numel = pickle.as_int(numel).and_then(|n| usize::try_from(n).ok());
        let storage_bytes = numel.and_then(|n| n.checked_mul(dtype.size()));
        let storage_bytes =
            storage_bytes.ok_or_else(|| bad("a storage's number of elements is out of range".into()))?;
        Ok(TensorDescription {
            dtype,
            sizes: Vec::new(),
            strides: Vec::new(),
            offset: 0,
            requires_grad: false,
            key: key.to_owned(),
            storage_bytes,
            device: device.to_owned(),
        })
    }
}

fn dims(pickle: &Pickle, id: PickleId, limits: &ArchiveLimits) -> Result<Vec<i64>, ArchiveError> {
    let items = pickle
        .as_tuple(id)
        .ok_or_else(|| wrong(pickle, id, "sizes and strides are", "tuples of ints", pickle.get(id)))?;
    if items.len() > limits.tensor_rank {
        let message = format!("a tensor of {} dimensions exceeds the limit", items.len());
        return Err(ArchiveError::new(ArchiveCode::Limit, message).at(pickle.offset(id)));
    }
    let int = |&item: &PickleId| {
        let value = pickle.as_int(item);
        value.ok_or_else(|| wrong(pickle, item, "sizes and strides are", "ints", pickle.get(item)))
    };
    items.iter().map(int).collect()
}

/// Checks the seventh argument of a tensor: a dict of the conjugate and negative bits, which must not be set.
fn check_metadata(pickle: &Pickle, metadata: &[PickleId]) -> Result<(), ArchiveError> {
    let Some(&id) = metadata.first() else { return Ok(()) };
    let Value::Dict(dict) = pickle.get(id) else {
        return Err(wrong(pickle, id, "a tensor's metadata is", "a dict", pickle.get(id)));
    };
    let set = pickle.dict(dict).iter().find(|(_, value)| pickle.get(*value) != Value::Bool(false));
    match set {
        None => Ok(()),
        Some((key, _)) => {
            let name = pickle.as_text(*key).unwrap_or("?");
            let message = format!("a tensor with the metadata {} is not supported", quoted(name));
            Err(ArchiveError::new(ArchiveCode::TensorKind, message).at(pickle.offset(id)))
        }
    }
}

fn dtype_of(kind: StorageType) -> Option<DType> {
    Some(match kind {
        StorageType::Byte => DType::U8,
        StorageType::Char => DType::I8,
        StorageType::Short => DType::I16,
        StorageType::Int => DType::I32,
        StorageType::Long => DType::I64,
        StorageType::Half => DType::F16,
        StorageType::BFloat16 => DType::BF16,
        StorageType::Float => DType::F32,
        StorageType::Double => DType::F64,
        StorageType::Bool => DType::Bool,
        StorageType::ComplexHalf => DType::C32,
        StorageType::ComplexFloat => DType::C64,
        StorageType::ComplexDouble => DType::C128,
        StorageType::QInt8
        | StorageType::QUInt8
        | StorageType::QInt32
        | StorageType::QUInt4x2
        | StorageType::QUInt2x4
        | StorageType::Float8E4M3
        | StorageType::Float8E5M2
        | StorageType::UInt16
        | StorageType::UInt32
        | StorageType::UInt64
        | StorageType::Untyped => return None,
    })
}

fn arity(pickle: &Pickle, id: PickleId, what: &str, needs: &str) -> ArchiveError {
    ArchiveError::new(ArchiveCode::Operand, format!("{what} needs {needs}")).at(pickle.offset(id))
}

fn wrong(pickle: &Pickle, id: PickleId, what: &str, wanted: &str, got: Value) -> ArchiveError {
    ArchiveError::new(ArchiveCode::Operand, format!("{what} {wanted}, not {}", got.kind()))
        .at(pickle.offset(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pickle::read_pickle;
    use crate::zip::ZipWriter;

    /// Returns the tensors of the root object's state, by attribute.
    fn attributes(
        bytes: &[u8],
        order: ByteOrder,
        mapping: Option<Arc<Mapping>>,
    ) -> Result<BTreeMap<String, Tensor>, ArchiveError> {
        let limits = ArchiveLimits::default();
        let zip = ZipReader::open(bytes, &limits)?;
        let pickle = read_pickle(&zip.read(zip.require("data.pkl")?)?, &limits)?;
        let mut tensors = TensorLoader::new(&zip, "data", order, mapping, &limits);
        let mut made: BTreeMap<_, Tensor> = BTreeMap::new();
        let mut out = BTreeMap::new();
        let Value::Object(root) = pickle.get(pickle.root()) else { panic!("an object") };
        let Some(Value::Dict(state)) = pickle.object(root).state.map(|s| pickle.get(s)) else {
            panic!("a dict")
        };
        for &(key, value) in pickle.dict(state) {
            let Value::Call(call) = pickle.get(value) else { continue };
            let tensor = match made.entry(call) {
                std::collections::btree_map::Entry::Occupied(known) => known.get().clone(),
                std::collections::btree_map::Entry::Vacant(place) => {
                    place.insert(tensors.rebuild(&pickle, call)?).clone()
                }
            };
            out.insert(pickle.as_text(key).expect("a name").to_owned(), tensor);
        }
        Ok(out)
    }

    fn shared() -> &'static [u8] {
        include_bytes!("../tests/data/shared.pt")
    }

    /// Returns the archive with records modified by `change`.
    fn changed(change: impl Fn(&str, &mut Vec<u8>)) -> Vec<u8> {
        let limits = ArchiveLimits::default();
        let zip = ZipReader::open(shared(), &limits).expect("an archive");
        let mut out = ZipWriter::new(Vec::new(), "x");
        for record in zip.records() {
            let mut bytes = zip.read(record).expect("whole").into_owned();
            change(record.name(), &mut bytes);
            out.store(record.name(), &bytes).expect("the memory suffices");
        }
        out.finish().expect("the memory suffices")
    }

    #[test]
    fn views_share_their_storage() {
        let t = attributes(shared(), ByteOrder::Little, None).expect("tensors");
        assert_eq!(
            t["whole"].to_vec::<f32>().expect("floats"),
            (0..12).map(|v| v as f32).collect::<Vec<_>>()
        );
        assert_eq!(t["tail"].to_vec::<f32>().expect("floats"), [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
        assert_eq!((t["matrix"].sizes(), t["matrix"].strides()), (&[4, 3][..], &[1, 4][..]));
        assert_eq!(t["empty"].sizes(), [0, 3]);
        assert!(t["tail"].shares_storage(&t["whole"]) && t["matrix"].shares_storage(&t["whole"]));
        assert!(t["same"].ptr_eq(&t["whole"]) && t["tied"].ptr_eq(&t["w"]));
        assert!(t["w"].requires_grad() && !t["whole"].requires_grad());
    }

    #[test]
    fn the_other_byte_order_is_swapped() {
        let big = changed(|name, bytes| {
            if name.starts_with("data/") {
                bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
            }
        });
        let t = attributes(&big, ByteOrder::Big, None).expect("tensors");
        assert_eq!(t["tail"].to_vec::<f32>().expect("floats"), [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
        assert!(t["tail"].shares_storage(&t["whole"]));
    }

    #[test]
    fn mapped_tensors_equal_copied_ones() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/shared.pt");
        let mapping = Mapping::open(&path).expect("the file is there");
        let t = attributes(mapping.bytes(), ByteOrder::Little, Some(mapping.clone())).expect("tensors");
        assert!(mapping.users() > 1, "tensors keep the file mapped");
        assert_eq!(t["tail"].to_vec::<f32>().expect("floats"), [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
        drop(t);
        assert_eq!(mapping.users(), 1);
        assert_eq!(Mapping::open(&path.join("nope")).expect_err("no file").code(), ArchiveCode::Io);
    }

    #[test]
    fn checksums_of_mapped_storages_are_compared_up_to_a_bound() {
        let mut bytes = shared().to_vec();
        let zip = ZipReader::open(shared(), &ArchiveLimits::default()).expect("an archive");
        let at = zip.require("data/0").expect("a storage").data_range().start;
        bytes[at] ^= 1;
        let path = std::env::temp_dir().join(format!("flambeau-damaged-{}.pt", std::process::id()));
        std::fs::write(&path, &bytes).expect("the disk has space");
        let mapping = Mapping::open(&path).expect("the file is there");
        let load = |limits: &ArchiveLimits| {
            let zip = ZipReader::open(mapping.bytes(), limits)?;
            let mut tensors =
                TensorLoader::new(&zip, "data", ByteOrder::Little, Some(mapping.clone()), limits);
            tensors.make("0", 1).map(drop)
        };
        assert_eq!(load(&ArchiveLimits::default()).expect_err("checked").code(), ArchiveCode::Checksum);
        let unchecked = ArchiveLimits { mapped_checks: 0, ..ArchiveLimits::default() };
        load(&unchecked).expect("taken as it is");
        std::fs::remove_file(&path).expect("it was there");
    }

    #[test]
    fn wrong_tensor_descriptions_are_refused() {
        let pickle = |old: &'static [u8], new: &'static [u8]| {
            changed(move |name, bytes| {
                if name == "data.pkl" {
                    let at = bytes.windows(old.len()).position(|w| w == old).expect("it is there");
                    bytes.splice(at..at + old.len(), new.iter().copied());
                }
            })
        };
        let fails = |bytes: Vec<u8>, code: ArchiveCode| {
            let e = attributes(&bytes, ByteOrder::Little, None).expect_err("refused");
            assert_eq!(e.code(), code, "{e}");
        };
        fails(
            changed(|name, bytes| bytes.truncate(if name == "data/0" { 4 } else { usize::MAX })),
            ArchiveCode::Storage,
        );
        fails(pickle(b"storage", b"sturage"), ArchiveCode::Storage);
        fails(pickle(b"FloatStorage", b"DoubleStorage"), ArchiveCode::Storage);
        fails(pickle(b"FloatStorage", b"LongStorage"), ArchiveCode::Geometry);
        fails(pickle(b"FloatStorage", b"QInt8Storage"), ArchiveCode::TensorKind);
        fails(pickle(b"X\x03\x00\x00\x00cpu", b"X\x04\x00\x00\x00meta"), ArchiveCode::TensorKind);
        fails(pickle(b"X\x01\x00\x00\x000", b"X\x01\x00\x00\x009"), ArchiveCode::Missing);
        fails(pickle(b"K\x02t", b"Nt"), ArchiveCode::Storage);
        fails(pickle(b"K\x02t", b"K\xfft"), ArchiveCode::Storage);
        fails(pickle(b"_rebuild_tensor_v2", b"_rebuild_qtensor"), ArchiveCode::TensorKind);
    }
}
