//! The subcommand `new-op`: creates a file with a family of one operator, and adds the family to the list.
//!
//! An operator of an existing family does not need the command; it is one more entry in the family's file.

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
    create(&format!("ops/src/{}.rs", family.snake), &text(&name, &family))?;
    declare("ops/src/lib.rs", &format!("mod {};", family.snake))?;
    add_to_list("ops/src/lib.rs", "const FAMILIES:", &format!("{}::family", family.snake))
}

fn text(name: &Name, family: &Name) -> String {
    let (op, family) = (&name.snake, &family.snake);
    format!(
        r#"//! The family `{family}`: what its operators have in common, and their invariants.

use crate::compute::kernel;
use flambeau_analysis::{{Dtype, Shape}};
use flambeau_exec::Sample;
use flambeau_ir::{{Doc, OpDef}};

/// All operators of the family.
pub(crate) fn family() -> Vec<OpDef> {{
    vec![
        OpDef::new("flambeau::{op}(Tensor self) -> Tensor")
            .with(Doc("What it computes, in one sentence."))
            .with(Shape::same_as("self"))
            .with(Dtype::same_as("self"))
            .with(kernel(|cx| {{
                let copy = cx.tensor(0)?.clone_contiguous()?;
                cx.ret(copy);
                Ok(())
            }}))
            .with(Sample::tensors(1).floats()),
    ]
}}
"#
    )
}
