//! Checks that the code in the tutorials of CONTRIBUTING.md occurs literally in a file of this crate.

use std::path::Path;

/// Returns the code blocks of the tutorials, each with its heading.
fn pieces(page: &str) -> Vec<(String, String)> {
    let (mut heading, mut piece, mut found) = (String::new(), None::<String>, Vec::new());
    for line in page.lines() {
        match &mut piece {
            None if line.starts_with("## ") => heading = line[3..].to_owned(),
            None if line == "```rust" || line == "```rules" => piece = Some(String::new()),
            None => {}
            Some(text) if line == "```" => {
                found.push((heading.clone(), std::mem::take(text)));
                piece = None;
            }
            Some(text) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    found
}

#[test]
fn tutorials_quote_this_crate() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(here.join("../../../CONTRIBUTING.md")).expect("the page is there");
    let mut files = Vec::new();
    for folder in ["src", "tests"] {
        for entry in std::fs::read_dir(here.join(folder)).expect("the folder is there") {
            files.push(std::fs::read_to_string(entry.expect("an entry").path()).expect("a text"));
        }
    }
    let pieces = pieces(&page);
    for tutorial in ["Add an operator", "Add a pass", "Add a rule", "Add an analysis", "Add a test"] {
        assert!(pieces.iter().any(|(heading, _)| heading == tutorial), "`{tutorial}` has no code");
    }
    for (heading, piece) in &pieces {
        assert!(
            files.iter().any(|f| f.contains(piece.as_str())),
            "`{heading}` has code that this crate does not contain:\n{piece}"
        );
    }
}
