//! Parsing of test files, and writing them with new expectations.

use std::path::{Path, PathBuf};

/// The language of the program in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// IR text (`.ir`); comments start with `;`.
    Ir,
    /// TorchScript source (`.py`); comments start with `#`.
    Source,
}

/// A test file.
#[derive(Debug, Clone)]
pub struct TestFile {
    /// The path.
    pub path: PathBuf,
    /// The language of the program.
    pub language: Language,
    /// The commands in the head, as written: `opt cse,dce`.
    pub commands: Vec<String>,
    /// The program, with its lines at the same numbers as in the file.
    pub program: String,
    /// Functions called by a program in IR text: qualified names and graphs, each after a line `function NAME`.
    pub functions: Vec<(String, String)>,
    /// The calls to make.
    pub runs: Vec<RunLine>,
    /// The expected errors.
    pub errors: Vec<ErrorMark>,
    /// The expected output of the commands: command and text.
    pub blocks: Vec<(String, String)>,
    /// All lines before the blocks, unchanged.
    head: Vec<String>,
}

/// A line `run: CALL == RESULT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLine {
    /// The line number, from 1.
    pub line: usize,
    /// The text of the call.
    pub call: String,
    /// The expected result; `None` if the line has none yet.
    pub expected: Option<Expected>,
}

/// The expected result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// `== VALUE`: exactly this value.
    Exactly(String),
    /// `~= VALUE`: this value, up to rounding of 32-bit floats.
    About(String),
    /// `raises "TEXT"`: an error whose message contains the text.
    Raises(String),
}

/// A mark `error: TEXT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorMark {
    /// The line of the error, from 1; `None` if any line is accepted (a mark before the program).
    pub line: Option<usize>,
    /// The text that the message must contain.
    pub text: String,
}

impl TestFile {
    /// Returns the same file with another program.
    #[must_use]
    pub fn with_program(&self, program: &str) -> TestFile {
        TestFile { program: program.to_owned(), ..self.clone() }
    }

    /// Reads and parses a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or parsed: see [`TestFile::parse`].
    pub fn read(path: &Path) -> Result<TestFile, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        TestFile::parse(path, &text)
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// Returns an error if the file extension is unknown, a `run:` line is invalid, or there is no command.
    pub fn parse(path: &Path, text: &str) -> Result<TestFile, String> {
        let language = match path.extension().and_then(|e| e.to_str()) {
            Some("ir") => Language::Ir,
            Some("py") => Language::Source,
            _ => return Err(format!("{}: neither .ir nor .py", path.display())),
        };
        let mut file = TestFile {
            path: path.to_path_buf(),
            language,
            commands: Vec::new(),
            program: String::new(),
            functions: Vec::new(),
            runs: Vec::new(),
            errors: Vec::new(),
            blocks: Vec::new(),
            head: Vec::new(),
        };
        let mut in_blocks = false;
        let mut last_code = None;
        for (index, line) in text.lines().enumerate() {
            let comment = file.comment(line).map(str::to_string);
            if let Some(name) = comment.as_deref().and_then(|c| c.strip_prefix("== ")) {
                in_blocks = true;
                file.blocks.push((name.trim().to_string(), String::new()));
            } else if in_blocks {
                file.block_line(line, comment.as_deref())?;
            } else {
                file.head_line(index + 1, line, comment.as_deref(), &mut last_code)?;
            }
        }
        if file.commands.is_empty() {
            return Err(format!("{}: no command (`{} test …`)", path.display(), file.prefix()));
        }
        Ok(file)
    }

    /// Returns the file's path for messages.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns the text of a command's block; `None` if there is no block.
    pub fn block(&self, command: &str) -> Option<&str> {
        self.blocks.iter().find(|(name, _)| name == command).map(|(_, text)| text.as_str())
    }

    /// Returns the text of the file with these expectations.
    pub fn with(&self, runs: &[RunLine], blocks: &[(String, String)]) -> String {
        let mut lines = self.head.clone();
        for run in runs {
            let Some(line) = lines.get_mut(run.line - 1) else { continue };
            let expected = match &run.expected {
                None => String::new(),
                Some(Expected::Exactly(value)) => format!(" == {value}"),
                Some(Expected::About(value)) => format!(" ~= {value}"),
                Some(Expected::Raises(text)) => {
                    let mut quoted = String::new();
                    crate::value::print::string(text, &mut quoted);
                    format!(" raises {quoted}")
                }
            };
            *line = format!("{} run: {}{expected}", self.prefix(), run.call);
        }
        while lines.last().is_some_and(|l| l.trim().is_empty()) {
            lines.pop();
        }
        for (name, text) in blocks {
            lines.push(String::new());
            lines.push(format!("{} == {name}", self.prefix()));
            lines.extend(text.lines().map(|l| format!("{} {l}", self.prefix()).trim_end().to_string()));
        }
        lines.join("\n") + "\n"
    }

    fn prefix(&self) -> char {
        match self.language {
            Language::Ir => ';',
            Language::Source => '#',
        }
    }

