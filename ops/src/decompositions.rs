//! Decompositions of operators, as texts of functions in TorchScript.
//!
//! Each function has comments that name the operators it replaces, or the views it inverts; the crate `flambeau` compiles
//! the texts and applies them to exported programs (`DecompositionTable`). The text of a decomposition has the steps, dtypes and
//! rounding of PyTorch's.

/// Functional forms of operators that write, and inverses of views.
pub const FUNCTIONAL: &str = include_str!("decompositions/functional.py");

/// Functions in place of operators that modules of TorchScript cannot have.
pub const MODULE_FORMS: &str = include_str!("decompositions/module_forms.py");

/// Decompositions to the operators of core ATen.
pub const CORE_ATEN: &str = concat!(
    include_str!("decompositions/core_aten.py"),
    "\n",
    include_str!("decompositions/composites.py"),
    "\n",
    include_str!("decompositions/layers.py"),
    "\n",
    include_str!("decompositions/matrices.py"),
    "\n",
    include_str!("decompositions/signals.py"),
);
