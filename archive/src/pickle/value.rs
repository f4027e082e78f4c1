//! The values a pickle describes, in one arena.
//!
//! A value is 16 bytes and refers to others by number, so sharing is kept as written, a list that holds itself is no
//! special case, and dropping a million nested tuples frees a handful of vectors. Memory is linear in the bytes of the
//! pickle: each operation adds at most one value.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::Global;

/// A number of something in a [`Pickle`], with `T` saying of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id<T>(pub(super) u32, PhantomData<T>);

impl<T> Id<T> {
    pub(super) fn new(index: usize) -> Self {
        Id(index as u32, PhantomData)
    }

    /// Position in creation order: ids of one pickle are dense from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A tag and the id type it marks, for each sort of thing a [`Pickle`] has.
macro_rules! ids {
    ($($(#[$doc:meta])* $id:ident, $tag:ident;)*) => {$(
        #[doc = concat!("Marks ", stringify!($id), ".")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $tag {}

        $(#[$doc])*
        pub type $id = Id<$tag>;
    )*};
}

ids! {
    /// A value of a [`Pickle`].
    ValueId, ValueTag;
    /// A list of a [`Pickle`].
    ListId, ListTag;
    /// A dict of a [`Pickle`].
    DictId, DictTag;
    /// An object of a [`Pickle`].
    ObjectId, ObjectTag;
    /// A call in a [`Pickle`].
    CallId, CallTag;
    /// A global named by a [`Pickle`].
    GlobalId, GlobalTag;
}

/// Where a string, byte string or tuple lies in its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    pub(super) start: u32,
    pub(super) len: u32,
}

impl Span {
    fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }

    /// Number of bytes or items.
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether there is nothing.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// One value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// A boolean.
    Bool(bool),
    /// An integer of at most 64 bits.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string: [`Pickle::text`].
    Text(Span),
    /// A byte string: [`Pickle::bytes`].
    Bytes(Span),
    /// A tuple: [`Pickle::tuple`].
    Tuple(Span),
    /// A list: [`Pickle::list`].
    List(ListId),
    /// A dict: [`Pickle::dict`].
    Dict(DictId),
    /// A name of the allow-list: [`Pickle::global`].
    Global(GlobalId),
    /// An instance of a class: [`Pickle::object`].
    Object(ObjectId),
    /// The result of a call that was not made: [`Pickle::call`].
    Call(CallId),
    /// What the persistent id in the given value stands for.
    Persistent(ValueId),
}

impl Value {
    /// The kind of value, for messages.
    pub fn kind(self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Bool(_) => "a bool",
            Value::Int(_) => "an int",
            Value::Float(_) => "a float",
            Value::Text(_) => "a string",
            Value::Bytes(_) => "a byte string",
            Value::Tuple(_) => "a tuple",
            Value::List(_) => "a list",
            Value::Dict(_) => "a dict",
            Value::Global(_) => "a global",
            Value::Object(_) => "an object",
            Value::Call(_) => "the result of a call",
            Value::Persistent(_) => "a persistent id",
        }
    }
}

/// An instance of a class of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// Its class, a [`Global::Class`].
    pub class: GlobalId,
    /// What it was built from: normally a dict of its attributes.
    pub state: Option<ValueId>,
}

/// A call of an allowed global, recorded and not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// What is called.
    pub function: GlobalId,
    /// The arguments: a tuple, or the bare value for the class of an enum.
    pub args: ValueId,
}

/// A pickle, read: an arena of values and the id of the one it describes.
#[derive(Debug, Clone)]
pub struct Pickle {
    pub(super) root: ValueId,
    pub(super) values: Vec<Value>,
    /// Where in the pickle the operation stands that made each value.
    pub(super) offsets: Vec<u32>,
    pub(super) text: String,
    pub(super) blob: Vec<u8>,
    pub(super) items: Vec<ValueId>,
    pub(super) lists: Vec<Vec<ValueId>>,
    pub(super) dicts: Vec<Vec<(ValueId, ValueId)>>,
    pub(super) objects: Vec<Object>,
    pub(super) calls: Vec<Call>,
    pub(super) globals: Vec<Global>,
    /// What was put into the ordered dicts that calls make.
    pub(super) ordered: BTreeMap<CallId, DictId>,
}

