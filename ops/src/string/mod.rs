//! Strings: byte strings, as in TorchScript. Only ASCII letters have case, and positions count bytes.

pub(crate) mod number;

use flambeau_ir::OpDef;

pub(super) fn family() -> Vec<OpDef> {
    Vec::new()
}
