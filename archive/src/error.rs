//! Errors of reading and writing archives, as one type with stable codes.
//!
//! An error has the broken rule ([`ArchiveCode`]), its fault class ([`Fault`]), and the location: the name of the record and
//! the byte offset in the record (in the file if there is no record). Names and strings from the archive are escaped
//! and shortened, so an error message can be printed anywhere.

use std::fmt;

pub use flambeau_ir::Fault;

/// The rule that an archive breaks. The number of each code is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArchiveCode {
    /// The bytes are not a zip file, or its end is missing.
    NotZip,
    /// The central directory is damaged or disagrees with the end record.
    Directory,
    /// A local header is damaged or disagrees with the central directory.
    LocalHeader,
    /// A record name is empty, absolute, leaves the archive's folder or is not UTF-8.
    RecordName,
    /// Two records have the same name.
    Duplicate,
    /// Two records overlap in the file, or a record extends beyond it.
    Overlap,
    /// A record is encrypted.
    Encrypted,
    /// A record uses a compression method other than deflate.
    Compression,
    /// A deflated record does not inflate to the size in its header.
    Inflate,
    /// The bytes of a record do not have the recorded checksum.
    Checksum,
    /// A required record is missing.
    Missing,
    /// The format version is not a number, or is not supported.
    Version,
    /// A text record is not valid UTF-8, or its content is invalid for this kind of record.
    Text,
    /// The pickle ends early.
    PickleEnd,
    /// A byte of the pickle is not an opcode.
    UnknownOpcode,
    /// The pickle uses an opcode that the archives of TorchScript never use.
    UnsupportedOpcode,
    /// The pickle's protocol is unknown.
    Protocol,
    /// An opcode finds too few values or no open mark on the stack.
    Stack,
    /// The pickle reads a memo entry that was never written.
    Memo,
    /// The pickle names a global outside the allow-list.
    Global,
    /// An opcode is applied to a value of the wrong kind.
    Operand,
    /// A number or string in the pickle is malformed or out of range.
    Literal,
    /// Bytes follow the end of the pickle.
    Trailing,
    /// A storage's description is malformed or disagrees with its record.
    Storage,
    /// A tensor's sizes, strides and offset do not fit its storage.
    Geometry,
    /// A kind of tensor that is not supported (sparse, quantized, another device).
    TensorKind,
    /// The root value of a pickle is of the wrong kind.
    Root,
    /// A class is missing in the archive's code or malformed.
    Class,
    /// An object's attributes are not those of its class.
    Attribute,
    /// A value contains itself.
    Cycle,
    /// A kind of value or class that is not supported.
    Value,
    /// A value does not have its declared type.
    Type,
    /// A limit of `ArchiveLimits` would be exceeded.
    Limit,
    /// The file could not be opened, mapped or read.
    Io,
}

