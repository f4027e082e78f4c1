//! Names of FX nodes: unique within a graph, valid Python identifiers, no keywords and no builtins.
//!
//! A node that the file does not name gets a name derived from its operator when the file is read. The rules are those of
//! PyTorch's `_Namespace`, counters included, so that names agree with PyTorch's.

use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;

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

/// Maximum number of digits of a number at the end of a name, so that numbers do not overflow.
const DIGITS: usize = 18;

/// The names of a graph.
#[derive(Debug, Default)]
pub struct Namespace {
    /// The used names. The value of a name with a number `n` is a number above `n` such that all names between have been
    /// used: names of a file may all have the same base, and a search for the next free number must not visit each of them.
    used: IndexMap<String, u64, DefaultHashBuilder>,
    /// The last number given to each base name.
    counts: IndexMap<String, u64, DefaultHashBuilder>,
}

impl Namespace {
    /// Marks a name as used.
    pub fn take(&mut self, name: &str) {
        let next = split_number(name).1.map_or(0, |n| n + 1);
        self.used.entry(name.to_owned()).or_insert(next);
    }

    /// Creates a name that no other node has, similar to `candidate`.
    pub fn create(&mut self, candidate: &str) -> String {
        let candidate = identifier(candidate);
        let (base, number) = split_number(&candidate);
        let mut name = match number {
            None => base.to_owned(),
            Some(number) => format!("{base}_{number}"),
        };
        let mut number =
            number.filter(|&n| n != 0).unwrap_or_else(|| self.counts.get(base).copied().unwrap_or(0));
        if self.used.contains_key(&name) || RESERVED.contains(&&*name) || BUILTINS.contains(&&*name) {
            number = self.free_number(base, number + 1);
            name = format!("{base}_{number}");
        }
        self.take(&name);
        match self.counts.get_mut(base) {
            Some(count) => *count = number,
            None => drop(self.counts.insert(base.to_owned(), number)),
        }
        name
    }

    /// Creates a name for an input. Other than the names of nodes it may be that of a builtin function.
    pub fn create_input(&mut self, candidate: &str) -> String {
        let name = identifier(candidate);
        if self.used.contains_key(&name) || RESERVED.contains(&&*name) {
            return self.create(&name);
        }
        self.take(&name);
        name
    }

    /// Returns the least number from `from` on with which a base name is free.
    fn free_number(&mut self, base: &str, from: u64) -> u64 {
        let mut number = from;
        let mut passed = Vec::new();
        while let Some((index, _, &next)) = self.used.get_full(&format!("{base}_{number}")) {
            passed.push(index);
            number = next.max(number + 1);
        }
        for index in passed {
            self.used[index] = number;
        }
        number
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
    let digits = |n: &str| (1..=DIGITS).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit());
    let split = name.rsplit_once('_').filter(|(_, n)| digits(n));
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
        let huge = "x_18446744073709551615";
        assert_eq!([names.create(huge), names.create(huge)], [huge.to_owned(), format!("{huge}_1")]);
        assert_eq!(Namespace::of_target("split.Tensor"), "split.tensor");
        assert_eq!(Namespace::of_target("sliceCopy"), "slice_copy");
        assert!(is_keyword("from") && is_keyword("yield") && !is_keyword("inf"));
    }

    #[test]
    fn names_of_one_base_take_linear_time() {
        let mut names = Namespace::default();
        let count = 20_000;
        let last = (0..count).map(|_| names.create("g_1")).last();
        assert_eq!(last, Some(format!("g_{count}")));
        // Every one of the used names again: all searches end behind the last one.
        let again = (1..=count).map(|n| names.create(&format!("g_{n}"))).last();
        assert_eq!(again, Some(format!("g_{}", 2 * count)));
        assert_eq!((names.create("g"), names.create("g")), ("g".to_owned(), format!("g_{}", 2 * count + 1)));
    }
}
