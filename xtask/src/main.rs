//! The developer's tool. `cargo xtask help` lists the subcommands.
//!
//! Each subcommand has a file and a row in [`COMMANDS`]. The tool does not depend on the other crates of the workspace,
//! so it builds even if they do not. It depends on no external crate but `anyhow`, so a fresh clone builds it quickly.

mod architecture;
mod bench;
mod binaries;
mod bless;
mod ci;
mod conform;
mod fuzz;
mod layers;
mod loom;
mod manifest;
mod map;
mod new_op;
mod new_pass;
mod process;
mod python;
mod report;
mod sanitize;
mod scan;
mod skeleton;
mod source;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

/// A subcommand: name, arguments, description in one line, and function.
struct Command {
    name: &'static str,
    args: &'static str,
    about: &'static str,
    run: fn(&[String]) -> anyhow::Result<()>,
}

impl Command {
    /// Returns the row of `help`.
    fn usage(&self) -> String {
        format!("{:32} {}", format!("{} {}", self.name, self.args), self.about)
    }
}

/// All subcommands, in the order of `help`.
const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        args: "[ARGS FOR CARGO TEST]",
        about: "everything a change must pass: format, tidy, layers, all tests",
        run: test::run,
    },
    Command {
        name: "ci",
        args: "",
        about: "test, and clippy and the documentation without a warning",
        run: ci::run,
    },
    Command {
        name: "bless",
        args: "[FILTER]",
        about: "run the file tests and update their expected output",
        run: bless::run,
    },
    Command { name: "tidy", args: "", about: "check rules that the compiler does not", run: tidy::run },
    Command {
        name: "layers",
        args: "",
        about: "compare the crates' dependencies with ARCHITECTURE.md",
        run: layers::run,
    },
    Command {
        name: "conform",
        args: "FOLDER... [OPTIONS]",
        about: "replay recorded behaviour of PyTorch, count the matches",
        run: conform::run,
    },
    Command {
        name: "bench",
        args: "[FILTER] [ARCHIVE]",
        about: "run the benchmarks, with limits and reference figures",
        run: bench::run,
    },
    Command {
        name: "fuzz",
        args: "[OPTIONS] | --kernels | --guided TARGET",
        about: "fuzz rewrites with generated programs, kernels, or parsers with libFuzzer",
        run: fuzz::run,
    },
    Command {
        name: "sanitize",
        args: "[--corpus FOLDER] [--guarded | --address]",
        about: "tests in guarded memory on every instruction set, and under AddressSanitizer",
        run: sanitize::run,
    },
    Command {
        name: "loom",
        args: "[ARGS FOR CARGO TEST]",
        about: "model-check the protocol of the thread pool",
        run: loom::run,
    },
    Command {
        name: "python",
        args: "[--release] [ARGS FOR PYTEST]",
        about: "build the Python package into a virtual environment and run its tests",
        run: python::run,
    },
    Command {
        name: "new-op",
        args: "NAME [--family FAMILY]",
        about: "create a file for a new operator and register it",
        run: new_op::run,
    },
    Command {
        name: "new-pass",
        args: "NAME",
        about: "create a file for a new pass and register it",
        run: new_pass::run,
    },
    Command {
        name: "map",
        args: "[--write]",
        about: "print the code map; --write updates the sizes in ARCHITECTURE.md",
        run: map::run,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("help", String::as_str);
    if matches!(name, "help" | "--help" | "-h") {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|c| c.name == name) else {
        eprintln!("error: there is no `cargo xtask {name}`\n\n{}", help());
        return ExitCode::from(2);
    };
    if matches!(args.get(1).map(String::as_str), Some("--help" | "-h")) {
        println!("{}", command.usage());
        return ExitCode::SUCCESS;
    }
    match (command.run)(&args[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn help() -> String {
    let mut text = String::from("cargo xtask COMMAND\n\n");
    for command in COMMANDS {
        text.push_str(&format!("  {}\n", command.usage()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_command() {
        let text = help();
        for c in COMMANDS {
            assert!(text.contains(c.name) && text.contains(c.about));
        }
    }
}
