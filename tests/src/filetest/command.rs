//! What a command of a test file is.

use super::file::TestFile;

/// A command: what stands behind `test` at the head of a file.
pub trait Command: Sync {
    /// Its first word.
    fn name(&self) -> &'static str;

    /// Runs it on the program of a file, `args` being what follows its name. What it returns is compared with the
    /// block at the end of the file; nothing is compared where it returns an empty text.
    ///
    /// # Errors
    /// What the program is blamed for; compared with the file's error marks.
    fn run(&self, file: &TestFile, program: &str, args: &str) -> Result<String, Vec<Blame>>;

    /// Whether it has to print the same for a program that was printed and read back: not where it shows places in
    /// the text, or the text is about errors.
    fn survives_round_trip(&self) -> bool {
        true
    }
}

/// An error, and the line of the file it is blamed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blame {
    /// Counted from 1; `None` where the error has no place.
    pub line: Option<usize>,
    /// The message.
    pub message: String,
}

impl Blame {
    /// An error without a place.
    pub fn nowhere(message: impl std::fmt::Display) -> Vec<Blame> {
        vec![Blame { line: None, message: message.to_string() }]
    }
}

impl std::fmt::Display for Blame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}
