//! The trait of commands of test files.

use super::file::TestFile;

/// A command: the first word after `test` in the head of a file.
pub trait Command: Sync {
    /// Returns the command's name.
    fn name(&self) -> &'static str;

    /// Runs the command on the program of a file. `args` is the text after the name. The returned text is compared with
    /// the block at the end of the file; an empty text is not compared.
    ///
    /// # Errors
    /// Returns the errors of the program, which are compared with the file's error marks.
    fn run(&self, file: &TestFile, program: &str, args: &str) -> Result<String, Vec<Blame>>;

    /// Returns whether the command must print the same for a program that was printed and parsed again. False for
    /// commands that print source locations or whose output depends on the text.
    fn survives_round_trip(&self) -> bool {
        true
    }
}

/// An error with the line of the file it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blame {
    /// The line, from 1; `None` if the error has no location.
    pub line: Option<usize>,
    /// The message.
    pub message: String,
}

impl Blame {
    /// Creates an error without a location.
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
