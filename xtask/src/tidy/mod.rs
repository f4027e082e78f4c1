//! Project rules that the compiler does not check. Each rule is a file with a function `check` and a row in [`CHECKS`].

mod code_map;
mod codes;
mod dependencies;
mod invariants;
mod levels;
mod links;
mod modules;
mod sizes;
mod unsafety;
mod words;

use crate::architecture::Architecture;
use crate::report::Report;
use crate::workspace::Workspace;

type Check = fn(&Workspace, Option<&Architecture>, &mut Report) -> anyhow::Result<()>;

const CHECKS: &[Check] = &[
    sizes::check,
    code_map::check,
    codes::check,
    words::check,
    modules::check,
    unsafety::check,
    links::check,
    dependencies::check,
    levels::check,
    invariants::check,
];

/// `cargo xtask tidy`.
pub(crate) fn run(_args: &[String]) -> anyhow::Result<()> {
    check()?.finish("tidy")
}

/// Runs every check.
pub(crate) fn check() -> anyhow::Result<Report> {
    let workspace = Workspace::load()?;
    let page = Architecture::load()?;
    let mut report = Report::default();
    if page.is_none() {
        report.notice("tidy: there is no ARCHITECTURE.md, so its tables are not checked");
    }
    for check in CHECKS {
        check(&workspace, page.as_ref(), &mut report)?;
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_is_tidy() {
        let findings = super::check().unwrap().findings();
        assert!(findings.is_empty(), "\n{}", findings.join("\n"));
    }
}
