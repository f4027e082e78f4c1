//! Check: every Rust file has a head comment and is declared as a module of its crate.
//!
//! A file without a declaration would not be compiled.

use std::path::Path;

use crate::architecture::Architecture;
use crate::report::Report;
use crate::source::Source;
use crate::workspace::{Workspace, module_folder};

pub(super) fn check(
    workspace: &Workspace,
    _: Option<&Architecture>,
    report: &mut Report,
) -> anyhow::Result<()> {
    for source in &workspace.sources {
        if source.head().is_none() {
            report.find(source.name(), "no head comment (`//! what this file is for`)");
        }
        if source.name().contains("/src/") && !is_root(&source.path) && !declared(workspace, source) {
            report.find(source.name(), "no `mod` declares this file");
        }
    }
    Ok(())
}

fn is_root(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or("");
    let folder = path.parent().unwrap_or(Path::new(""));
    let of_binary = folder.parent().is_some_and(|f| f.ends_with("bin")) && stem == "main";
    (folder.ends_with("src") && matches!(stem, "lib" | "main")) || folder.ends_with("bin") || of_binary
}

fn declared(workspace: &Workspace, source: &Source) -> bool {
    let is_mod = source.path.file_stem().is_some_and(|s| s == "mod");
    let folder = source.path.parent().unwrap_or(Path::new(""));
    // `a/mod.rs` is the module `a`, declared in the same place as `a.rs`.
    let (name, base) = if is_mod {
        (folder.file_name(), folder.parent().unwrap_or(Path::new("")))
    } else {
        (source.path.file_stem(), folder)
    };
    let name = name.and_then(|s| s.to_str()).unwrap_or("");
    let parents = workspace.sources.iter().filter(|s| module_folder(&s.path) == base);
    let by_name = |s: &Source| {
        s.words("mod").any(|at| {
            let rest = s.code[at + 3..].trim_start();
            rest.strip_prefix(name).is_some_and(|r| r.trim_start().starts_with(';'))
        })
    };
    let file = source.path.file_name().and_then(|s| s.to_str()).unwrap_or("");
    let by_path = |s: &Source| {
        s.text.contains("#[path") && s.text.lines().any(|l| l.contains("#[path") && l.contains(file))
    };
    parents.into_iter().any(by_name) || workspace.sources.iter().any(by_path)
}
