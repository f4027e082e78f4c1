//! Generators, oracles, reducer and planted bugs as a library.
