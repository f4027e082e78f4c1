//! The runner of test files: runs every command of every file, with and without treatments, and compares or blesses.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::command::{Blame, Command};
use super::commands;
use super::file::{Language, TestFile};

/// The options of a run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether to write the actual output as expected output.
    pub bless: bool,
    /// If set, only files whose path contains this text.
    pub filter: Option<String>,
}

impl Options {
    /// Reads the options from `FLAMBEAU_BLESS` and `FLAMBEAU_FILTER`.
    pub fn from_env() -> Options {
        let bless = std::env::var_os("FLAMBEAU_BLESS").is_some_and(|v| v == "1");
        Options { bless, filter: std::env::var("FLAMBEAU_FILTER").ok() }
    }
}

/// The outcome of a run.
#[derive(Debug, Default)]
pub struct Summary {
    /// Number of files.
    pub files: usize,
    /// Number of commands, including treatments.
    pub checks: usize,
    /// Descriptions of all differences.
    pub failures: Vec<String>,
}

/// Runs every file below `folder`, on all cores.
///
/// # Errors
/// Returns an error if the folder cannot be read.
pub fn run(folder: &Path, options: &Options) -> Result<Summary, String> {
    let is_selected = |path: &PathBuf| {
        options.filter.as_ref().is_none_or(|filter| path.to_string_lossy().contains(filter.as_str()))
    };
    let paths: Vec<PathBuf> = files(folder)?.into_iter().filter(is_selected).collect();
    let next = AtomicUsize::new(0);
    // Files differ in length by orders of magnitude, so each worker takes the next one.
    let work = || {
        let mut done = Vec::new();
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut summary = Summary { files: 1, ..Summary::default() };
            match TestFile::read(path) {
                Ok(file) => run_file(&file, options, &mut summary),
                Err(why) => summary.failures.push(why),
            }
            done.push((path, summary));
        }
        done
    };
    let workers = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut done: Vec<(&PathBuf, Summary)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let ended =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        ended.flatten().collect()
    });
    done.sort_by_key(|(path, _)| *path);
    Ok(done.into_iter().fold(Summary::default(), |mut all, (_, one)| {
        all.files += one.files;
        all.checks += one.checks;
        all.failures.extend(one.failures);
        all
    }))
}

/// Returns every test file below a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|e| e.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "ir" || e == "py") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn run_file(file: &TestFile, options: &Options, summary: &mut Summary) {
    let before = summary.failures.len();
    let mut blocks = Vec::new();
    let mut blames = Vec::new();
    for line in &file.commands {
        let (name, args) = line.split_once(' ').unwrap_or((line, ""));
        let Some(command) = commands::find(name) else {
            summary.failures.push(format!("{}: unknown command `{name}`", file.name()));
            continue;
        };
        summary.checks += 1;
        match command.run(file, &file.program, args.trim()) {
            Ok(text) => {
                round_trip(file, command, line, &text, summary);
                if !text.is_empty() {
                    blocks.push((line.clone(), with_end(text)));
                }
            }
            Err(errors) => blames.extend(errors),
        }
    }
    summary.failures.extend(unmatched(file, &blames));
    let mut runs = file.runs.clone();
    if !file.runs.is_empty() {
        summary.checks += file.runs.len();
        match super::calls::results(file) {
            Ok(results) => runs = results,
            Err(why) => summary.failures.push(format!("{}: {why}", file.name())),
        }
    }
    if options.bless {
        if summary.failures.len() == before {
            bless(file, &runs, &blocks, summary);
        }
        return;
    }
    summary.failures.extend(super::calls::differences(file, &runs));
    for (name, text) in &blocks {
        match file.block(name) {
            Some(expected) if same(expected, text) => {}
            Some(expected) => {
                let shown = difference(expected, text);
                summary.failures.push(format!("{}: `{name}` has different output:\n{shown}", file.name()));
            }
            None => summary.failures.push(format!("{}: no block `== {name}` (bless it)", file.name())),
        }
    }
    for (name, _) in file.blocks.iter().filter(|(name, _)| !blocks.iter().any(|(n, _)| n == name)) {
        summary
            .failures
            .push(format!("{}: the block `== {name}` belongs to no command with output", file.name()));
    }
}

