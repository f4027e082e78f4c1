//! TorchScript archives in and out; hostile input is normal input.
//!
//! A `.pt` file is a zip container of records: `data.pkl` describes the module's objects in the pickle language,
//! `data/N` are the bytes of its tensors, `code/**.py` its classes and methods as source, `constants.pkl` the constants
//! that source cannot spell. The modules here follow these layers from the bottom:
//!
//! * [`zip`] reads and checks the container;
//! * [`pickle`] turns pickles into plain data without calling anything;
//! * [`Tensors`] makes the tensors such data describes, copied from the file or shared with a [`Mapping`] of it;
//! * [`Sources`] finds classes in the code and reads what they declare;
//! * [`load()`] puts these together: objects with the types their classes declare, and methods compiled by the front end;
//! * [`info()`] lists what is in an archive without loading it, and [`save()`] writes one;
//! * [`load_weights`] reads tensors without code: state dicts of `torch.save`, and safetensors.
//!
//! Invariants: no input panics, recurses by its depth, or allocates more than its own size justifies; all bounds are in
//! [`Limits`]; every error is an [`ArchiveError`] with code, fault and place.

mod annotation;
mod code;
mod error;
pub mod fuzz;
mod hooks;
mod import;
mod info;
mod limits;
mod link;
mod literal;
mod load;
mod map;
mod numbers;
mod open;
mod origin;
mod paths;
pub mod pickle;
mod resolve;
mod safetensors;
mod save;
mod tensors;
mod upgrade;
mod values;
mod weights;
pub mod zip;

pub use code::{ClassDecl, ClassKind, Field, SourceFile, Sources};
pub use error::{ArchiveError, Code, Fault};
pub use hooks::call_with_hooks;
pub use import::LoadError;
pub use info::{ArchiveInfo, RecordInfo, Role, TensorInfo, info};
pub use limits::Limits;
pub use load::{LoadOptions, LoadedModule, Missing, load, load_file};
pub use map::Mapping;
pub use open::{Archive, VERSIONS};
pub use safetensors::save_safetensors;
pub use save::{CodeFile, SaveModule, States, save};
pub use tensors::{ByteOrder, TensorDescription, Tensors};
pub use values::PendingState;
pub use weights::{
    Weights, has_code, has_code_file, load_weights, load_weights_file, replace_file, save_state_dict,
};
