//! Writes modules: objects as pickles, storages as records, and the given code.
//!
//! PyTorch can load the output. The output is deterministic: records are in PyTorch's order, storages are numbered in
//! order of occurrence, and memo entries depend only on the values.
//!
//! Values may nest deeply and share parts: the traversal uses an explicit stack, and shared values are written once.

use std::collections::BTreeMap;
use std::io::Write;

use flambeau_ir::module::CompilationUnit;
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::Object;
use flambeau_ir::{IValue, SourceRange, Symbol, Type};
use flambeau_tensor::{DType, Layout, Tensor, access};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use crate::origin::write::debug_ranges;
use crate::pickle::{MemoId, PickleWriter};
use crate::zip::ZipWriter;
use crate::{ArchiveCode, ArchiveError};

/// A module to write.
pub struct SaveModule<'a> {
    /// The name of the archive: the top folder of its records.
    pub name: &'a str,
    /// The module.
    pub root: &'a Object,
    /// The classes and functions of the module.
    pub unit: &'a CompilationUnit,
    /// The values of `CONSTANTS.cN` in the code.
    pub constants: &'a [IValue],
    /// The source files, in order.
    pub code: &'a [CodeFile],
    /// The format version that the code needs: 3 to 10.
    pub version: u64,
    /// The extra files, by name.
    pub extra_files: &'a [(String, Vec<u8>)],
    /// For objects whose classes define `__setstate__`, the results of `__getstate__`, by [`Object::id`].
    pub states: &'a States,
}

/// A source file of an archive.
#[derive(Clone, Debug, Default)]
pub struct CodeFile {
    /// The record name, such as `code/__torch__/net.py`.
    pub record: String,
    /// The text.
    pub text: String,
    /// Source map: ascending byte offsets, each with the original source range of the text from there on. If it is
    /// empty, no debug record is written.
    pub origins: Vec<(usize, Option<SourceRange>)>,
}

/// A tensor of a state dict to be written.
#[derive(Clone, Copy, Debug)]
pub struct NamedTensor<'a> {
    /// The name.
    pub name: &'a str,
    /// The tensor. Tensors of one storage share it in the file.
    pub tensor: &'a Tensor,
    /// Whether the tensor is written as a `torch.nn.Parameter`.
    pub is_parameter: bool,
}

/// States of objects, by [`Object::id`].
pub type States = HashMap<usize, IValue, FxBuildHasher>;

/// Context for pickling values.
pub(crate) struct Pickled<'a> {
    unit: &'a CompilationUnit,
    states: Option<&'a States>,
    /// True if containers are written with type tags.
    typed: bool,
}

impl<'a> Pickled<'a> {
    /// Creates the context for plain data: containers without type tags, which any reader of pickles understands.
    pub(crate) fn plain(unit: &'a CompilationUnit) -> Self {
        Pickled { unit, states: None, typed: false }
    }

    fn state(&self, object: &Object) -> Option<&'a IValue> {
        self.states?.get(&object.id())
    }
}

/// Writes an archive to `out`, from its current position.
///
/// # Errors
///
/// Returns `A0044` if a value cannot be stored in an archive, and `A0091` if `out` fails.
pub fn save<W: Write>(module: &SaveModule<'_>, out: W) -> Result<W, ArchiveError> {
    let mut zip = ZipWriter::new(out, module.name);
    for (name, bytes) in module.extra_files {
        zip.store(&format!("extra/{name}"), bytes)?;
    }
    let data = IValue::Object(module.root.clone());
    let pickled = Pickled { unit: module.unit, states: Some(module.states), typed: true };
    write_values(&mut zip, "data", &pickled, &data)?;
    for file in module.code {
        zip.deflate(&file.record, file.text.as_bytes())?;
        if !file.origins.is_empty() {
            zip.deflate(&format!("{}.debug_pkl", file.record), &debug_ranges(&file.origins))?;
        }
    }
    let constants = IValue::tuple(module.constants.to_vec());
    write_values(&mut zip, "constants", &pickled, &constants)?;
    let version = format!("{}\n", module.version);
    zip.store(if module.version < 6 { "version" } else { ".data/version" }, version.as_bytes())?;
    zip.store("byteorder", b"little")?;
    let id = serialization_id(&zip);
    zip.store(".data/serialization_id", id.as_bytes())?;
    zip.finish()
}

/// Returns forty digits that identify an archive: twenty from a hash of the record names, twenty from one of their
/// checksums.
pub fn serialization_id<W: Write>(zip: &ZipWriter<W>) -> String {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let start = (0xcbf2_9ce4_8422_2325_u64, 0xcbf2_9ce4_8422_2325_u64);
    let (names, sums) = zip.written().fold(start, |(names, sums), (name, crc)| {
        (name.bytes().fold(names, mix), crc.to_le_bytes().into_iter().fold(sums, mix))
    });
    format!("{names:020}{sums:020}")
}

