//! Check: links and paths in the Markdown files refer to existing files and headings.
//!
//! A link is `[text](target)`. A path is a word in backticks that starts with a folder of the workspace and contains a
//! slash. Fenced code and targets with a scheme are ignored.

use std::path::Path;

use crate::architecture::Architecture;
use crate::report::Report;
use crate::workspace::{Workspace, root};

pub(super) fn check(
    workspace: &Workspace,
    _: Option<&Architecture>,
    report: &mut Report,
) -> anyhow::Result<()> {
    for (path, text) in &workspace.pages {
        for (number, line) in prose(text) {
            let place = format!("{}:{number}", path.display());
            for target in targets(line) {
                check_link(path, text, target, &place, report);
            }
            for word in line.split('`').skip(1).step_by(2).filter(|w| is_path(w)) {
                if !root().join(word.trim_end_matches('/')).exists() {
                    report.find(&place, format!("`{word}` does not exist"));
                }
            }
        }
    }
    Ok(())
}

/// Returns the lines outside of fenced code, with their line numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(i, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((i + 1, line))
    })
}

/// Returns the targets of the links in a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

fn check_link(page: &Path, text: &str, target: &str, place: &str, report: &mut Report) {
    if target.contains("://") || target.starts_with("mailto:") {
        return;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(f, a)| (f, Some(a)));
    let linked = page.parent().unwrap_or(Path::new("")).join(file);
    if !file.is_empty() && !root().join(&linked).exists() {
        report.find(place, format!("the link refers to `{file}`, which does not exist"));
        return;
    }
    let Some(anchor) = anchor else { return };
    let read;
    let text = if file.is_empty() {
        text
    } else {
        read = std::fs::read_to_string(root().join(&linked)).unwrap_or_default();
        &read
    };
    if linked.extension().is_none_or(|e| e == "md") && !headings(text).any(|h| h == anchor) {
        report.find(place, format!("no heading `#{anchor}`"));
    }
}

/// Returns the anchors of a page's headings as Markdown renderers generate them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter(|(_, line)| line.starts_with('#')).map(|(_, line)| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// Returns whether a word in backticks is a path of the workspace.
fn is_path(word: &str) -> bool {
    let Some((first, rest)) = word.split_once('/') else { return false };
    let plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b));
    plain
        && !first.is_empty()
        && !first.starts_with('.')
        && !rest.contains("NAME")
        && root().join(first).is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_paths_are_extracted() {
        assert_eq!(targets("a [b](c.md) and [d](#e)").collect::<Vec<_>>(), ["c.md", "#e"]);
        assert!(is_path("xtask/src/main.rs"));
        assert!(!is_path("and/or"));
        assert!(!is_path("tests/cases/**"));
        assert_eq!(headings("## Add an operator!\n").collect::<Vec<_>>(), ["add-an-operator"]);
    }

    #[test]
    fn a_dead_link_is_reported() {
        let mut report = Report::default();
        check_link(Path::new("A.md"), "# B\n", "no/such.md", "A.md:1", &mut report);
        check_link(Path::new("A.md"), "# B\n", "#c", "A.md:2", &mut report);
        check_link(Path::new("A.md"), "# B\n", "#b", "A.md:3", &mut report);
        assert_eq!(report.findings().len(), 2);
    }
}
