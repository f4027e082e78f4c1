//! Creation of files and registration in lists, for `new-op` and `new-pass`.

use std::path::Path;

use anyhow::Context;

use crate::workspace::root;

/// A name in two spellings, parsed from `like-this`, `like_this` or `LikeThis`.
pub(crate) struct Name {
    /// `like_this`
    pub(crate) snake: String,
    /// `LikeThis`
    pub(crate) camel: String,
}

impl Name {
    /// Parses a name.
    ///
    /// # Errors
    /// Returns an error if the text is not an identifier.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Name> {
        let mut snake = String::new();
        for (i, c) in text.chars().enumerate() {
            if c.is_ascii_uppercase() && i > 0 && !snake.ends_with('_') {
                snake.push('_');
            }
            snake.push(if c == '-' { '_' } else { c.to_ascii_lowercase() });
        }
        let plain = snake.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let starts = snake.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        anyhow::ensure!(plain && starts, "`{text}` is not a name: use letters, digits, `-` and `_`");
        let camel = snake
            .split('_')
            .map(|part| part[..part.len().min(1)].to_uppercase() + part.get(1..).unwrap_or(""))
            .collect();
        Ok(Name { camel, snake })
    }
}

/// Creates a file.
///
/// # Errors
/// Returns an error if the file exists or cannot be written.
pub(crate) fn create(path: &str, text: &str) -> anyhow::Result<()> {
    let full = root().join(path);
    anyhow::ensure!(!full.exists(), "{path} exists already");
    std::fs::write(&full, text).with_context(|| format!("cannot write {path}"))?;
    println!("wrote {path}");
    Ok(())
}

/// Appends `item` to the list `[…]` that follows the text `open`, and formats the file with rustfmt.
///
/// # Errors
/// Returns an error if the file has no such list, or cannot be read or written.
pub(crate) fn add_to_list(path: &str, open: &str, item: &str) -> anyhow::Result<()> {
    let full = root().join(path);
    let text = std::fs::read_to_string(&full).with_context(|| format!("cannot read {path}"))?;
    let changed = insert(&text, open, item).with_context(|| format!("{path} has no list after `{open}`"))?;
    std::fs::write(&full, changed).with_context(|| format!("cannot write {path}"))?;
    println!("{path}: added `{item}`");
    let mut rustfmt = std::process::Command::new("rustfmt");
    // Without rustfmt the list is correct but not formatted.
    let _ = rustfmt.args(["--edition", "2024"]).arg(&full).status();
    Ok(())
}

fn insert(text: &str, open: &str, item: &str) -> Option<String> {
    let start = text.find(open)?;
    let list = start + text[start..].find("= ")?;
    let bracket = list + text[list..].find('[')?;
    let end = crate::source::matching(text.as_bytes(), bracket)?;
    let before = text[..end].trim_end();
    let comma = if before.ends_with(['[', ',']) { "" } else { "," };
    Some(format!("{before}{comma} {item}{}", &text[end..]))
}

/// Adds the declaration of a module to a file, in alphabetical order among declarations with the same visibility.
///
/// # Errors
/// Returns an error if the file declares no module, or cannot be read or written.
pub(crate) fn declare(path: &str, declaration: &str) -> anyhow::Result<()> {
    let full = root().join(Path::new(path));
    let text = std::fs::read_to_string(&full).with_context(|| format!("cannot read {path}"))?;
    let changed = declare_in(&text, declaration).with_context(|| format!("{path} declares no module"))?;
    std::fs::write(&full, changed).with_context(|| format!("cannot write {path}"))?;
    println!("{path}: added `{declaration}`");
    Ok(())
}

fn declare_in(text: &str, declaration: &str) -> Option<String> {
    let head = declaration.split_inclusive("mod ").next()?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_like = |l: &str| l.starts_with(head) && l.trim_end().ends_with(';');
    let last = lines.iter().rposition(|l| is_like(l))?;
    let at = lines.iter().position(|l| is_like(l) && l.trim_end() > declaration).unwrap_or(last + 1);
    Some(format!("{}{declaration}\n{}", lines[..at].concat(), lines[at..].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_converted_between_cases() {
        for text in ["lower-tuples", "lower_tuples", "LowerTuples"] {
            let name = Name::parse(text).unwrap();
            assert_eq!((name.snake.as_str(), name.camel.as_str()), ("lower_tuples", "LowerTuples"));
        }
        assert!(Name::parse("a b").is_err());
    }

    #[test]
    fn lists_and_modules_get_entries() {
        let text = "mod a;\nmod c;\n\nconst LIST: &[fn() -> [u8; 2]] = &[a::x];\n";
        let more = insert(text, "const LIST", "b::x").unwrap();
        let more = declare_in(&more, "mod b;").unwrap();
        assert_eq!(more, "mod a;\nmod b;\nmod c;\n\nconst LIST: &[fn() -> [u8; 2]] = &[a::x, b::x];\n");
        let broken = "const LIST: &[u8] = &[\n    1,\n];\n";
        assert_eq!(insert(broken, "const LIST", "2").unwrap(), "const LIST: &[u8] = &[\n    1, 2];\n");
    }
}
