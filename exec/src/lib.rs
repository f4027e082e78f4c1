//! Runs graphs: a plain reference evaluator and a register bytecode machine that must agree.
