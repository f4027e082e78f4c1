//! The flambeau command.

fn main() {}
