//! The operations of the pickle language, protocols 0 to 5.
//!
//! All are known by name, so that an error can say what was met. Those that TorchScript's pickler never writes and that
//! have no counterpart among its values (sets, byte arrays, the extension registry, classes called by name from the
//! stream) are marked unsupported.

use std::fmt;

/// Whether the machine carries an operation out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// It does.
    Full,
    /// It answers with an error that names the operation.
    Refused,
}

macro_rules! opcodes {
    ($($name:ident $byte:literal $support:ident;)*) => {
        /// One operation of the pickle language.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the names are those of the pickle language's own specification")]
        #[expect(non_camel_case_types, reason = "the names are those of the pickle language's own specification")]
        #[repr(u8)]
        pub enum Op { $($name = $byte,)* }

        impl Op {
            /// Every operation.
            pub const ALL: &'static [Op] = &[$(Op::$name),*];

            /// The operation that `byte` stands for.
            pub const fn from_byte(byte: u8) -> Option<Op> {
                match byte { $($byte => Some(Op::$name),)* _ => None }
            }

            /// Whether the machine carries it out.
            pub const fn support(self) -> Support {
                match self { $(Op::$name => Support::$support,)* }
            }

            /// Its name in the specification.
            pub const fn name(self) -> &'static str {
                match self { $(Op::$name => stringify!($name),)* }
            }
        }
    };
}

opcodes! {
    MARK b'(' Full;
    STOP b'.' Full;
    POP b'0' Full;
    POP_MARK b'1' Full;
    DUP b'2' Full;
    FLOAT b'F' Full;
    INT b'I' Full;
    BININT b'J' Full;
    BININT1 b'K' Full;
    LONG b'L' Full;
    BININT2 b'M' Full;
    NONE b'N' Full;
    PERSID b'P' Full;
    BINPERSID b'Q' Full;
    REDUCE b'R' Full;
    STRING b'S' Refused;
    BINSTRING b'T' Refused;
    SHORT_BINSTRING b'U' Refused;
    UNICODE b'V' Full;
    BINUNICODE b'X' Full;
    APPEND b'a' Full;
    BUILD b'b' Full;
    GLOBAL b'c' Full;
    DICT b'd' Full;
    EMPTY_DICT b'}' Full;
    APPENDS b'e' Full;
    GET b'g' Full;
    BINGET b'h' Full;
    INST b'i' Refused;
    LONG_BINGET b'j' Full;
    LIST b'l' Full;
    EMPTY_LIST b']' Full;
    OBJ b'o' Refused;
    PUT b'p' Full;
    BINPUT b'q' Full;
    LONG_BINPUT b'r' Full;
    SETITEM b's' Full;
    TUPLE b't' Full;
    EMPTY_TUPLE b')' Full;
    SETITEMS b'u' Full;
    BINFLOAT b'G' Full;
    PROTO 0x80 Full;
    NEWOBJ 0x81 Full;
    EXT1 0x82 Refused;
    EXT2 0x83 Refused;
    EXT4 0x84 Refused;
    TUPLE1 0x85 Full;
    TUPLE2 0x86 Full;
    TUPLE3 0x87 Full;
    NEWTRUE 0x88 Full;
    NEWFALSE 0x89 Full;
    LONG1 0x8a Full;
    LONG4 0x8b Full;
    BINBYTES b'B' Full;
    SHORT_BINBYTES b'C' Full;
    SHORT_BINUNICODE 0x8c Full;
    BINUNICODE8 0x8d Full;
    BINBYTES8 0x8e Full;
    EMPTY_SET 0x8f Refused;
    ADDITEMS 0x90 Refused;
    FROZENSET 0x91 Refused;
    NEWOBJ_EX 0x92 Refused;
    STACK_GLOBAL 0x93 Full;
    MEMOIZE 0x94 Full;
    FRAME 0x95 Full;
    BYTEARRAY8 0x96 Refused;
    NEXT_BUFFER 0x97 Refused;
    READONLY_BUFFER 0x98 Refused;
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
