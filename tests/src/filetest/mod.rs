//! The files of `tests/cases`: a program, commands at its head, what they should print at its end.
//!
//! ```text
//! ; test opt cse,dce                  a command; several may stand in a file
//! ; test run
//! graph(%a : Tensor):                 the program, in a `.ir` file; TorchScript in a `.py` file (comments with `#`)
//!   …
//!   return (%c)                       ; error: substring of the message blamed on this line
//!
//! ; function m.helper                 the body of a function that an `.ir` program calls by this name
//! graph(%x : Tensor):
//!   …
//!
//! ; run: main(tensor([1.0])) == tensor([2.0], f32)
//! ; run: main(a := tensor([1.0]), a, view(a, [2], [0], 0)) == …        arguments may share memory
//! ; run: main(3) raises "expected a Tensor"
//!
//! ; == opt cse,dce                    what the command prints
//! ; graph(%a : Tensor):
//! ;   …
//! ```
//!
//! `cargo xtask bless` writes the results of `run:` lines and the blocks at the end. Each command is a type in its
//! own file under `commands`. A file is run under *treatments* as well, which must change nothing: the program printed
//! and read back, every edit of a pass verified, the reference evaluator beside the bytecode machine, the default pipeline
//! and equality saturation. Results, arguments afterwards and prints have to be the same bits.

mod calls;
mod case;
pub mod command;
pub mod commands;
pub mod file;
pub mod runner;
mod subject;
mod treatment;

pub use case::read_case;
