//! The subcommand `new-pass`: creates a file with a pass, and adds the pass to the list.

use crate::skeleton::{Name, add_to_list, create, declare};

/// `cargo xtask new-pass NAME`.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let [name] = args else { anyhow::bail!("usage: cargo xtask new-pass NAME") };
    let name = Name::parse(name)?;
    create(&format!("rewrite/src/passes/{}.rs", name.snake), &text(&name))?;
    declare("rewrite/src/passes/mod.rs", &format!("pub mod {};", name.snake))?;
    let entry = format!("PassEntry::of::<{}::{}>", name.snake, name.camel);
    add_to_list("rewrite/src/passes/mod.rs", "const PASSES:", &entry)
}

fn text(name: &Name) -> String {
    let (camel, snake) = (&name.camel, &name.snake);
    format!(
        r#"//! What the pass does, why that is correct, and what it does not change.

use crate::pass::{{Pass, PassCx, PassError}};

/// See the module's documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct {camel};

impl Pass for {camel} {{
    const NAME: &'static str = "{snake}";
    const DOC: &'static str = "what it does, in one sentence";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {{
        // Decide on shared borrows of the graph and of analyses, then edit.
        let _ = cx.graph();
        Ok(())
    }}
}}
"#
    )
}
