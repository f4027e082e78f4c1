//! The program as data: generational arenas, types, schemas, dynamic values, registry, text form, verifier, journal.

mod intern;
pub mod schema;
pub mod symbol;
pub mod types;
pub mod value;

pub use symbol::Symbol;
pub use types::Type;
pub use value::IValue;
