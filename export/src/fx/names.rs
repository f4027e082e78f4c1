//! Names of FX nodes: unique within a graph, valid Python identifiers, no keywords and no builtins.
//!
//! A node that the file does not name gets a name derived from its operator when the file is read. The rules are those of
//! PyTorch's `_Namespace`, counters included, so that names agree with PyTorch's.

use indexmap::{IndexMap, IndexSet};
use std::hash::RandomState;

/// Keywords of Python, and names that the generated code uses for itself.
const RESERVED: &[&str] = &[
    "False",
    "None",
    "True",
    "and",
    "as",
    "assert",
    "async",
    "await",
    "break",
    "class",
    "continue",
    "def",
    "del",
    "elif",
    "else",
    "except",
    "finally",
    "for",
    "from",
    "global",
    "if",
    "import",
    "in",
    "is",
    "lambda",
    "nonlocal",
    "not",
    "or",
    "pass",
    "raise",
    "return",
    "try",
    "while",
    "with",
    "yield",
    "inf",
    "nan",
    "NoneType",
    "torch",
    "device",
    "fx_pytree",
    "pytree",
];

/// Builtin names of Python.
const BUILTINS: &[&str] = &[
    "__name__",
    "__doc__",
    "__package__",
    "__loader__",
    "__spec__",
    "__build_class__",
    "__import__",
    "abs",
    "all",
    "any",
    "ascii",
    "bin",
    "breakpoint",
    "callable",
    "chr",
    "compile",
    "delattr",
    "dir",
    "divmod",
    "eval",
    "exec",
    "format",
    "getattr",
    "globals",
    "hasattr",
    "hash",
    "hex",
    "id",
    "input",
    "isinstance",
    "issubclass",
    "iter",
    "aiter",
    "len",
    "locals",
    "max",
    "min",
    "next",
    "anext",
    "oct",
    "ord",
    "pow",
    "print",
    "repr",
    "round",
    "setattr",
    "sorted",
    "sum",
    "vars",
    "Ellipsis",
    "NotImplemented",
    "bool",
    "memoryview",
    "bytearray",
    "bytes",
    "classmethod",
    "complex",
    "dict",
    "enumerate",
    "filter",
    "float",
    "frozenset",
    "property",
    "int",
    "list",
    "map",
    "object",
    "range",
    "reversed",
    "set",
    "slice",
    "staticmethod",
    "str",
    "super",
    "tuple",
    "type",
    "zip",
    "__debug__",
    "BaseException",
    "BaseExceptionGroup",
    "Exception",
    "GeneratorExit",
    "KeyboardInterrupt",
    "SystemExit",
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BufferError",
    "EOFError",
    "ImportError",
    "LookupError",
    "MemoryError",
    "NameError",
    "OSError",
    "ReferenceError",
    "RuntimeError",
    "StopAsyncIteration",
    "StopIteration",
    "SyntaxError",
    "SystemError",
    "TypeError",
    "ValueError",
    "Warning",
    "FloatingPointError",
    "OverflowError",
    "ZeroDivisionError",
    "BytesWarning",
    "DeprecationWarning",
    "EncodingWarning",
    "FutureWarning",
    "ImportWarning",
    "PendingDeprecationWarning",
    "ResourceWarning",
    "RuntimeWarning",
    "SyntaxWarning",
    "UnicodeWarning",
    "UserWarning",
    "BlockingIOError",
    "ChildProcessError",
    "ConnectionError",
    "FileExistsError",
    "FileNotFoundError",
    "InterruptedError",
    "IsADirectoryError",
    "NotADirectoryError",
    "PermissionError",
    "ProcessLookupError",
    "TimeoutError",
    "IndentationError",
    "IndexError",
    "KeyError",
    "ModuleNotFoundError",
    "NotImplementedError",
    "RecursionError",
    "UnboundLocalError",
    "UnicodeError",
    "BrokenPipeError",
    "ConnectionAbortedError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "TabError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "UnicodeTranslateError",
    "ExceptionGroup",
    "EnvironmentError",
    "IOError",
    "open",
    "quit",
    "exit",
    "copyright",
    "credits",
    "license",
    "help",
];

/// Returns true for keywords of Python.
pub(crate) fn is_keyword(name: &str) -> bool {
    RESERVED[..35].contains(&name)
}

/// The names of a graph.
#[derive(Debug, Default)]
pub(crate) struct Namespace {
    used: IndexSet<String, RandomState>,
    /// The last number given to each base name.
    counts: IndexMap<String, u64, RandomState>,
}

impl Namespace {
    /// Marks a name as used.
    pub(crate) fn take(&mut self, name: &str) {
        self.used.insert(name.to_owned());
    }

    /// Creates a name that no other node has, similar to `candidate`.
    pub(crate) fn create(&mut self, candidate: &str) -> String {
        let candidate = identifier(candidate);
        let (base, number) = split_number(&candidate);
        let mut name = match number {
            None => base.to_owned(),
            Some(number) => format!("{base}_{number}"),
        };
        let mut number =
            number.filter(|&n| n != 0).unwrap_or_else(|| self.counts.get(base).copied().unwrap_or(0));
        while self.used.contains(&name) || RESERVED.contains(&&*name) || BUILTINS.contains(&&*name) {
            number = number.saturating_add(1);
            name = format!("{base}_{number}");
        }
        self.used.insert(name.clone());
        self.counts.insert(base.to_owned(), number);
        name
    }

    /// Returns the candidate for a node that calls an operator: the last parts of its name in snake case.
    pub(crate) fn of_target(target: &str) -> String {
        let mut out = String::new();
        let mut before = ' ';
        for c in target.chars() {
            if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
                out.push('_');
            }
            out.push(c.to_ascii_lowercase());
            before = c;
        }
        out
    }
}

/// Replaces runs of characters that identifiers cannot have by one underscore.
fn identifier(candidate: &str) -> String {
    let mut out = String::with_capacity(candidate.len() + 1);
    let mut replaced = false;
    for c in candidate.chars() {
        let legal = c.is_ascii_alphanumeric() || c == '_';
        match (legal, replaced) {
            (true, _) => out.push(c),
            (false, false) => out.push('_'),
            (false, true) => {}
        }
        replaced = !legal;
    }
    match out.bytes().next() {
        None => "_unnamed".to_owned(),
        Some(b'0'..=b'9') => format!("_{out}"),
        Some(_) => out,
    }
}

/// Splits the number after the last underscore.
fn split_number(name: &str) -> (&str, Option<u64>) {
    let split = name.rsplit_once('_').filter(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    match split.and_then(|(base, n)| Some((base, n.parse().ok()?))) {
        Some((base, number)) => (base, Some(number)),
        None => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_legal() {
        let mut names = Namespace::default();
        let made: Vec<_> =
            ["add", "add", "add_1", "input", "cond", "cond_7", "cond", "split.tensor", "a b-c", "3x", ""]
                .iter()
                .map(|c| names.create(c))
                .collect();
        let wanted = [
            "add",
            "add_1",
            "add_2",
            "input_1",
            "cond",
            "cond_7",
            "cond_8",
            "split_tensor",
            "a_b_c",
            "_3x",
            "_unnamed",
        ];
        assert_eq!(made, wanted);
        assert_eq!(Namespace::of_target("split.Tensor"), "split.tensor");
        assert_eq!(Namespace::of_target("sliceCopy"), "slice_copy");
        assert!(is_keyword("from") && is_keyword("yield") && !is_keyword("inf"));
    }
}
