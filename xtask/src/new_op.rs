//! Starts an operator: its entry in a new file of a family, and the file's line in the list of families.

use crate::skeleton::{Name, add_to_list, create, declare};

/// `cargo xtask new-op NAME [--family FAMILY]`.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let mut family = None;
    let mut name = None;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--family" => family = rest.next(),
            _ => name = Some(arg),
        }
    }
    let Some(name) = name else { anyhow::bail!("usage: cargo xtask new-op NAME [--family FAMILY]") };
    let name = Name::parse(name)?;
    let family = Name::parse(family.map_or(name.snake.as_str(), String::as_str))?;
    create(&format!("ops/src/{}.rs", family.snake), &text(&name))?;
    declare("ops/src/lib.rs", &format!("mod {};", family.snake))?;
    add_to_list("ops/src/lib.rs", "FAMILIES", "]", &format!("    {}::ops,", family.snake))
}

fn text(name: &Name) -> String {
    format!("//! The operator `{}`.\n", name.snake)
}
