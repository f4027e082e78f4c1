//! Printing of values in attribute lists.

use super::tensors::{write_exact, write_readable};
use crate::types::Type;
use crate::value::{IValue, PrintStyle, print_value};

/// Prints a constant of the type `declared`, if it has one. With `exact`, tensors are printed bit for bit. Otherwise
/// they are printed as in TorchScript: completely up to a size, and abbreviated above.
pub(super) fn write_attr_value(out: &mut String, value: &IValue, declared: Option<Type>, exact: bool) {
    let style = PrintStyle::Exact;
    // Element types of containers are not used, since tensors in containers print their dtype and sizes themselves.
    let own = declared.filter(|_| matches!(value, IValue::Tensor(_)));
    let written = if exact {
        print_value(out, value, style, &mut |out, t| write_exact(out, t))
    } else {
        print_value(out, value, style, &mut |out, t| write_readable(out, t, own))
    };
    debug_assert!(written.is_ok(), "invariant: writing to a string succeeds");
}
