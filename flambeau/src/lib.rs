//! The facade: sessions, pipelines and the embedding interface of the Flambeau compiler.

pub mod json;
