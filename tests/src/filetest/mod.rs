//! The files of `tests/cases`: a program, commands in its head, and their expected output at its end.
//!
//! ```text
//! ; test opt cse,dce                  a command; a file may have several
//! ; test run
//! graph(%a : Tensor):                 the program, in a `.ir` file; TorchScript in a `.py` file (comments with `#`)
//!   …
//!   return (%c)                       ; error: substring of the error message for this line
//!
//! ; function m.helper                 a function that an `.ir` program calls by this name
//! graph(%x : Tensor):
//!   …
//!
//! ; run: main(tensor([1.0])) == tensor([2.0], f32)
//! ; run: main(a := tensor([1.0]), a, view(a, [2], [0], 0)) == …        arguments may share memory
//! ; run: main(3) raises "expected a Tensor"
//!
//! ; == opt cse,dce                    the expected output of the command
//! ; graph(%a : Tensor):
//! ;   …
//! ```
//!
//! `cargo xtask bless` writes the results of `run:` lines and the blocks at the end. Each command is a type in its own
//! file under `commands`. A file is also run under *treatments*, which must not change the results: the program is
//! printed and parsed again, every edit of a pass is verified, the reference evaluator is compared with the virtual
//! machine, and the default pipeline and equality saturation are applied. Results, arguments after the call and printed
//! text must agree bit by bit.

mod calls;
mod case;
pub mod command;
pub mod commands;
pub mod file;
pub mod runner;
mod subject;
mod treatment;

pub use case::read_case;