/// Writes the storages `name/0`, `name/1` and so on, then the pickle `name.pkl`.
pub(crate) fn write_values<W: Write>(
    zip: &mut ZipWriter<W>,
    name: &str,
    pickled: &Pickled<'_>,
    value: &IValue,
) -> Result<(), ArchiveError> {
    let mut writer = ValueWriter {
        out: PickleWriter::new(),
        pickled,
        shared: shared(pickled, value),
        memo: HashMap::default(),
        storages: HashMap::default(),
        seen_as: HashMap::default(),
        devices: BTreeMap::new(),
        tensors: Vec::new(),
    };
    writer.write(value)?;
    let ValueWriter { out, tensors, .. } = writer;
    for (n, tensor) in tensors.iter().enumerate() {
        with_storage(tensor, |bytes| zip.store(&format!("{name}/{n}"), bytes))??;
    }
    zip.store(&format!("{name}.pkl"), &out.finish())
}

/// Writes the storages `name/0`, `name/1` and so on, then the pickle `name.pkl` of a dict of named tensors.
pub(crate) fn write_tensors<W: Write>(
    zip: &mut ZipWriter<W>,
    name: &str,
    entries: &[NamedTensor<'_>],
) -> Result<(), ArchiveError> {
    let unit = CompilationUnit::new();
    let pickled = Pickled::plain(&unit);
    let mut writer = ValueWriter {
        out: PickleWriter::new(),
        pickled: &pickled,
        shared: HashSet::default(),
        memo: HashMap::default(),
        storages: HashMap::default(),
        seen_as: HashMap::default(),
        devices: BTreeMap::new(),
        tensors: Vec::new(),
    };
    writer.out.empty_dict();
    writer.out.remember();
    writer.out.mark();
    for entry in entries {
        writer.out.text(entry.name);
        if entry.is_parameter {
            writer.out.global("torch._utils", "_rebuild_parameter");
            writer.out.mark();
        }
        writer.tensor(entry.tensor)?;
        if entry.is_parameter {
            writer.out.bool(entry.tensor.requires_grad());
            writer.out.global("collections", "OrderedDict");
            writer.out.short_tuple(0);
            writer.out.reduce();
            writer.out.tuple();
            writer.out.reduce();
        }
    }
    writer.out.set_items();
    let ValueWriter { out, tensors, .. } = writer;
    for (n, tensor) in tensors.iter().enumerate() {
        with_storage(tensor, |bytes| zip.store(&format!("{name}/{n}"), bytes))??;
    }
    zip.store(&format!("{name}.pkl"), &out.finish())
}

/// Returns the identities of the values that occur more than once.
fn shared(pickled: &Pickled<'_>, root: &IValue) -> HashSet<usize, FxBuildHasher> {
    let mut seen = HashSet::with_hasher(FxBuildHasher);
    let mut twice = HashSet::with_hasher(FxBuildHasher);
    let mut stack = vec![root.clone()];
    while let Some(value) = stack.pop() {
        let Some(identity) = value.identity() else { continue };
        if !seen.insert(identity) {
            twice.insert(identity);
            continue;
        }
        parts(pickled, &value, &mut stack);
    }
    twice
}

fn parts(pickled: &Pickled<'_>, value: &IValue, out: &mut Vec<IValue>) {
    match value {
        IValue::Object(o) if pickled.state(o).is_some() => out.extend(pickled.state(o).cloned()),
        IValue::Tuple(t) => out.extend(t.items().iter().cloned()),
        IValue::List(l) if !is_flat(l.elem_type()) => out.extend(l.to_vec()),
        IValue::Dict(d) => out.extend(d.to_vec().into_iter().flat_map(|(k, v)| [k, v])),
        IValue::Object(o) => out.extend(o.read().iter().cloned()),
        _ => {}
    }
}

/// Returns true if the elements have no identity.
fn is_flat(elem: Type) -> bool {
    matches!(elem.kind(), TypeKind::Int | TypeKind::Float | TypeKind::Bool)
}

/// A pending step of the writer.
enum Step {
    Value(IValue),
    Name(Symbol),
    Tuple,
    ShortTuple(usize),
    Appends,
    SetItems,
    Build,
    Reduce,
    /// The end of a typed list or dict.
    Tag(Type),
    Remember(usize),
}

struct ValueWriter<'a> {
    out: PickleWriter,
    pickled: &'a Pickled<'a>,
    shared: HashSet<usize, FxBuildHasher>,
    memo: HashMap<usize, MemoId, FxBuildHasher>,
    /// Indices in `tensors` of the storages written, by storage address.
    storages: HashMap<usize, usize, FxBuildHasher>,
    /// Memo entries of the persistent ids, by storage index and dtype: one for each dtype that tensors view a storage
    /// as.
    seen_as: HashMap<(usize, DType), MemoId, FxBuildHasher>,
    devices: BTreeMap<String, MemoId>,
    /// One tensor per storage, in order.
    tensors: Vec<Tensor>,
}

