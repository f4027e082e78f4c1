//! The developer's tool: test, ci, bless, tidy, layers, conform, bench, fuzz, new-op, new-pass, map.

fn main() {}
