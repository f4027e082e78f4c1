//! The part of `torch` that is written in TorchScript: functions by qualified name.
//!
//! Definitions are separated by blank lines. Those that differ in a few words are one template, behind a comment that
//! says what the words are, a row for each definition:
//!
//! ```python
//! # for each $f; $params; $args in
//! #   relu
//! #   elu; , alpha: float = 1.0; , alpha
//! def $f(input: Tensor$params) -> Tensor:
//!     return torch.$f(input$args)
//! ```
//!
//! What a row leaves out is nothing. The texts are taken apart once in a process, when a program first names a function.

use std::sync::OnceLock;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Sources with the namespace of their functions and the name of the file that they stand for.
const SOURCES: [(&str, &str, &str); 5] = [
    ("torch.nn.functional.", "torch/nn/functional.py", include_str!("../library/functional.py")),
    ("torch.nn.functional.", "torch/nn/functional.py", include_str!("../library/attention.py")),
    ("torch.", "torch/functional.py", include_str!("../library/torch.py")),
    ("torch.nn.init.", "torch/nn/init.py", include_str!("../library/init.py")),
    ("torch.jit.", "torch/jit/_trace.py", include_str!("../library/jit.py")),
];

/// What a template's comment begins with, what it ends with, and what its rows begin with.
const TEMPLATE: (&str, &str, &str) = ("# for each ", " in", "#   ");

/// A function of the library.
pub(super) struct Definition {
    /// The file that it stands in, as messages tell it.
    pub(super) file: &'static str,
    /// Its text.
    pub(super) text: String,
}

type Definitions = HashMap<String, Definition, FxBuildHasher>;

/// The function of this qualified name, if the library has one.
pub(super) fn definition(full: &str) -> Option<&'static Definition> {
    static LIBRARY: OnceLock<Definitions> = OnceLock::new();
    LIBRARY.get_or_init(definitions).get(full)
}

fn definitions() -> Definitions {
    let mut all = Definitions::default();
    for (namespace, file, source) in SOURCES {
        for text in source.split("\n\n").flat_map(expand) {
            if let Some(name) = name(&text) {
                all.insert(format!("{namespace}{name}"), Definition { file, text });
            }
        }
    }
    all
}

/// The function that a text defines.
fn name(text: &str) -> Option<&str> {
    Some(text.trim_start().strip_prefix("def ")?.split_once('(')?.0)
}

/// The definitions that a block of source is: itself, or one for each row of a template.
fn expand(block: &str) -> Vec<String> {
    let (begin, end, row) = TEMPLATE;
    let block = block.trim_start_matches('\n');
    let Some((head, rest)) = block.strip_prefix(begin).and_then(|b| b.split_once('\n')) else {
        return vec![block.to_owned()];
    };
    let words = |text: &str| text.split(';').map(|w| w.trim().to_owned()).collect::<Vec<String>>();
    let names = words(head.strip_suffix(end).unwrap_or(head));
    let rows: Vec<Vec<String>> = rest.lines().map_while(|l| l.strip_prefix(row)).map(words).collect();
    let body: Vec<&str> = rest.lines().skip(rows.len()).collect();
    let filled = |values: &Vec<String>| {
        let mut pairs: Vec<(&str, &str)> = (names.iter().enumerate())
            .map(|(i, name)| (name.as_str(), values.get(i).map_or("", String::as_str)))
            .collect();
        // A word may begin like another.
        pairs.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        pairs.iter().fold(body.join("\n"), |text, (name, value)| text.replace(name, value))
    };
    rows.iter().map(filled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_a_definition_for_each_row() {
        let block = "\n# for each $f; $params; $args in\n#   relu\n#   elu; , a: float = 1.0; , a\ndef $f(x: Tensor$params):\n    return torch.$f(x$args)\n";
        let expected = [
            "def relu(x: Tensor):\n    return torch.relu(x)",
            "def elu(x: Tensor, a: float = 1.0):\n    return torch.elu(x, a)",
        ];
        assert_eq!(expand(block), expected);
        assert_eq!(expand("def f():\n    pass\n"), ["def f():\n    pass\n"]);
    }

    #[test]
    fn every_definition_has_its_own_name_and_nothing_left_open() {
        let all = definitions();
        let texts = || SOURCES.iter().flat_map(|(_, _, source)| source.split("\n\n")).flat_map(expand);
        assert_eq!(all.len(), texts().count(), "two definitions have one name");
        let open: Vec<String> = texts().filter(|t| t.contains('$') || name(t).is_none()).collect();
        assert!(open.is_empty(), "{open:?}");
        assert!(all.contains_key("torch.nn.functional.max_pool3d__return_indices"));
        assert!(all.contains_key("torch.unique__return_inverse__return_counts"));
    }
}
