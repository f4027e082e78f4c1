//! Fast paths: common cases of operators on dictionaries and strings that the machine handles without calling a kernel.
//!
//! An operator with this facet is emitted as two instructions: `Fast` tries the common case on the registers and, if it
//! applies, skips the next instruction, which calls the kernel. Everything else, errors included, is left to the kernel,
//! so a fast path may refuse for any reason.

use flambeau_ir::Facet;

/// The common case of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FastPath {
    /// `(dict, key) -> value` of a key that is present.
    DictGet,
    /// `(dict, key, value) -> ()` for a key that is present.
    DictSet,
    /// `(dict, key) -> bool`: whether the key is present.
    DictContains,
    /// `(str, str) -> str`: the concatenation of short strings.
    StrAdd,
    /// `(str, str, start, end) -> int`: the position of a byte, or -1.
    StrFind,
    /// `(value) -> str`: the text of an integer.
    StrOfInt,
}

impl Facet for FastPath {
    const NAME: &'static str = "fast_path";
}

impl FastPath {
    const ALL: [FastPath; 6] = [
        FastPath::DictGet,
        FastPath::DictSet,
        FastPath::DictContains,
        FastPath::StrAdd,
        FastPath::StrFind,
        FastPath::StrOfInt,
    ];

    /// Returns the number of operands and results.
    pub(crate) fn arity(self) -> (usize, usize) {
        match self {
            FastPath::DictSet => (3, 0),
            FastPath::StrFind => (4, 1),
            FastPath::StrOfInt => (1, 1),
            _ => (2, 1),
        }
    }

    /// Whether the first operand is a dictionary.
    pub(crate) fn accesses_dict(self) -> bool {
        matches!(self, FastPath::DictGet | FastPath::DictSet | FastPath::DictContains)
    }

    /// Whether the operator reads an operand without passing it on: neither the operand nor its identity is observable
    /// afterwards.
    pub(crate) fn only_reads(self, index: usize) -> bool {
        match self {
            FastPath::DictGet | FastPath::DictContains => index == 1,
            FastPath::StrAdd | FastPath::StrFind => true,
            FastPath::DictSet | FastPath::StrOfInt => false,
        }
    }

    /// Decodes the field of an instruction.
    #[inline(always)]
    pub(crate) fn of_field(field: u8) -> Option<FastPath> {
        FastPath::ALL.get(usize::from(field)).copied()
    }
}

/// Facet of an operator that lists what a dictionary contains, `(dict) -> list`. If the list is only read while the dictionary does
/// not change, the machine reads the dictionary instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DictList {
    /// The keys.
    Keys,
    /// The values.
    Values,
    /// Pairs of key and value.
    Items,
}

impl Facet for DictList {
    const NAME: &'static str = "dict_list";
}

const _: () = assert!(FastPath::ALL[FastPath::StrOfInt as usize] as u8 == FastPath::StrOfInt as u8);
