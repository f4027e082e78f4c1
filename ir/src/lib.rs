//! The program as data: generational arenas, types, schemas, dynamic values, registry, text form, verifier, journal.

mod intern;
pub mod symbol;

pub use symbol::Symbol;