impl ArchiveCode {
    /// All codes, in the order of their numbers.
    pub const ALL: &'static [ArchiveCode] = &[
        ArchiveCode::NotZip,
        ArchiveCode::Directory,
        ArchiveCode::LocalHeader,
        ArchiveCode::RecordName,
        ArchiveCode::Duplicate,
        ArchiveCode::Overlap,
        ArchiveCode::Encrypted,
        ArchiveCode::Compression,
        ArchiveCode::Inflate,
        ArchiveCode::Checksum,
        ArchiveCode::Missing,
        ArchiveCode::Version,
        ArchiveCode::Text,
        ArchiveCode::PickleEnd,
        ArchiveCode::UnknownOpcode,
        ArchiveCode::UnsupportedOpcode,
        ArchiveCode::Protocol,
        ArchiveCode::Stack,
        ArchiveCode::Memo,
        ArchiveCode::Global,
        ArchiveCode::Operand,
        ArchiveCode::Literal,
        ArchiveCode::Trailing,
        ArchiveCode::Storage,
        ArchiveCode::Geometry,
        ArchiveCode::TensorKind,
        ArchiveCode::Root,
        ArchiveCode::Class,
        ArchiveCode::Attribute,
        ArchiveCode::Cycle,
        ArchiveCode::Value,
        ArchiveCode::Type,
        ArchiveCode::Limit,
        ArchiveCode::Io,
    ];

    const fn row(self) -> (&'static str, Fault, &'static str) {
        match self {
            ArchiveCode::NotZip => {
                ("A0001", Fault::Input, "The bytes are not a zip file, or its end is missing")
            }
            ArchiveCode::Directory => {
                ("A0002", Fault::Input, "The central directory is damaged or disagrees with the end record")
            }
            ArchiveCode::LocalHeader => {
                ("A0003", Fault::Input, "A local header is damaged or disagrees with the central directory")
            }
            ArchiveCode::RecordName => (
                "A0004",
                Fault::Input,
                "A record name is empty, absolute, leaves the archive's folder or is not UTF-8",
            ),
            ArchiveCode::Duplicate => ("A0005", Fault::Input, "Two records have the same name"),
            ArchiveCode::Overlap => {
                ("A0006", Fault::Input, "Two records overlap in the file, or a record extends beyond it")
            }
            ArchiveCode::Encrypted => ("A0007", Fault::Unsupported, "A record is encrypted"),
            ArchiveCode::Compression => {
                ("A0008", Fault::Unsupported, "A record uses a compression method other than deflate")
            }
            ArchiveCode::Inflate => {
                ("A0009", Fault::Input, "A deflated record does not inflate to the size in its header")
            }
            ArchiveCode::Checksum => {
                ("A0010", Fault::Input, "The bytes of a record do not have the recorded checksum")
            }
            ArchiveCode::Missing => ("A0011", Fault::Input, "A required record is missing"),
            ArchiveCode::Version => {
                ("A0012", Fault::Input, "The format version is not a number, or is not supported")
            }
            ArchiveCode::Text => (
                "A0013",
                Fault::Input,
                "A text record is not valid UTF-8, or its content is invalid for this kind of record",
            ),
            ArchiveCode::PickleEnd => ("A0020", Fault::Input, "The pickle ends early"),
            ArchiveCode::UnknownOpcode => ("A0021", Fault::Input, "A byte of the pickle is not an opcode"),
            ArchiveCode::UnsupportedOpcode => (
                "A0022",
                Fault::Unsupported,
                "The pickle uses an opcode that the archives of TorchScript never use",
            ),
            ArchiveCode::Protocol => ("A0023", Fault::Input, "The pickle's protocol is unknown"),
            ArchiveCode::Stack => {
                ("A0024", Fault::Input, "An opcode finds too few values or no open mark on the stack")
            }
            ArchiveCode::Memo => {
                ("A0025", Fault::Input, "The pickle reads a memo entry that was never written")
            }
            ArchiveCode::Global => {
                ("A0026", Fault::Input, "The pickle names a global outside the allow-list")
            }
            ArchiveCode::Operand => {
                ("A0027", Fault::Input, "An opcode is applied to a value of the wrong kind")
            }
            ArchiveCode::Literal => {
                ("A0028", Fault::Input, "A number or string in the pickle is malformed or out of range")
            }
            ArchiveCode::Trailing => ("A0029", Fault::Input, "Bytes follow the end of the pickle"),
            ArchiveCode::Storage => {
                ("A0030", Fault::Input, "A storage's description is malformed or disagrees with its record")
            }
            ArchiveCode::Geometry => {
                ("A0031", Fault::Input, "A tensor's sizes, strides and offset do not fit its storage")
            }
            ArchiveCode::TensorKind => (
                "A0032",
                Fault::Unsupported,
                "A kind of tensor that is not supported (sparse, quantized, another device)",
            ),
            ArchiveCode::Root => ("A0040", Fault::Input, "The root value of a pickle is of the wrong kind"),
            ArchiveCode::Class => {
                ("A0041", Fault::Input, "A class is missing in the archive's code or malformed")
            }
            ArchiveCode::Attribute => {
                ("A0042", Fault::Input, "An object's attributes are not those of its class")
            }
            ArchiveCode::Cycle => ("A0043", Fault::Input, "A value contains itself"),
            ArchiveCode::Value => {
                ("A0044", Fault::Unsupported, "A kind of value or class that is not supported")
            }
            ArchiveCode::Type => ("A0045", Fault::Input, "A value does not have its declared type"),
            ArchiveCode::Limit => ("A0090", Fault::Limit, "A limit of `Limits` would be exceeded"),
            ArchiveCode::Io => ("A0091", Fault::Input, "The file could not be opened, mapped or read"),
        }
    }

    /// Returns the stable spelling, such as `A0010`.
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// Returns the fault class of errors with this code.
    pub const fn fault(self) -> Fault {
        self.row().1
    }

    /// Returns a description of the rule, a sentence without a full stop.
    pub const fn title(self) -> &'static str {
        self.row().2
    }
}

