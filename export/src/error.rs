//! Errors of reading, checking and lowering exported programs, as one type with stable codes.
//!
//! An error has the broken rule ([`ExportCode`]), its fault class, and the location: the record of the file, the byte
//! offset in it, the node, and the path of the field. Parts of the location are set by the caller that knows them; the
//! innermost wins. Text from a file is escaped and shortened, so that a message can be printed anywhere.

use std::fmt;

pub use flambeau_archive::quoted;
use flambeau_archive::{ArchiveCode, ArchiveError};
pub use flambeau_ir::Fault;

use crate::expr::ExprError;

/// The rule that an exported program breaks. The spelling of each code is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExportCode {
    /// A rule of the container, a pickle or a tensor within the file.
    Archive(ArchiveCode),
    /// The file has neither of the known layouts.
    Layout,
    /// A record is not JSON.
    Json,
    /// A field is missing, occurs twice, or has a value of another kind.
    Field,
    /// A union has an unknown tag, or not exactly one.
    Tag,
    /// An enumeration has an unknown number.
    Number,
    /// The schema has another major version.
    Schema,
    /// Two values of a graph have the same name.
    DuplicateName,
    /// An argument names a value that is not defined before its use.
    UndefinedName,
    /// A weight or constant disagrees with its record.
    Weight,
    /// A limit would be exceeded.
    Limit,
    /// A tree spec is malformed, or has a container that is not supported.
    TreeSpec,
    /// A node calls an operator that is not registered or not supported.
    Operator,
    /// An argument of a node does not fit its operator.
    Argument,
    /// The program has parts that the requested version of the file cannot contain, or that cannot be written.
    Version,
    /// A TorchScript program does something that an exported program cannot do.
    Export,
    /// The arguments of a call do not have the structure, sizes or values that the program requires.
    Call,
    /// The text of a symbolic expression is malformed.
    Expression,
    /// A value has no metadata of its kind.
    Metadata,
    /// A node calls something that is not an operator.
    NotOperator,
    /// An operator of a decomposed program writes to its inputs.
    NotFunctional,
    /// Graph and signature have different numbers of inputs.
    InputCount,
    /// An input of the graph has another name than in the signature.
    InputName,
    /// A parameter is not in the state dict, or is a buffer there.
    Parameter,
    /// A persistent buffer is not in the state dict, or a non-persistent one is.
    Buffer,
    /// A constant of the signature is not in the file.
    Constant,
    /// Graph and signature have different numbers of outputs.
    OutputCount,
    /// An output has another name than in the signature, or comes too late.
    OutputOrder,
    /// A mutation or gradient names an input that does not exist.
    Mutation,
    /// Nothing uses a lifted constant.
    UnusedConstant,
    /// The call of a submodule names a value that does not exist.
    ModuleCall,
    /// A tree spec has another number of leaves than the signature.
    TreeLeaves,
    /// The verifier is not known.
    Verifier,
    /// The range of a symbol is empty.
    Range,
}

impl ExportCode {
    /// All codes of this crate, in the order of their spelling; codes of archives are not among them.
    pub const ALL: &'static [ExportCode] = &[
        ExportCode::Layout,
        ExportCode::Json,
        ExportCode::Field,
        ExportCode::Tag,
        ExportCode::Number,
        ExportCode::Schema,
        ExportCode::DuplicateName,
        ExportCode::UndefinedName,
        ExportCode::Weight,
        ExportCode::Limit,
        ExportCode::TreeSpec,
        ExportCode::Operator,
        ExportCode::Argument,
        ExportCode::Call,
        ExportCode::Expression,
        ExportCode::Version,
        ExportCode::Export,
        ExportCode::Metadata,
        ExportCode::NotOperator,
        ExportCode::NotFunctional,
        ExportCode::InputCount,
        ExportCode::InputName,
        ExportCode::Parameter,
        ExportCode::Buffer,
        ExportCode::Constant,
        ExportCode::OutputCount,
        ExportCode::OutputOrder,
        ExportCode::Mutation,
        ExportCode::UnusedConstant,
        ExportCode::ModuleCall,
        ExportCode::TreeLeaves,
        ExportCode::Verifier,
        ExportCode::Range,
    ];

    /// Returns the stable spelling, such as `E002`.
    pub const fn as_str(self) -> &'static str {
        match self {
            ExportCode::Archive(code) => code.as_str(),
            ExportCode::Layout => "E000",
            ExportCode::Json => "E001",
            ExportCode::Field => "E002",
            ExportCode::Tag => "E003",
            ExportCode::Number => "E004",
            ExportCode::Schema => "E005",
            ExportCode::DuplicateName => "E006",
            ExportCode::UndefinedName => "E007",
            ExportCode::Weight => "E008",
            ExportCode::Limit => "E009",
            ExportCode::TreeSpec => "E010",
            ExportCode::Operator => "E011",
            ExportCode::Argument => "E012",
            ExportCode::Call => "E013",
            ExportCode::Expression => "E014",
            ExportCode::Version => "E015",
            ExportCode::Export => "E016",
            ExportCode::Metadata => "E060",
            ExportCode::NotOperator => "E061",
            ExportCode::NotFunctional => "E062",
            ExportCode::InputCount => "E063",
            ExportCode::InputName => "E064",
            ExportCode::Parameter => "E065",
            ExportCode::Buffer => "E066",
            ExportCode::Constant => "E067",
            ExportCode::OutputCount => "E068",
            ExportCode::OutputOrder => "E069",
            ExportCode::Mutation => "E070",
            ExportCode::UnusedConstant => "E071",
            ExportCode::ModuleCall => "E072",
            ExportCode::TreeLeaves => "E073",
            ExportCode::Verifier => "E074",
            ExportCode::Range => "E075",
        }
    }

    /// Returns the fault class of errors with this code.
    pub const fn fault(self) -> Fault {
        match self {
            ExportCode::Archive(code) => code.fault(),
            ExportCode::Schema | ExportCode::Operator | ExportCode::Version | ExportCode::Export => {
                Fault::Unsupported
            }
            ExportCode::Limit => Fault::Limit,
            _ => Fault::Input,
        }
    }
}

