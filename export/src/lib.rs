//! Exported programs: the `.pt2` files of `torch.export.save`.
//!
//! A `.pt2` file is a zip container with a graph of operators as JSON (functional ones after decomposition; training programs may write), the tensors that the graph refers to, and
//! the signature that relates both to a call. The modules of this crate follow these layers from the bottom:
//!
//! * [`json`] parses JSON without building a tree, with positions for errors;
//! * [`expr`] has the symbolic expressions of sizes and scalars, [`tree`] the structure of nested inputs and outputs;
//! * [`model`] has the content of a program as plain data, for every schema version;
//! * [`container`] finds the records of a file in each layout, and [`read`] builds the model from them;
//! * [`mod@print`] writes the texts that PyTorch prints for a program;
//! * [`verify`] checks the rules of exported programs;
//! * [`call`] checks the arguments of a call and builds its result;
//! * [`lower`] builds a graph of the IR from a model;
//! * [`build`] builds graphs of programs without a file; [`mod@write`] writes files;
//! * [`fx`] makes the FX graph that [`mod@print`] prints; [`info`] lists operators, inputs and outputs;
//! * [`codes`] has the enums of the schema, [`fuzz`] the checks that fuzzers call.
//!
//! This crate knows the format and no operator by name: it asks the registry of operators for schemas.
//!
//! Invariants: no input causes a panic, recursion proportional to its nesting, or allocations out of proportion to its
//! size; nothing in a file is executed. All limits are in `Limits`. Every error is an [`ExportError`] with code, fault and location.

pub mod build;
pub mod call;
pub mod codes;
pub mod container;
pub mod error;
pub mod expr;
pub mod fuzz;
pub mod fx;
pub mod info;
pub mod json;
pub mod lower;
pub mod model;
pub mod print;
pub mod read;
mod scan;
pub mod tree;
pub mod verify;
pub mod write;

pub use error::{ExportCode, ExportError};
pub use model::ProgramModel;
