//! Arena of the values of a pickle.
//!
//! A value has 16 bytes and refers to others by index. Sharing is preserved, self-containing lists need no special
//! case, and dropping a million nested tuples frees a few vectors. Memory is linear in the size of the pickle: each
//! opcode adds at most one value.

use std::collections::BTreeMap;

use super::Global;

/// An index into one of the arrays of a [`Pickle`]. The parameter numbers the arrays, so an id of one array cannot be used
/// for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id<const ARRAY: u8>(pub(super) u32);

impl<const ARRAY: u8> Id<ARRAY> {
    pub(super) fn new(index: usize) -> Self {
        Id(index as u32)
    }

    /// Returns the position in creation order. Ids of a pickle are dense from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Id of a value.
pub type PickleId = Id<0>;
/// Id of a list.
pub type ListId = Id<1>;
/// Id of a dict.
pub type DictId = Id<2>;
/// Id of an object.
pub type ObjectId = Id<3>;
/// Id of a recorded call.
pub type CallId = Id<4>;
/// Id of a global.
pub type GlobalId = Id<5>;

/// The range of a string, byte string or tuple in its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolRange {
    pub(super) start: u32,
    pub(super) len: u32,
}

impl PoolRange {
    fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }

    /// Returns the number of bytes or items.
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Returns true if the range is empty.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// A value of a pickle.
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
    Text(PoolRange),
    /// A byte string: [`Pickle::bytes`].
    Bytes(PoolRange),
    /// A tuple: [`Pickle::tuple`].
    Tuple(PoolRange),
    /// A list: [`Pickle::list`].
    List(ListId),
    /// A dict: [`Pickle::dict`].
    Dict(DictId),
    /// A global of the allow-list: [`Pickle::global`].
    Global(GlobalId),
    /// An instance of a class: [`Pickle::object`].
    Object(ObjectId),
    /// The result of a recorded call: [`Pickle::call`].
    Call(CallId),
    /// A persistent reference; the given value is its id.
    Persistent(PickleId),
}

impl Value {
    /// Returns the kind of value for messages.
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
pub struct PickledObject {
    /// The class, a [`Global::Class`].
    pub class: GlobalId,
    /// The argument of `BUILD`: normally a dict of the attributes.
    pub state: Option<PickleId>,
}

/// A call of an allowed global, recorded but not executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PickledCall {
    /// The callee.
    pub function: GlobalId,
    /// The arguments: a tuple, or the bare value if the callee is an enum class.
    pub args: PickleId,
}

/// A parsed pickle: an arena of values and the id of the root.
#[derive(Debug, Clone)]
pub struct Pickle {
    pub(super) root: PickleId,
    pub(super) values: Vec<Value>,
    /// For each value, the offset in the pickle of the opcode that created it.
    pub(super) offsets: Vec<u32>,
    pub(super) text: String,
    pub(super) blob: Vec<u8>,
    pub(super) items: Vec<PickleId>,
    pub(super) lists: Vec<Vec<PickleId>>,
    pub(super) dicts: Vec<Vec<(PickleId, PickleId)>>,
    pub(super) objects: Vec<PickledObject>,
    pub(super) calls: Vec<PickledCall>,
    pub(super) globals: Vec<Global>,
    /// The items added to ordered dicts, by the call that creates them.
    pub(super) ordered: BTreeMap<CallId, DictId>,
}

impl Pickle {
    pub(super) fn empty() -> Self {
        Pickle {
            root: PickleId::new(0),
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

    /// Returns the root value.
    pub fn root(&self) -> PickleId {
        self.root
    }

    /// Returns the value `id`.
    pub fn get(&self, id: PickleId) -> Value {
        self.values[id.index()]
    }

    /// Returns the number of values; ids are dense.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns true if there are no values, which is never the case after reading.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the offset in the pickle of the opcode that created `id`.
    pub fn offset(&self, id: PickleId) -> u64 {
        u64::from(self.offsets[id.index()])
    }

    /// Returns the string at the span of a [`Value::Text`].
    pub fn text(&self, span: PoolRange) -> &str {
        &self.text[span.range()]
    }

    /// Returns the bytes at the span of a [`Value::Bytes`].
    pub fn bytes(&self, span: PoolRange) -> &[u8] {
        &self.blob[span.range()]
    }

    /// Returns the items at the span of a [`Value::Tuple`].
    pub fn tuple(&self, span: PoolRange) -> &[PickleId] {
        &self.items[span.range()]
    }

    /// Returns the items of a list.
    pub fn list(&self, id: ListId) -> &[PickleId] {
        &self.lists[id.index()]
    }

    /// Returns the keys and values of a dict in insertion order. If a key occurs more than once, the last entry is
    /// valid.
    pub fn dict(&self, id: DictId) -> &[(PickleId, PickleId)] {
        &self.dicts[id.index()]
    }

    /// Returns the keys and values of `id` if it is a dict, plain or ordered.
    pub fn as_dict(&self, id: PickleId) -> Option<&[(PickleId, PickleId)]> {
        match self.get(id) {
            Value::Dict(dict) => Some(self.dict(dict)),
            Value::Call(call) if *self.global(self.call(call).function) == Global::OrderedDict => {
                Some(self.ordered.get(&call).map_or(&[], |&dict| self.dict(dict)))
            }
            _ => None,
        }
    }

    /// Returns a global.
    pub fn global(&self, id: GlobalId) -> &Global {
        &self.globals[id.index()]
    }

    /// Returns the class and state of an object.
    pub fn object(&self, id: ObjectId) -> PickledObject {
        self.objects[id.index()]
    }

    /// Returns all objects, in creation order.
    pub fn objects(&self) -> &[PickledObject] {
        &self.objects
    }

    /// Returns the callee and arguments of a call.
    pub fn call(&self, id: CallId) -> PickledCall {
        self.calls[id.index()]
    }

    /// Returns the ids of all calls, in creation order.
    pub fn calls(&self) -> impl Iterator<Item = CallId> + use<> {
        (0..self.calls.len()).map(CallId::new)
    }

    /// Returns all globals of the pickle, in order of first use.
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// Returns the string `id`, or `None` if the value is not a string.
    pub fn as_text(&self, id: PickleId) -> Option<&str> {
        match self.get(id) {
            Value::Text(span) => Some(self.text(span)),
            _ => None,
        }
    }

    /// Returns the items of tuple `id`, or `None` if the value is not a tuple.
    pub fn as_tuple(&self, id: PickleId) -> Option<&[PickleId]> {
        match self.get(id) {
            Value::Tuple(span) => Some(self.tuple(span)),
            _ => None,
        }
    }

    /// Returns the integer `id`, or `None` if the value is not an integer.
    pub fn as_int(&self, id: PickleId) -> Option<i64> {
        match self.get(id) {
            Value::Int(v) => Some(v),
            _ => None,
        }
    }
}