impl Pickle {
    pub(super) fn empty() -> Self {
        Pickle {
            root: ValueId::new(0),
            values: Vec::new(),
            offsets: Vec::new(),
            text: String::new(),
            blob: Vec::new(),
            items: Vec::new(),
            lists: Vec::new(),
            dicts: Vec::new(),
            objects: Vec::new(),
            calls: Vec::new(),
            globals: Vec::new(),
            ordered: BTreeMap::new(),
        }
    }

    /// The value that the whole pickle describes.
    pub fn root(&self) -> ValueId {
        self.root
    }

    /// The value `id`.
    pub fn get(&self, id: ValueId) -> Value {
        self.values[id.index()]
    }

    /// Number of values; ids are dense.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no values, which no pickle that was read has.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Offset in the pickle of the operation that made `id`.
    pub fn offset(&self, id: ValueId) -> u64 {
        u64::from(self.offsets[id.index()])
    }

    /// The string at `span` of a [`Value::Text`].
    pub fn text(&self, span: Span) -> &str {
        &self.text[span.range()]
    }

    /// The bytes at `span` of a [`Value::Bytes`].
    pub fn bytes(&self, span: Span) -> &[u8] {
        &self.blob[span.range()]
    }

    /// The items at `span` of a [`Value::Tuple`].
    pub fn tuple(&self, span: Span) -> &[ValueId] {
        &self.items[span.range()]
    }

    /// The items of a list.
    pub fn list(&self, id: ListId) -> &[ValueId] {
        &self.lists[id.index()]
    }

    /// Keys and values of a dict in the order they were set. A key may occur again; the last one counts.
    pub fn dict(&self, id: DictId) -> &[(ValueId, ValueId)] {
        &self.dicts[id.index()]
    }

    /// Keys and values of `id` if it is a dict, plain or ordered.
    pub fn as_dict(&self, id: ValueId) -> Option<&[(ValueId, ValueId)]> {
        match self.get(id) {
            Value::Dict(dict) => Some(self.dict(dict)),
            Value::Call(call) if *self.global(self.call(call).function) == Global::OrderedDict => {
                Some(self.ordered.get(&call).map_or(&[], |&dict| self.dict(dict)))
            }
            _ => None,
        }
    }

    /// What a global is.
    pub fn global(&self, id: GlobalId) -> &Global {
        &self.globals[id.index()]
    }

    /// An object's class and state.
    pub fn object(&self, id: ObjectId) -> Object {
        self.objects[id.index()]
    }

    /// All objects, in the order they were made.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// A call's function and arguments.
    pub fn call(&self, id: CallId) -> Call {
        self.calls[id.index()]
    }

    /// All calls, in the order they were made.
    pub fn calls(&self) -> impl Iterator<Item = CallId> + use<> {
        (0..self.calls.len()).map(CallId::new)
    }

    /// All globals that the pickle names, in order of first mention.
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// The string that `id` is, if it is one.
    pub fn as_text(&self, id: ValueId) -> Option<&str> {
        match self.get(id) {
            Value::Text(span) => Some(self.text(span)),
            _ => None,
        }
    }

    /// The items of `id` if it is a tuple.
    pub fn as_tuple(&self, id: ValueId) -> Option<&[ValueId]> {
        match self.get(id) {
            Value::Tuple(span) => Some(self.tuple(span)),
            _ => None,
        }
    }

    /// The integer that `id` is, if it is one.
    pub fn as_int(&self, id: ValueId) -> Option<i64> {
        match self.get(id) {
            Value::Int(v) => Some(v),
            _ => None,
        }
    }
}
