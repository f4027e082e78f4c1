//! The `flambeau` command: run, print, verify, optimize, ask, time and fuzz TorchScript programs.
//!
//! Without arguments it shows one program from source to result. All of it is in the library `flambeau_cli`; this program
//! adds nothing to the standard operators.

use std::process::ExitCode;

fn main() -> ExitCode {
    flambeau_cli::run(flambeau::Session::builder().standard())
}