impl fmt::Display for ArchiveCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An archive cannot be read or written: the broken rule, the fault class and the location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArchiveError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    code: ArchiveCode,
    message: String,
    record: Option<String>,
    offset: Option<u64>,
}

impl Inner {
    fn text(&self) -> String {
        let message = &self.message;
        match (&self.record, self.offset) {
            (Some(record), Some(offset)) => format!("{message} (record {}, byte {offset})", quoted(record)),
            (Some(record), None) => format!("{message} (record {})", quoted(record)),
            (None, Some(offset)) => format!("{message} (byte {offset})"),
            (None, None) => message.clone(),
        }
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.text())
    }
}

impl ArchiveError {
    /// Creates an error without a location.
    pub fn new(code: ArchiveCode, message: impl Into<String>) -> Self {
        ArchiveError(Box::new(Inner { code, message: message.into(), record: None, offset: None }))
    }

    /// Returns the message with its location, without the code, for reports that show the code themselves.
    pub fn located_message(&self) -> String {
        self.0.text()
    }

    /// Sets the record of the error, unless the error has one.
    #[must_use]
    pub fn in_record(mut self, name: &str) -> Self {
        self.0.record.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Sets the byte offset in the record (in the file if there is no record), unless the error has one.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Prefixes the message with the `path` of the value.
    #[must_use]
    pub(crate) fn under(mut self, path: &str) -> Self {
        self.0.message = format!("{path}: {}", self.0.message);
        self
    }

    /// Returns the broken rule.
    pub fn code(&self) -> ArchiveCode {
        self.0.code
    }

    /// Returns the fault class.
    pub fn fault(&self) -> Fault {
        self.0.code.fault()
    }

    /// Returns the message without code and location.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the name of the record, without the archive's top folder.
    pub fn record(&self) -> Option<&str> {
        self.0.record.as_deref()
    }

    /// Returns the byte offset in [`ArchiveError::record`], or in the file if that is `None`.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }
}

/// Formats text from a file for display: escaped, in backquotes, at most 120 characters.
pub fn quoted(text: &str) -> String {
    const SHOWN: usize = 120;
    let mut out = String::from("`");
    for (n, c) in text.chars().enumerate() {
        if n == SHOWN {
            out.push('…');
            break;
        }
        if c == '\'' || c == '"' {
            out.push(c);
        } else {
            out.extend(c.escape_debug());
        }
    }
    out.push('`');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_ascending() {
        for pair in ArchiveCode::ALL.windows(2) {
            assert!(pair[0].as_str() < pair[1].as_str(), "{} before {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn messages_show_the_position_and_escape_control_characters() {
        let e =
            ArchiveError::new(ArchiveCode::Checksum, "the checksum differs").in_record("data/\u{1b}[0").at(7);
        assert_eq!(e.to_string(), "A0010: the checksum differs (record `data/\\u{1b}[0`, byte 7)");
        assert_eq!(e.fault(), Fault::Input);
        assert!(quoted(&"x".repeat(500)).chars().count() < 130);
    }

    #[test]
    fn the_innermost_position_is_kept() {
        let e = ArchiveError::new(ArchiveCode::Stack, "x").at(1).in_record("a").in_record("b").at(2);
        assert_eq!((e.record(), e.offset()), (Some("a"), Some(1)));
    }
}