fn bless(file: &TestFile, runs: &[super::file::RunLine], blocks: &[(String, String)], summary: &mut Summary) {
    let text = file.with(runs, blocks);
    if std::fs::read_to_string(&file.path).is_ok_and(|old| old == text) {
        return;
    }
    match std::fs::write(&file.path, text) {
        Ok(()) => println!("blessed {}", file.name()),
        Err(error) => summary.failures.push(format!("{}: {error}", file.name())),
    }
}

/// Runs the treatment *text round trip*: the printed and parsed program must have the same output.
fn round_trip(file: &TestFile, command: &dyn Command, line: &str, text: &str, summary: &mut Summary) {
    if file.language != Language::Ir || !file.errors.is_empty() || !command.survives_round_trip() {
        return;
    }
    summary.checks += 1;
    let (_, args) = line.split_once(' ').unwrap_or((line, ""));
    let again = match super::treatment::printed(&file.program) {
        Ok(program) => command.run(file, &program, args.trim()),
        Err(why) => Err(Blame::nowhere(why)),
    };
    let what = format!("{}: `{line}` under the text round trip", file.name());
    match again {
        Ok(again) if same(&again, text) => {}
        Ok(again) => summary.failures.push(format!("{what}:\n{}", difference(text, &again))),
        Err(errors) => summary.failures.extend(errors.iter().map(|e| format!("{what}: {e}"))),
    }
}

/// Returns errors without a matching mark, and marks without a matching error.
fn unmatched(file: &TestFile, blames: &[Blame]) -> Vec<String> {
    let meets = |mark: &super::file::ErrorMark, blamed_line: &Blame| {
        (mark.line.is_none() || mark.line == blamed_line.line) && blamed_line.message.contains(&mark.text)
    };
    let missing = file.errors.iter().filter(|m| !blames.iter().any(|b| meets(m, b))).map(|m| {
        let place = m.line.map_or_else(|| file.name(), |line| format!("{}:{line}", file.name()));
        format!("{place}: no error with `{}`", m.text)
    });
    let surprising = blames
        .iter()
        .filter(|b| !file.errors.iter().any(|m| meets(m, b)))
        .map(|b| format!("{}: error: {b}", file.name()));
    missing.chain(surprising).collect()
}

fn with_end(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Compares lines, ignoring trailing whitespace and trailing empty lines.
fn same(a: &str, b: &str) -> bool {
    let lines = |t: &str| t.trim_end().lines().map(|l| l.trim_end().to_string()).collect::<Vec<_>>();
    lines(a) == lines(b)
}

/// Returns a few lines of both texts from the first difference on.
fn difference(expected: &str, got: &str) -> String {
    let at = expected.lines().zip(got.lines()).take_while(|(a, b)| a.trim_end() == b.trim_end()).count();
    let part = |mark: char, text: &str| {
        text.lines().skip(at).take(12).map(|l| format!("    {mark} {l}\n")).collect::<String>()
    };
    format!("    from line {}:\n{}{}", at + 1, part('-', expected), part('+', got))
}

#[cfg(test)]
mod tests {
    use super::super::file::ErrorMark;
    use super::*;

    #[test]
    fn errors_match_their_marks() {
        let mut file = TestFile::parse(Path::new("a.ir"), "; test verify\ngraph():\n").unwrap();
        file.errors = vec![
            ErrorMark { line: Some(2), text: "one".to_string() },
            ErrorMark { line: None, text: "two".to_string() },
        ];
        let blamed_line = |line, message: &str| Blame { line, message: message.to_string() };
        assert!(
            unmatched(&file, &[blamed_line(Some(2), "is one"), blamed_line(Some(9), "is two")]).is_empty()
        );
        let wrong = unmatched(&file, &[blamed_line(Some(3), "is one"), blamed_line(None, "two")]);
        assert_eq!(wrong.len(), 2);
    }

    #[test]
    fn differences_have_their_first_line() {
        assert!(same("a \nb\n\n", "a\nb"));
        assert_eq!(difference("a\nb\n", "a\nc\n"), "    from line 2:\n    - b\n    + c\n");
    }
}
