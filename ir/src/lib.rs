//! The program as data: generational arenas, types, schemas, dynamic values, registry, text form, verifier, journal.