impl ValueWriter<'_> {
    fn write(&mut self, value: &IValue) -> Result<(), ArchiveError> {
        let mut stack = vec![Step::Value(value.clone())];
        while let Some(step) = stack.pop() {
            match step {
                Step::Value(value) => self.value(value, &mut stack)?,
                Step::Name(name) => self.out.text(name.as_str()),
                Step::Tuple => self.out.tuple(),
                Step::ShortTuple(count) => self.out.short_tuple(count),
                Step::Appends => self.out.appends(),
                Step::SetItems => self.out.set_items(),
                Step::Build => self.out.build(),
                Step::Reduce => self.out.reduce(),
                Step::Tag(ty) => {
                    self.out.text(&ty.annotation_str());
                    self.out.short_tuple(2);
                    self.out.reduce();
                }
                Step::Remember(identity) => {
                    let id = self.out.remember();
                    self.memo.insert(identity, id);
                }
            }
        }
        Ok(())
    }

    fn value(&mut self, value: IValue, stack: &mut Vec<Step>) -> Result<(), ArchiveError> {
        if let Some(&id) = value.identity().and_then(|identity| self.memo.get(&identity)) {
            self.out.recall(id);
            return Ok(());
        }
        // Tensors and objects are always memoized, as in PyTorch.
        let always = matches!(value, IValue::Tensor(_) | IValue::Object(_));
        let by_value = matches!(value, IValue::Str(_) | IValue::Complex(_) | IValue::Enum(_));
        match value.identity() {
            Some(identity) if !by_value && (always || self.shared.contains(&identity)) => {
                stack.push(Step::Remember(identity));
            }
            _ => {}
        }
        match value {
            IValue::None => self.out.none(),
            IValue::Bool(b) => self.out.bool(b),
            IValue::Int(i) => self.out.int(i),
            IValue::Float(f) => self.out.float(f),
            IValue::Str(s) => {
                let text = s.to_str().ok_or_else(|| unsupported("a string that is not UTF-8"))?;
                self.out.text(text);
            }
            IValue::Complex(z) => {
                self.out.global("builtins", "complex");
                self.out.float(z.re);
                self.out.float(z.im);
                self.out.short_tuple(2);
                self.out.reduce();
            }
            IValue::Device(device) => {
                let text = device.to_string();
                if let Some(&id) = self.devices.get(&text) {
                    self.out.recall(id);
                    return Ok(());
                }
                self.out.global("torch", "device");
                self.out.text(&text);
                self.out.short_tuple(1);
                self.out.reduce();
                self.devices.insert(text, self.out.remember());
            }
            IValue::Tensor(tensor) => self.tensor(&tensor)?,
            IValue::Tuple(tuple) => {
                let items = tuple.items();
                match items.len() {
                    0..=3 => stack.push(Step::ShortTuple(items.len())),
                    _ => {
                        self.out.mark();
                        stack.push(Step::Tuple);
                    }
                }
                stack.extend(items.iter().rev().cloned().map(Step::Value));
            }
            IValue::List(list) => self.list(list.elem_type(), list.to_vec(), stack),
            IValue::Dict(dict) => {
                if self.pickled.typed {
                    self.out.global("torch.jit._pickle", "restore_type_tag");
                    stack.push(Step::Tag(Type::dict(dict.key_type(), dict.value_type())));
                }
                self.out.empty_dict();
                let items = dict.to_vec();
                if !items.is_empty() {
                    self.out.mark();
                    stack.push(Step::SetItems);
                    stack.extend(items.into_iter().rev().flat_map(|(k, v)| [Step::Value(v), Step::Value(k)]));
                }
            }
            IValue::Object(object) => self.object(&object, stack)?,
            IValue::Enum(member) => {
                self.class(member.ty())?;
                stack.push(Step::Reduce);
                stack.push(Step::Value(member.value().clone()));
            }
            other => return Err(unsupported(other.tag())),
        }
        Ok(())
    }

    fn list(&mut self, elem: Type, items: Vec<IValue>, stack: &mut Vec<Step>) {
        let build = match elem.kind() {
            TypeKind::Int => Some("build_intlist"),
            TypeKind::Float => Some("build_doublelist"),
            TypeKind::Bool => Some("build_boollist"),
            TypeKind::Tensor(_) => Some("build_tensorlist"),
            _ => None,
        };
        self.out.global("torch.jit._pickle", build.unwrap_or("restore_type_tag"));
        match build {
            Some(_) => {
                self.out.mark();
                stack.push(Step::Reduce);
                stack.push(Step::Tuple);
            }
            None => stack.push(Step::Tag(Type::list(elem))),
        }
        self.out.empty_list();
        self.out.mark();
        stack.push(Step::Appends);
        stack.extend(items.into_iter().rev().map(Step::Value));
    }

    fn object(&mut self, object: &Object, stack: &mut Vec<Step>) -> Result<(), ArchiveError> {
        let class = self.pickled.unit.class(object.class());
        let class = class.ok_or_else(|| unsupported("an object of a class that the unit does not have"))?;
        self.class(object.class())?;
        self.out.new_object();
        if let Some(state) = self.pickled.state(object) {
            stack.push(Step::Build);
            stack.push(Step::Value(state.clone()));
            return Ok(());
        }
        self.out.empty_dict();
        self.out.mark();
        stack.push(Step::Build);
        stack.push(Step::SetItems);
        let slots = object.read();
        for (slot, attribute) in class.attributes.iter().enumerate().rev() {
            let value = slots.get(slot).cloned().unwrap_or(IValue::Uninitialized);
            if matches!(value, IValue::Uninitialized) {
                return Err(unsupported("an attribute that was never set"));
            }
            stack.push(Step::Value(value));
            stack.push(Step::Name(attribute.name));
        }
        Ok(())
    }

    fn class(&mut self, ty: Type) -> Result<(), ArchiveError> {
        match ty.kind() {
            TypeKind::Class(nominal) | TypeKind::Enum(nominal, _) => {
                self.out.class(nominal.name.as_str());
                Ok(())
            }
            _ => Err(unsupported("an object without a class")),
        }
    }

    fn tensor(&mut self, tensor: &Tensor) -> Result<(), ArchiveError> {
        let out = &mut self.out;
        out.global("torch._utils", "_rebuild_tensor_v2");
        out.mark();
        let (storage, dtype) = (tensor.storage(), tensor.dtype());
        let place = *self.storages.entry(storage.address()).or_insert_with(|| {
            self.tensors.push(tensor.clone());
            self.tensors.len() - 1
        });
        match self.seen_as.get(&(place, dtype)) {
            Some(&id) => out.recall(id),
            None => {
                let whole = |dtype: DType| storage.nbytes().is_multiple_of(dtype.size());
                let first = self.tensors[place].dtype();
                if first != dtype && !(whole(first) && whole(dtype)) {
                    return Err(unsupported(
                        "a storage of tensors of several dtypes whose size is not a multiple of each element size",
                    ));
                }
                out.mark();
                out.text("storage");
                out.global("torch", storage_class(dtype));
                out.text(&place.to_string());
                out.text("cpu");
                out.int((storage.nbytes() / dtype.size()) as i64);
                out.tuple();
                out.persistent();
                self.seen_as.insert((place, dtype), out.remember());
            }
        }
        out.int(tensor.offset());
        for dims in [tensor.sizes(), tensor.strides()] {
            out.mark();
            dims.iter().for_each(|&d| out.int(d));
            out.tuple();
        }
        out.bool(tensor.requires_grad());
        out.global("collections", "OrderedDict");
        out.short_tuple(0);
        out.reduce();
        out.tuple();
        out.reduce();
        Ok(())
    }
}

