//! Reader and writer of TorchScript archives, hardened against hostile input.
//!
//! A `.pt` file is a zip container of records: `data.pkl` describes the objects of the module as a pickle, `data/N` are
//! the bytes of its tensors, `code/**.py` its classes and methods as source, `constants.pkl` the constants without a
//! source form. The modules of this crate follow these layers from the bottom:
//!
//! * [`zip`] reads and checks the container;
//! * [`pickle`] parses pickles into plain data without calling anything;
//! * [`TensorLoader`] creates the tensors that the data describes, copied from the file or shared with a [`Mapping`] of it;
//! * [`Sources`] finds classes in the code and reads their declarations;
//! * [`load()`] combines these: objects with the types that their classes declare, and methods compiled by the front
//!   end;
//! * [`info()`] lists the content of an archive without loading it, and [`save()`] writes an archive;
//! * [`load_weights`] reads tensors without code: state dicts of `torch.save`, and safetensors.
//!
//! Invariants: no input causes a panic, recursion proportional to its nesting, or allocations out of proportion to its
//! size. All limits are in [`ArchiveLimits`]. Every error is an [`ArchiveError`] with code, fault and location.

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

pub use code::{ArchivedSource, ClassDecl, ClassKind, Field, Sources};
pub use error::{ArchiveCode, ArchiveError, Fault, quoted};
pub use hooks::call_with_hooks;
pub use import::LoadError;
pub use info::{ArchiveInfo, RecordInfo, TensorInfo, TensorRole, info};
pub use limits::ArchiveLimits;
pub use load::{LoadOptions, LoadedModule, UncompiledFunctions, load, load_file};
pub use map::Mapping;
pub use open::{Archive, VERSIONS};
pub use safetensors::save_safetensors;
pub use save::{CodeFile, NamedTensor, SaveModule, States, save, serialization_id};
pub use tensors::{ByteOrder, TensorDescription, TensorLoader};
pub use upgrade::version_of_operator;
pub use values::PendingState;
pub use weights::{
    Weights, has_code, has_code_file, load_weights, load_weights_file, replace_file, save_state_dict,
    save_tensors,
};
