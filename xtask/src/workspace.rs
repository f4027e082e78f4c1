//! The files of the workspace: root, packages, Rust and Markdown files.
//!
//! Files are listed by walking the folders, in sorted order, without `target`, hidden folders and folders of recorded
//! data. Hence the checks work in a copy of the tree without git.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::manifest::Manifest;
use crate::source::Source;

/// Returns the root folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("invariant: xtask is a folder of the workspace")
}

/// A package of the workspace.
pub(crate) struct Package {
    /// The folder relative to the root (`ir`, `tests/examples/extension`).
    pub(crate) folder: String,
    pub(crate) manifest: Manifest,
}

/// The input of the checks.
pub(crate) struct Workspace {
    /// The manifest of the workspace.
    pub(crate) manifest: Manifest,
    pub(crate) packages: Vec<Package>,
    pub(crate) sources: Vec<Source>,
    /// Paths and texts of the Markdown files.
    pub(crate) pages: Vec<(PathBuf, String)>,
}

impl Workspace {
    /// Reads the workspace.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub(crate) fn load() -> anyhow::Result<Workspace> {
        let manifest = Manifest::read(&root().join("Cargo.toml"))?;
        let mut packages = Vec::new();
        for folder in manifest.strings("workspace", "members") {
            let manifest = Manifest::read(&root().join(&folder).join("Cargo.toml"))?;
            packages.push(Package { folder, manifest });
        }
        for folder in manifest.strings("workspace", "exclude") {
            let path = root().join(&folder).join("Cargo.toml");
            if path.exists() {
                packages.push(Package { folder, manifest: Manifest::read(&path)? });
            }
        }
        let mut sources = Vec::new();
        let mut pages = Vec::new();
        for path in files()? {
            let read =
                |p: &Path| std::fs::read_to_string(root().join(p)).with_context(|| p.display().to_string());
            match path.extension().and_then(|e| e.to_str()) {
                Some("rs") => sources.push(Source::new(&path, read(&path)?)),
                Some("md") => pages.push((path.clone(), read(&path)?)),
                _ => {}
            }
        }
        mark_tests(&mut sources);
        Ok(Workspace { manifest, packages, sources, pages })
    }

    /// Returns the Rust files of the package in `folder`, without those of nested packages.
    pub(crate) fn sources_of<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a Source> {
        self.sources.iter().filter(move |s| self.package_of(&s.path).is_some_and(|p| p.folder == folder))
    }

    /// Returns the package of a file: the one whose folder is the longest prefix of its path.
    pub(crate) fn package_of(&self, path: &Path) -> Option<&Package> {
        let holds = |p: &&Package| path.starts_with(&p.folder);
        self.packages.iter().filter(holds).max_by_key(|p| p.folder.len())
    }
}

/// Returns all files of the workspace, relative to the root, sorted.
fn files() -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            if entry.file_type()?.is_dir() {
                if !name.starts_with('.') && !matches!(name.as_str(), "target" | "corpus" | "artifacts") {
                    folders.push(path);
                }
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Marks files that contain only tests: files outside of `src` folders, and the files of modules declared under
/// `#[cfg(test)]`.
fn mark_tests(sources: &mut [Source]) {
    let mut tests: Vec<PathBuf> = Vec::new();
    for source in sources.iter() {
        let base = module_folder(&source.path);
        for name in &source.test_modules {
            tests.push(base.join(format!("{name}.rs")));
            tests.push(base.join(name));
        }
    }
    for source in sources.iter_mut() {
        let in_tests_folder = !source.path.components().any(|c| c.as_os_str() == "src");
        if in_tests_folder || tests.iter().any(|t| source.path.starts_with(t)) {
            source.mark_as_test();
        }
    }
}

/// Returns the folder with the files of the modules declared in the file at `path`.
pub(crate) fn module_folder(path: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or("");
    let is_root = matches!(stem, "lib" | "main" | "mod") || folder.ends_with("bin") || !has_src(path);
    if is_root { folder } else { folder.join(stem) }
}

fn has_src(path: &Path) -> bool {
    path.components().any(|c| c.as_os_str() == "src")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_have_files_at_their_paths() {
        assert_eq!(module_folder(Path::new("ir/src/lib.rs")), Path::new("ir/src"));
        assert_eq!(module_folder(Path::new("ir/src/graph.rs")), Path::new("ir/src/graph"));
        assert_eq!(module_folder(Path::new("ir/src/graph/mod.rs")), Path::new("ir/src/graph"));
        assert_eq!(module_folder(Path::new("tests/src/bin/conform.rs")), Path::new("tests/src/bin"));
    }

    #[test]
    fn the_workspace_is_read() {
        let workspace = Workspace::load().unwrap();
        assert!(workspace.packages.iter().any(|p| p.folder == "ir"));
        let extension = Path::new("tests/examples/extension/src/lib.rs");
        assert_eq!(workspace.package_of(extension).unwrap().folder, "tests/examples/extension");
    }
}
