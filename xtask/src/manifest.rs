//! A parser for Cargo manifests, as far as the checks need them.
//!
//! It supports the subset of TOML used in this workspace's manifests: tables, `key = value` on one line, dotted keys,
//! and lists of strings over several lines. It is not meant for other manifests.

use std::path::Path;

use anyhow::Context;

/// A manifest: tables in order, each with its keys and values.
pub(crate) struct Manifest {
    tables: Vec<(String, Vec<(String, String)>)>,
}

impl Manifest {
    /// Reads the manifest at `path`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Manifest> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Manifest::parse(&text))
    }

    fn parse(text: &str) -> Manifest {
        let mut tables: Vec<(String, Vec<(String, String)>)> = vec![(String::new(), Vec::new())];
        let mut open: Option<(String, String)> = None;
        for line in text.lines() {
            let line = without_comment(line).trim();
            if let Some((key, mut value)) = open.take() {
                value.push_str(line);
                keep(&mut tables, &mut open, key, value);
            } else if let Some(name) = line.strip_prefix('[') {
                tables.push((name.trim_matches(['[', ']']).trim().to_string(), Vec::new()));
            } else if let Some((key, value)) = line.split_once('=') {
                keep(&mut tables, &mut open, key.trim().to_string(), value.trim().to_string());
            }
        }
        Manifest { tables }
    }

    /// Returns the strings of a list; empty if the key is absent.
    pub(crate) fn strings(&self, table: &str, key: &str) -> Vec<String> {
        let Some(value) = self.get(table, key) else { return Vec::new() };
        value.split('"').skip(1).step_by(2).map(str::to_string).collect()
    }

    /// Returns the package's name.
    pub(crate) fn name(&self) -> &str {
        self.get("package", "name").map_or("", |v| v.trim_matches('"'))
    }

    /// Returns the names of all dependencies, of every kind and for every target, sorted and without duplicates.
    pub(crate) fn dependencies(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (table, entries) in &self.tables {
            let last = table.rsplit('.').next().unwrap_or("");
            if last.ends_with("dependencies") {
                names.extend(entries.iter().map(|(key, _)| first_part(key)));
            } else if let Some((before, name)) = table.rsplit_once('.')
                && before.ends_with("dependencies")
            {
                names.push(name.to_string());
            }
        }
        names.sort();
        names.dedup();
        names
    }

    /// Returns the keys and values of a table; none if it is absent.
    pub(crate) fn entries(&self, table: &str) -> impl Iterator<Item = (&str, &str)> {
        let table = self.tables.iter().filter(move |(name, _)| name == table);
        table.flat_map(|(_, entries)| entries).map(|(key, value)| (key.as_str(), value.as_str()))
    }

    fn get(&self, table: &str, key: &str) -> Option<&str> {
        let (_, entries) = self.tables.iter().find(|(name, _)| name == table)?;
        entries.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }
}

/// Stores `key = value`. If the value is a list that continues on the next line, stores it in `open` instead.
fn keep(
    tables: &mut [(String, Vec<(String, String)>)],
    open: &mut Option<(String, String)>,
    key: String,
    value: String,
) {
    if value.matches('[').count() > value.matches(']').count() {
        *open = Some((key, value));
    } else if let Some((_, entries)) = tables.last_mut() {
        entries.push((key, value));
    }
}

fn first_part(key: &str) -> String {
    key.split('.').next().unwrap_or(key).trim_matches('"').to_string()
}

fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (i, b) in line.bytes().enumerate() {
        match b {
            b'"' => quoted = !quoted,
            b'#' if !quoted => return &line[..i],
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_manifests_are_understood() {
        let text = "[package]\nname = \"a\" # b\n[workspace]\nmembers = [\n  \"x\", \"y\",\n]\n[dependencies]\n\
                    egg.workspace = true\nserde = { version = \"1\", features = [\"derive\"] }\n\
                    [target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n[dev-dependencies.proptest]\nversion = \"1\"\n";
        let m = Manifest::parse(text);
        assert_eq!(m.name(), "a");
        assert_eq!(m.strings("workspace", "members"), ["x", "y"]);
        assert_eq!(m.dependencies(), ["egg", "libc", "proptest", "serde"]);
    }
}
