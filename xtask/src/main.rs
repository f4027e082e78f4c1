//! The developer's tool. `cargo xtask help` lists what it does.
//!
//! One file per subcommand, one row each in [`COMMANDS`]. It depends on nothing of the house, so that it still
//! builds when the house does not, and on no crate but `anyhow`, so that a fresh clone gets to its first test fast.

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
mod report;
mod sanitize;
mod scan;
mod skeleton;
mod source;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

/// A subcommand: its name, what it takes, one line about it, and the function that does it.
struct Command {
    name: &'static str,
    args: &'static str,
    about: &'static str,
    run: fn(&[String]) -> anyhow::Result<()>,
}

/// Every subcommand, in the order `help` prints them.
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
        about: "run the file tests and write what they got as what they expect",
        run: bless::run,
    },
    Command { name: "tidy", args: "", about: "the rules of the house no compiler checks", run: tidy::run },
    Command {
        name: "layers",
        args: "",
        about: "the arrows of ARCHITECTURE.md against the manifests",
        run: layers::run,
    },
    Command {
        name: "conform",
        args: "FOLDER... [OPTIONS]",
        about: "replay recorded behaviour of PyTorch, count what agrees",
        run: conform::run,
    },
    Command {
        name: "bench",
        args: "[FILTER] [ARCHIVE]",
        about: "the figures, each beside its limit or peer",
        run: bench::run,
    },
    Command {
        name: "fuzz",
        args: "[OPTIONS] | --kernels | --guided TARGET",
        about: "try the oracles on generated programs, kernels on borders, or readers guided by coverage",
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
        about: "every order of steps of the pool's protocol, by a model checker",
        run: loom::run,
    },
    Command {
        name: "new-op",
        args: "NAME [--family FAMILY]",
        about: "start an operator: its file and its line in the list",
        run: new_op::run,
    },
    Command {
        name: "new-pass",
        args: "NAME",
        about: "start a pass: its file and its line in the list",
        run: new_pass::run,
    },
    Command {
        name: "map",
        args: "[--write]",
        about: "print the code map; --write brings ARCHITECTURE.md's sizes up to date",
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
    for c in COMMANDS {
        let usage = format!("{} {}", c.name, c.args);
        text.push_str(&format!("  {usage:32} {}\n", c.about));
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
