//! Pickles as data.
//!
//! A pickle is a program for a stack machine that can call any Python function. The machine of this module calls
//! nothing: it builds a [`Pickle`], an arena of plain values. The few globals that TorchScript archives use are in an
//! allow-list of enum variants, not functions. The code that reads the arena interprets recorded calls by matching on
//! these variants.

mod allow;
mod machine;
mod opcodes;
mod value;
mod write;

pub use allow::{Global, StorageType};
pub use machine::read_pickle;
pub use opcodes::{PickleOp, Support};
pub use value::{
    CallId, DictId, GlobalId, Id, ListId, ObjectId, Pickle, PickleId, PickledCall, PickledObject, PoolRange,
    Value,
};
pub use write::{MemoId, PickleWriter};
