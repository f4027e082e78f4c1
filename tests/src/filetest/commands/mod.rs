//! The commands of test files, one per file; a line here makes one known.

mod alias;
mod bytecode;
mod egraph;
mod frontend;
mod opt;
mod print;
mod roundtrip;
mod run;
mod shape;
mod source;
mod verify;

use super::command::Command;

/// Every command.
pub const ALL: &[&dyn Command] = &[
    &alias::Alias,
    &bytecode::Bytecode,
    &egraph::Egraph,
    &frontend::Frontend,
    &opt::Opt,
    &print::Print,
    &roundtrip::RoundTrip,
    &run::Run,
    &shape::Shape,
    &source::PrintedSource,
    &verify::Verify,
];

/// The command whose first word this is.
pub fn find(name: &str) -> Option<&'static dyn Command> {
    ALL.iter().copied().find(|c| c.name() == name)
}
