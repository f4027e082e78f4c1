//! Library functions of `torch` that are written in TorchScript, by qualified name.
//!
//! Definitions are separated by blank lines. Definitions that differ in a few words share one template. A comment
//! before the template names the placeholders, followed by one row of values per definition:
//!
//! ```python
//! # for each $f; $params; $args in
//! #   relu
//! #   elu; , alpha: float = 1.0; , alpha
//! def $f(input: Tensor$params) -> Tensor:
//!     return torch.$f(input$args)
//! ```
//!
//! Missing values of a row are empty. The sources are expanded once per process, at the first lookup.

use std::sync::OnceLock;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Sources: the namespace of their functions, the file name for messages, and the text.
const SOURCES: [(&str, &str, &str); 5] = [
    ("torch.nn.functional.", "torch/nn/functional.py", include_str!("../library/functional.py")),
    ("torch.nn.functional.", "torch/nn/functional.py", include_str!("../library/attention.py")),
    ("torch.", "torch/functional.py", include_str!("../library/torch.py")),
    ("torch.nn.init.", "torch/nn/init.py", include_str!("../library/init.py")),
    ("torch.jit.", "torch/jit/_trace.py", include_str!("../library/jit.py")),
];

/// Start and end of the header of a template, and the start of its rows.
const TEMPLATE: (&str, &str, &str) = ("# for each ", " in", "#   ");

/// A library function.
pub(super) struct Definition {
    /// The name of the source file in messages.
    pub(super) file: &'static str,
    /// The source of the definition.
    pub(super) text: String,
}

type Definitions = HashMap<String, Definition, FxBuildHasher>;

/// Returns the definition of a library function by qualified name.
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

/// Returns the name of the function that a text defines.
fn name(text: &str) -> Option<&str> {
    Some(text.trim_start().strip_prefix("def ")?.split_once('(')?.0)
}

/// Expands a block of source to its definitions: itself, or one for each row of a template.
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
        // Replace longer names first: a placeholder may be a prefix of another.
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
    fn definitions_have_distinct_names_and_no_open_placeholders() {
        let all = definitions();
        let texts = || SOURCES.iter().flat_map(|(_, _, source)| source.split("\n\n")).flat_map(expand);
        assert_eq!(all.len(), texts().count(), "two definitions have one name");
        let open: Vec<String> = texts().filter(|t| t.contains('$') || name(t).is_none()).collect();
        assert!(open.is_empty(), "{open:?}");
        assert!(all.contains_key("torch.nn.functional.max_pool3d__return_indices"));
        assert!(all.contains_key("torch.unique__return_inverse__return_counts"));
    }
}
