//! File tests, properties, conformance runner.