impl fmt::Display for ExportCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An exported program cannot be read, checked or lowered: the broken rule, the fault class and the location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExportError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    code: ExportCode,
    message: String,
    record: Option<String>,
    offset: Option<u64>,
    node: Option<String>,
    field: String,
}

impl Inner {
    fn text(&self) -> String {
        let mut parts = Vec::new();
        if let Some(record) = &self.record {
            parts.push(format!("record {}", quoted(record)));
        }
        if let Some(offset) = self.offset {
            parts.push(format!("byte {offset}"));
        }
        if let Some(node) = &self.node {
            parts.push(format!("node {}", quoted(node)));
        }
        if !self.field.is_empty() {
            parts.push(format!("field {}", quoted(&self.field)));
        }
        match parts.is_empty() {
            true => self.message.clone(),
            false => format!("{} ({})", self.message, parts.join(", ")),
        }
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.text())
    }
}

impl ExportError {
    /// Creates an error without a location.
    pub fn new(code: ExportCode, message: impl Into<String>) -> Self {
        let message = message.into();
        ExportError(Box::new(Inner {
            code,
            message,
            record: None,
            offset: None,
            node: None,
            field: String::new(),
        }))
    }

    /// Sets the record of the error, unless the error has one.
    #[must_use]
    pub fn in_record(mut self, name: &str) -> Self {
        self.0.record.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Replaces the record of the error, for a record within another one.
    #[must_use]
    pub fn with_record(mut self, name: &str) -> Self {
        self.0.record = Some(name.to_owned());
        self
    }

    /// Sets the byte offset in the record, unless the error has one.
    #[must_use]
    pub fn at(mut self, offset: usize) -> Self {
        self.0.offset.get_or_insert(offset as u64);
        self
    }

    /// Sets the node of the error, unless the error has one.
    #[must_use]
    pub fn at_node(mut self, name: &str) -> Self {
        self.0.node.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Prefixes the path of the field with `name`: `nodes` before `[3].inputs`.
    #[must_use]
    pub fn in_field(mut self, name: &str) -> Self {
        let inner = &mut self.0.field;
        let dot = if inner.is_empty() || inner.starts_with('[') { "" } else { "." };
        *inner = format!("{name}{dot}{inner}");
        self
    }

    /// Prefixes the path of the field with an index.
    #[must_use]
    pub fn in_item(self, index: usize) -> Self {
        self.in_field(&format!("[{index}]"))
    }

    /// Returns the broken rule.
    pub fn code(&self) -> ExportCode {
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

    /// Returns the message with its location, without the code, for reports that show the code themselves.
    pub fn located_message(&self) -> String {
        self.0.text()
    }

    /// Returns the name of the record.
    pub fn record(&self) -> Option<&str> {
        self.0.record.as_deref()
    }

    /// Returns the byte offset in the record.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the name of the node.
    pub fn node(&self) -> Option<&str> {
        self.0.node.as_deref()
    }

    /// Returns the path of the field, such as `graph.nodes[3].inputs[0]`; empty if there is none.
    pub fn field(&self) -> &str {
        &self.0.field
    }
}

impl From<ArchiveError> for ExportError {
    fn from(error: ArchiveError) -> Self {
        let mut out = ExportError::new(ExportCode::Archive(error.code()), error.message());
        out.0.record = error.record().map(str::to_owned);
        out.0.offset = error.offset();
        out
    }
}

impl From<ExprError> for ExportError {
    fn from(error: ExprError) -> Self {
        let code = match error {
            ExprError::Limit(_) => ExportCode::Limit,
            _ => ExportCode::Expression,
        };
        ExportError::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_ascending() {
        for pair in ExportCode::ALL.windows(2) {
            assert!(pair[0].as_str() < pair[1].as_str(), "{} before {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn the_location_names_record_node_and_field() {
        let e = ExportError::new(ExportCode::Field, "expected an int, found a string");
        let e = e.in_field("as_int").in_item(2).in_field("inputs").in_field("graph");
        let e = e.at_node("add_1").at_node("outer").at(17).in_record("models/model.json");
        assert_eq!(
            e.to_string(),
            "E002: expected an int, found a string (record `models/model.json`, byte 17, node `add_1`, \
             field `graph.inputs[2].as_int`)"
        );
    }
}
