//! Derivatives of the operators: files of formulas, and the functions they call.
//!
//! The language of the `.grads` files is described in `flambeau_rewrite::autodiff`. They are read when a gradient is first
//! asked for.

use flambeau_ir::RegistryBuilder;
use flambeau_rewrite::autodiff::Gradients;

/// The files, each with an operator it speaks of.
const FILES: [(&str, Gradients); 5] = [
    (
        "aten::mul.Tensor",
        Gradients::file("pointwise.grads", include_str!("pointwise.grads"))
            .helpers(include_str!("helpers.py")),
    ),
    ("aten::sum", Gradients::file("reduce.grads", include_str!("reduce.grads"))),
    ("aten::reshape", Gradients::file("shape.grads", include_str!("shape.grads"))),
    ("aten::mm", Gradients::file("products.grads", include_str!("products.grads"))),
    ("aten::relu", Gradients::file("nn.grads", include_str!("nn.grads"))),
];

/// States derivatives.
pub(crate) fn add(builder: &mut RegistryBuilder) {
    for (op, gradients) in FILES {
        builder.facet(op, gradients);
    }
}
