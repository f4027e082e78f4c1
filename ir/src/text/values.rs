//! Values as they stand in attribute lists.

use super::tensors::{write_exact, write_readable};
use crate::types::Type;
use crate::value::{IValue, PrintStyle, print_value};

/// Writes a constant of the type `declared`, if it is declared with one. Tensors are written bit for bit when `exact`, else
/// as TorchScript prints them: in full up to a size, and abbreviated above.
pub(super) fn write_attr_value(out: &mut String, value: &IValue, declared: Option<Type>, exact: bool) {
    let style = PrintStyle::Exact;
    // The types of a container's elements are not looked at: dtype and sizes stand beside the elements of tensors in it.
    let own = declared.filter(|_| matches!(value, IValue::Tensor(_)));
    let written = if exact {
        print_value(out, value, style, &mut |out, t| write_exact(out, t))
    } else {
        print_value(out, value, style, &mut |out, t| write_readable(out, t, own))
    };
    debug_assert!(written.is_ok(), "invariant: writing to a string succeeds");
}
