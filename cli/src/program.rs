//! Programs from files: source, IR text or archive, recognized by content, or by extension if the content is ambiguous.

use crate::output::{command_line_error, usage};
use anyhow::{Context, Result, bail};
use flambeau::rewrite::Pipeline;
use flambeau::{Entry, Error, Program, Session};
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Source,
    Ir,
    Archive,
}

/// Options that select a program and one of its entries.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ProgramArgs {
    /// A `.py`, `.ir`, `.pt` or, for commands that take exported programs, `.pt2` file; `-` for standard input.
    pub(crate) file: String,
    /// Function or method; the default is `forward`, or the only one.
    #[arg(long, short)]
    pub(crate) entry: Option<String>,
    /// Copy tensors from an archive's file instead of mapping the file, for files that other processes may modify. With
    /// this option all checksums are verified, otherwise those of the first 16 MB.
    #[arg(long)]
    pub(crate) copy: bool,
}

/// Option for the number of threads.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ThreadArgs {
    /// Number of threads for large loops; the default is the number of cores. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

impl ThreadArgs {
    /// Returns the session with this number of threads.
    pub(crate) fn of(&self, session: &Session) -> Session {
        session.with_threads(usize::from(self.threads.unwrap_or(0)))
    }
}

/// Parses the pipeline of an option.
pub(crate) fn pipeline(session: &Session, text: &str) -> Result<Pipeline> {
    session.pipeline(text).map_err(usage)
}

/// Returns the session with memory-mapped tensors, unless `copy` is set.
pub(crate) fn sharing(session: &Session, copy: bool) -> Session {
    let mut options = session.load_options().clone();
    options.map = !copy;
    session.with_load_options(options)
}

/// Like [`sharing`], with the extra files of an archive.
pub(crate) fn with_files(session: &Session, copy: bool) -> Session {
    let mut options = session.load_options().clone();
    (options.map, options.extra_files) = (!copy, true);
    session.with_load_options(options)
}

/// Number of bytes from which the format of a file is recognized.
const HEAD: u64 = 4096;

/// Recognizes a format by the first bytes: zip archives begin with `PK`, graphs with `graph(`, possibly after comments.
fn kind_of(bytes: &[u8], name: &str) -> Kind {
    let text = without_comments(bytes);
    let extension = Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or("");
    if bytes.starts_with(b"PK") || matches!(extension, "pt" | "pt2") {
        Kind::Archive
    } else if text.starts_with(b"graph(") || extension == "ir" {
        Kind::Ir
    } else {
        Kind::Source
    }
}

/// Returns the text from the first line that is neither blank nor a comment of IR text.
fn without_comments(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        if !matches!(text.first(), Some(b'#' | b';')) {
            return text;
        }
        let end = text.iter().position(|&b| b == b'\n').unwrap_or(text.len());
        text = &text[end..];
    }
}

impl ProgramArgs {
    /// Returns the file's bytes.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>> {
        // Standard input can be read once, but several readers may look at it.
        static STDIN: OnceLock<Vec<u8>> = OnceLock::new();
        if self.file == "-" {
            if let Some(bytes) = STDIN.get() {
                return Ok(bytes.clone());
            }
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).context("reading standard input")?;
            return Ok(STDIN.get_or_init(|| bytes).clone());
        }
        std::fs::read(&self.file).with_context(|| format!("reading {}", self.file))
    }

    /// Returns whether the path is a regular file that contains an archive.
    pub(crate) fn is_archive_file(&self) -> Result<bool> {
        let reading = || format!("reading {}", self.file);
        if self.file == "-" || !std::fs::metadata(&self.file).with_context(reading)?.is_file() {
            return Ok(false);
        }
        let mut head = Vec::new();
        let file = std::fs::File::open(&self.file).with_context(reading)?;
        file.take(HEAD).read_to_end(&mut head).with_context(reading)?;
        Ok(kind_of(&head, &self.file) == Kind::Archive)
    }

    /// Loads the program.
    pub(crate) fn load(&self, session: &Session) -> Result<Program> {
        if self.is_archive_file()? {
            return Ok(sharing(session, self.copy).load_archive(&self.file)?);
        }
        let bytes = self.bytes()?;
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).map_err(|e| {
                let at = e.utf8_error().valid_up_to();
                Error::new(flambeau::Fault::Input, "T0000", format!("{}: not UTF-8 at byte {at}", self.file))
            })
        };
        Ok(match kind_of(&bytes, &self.file) {
            Kind::Archive => session.load_archive_bytes(&bytes)?,
            Kind::Ir => session.parse_ir_named(&text(bytes)?, &self.file)?,
            Kind::Source => session.compile_source(&text(bytes)?, &self.file)?,
        })
    }

    /// Returns the selected entry.
    pub(crate) fn pick(&self, program: &Program) -> Result<Entry> {
        let name = match &self.entry {
            Some(name) => name.clone(),
            None => {
                let all = program.entries();
                match all.as_slice() {
                    [only] => only.clone(),
                    _ if program.has_hooks() => "__call__".to_owned(),
                    _ if all.iter().any(|n| n == "forward") => "forward".to_owned(),
                    [] => bail!("{} has no functions", self.file),
                    _ => {
                        let all = all.join(", ");
                        let text =
                            format!("{} has several functions; choose one by --entry: {all}", self.file);
                        return Err(command_line_error(text));
                    }
                }
            }
        };
        program.entry(&name).map_err(|error| {
            // An unknown entry is an error of the command line; one that does not compile is an error of the program.
            let is_named = self.entry.is_some() && !program.entries().contains(&name);
            if is_named { usage(error) } else { error.into() }
        })
    }

    /// Loads the program and returns the selected entry.
    pub(crate) fn entry(&self, session: &Session) -> Result<Entry> {
        self.pick(&self.load(session)?)
    }
}
