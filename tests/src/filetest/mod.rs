//! The files of `tests/cases`: a program, commands at its head, what they should print at its end.
//!
//! ```text
//! ; test opt cse,dce                  a command; several may stand in a file
//! ; test run
//! graph(%a : Tensor):                 the program, in a `.ir` file; TorchScript in a `.py` file (comments with `#`)
//!   …
//!   return (%c)                       ; error: substring of the message blamed on this line
//!
//! ; run: main(tensor([1.0])) == tensor([2.0], f32)
//! ; run: main(3) raises "expected a Tensor"
//!
//! ; == opt cse,dce                    what the command prints
//! ; graph(%a : Tensor):
//! ;   …
//! ```
//!
//! `cargo xtask bless` writes the results of `run:` lines and the blocks at the end. Each command is a type in its
//! own file under `commands`. A file is run under *treatments* as well, which must change nothing: the program
//! printed and read back, every edit of a pass verified, the reference evaluator beside the bytecode machine.

mod calls;
pub mod command;
pub mod commands;
pub mod file;
pub mod runner;
mod subject;
mod treatment;
