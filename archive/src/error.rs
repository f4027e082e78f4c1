//! What can be wrong with an archive, as one type with stable codes.
//!
//! An error says which rule was broken ([`Code`]), whose fault that is ([`Fault`]), and where: the record's name and
//! the byte offset inside the record (inside the file where no record is named). Names and strings that come from the
//! archive are shown escaped and shortened, so an error message can be printed anywhere.

use std::fmt;

pub use flambeau_ir::Fault;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $fault:ident;)*) => {
        /// The rule that an archive broke. The number behind each is stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// All codes in order of their numbers.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// The stable spelling, such as `A0010`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $number,)* }
            }

            /// Whose fault an error with this code is.
            pub const fn fault(self) -> Fault {
                match self { $(Code::$name => Fault::$fault,)* }
            }
        }
    };
}

codes! {
    /// The bytes are no zip file, or its end is missing.
    NotZip = "A0001", Input;
    /// The central directory is damaged or disagrees with the end record.
    Directory = "A0002", Input;
    /// A local header is damaged or disagrees with the central directory.
    LocalHeader = "A0003", Input;
    /// A record's name is empty, absolute, climbs out of the archive or is not text.
    RecordName = "A0004", Input;
    /// Two records have the same name.
    Duplicate = "A0005", Input;
    /// Two records share bytes of the file, or a record leaves the file.
    Overlap = "A0006", Input;
    /// A record is encrypted.
    Encrypted = "A0007", Unsupported;
    /// A record is compressed by something else than deflate.
    Compression = "A0008", Unsupported;
    /// A deflated record does not inflate to what its header says.
    Inflate = "A0009", Input;
    /// The bytes of a record do not have the recorded checksum.
    Checksum = "A0010", Input;
    /// A record that has to be there is missing.
    Missing = "A0011", Input;
    /// The format version is not a number, or not one that is supported.
    Version = "A0012", Input;
    /// A record that is text is not valid UTF-8, or not what such a record may hold.
    Text = "A0013", Input;
    /// The pickle ends in the middle of something.
    PickleEnd = "A0020", Input;
    /// A byte of the pickle is no operation.
    UnknownOpcode = "A0021", Input;
    /// An operation of the pickle language that TorchScript's archives never use.
    UnsupportedOpcode = "A0022", Unsupported;
    /// The pickle's protocol is unknown.
    Protocol = "A0023", Input;
    /// An operation finds too few values or no mark on the stack.
    Stack = "A0024", Input;
    /// The pickle reads a memo entry that was never written.
    Memo = "A0025", Input;
    /// The pickle names a global outside the allow-list.
    Global = "A0026", Input;
    /// An operation is applied to a value of the wrong kind.
    Operand = "A0027", Input;
    /// A number or string in the pickle is malformed or out of range.
    Literal = "A0028", Input;
    /// Bytes follow the end of the pickle.
    Trailing = "A0029", Input;
    /// A storage's description is malformed or disagrees with its record.
    Storage = "A0030", Input;
    /// A tensor's sizes, strides and offset do not fit its storage.
    Geometry = "A0031", Input;
    /// A kind of tensor that is not supported (sparse, quantized, another device).
    TensorKind = "A0032", Unsupported;
    /// The value of the archive is not the object it has to be.
    Root = "A0040", Input;
    /// A class is missing in the archive's code.
    Class = "A0041", Input;
    /// An object's attributes are not those of its class.
    Attribute = "A0042", Input;
    /// A value contains itself.
    Cycle = "A0043", Input;
    /// A kind of value or class that is not supported.
    Value = "A0044", Unsupported;
    /// A value does not have the type that is declared for it.
    Type = "A0045", Input;
    /// A bound of `Limits` would be exceeded.
    Limit = "A0090", Limit;
    /// The file could not be opened, mapped or read.
    Io = "A0091", Input;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An archive is not readable: why, whose fault, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArchiveError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    code: Code,
    message: String,
    record: Option<String>,
    offset: Option<u64>,
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        match (&self.record, self.offset) {
            (Some(record), Some(offset)) => write!(f, " (record {}, byte {offset})", quoted(record)),
            (Some(record), None) => write!(f, " (record {})", quoted(record)),
            (None, Some(offset)) => write!(f, " (byte {offset})"),
            (None, None) => Ok(()),
        }
    }
}

impl ArchiveError {
    /// An error without a place yet.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        ArchiveError(Box::new(Inner { code, message: message.into(), record: None, offset: None }))
    }

    /// The same error, blamed on the record `name` unless a record is named already.
    #[must_use]
    pub fn in_record(mut self, name: &str) -> Self {
        self.0.record.get_or_insert_with(|| name.to_owned());
        self
    }

    /// The same error, at byte `offset` of its record (of the file, if no record is named) unless it has an offset.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// The same error, with the `path` of the value it is about.
    #[must_use]
    pub(crate) fn under(mut self, path: &str) -> Self {
        self.0.message = format!("{path}: {}", self.0.message);
        self
    }

    /// Which rule was broken.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        self.0.code.fault()
    }

    /// What is wrong, without code and place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The record it is about, without the archive's top folder.
    pub fn record(&self) -> Option<&str> {
        self.0.record.as_deref()
    }

    /// The byte it is about: an offset in [`ArchiveError::record`], or in the file if that is `None`.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }
}

/// Text from an archive, fit to be shown: escaped, in backquotes, at most 120 characters.
pub(crate) fn quoted(text: &str) -> String {
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
        for pair in Code::ALL.windows(2) {
            assert!(pair[0].as_str() < pair[1].as_str(), "{} before {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn messages_show_the_place_and_hide_control_characters() {
        let e = ArchiveError::new(Code::Checksum, "the checksum differs").in_record("data/\u{1b}[0").at(7);
        assert_eq!(e.to_string(), "A0010: the checksum differs (record `data/\\u{1b}[0`, byte 7)");
        assert_eq!(e.fault(), Fault::Input);
        assert!(quoted(&"x".repeat(500)).chars().count() < 130);
    }

    #[test]
    fn the_first_place_stays() {
        let e = ArchiveError::new(Code::Stack, "x").at(1).in_record("a").in_record("b").at(2);
        assert_eq!((e.record(), e.offset()), (Some("a"), Some(1)));
    }
}
