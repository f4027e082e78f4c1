//! Starts a pass: its file, and its line in the list of passes.

use crate::skeleton::{Name, add_to_list, create, declare};

/// `cargo xtask new-pass NAME`.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let [name] = args else { anyhow::bail!("usage: cargo xtask new-pass NAME") };
    let name = Name::parse(name)?;
    create(&format!("rewrite/src/passes/{}.rs", name.snake), &text(&name))?;
    declare("rewrite/src/passes/mod.rs", &format!("mod {};", name.snake))?;
    add_to_list("rewrite/src/passes/mod.rs", "PASSES", "]", &format!("    {}::{},", name.snake, name.camel))
}

fn text(name: &Name) -> String {
    format!("//! The pass `{}`.\n", name.kebab)
}