    /// Returns the text of a line that consists of a comment.
    fn comment<'a>(&self, line: &'a str) -> Option<&'a str> {
        let text = line.strip_prefix(self.prefix())?;
        Some(text.strip_prefix(' ').unwrap_or(text))
    }

    fn block_line(&mut self, line: &str, comment: Option<&str>) -> Result<(), String> {
        let Some((_, text)) = self.blocks.last_mut() else { return Ok(()) };
        match comment {
            Some(comment) => {
                text.push_str(comment);
                text.push('\n');
                Ok(())
            }
            None if line.trim().is_empty() => Ok(()),
            None => Err(format!("{}: `{line}` is not a comment of expectations", self.path.display())),
        }
    }

    fn head_line(
        &mut self,
        number: usize,
        line: &str,
        comment: Option<&str>,
        last_code: &mut Option<usize>,
    ) -> Result<(), String> {
        self.head.push(line.to_string());
        let mut code = line;
        if line.trim_end().ends_with(&format!("{} error:", self.prefix())) {
            return Err(format!("{}:{number}: an error mark without a text", self.path.display()));
        }
        if let Some(comment) = comment {
            let function = comment.strip_prefix("function ").map(str::trim);
            let is_name = |name: &&str| !name.contains(char::is_whitespace);
            if let Some(name) = function.filter(is_name).filter(|_| self.language == Language::Ir) {
                // Keeps the line numbers of the file.
                self.functions.push((name.to_string(), "\n".repeat(number - 1)));
            } else if let Some(command) = comment.strip_prefix("test ") {
                self.commands.push(command.trim().to_string());
            } else if let Some(call) = comment.strip_prefix("run: ") {
                let run = run_line(number, call)
                    .map_err(|why| format!("{}:{number}: {why}", self.path.display()))?;
                self.runs.push(run);
            } else if let Some(text) = comment.strip_prefix("error: ") {
                self.errors.push(ErrorMark { line: *last_code, text: text.trim().to_string() });
            }
            code = "";
        } else if let Some((before, text)) = line.split_once(&format!("{} error: ", self.prefix())) {
            self.errors.push(ErrorMark { line: Some(number), text: text.trim().to_string() });
            code = before.trim_end();
        }
        if !code.trim().is_empty() {
            *last_code = Some(number);
        }
        let text = self.functions.last_mut().map_or(&mut self.program, |(_, text)| text);
        text.push_str(code);
        text.push('\n');
        Ok(())
    }
}

fn run_line(line: usize, text: &str) -> Result<RunLine, String> {
    let (_, rest) = crate::value::literal::parse_call(text)?;
    let call = text[..text.len() - rest.len()].trim();
    let rest = rest.trim();
    let expected = if rest.is_empty() {
        None
    } else if let Some(value) = rest.strip_prefix("==") {
        Some(Expected::Exactly(value.trim().to_string()))
    } else if let Some(value) = rest.strip_prefix("~=") {
        Some(Expected::About(value.trim().to_string()))
    } else if let Some(text) = rest.strip_prefix("raises") {
        let value = crate::value::literal::parse(text)?;
        let text = value.get("v").and_then(|v| v.as_str()).ok_or("`raises` needs a text in quotes")?;
        Some(Expected::Raises(text.to_string()))
    } else {
        return Err(format!("`{rest}`: expected `== VALUE`, `~= VALUE` or `raises \"TEXT\"`"));
    };
    Ok(RunLine { line, call: call.to_string(), expected })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "; test opt cse\n; test run\n; what it shows\ngraph(%a : int):\n  %b : int = x::y(%a) ; error: no x::y\n  return (%b)\n\n; run: main(1) == 2\n; run: main([1, 2])\n\n; == opt cse\n; graph(%a : int):\n;\n;   return (%a)\n";

    fn file() -> TestFile {
        TestFile::parse(Path::new("a.ir"), TEXT).unwrap()
    }

    #[test]
    fn a_file_is_parsed() {
        let f = file();
        assert_eq!(f.commands, ["opt cse", "run"]);
        assert_eq!(f.program, "\n\n\ngraph(%a : int):\n  %b : int = x::y(%a)\n  return (%b)\n\n\n\n\n");
        assert_eq!(f.errors, [ErrorMark { line: Some(5), text: "no x::y".to_string() }]);
        assert_eq!(f.runs[0].call, "main(1)");
        assert_eq!(f.runs[0].expected, Some(Expected::Exactly("2".to_string())));
        assert_eq!((f.runs[1].line, f.runs[1].expected.clone()), (9, None));
        assert_eq!(f.block("opt cse"), Some("graph(%a : int):\n\n  return (%a)\n"));
    }

    #[test]
    fn functions_are_separate_from_the_program() {
        let text = "; test run\ngraph():\n  return ()\n; function m.f\ngraph(%x : int):\n  return (%x)\n; run: main()\n";
        let f = TestFile::parse(Path::new("a.ir"), text).unwrap();
        assert_eq!(f.program, "\ngraph():\n  return ()\n");
        assert_eq!(f.functions.len(), 1);
        assert_eq!(f.functions[0].0, "m.f");
        assert_eq!(f.functions[0].1, "\n\n\n\ngraph(%x : int):\n  return (%x)\n\n");
        assert_eq!(f.with(&f.runs, &f.blocks), text);
    }

    #[test]
    fn blessed_files_read_back() {
        let f = file();
        assert_eq!(f.with(&f.runs, &f.blocks), TEXT);
        let mut runs = f.runs.clone();
        runs[1].expected = Some(Expected::Raises("a \"b\"".to_string()));
        let text = f.with(&runs, &[("opt cse".to_string(), "new\n".to_string())]);
        let again = TestFile::parse(Path::new("a.ir"), &text).unwrap();
        assert_eq!(again.runs, runs);
        assert_eq!(again.block("opt cse"), Some("new\n"));
    }

    #[test]
    fn sources_keep_their_comments() {
        let text = "# test run\n# a remark\ndef f(x: int):\n    return x  # error: no\n# run: f(1) ~= 1.0\n";
        let f = TestFile::parse(Path::new("a.py"), text).unwrap();
        assert_eq!(f.language, Language::Source);
        assert_eq!(f.errors[0].line, Some(4));
        assert_eq!(f.runs[0].expected, Some(Expected::About("1.0".to_string())));
        assert!(TestFile::parse(Path::new("a.py"), "def f(): pass\n").is_err());
    }
}
