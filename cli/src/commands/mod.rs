//! The sub-commands, one file each.

pub(crate) mod alias;
pub(crate) mod bench;
pub(crate) mod bench_ir;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod freeze;
pub(crate) mod fuzz;
pub(crate) mod info;
pub(crate) mod ops;
pub(crate) mod opt;
pub(crate) mod print;
pub(crate) mod run;
pub(crate) mod shapes;
pub(crate) mod verify;
