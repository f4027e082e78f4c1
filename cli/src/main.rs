//! The `flambeau` command: run, print, verify, optimize, inspect, time and fuzz TorchScript programs.
//!
//! Without arguments it shows one program from source to result. The implementation is the library `flambeau_cli`; this
//! program uses it with the standard operators.

use std::process::ExitCode;

fn main() -> ExitCode {
    flambeau_cli::run(flambeau::Session::builder().standard())
}
