//! The commands of test files. Each command has a file and a row in [`ALL`].

mod alias;
mod bytecode;
mod egraph;
mod frontend;
mod opt;
mod plan;
mod print;
mod roundtrip;
mod run;
mod shape;
mod source;
mod verify;

use super::command::Command;

/// All commands.
pub const ALL: &[&dyn Command] = &[
    &alias::Alias,
    &bytecode::Bytecode,
    &egraph::Egraph,
    &frontend::Frontend,
    &opt::Opt,
    &plan::Plan,
    &print::Print,
    &roundtrip::RoundTrip,
    &run::Run,
    &shape::Shape,
    &source::PrintedSource,
    &verify::Verify,
];

/// Returns the command with a name.
pub fn find(name: &str) -> Option<&'static dyn Command> {
    ALL.iter().copied().find(|c| c.name() == name)
}
