//! Suites of recorded cases: folders with `cases.jsonl`, `cases.jsonl.gz` or `cases/*.jsonl.gz`.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use flate2::read::MultiGzDecoder;

/// A suite: a folder with files of cases.
#[derive(Debug, Clone)]
pub struct Suite {
    /// The folder's name.
    pub name: String,
    /// The folder; paths in cases are relative to this folder.
    pub folder: PathBuf,
    files: Vec<PathBuf>,
    /// For a suite of printed programs: the form to compare.
    form: Option<&'static str>,
}

/// The printed forms of programs to compare: graphs, source, and source compiled again.
const FORMS: [&str; 3] = ["graph", "code", "again"];

/// Returns the suites in the given folders: a folder that is a suite itself, else the suites directly in it. With
/// `texts`, the printed forms of a suite's programs are additional suites.
///
/// # Errors
/// Returns an error if a folder cannot be read or contains no suite.
pub fn suites(folders: &[PathBuf], texts: bool) -> anyhow::Result<Vec<Suite>> {
    let mut found = Vec::new();
    for folder in folders {
        let before = found.len();
        found.extend(suite(folder)?);
        if found.len() == before {
            for inner in sorted(folder)?.iter().filter(|p| p.is_dir()) {
                found.extend(suite(inner)?);
            }
        }
        anyhow::ensure!(found.len() > before, "{} contains no cases", folder.display());
        if texts {
            let printed: Vec<Suite> = found[before..].iter().flat_map(Suite::printed).collect();
            found.extend(printed);
        }
    }
    Ok(found)
}

fn suite(folder: &Path) -> anyhow::Result<Option<Suite>> {
    let is_cases = |p: &PathBuf| {
        let name = p.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
        p.is_file() && (name == "cases.jsonl" || name == "cases.jsonl.gz")
    };
    let mut files: Vec<PathBuf> = sorted(folder)?.into_iter().filter(is_cases).collect();
    let inner = folder.join("cases");
    if inner.is_dir() {
        let is_lines = |p: &PathBuf| {
            p.to_string_lossy().ends_with(".jsonl.gz") || p.to_string_lossy().ends_with(".jsonl")
        };
        files.extend(sorted(&inner)?.into_iter().filter(is_lines));
    }
    if files.is_empty() {
        return Ok(None);
    }
    let folder = folder.canonicalize()?;
    let name = folder.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
    Ok(Some(Suite { name, folder, files, form: None }))
}

fn sorted(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    Ok(paths)
}

impl Suite {
    /// Returns a suite per printed form of the suite's programs; none if no printed forms are recorded.
    fn printed(&self) -> Vec<Suite> {
        let file = self.folder.join("programs.jsonl.gz");
        let forms = if file.exists() { &FORMS[..] } else { &[] };
        let suite = |&form: &&'static str| Suite {
            name: format!("{}-{form}", self.name),
            folder: self.folder.clone(),
            files: vec![file.clone()],
            form: Some(form),
        };
        forms.iter().map(suite).collect()
    }

    /// Calls `see` with every case (a line of JSON), in order, until `see` returns `false`.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn for_each(&self, mut see: impl FnMut(String) -> bool) -> anyhow::Result<()> {
        for path in &self.files {
            let file =
                std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            let packed = path.extension().is_some_and(|e| e == "gz");
            let reader: Box<dyn Read> =
                if packed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
            for line in BufReader::new(reader).lines() {
                let mut line = line.with_context(|| format!("cannot read {}", path.display()))?;
                if let (Some(form), Some(rest)) = (self.form, line.strip_prefix('{')) {
                    line = format!("{{\"form\":\"{form}\",{rest}");
                }
                if !line.trim().is_empty() && !see(line) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
