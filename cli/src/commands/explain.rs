//! `flambeau explain`: the page of an error code.

use anstream::println;
use anyhow::{Result, bail};

/// Arguments of `explain`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The code, such as `V020`; all codes if left out.
    code: Option<String>,
}

/// The pages: `## CODE title` and text below it.
const PAGES: &str = include_str!("../../../docs/errors.md");

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let pages = || PAGES.split("\n## ").skip(1);
    let Some(code) = &args.code else {
        for page in pages() {
            println!("{}", page.lines().next().unwrap_or(""));
        }
        return Ok(());
    };
    let wanted = code.to_ascii_uppercase();
    match pages().find(|p| p.split_whitespace().next() == Some(wanted.as_str())) {
        Some(page) => println!("{}", page.trim_end()),
        None => bail!("there is no page for `{code}`; `flambeau explain` lists all codes"),
    }
    Ok(())
}
