//! The pickle language, as data.
//!
//! A pickle is a program for a stack machine that can call anything in Python. Here it can call nothing: the machine
//! builds a [`Pickle`], an arena of plain values, and the few globals TorchScript's archives use are looked up in an
//! allow-list whose results are enum variants, not functions. What a "call" means is decided by whoever reads the
//! arena, for each variant by name.

mod allow;
mod machine;
mod opcodes;
mod value;
mod write;

pub use allow::{Global, StorageType};
pub use machine::read_pickle;
pub use opcodes::{Op, Support};
pub use value::{
    Call, CallId, CallTag, DictId, DictTag, GlobalId, GlobalTag, Id, ListId, ListTag, Object, ObjectId,
    ObjectTag, Pickle, Span, Value, ValueId, ValueTag,
};
pub use write::{MemoId, PickleWriter};
