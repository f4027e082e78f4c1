//! The opcodes of the pickle language, protocols 0 to 5.
//!
//! All opcodes are known by name, for error messages. Opcodes that TorchScript's pickler never writes and whose values
//! have no counterpart in TorchScript are rejected: sets, byte arrays, the extension registry, and instantiation by
//! class name.

use std::fmt;

/// Whether the machine supports an opcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// The machine executes it.
    Full,
    /// The machine reports an error that names it.
    Refused,
}

/// An opcode of the pickle language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are those of the pickle language's own specification")]
#[expect(non_camel_case_types, reason = "the names are those of the pickle language's own specification")]
pub enum PickleOp {
    MARK = b'(',
    STOP = b'.',
    POP = b'0',
    POP_MARK = b'1',
    DUP = b'2',
    FLOAT = b'F',
    INT = b'I',
    BININT = b'J',
    BININT1 = b'K',
    LONG = b'L',
    BININT2 = b'M',
    NONE = b'N',
    PERSID = b'P',
    BINPERSID = b'Q',
    REDUCE = b'R',
    STRING = b'S',
    BINSTRING = b'T',
    SHORT_BINSTRING = b'U',
    UNICODE = b'V',
    BINUNICODE = b'X',
    APPEND = b'a',
    BUILD = b'b',
    GLOBAL = b'c',
    DICT = b'd',
    EMPTY_DICT = b'}',
    APPENDS = b'e',
    GET = b'g',
    BINGET = b'h',
    INST = b'i',
    LONG_BINGET = b'j',
    LIST = b'l',
    EMPTY_LIST = b']',
    OBJ = b'o',
    PUT = b'p',
    BINPUT = b'q',
    LONG_BINPUT = b'r',
    SETITEM = b's',
    TUPLE = b't',
    EMPTY_TUPLE = b')',
    SETITEMS = b'u',
    BINFLOAT = b'G',
    PROTO = 0x80,
    NEWOBJ = 0x81,
    EXT1 = 0x82,
    EXT2 = 0x83,
    EXT4 = 0x84,
    TUPLE1 = 0x85,
    TUPLE2 = 0x86,
    TUPLE3 = 0x87,
    NEWTRUE = 0x88,
    NEWFALSE = 0x89,
    LONG1 = 0x8a,
    LONG4 = 0x8b,
    BINBYTES = b'B',
    SHORT_BINBYTES = b'C',
    SHORT_BINUNICODE = 0x8c,
    BINUNICODE8 = 0x8d,
    BINBYTES8 = 0x8e,
    EMPTY_SET = 0x8f,
    ADDITEMS = 0x90,
    FROZENSET = 0x91,
    NEWOBJ_EX = 0x92,
    STACK_GLOBAL = 0x93,
    MEMOIZE = 0x94,
    FRAME = 0x95,
    BYTEARRAY8 = 0x96,
    NEXT_BUFFER = 0x97,
    READONLY_BUFFER = 0x98,
}

impl PickleOp {
    /// All opcodes.
    pub const ALL: &'static [PickleOp] = &[
        PickleOp::MARK,
        PickleOp::STOP,
        PickleOp::POP,
        PickleOp::POP_MARK,
        PickleOp::DUP,
        PickleOp::FLOAT,
        PickleOp::INT,
        PickleOp::BININT,
        PickleOp::BININT1,
        PickleOp::LONG,
        PickleOp::BININT2,
        PickleOp::NONE,
        PickleOp::PERSID,
        PickleOp::BINPERSID,
        PickleOp::REDUCE,
        PickleOp::STRING,
        PickleOp::BINSTRING,
        PickleOp::SHORT_BINSTRING,
        PickleOp::UNICODE,
        PickleOp::BINUNICODE,
        PickleOp::APPEND,
        PickleOp::BUILD,
        PickleOp::GLOBAL,
        PickleOp::DICT,
        PickleOp::EMPTY_DICT,
        PickleOp::APPENDS,
        PickleOp::GET,
        PickleOp::BINGET,
        PickleOp::INST,
        PickleOp::LONG_BINGET,
        PickleOp::LIST,
        PickleOp::EMPTY_LIST,
        PickleOp::OBJ,
        PickleOp::PUT,
        PickleOp::BINPUT,
        PickleOp::LONG_BINPUT,
        PickleOp::SETITEM,
        PickleOp::TUPLE,
        PickleOp::EMPTY_TUPLE,
        PickleOp::SETITEMS,
        PickleOp::BINFLOAT,
        PickleOp::PROTO,
        PickleOp::NEWOBJ,
        PickleOp::EXT1,
        PickleOp::EXT2,
        PickleOp::EXT4,
        PickleOp::TUPLE1,
        PickleOp::TUPLE2,
        PickleOp::TUPLE3,
        PickleOp::NEWTRUE,
        PickleOp::NEWFALSE,
        PickleOp::LONG1,
        PickleOp::LONG4,
        PickleOp::BINBYTES,
        PickleOp::SHORT_BINBYTES,
        PickleOp::SHORT_BINUNICODE,
        PickleOp::BINUNICODE8,
        PickleOp::BINBYTES8,
        PickleOp::EMPTY_SET,
        PickleOp::ADDITEMS,
        PickleOp::FROZENSET,
        PickleOp::NEWOBJ_EX,
        PickleOp::STACK_GLOBAL,
        PickleOp::MEMOIZE,
        PickleOp::FRAME,
        PickleOp::BYTEARRAY8,
        PickleOp::NEXT_BUFFER,
        PickleOp::READONLY_BUFFER,
    ];

    /// Opcodes that TorchScript's pickler never writes and whose values have no counterpart in TorchScript.
    const REFUSED: &'static [PickleOp] = &[
        PickleOp::STRING,
        PickleOp::BINSTRING,
        PickleOp::SHORT_BINSTRING,
        PickleOp::INST,
        PickleOp::OBJ,
        PickleOp::EXT1,
        PickleOp::EXT2,
        PickleOp::EXT4,
        PickleOp::EMPTY_SET,
        PickleOp::ADDITEMS,
        PickleOp::FROZENSET,
        PickleOp::NEWOBJ_EX,
        PickleOp::BYTEARRAY8,
        PickleOp::NEXT_BUFFER,
        PickleOp::READONLY_BUFFER,
    ];

    const BY_BYTE: [Option<(PickleOp, Support)>; 256] = {
        let mut table = [None; 256];
        let mut n = 0;
        while n < PickleOp::ALL.len() {
            table[PickleOp::ALL[n] as usize] = Some((PickleOp::ALL[n], Support::Full));
            n += 1;
        }
        n = 0;
        while n < PickleOp::REFUSED.len() {
            table[PickleOp::REFUSED[n] as usize] = Some((PickleOp::REFUSED[n], Support::Refused));
            n += 1;
        }
        table
    };

    /// Returns the opcode of a byte.
    pub fn from_byte(byte: u8) -> Option<PickleOp> {
        PickleOp::BY_BYTE[usize::from(byte)].map(|(op, _)| op)
    }

    /// Returns whether the machine supports the opcode.
    pub fn support(self) -> Support {
        PickleOp::BY_BYTE[self as usize].map_or(Support::Refused, |(_, support)| support)
    }
}

impl fmt::Display for PickleOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