/// Calls `f` with the bytes of a tensor's storage, up to a whole number of elements, without copying.
fn with_storage<R>(tensor: &Tensor, f: impl FnOnce(&[u8]) -> R) -> Result<R, ArchiveError> {
    let failed = |e: flambeau_tensor::TensorError| ArchiveError::new(ArchiveCode::Limit, e.to_string());
    let size = tensor.dtype().size();
    let whole = (tensor.storage().nbytes() / size * size) as i64;
    let layout = Layout::contiguous(&[whole]).map_err(failed)?;
    let bytes = Tensor::from_storage(tensor.storage().clone(), DType::U8, layout).map_err(failed)?;
    access::read::<u8, _>(&bytes, |bytes| f(bytes.data())).map_err(failed)
}

fn storage_class(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "ByteStorage",
        DType::I8 => "CharStorage",
        DType::I16 => "ShortStorage",
        DType::I32 => "IntStorage",
        DType::I64 => "LongStorage",
        DType::F16 => "HalfStorage",
        DType::BF16 => "BFloat16Storage",
        DType::F32 => "FloatStorage",
        DType::F64 => "DoubleStorage",
        DType::Bool => "BoolStorage",
        DType::C32 => "ComplexHalfStorage",
        DType::C64 => "ComplexFloatStorage",
        DType::C128 => "ComplexDoubleStorage",
    }
}

fn unsupported(what: &str) -> ArchiveError {
    ArchiveError::new(ArchiveCode::Value, format!("an archive cannot hold {what}"))
}
