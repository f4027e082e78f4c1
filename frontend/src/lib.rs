//! TorchScript source to graph and back: lexer, parser, emitter, conversion to SSA, printer.
