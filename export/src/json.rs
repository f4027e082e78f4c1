//! A pull parser for JSON.
