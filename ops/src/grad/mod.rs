//! Derivatives of operators: files of formulas, each with a file of the functions it calls.
//!
//! `flambeau_rewrite::autodiff` describes the language of the `.grads` files. They are parsed when a gradient is first
//! requested. All functions share one namespace: a file may call those of another.

use flambeau_ir::RegistryBuilder;
use flambeau_rewrite::autodiff::Gradients;

const fn file(name: &'static str, entries: &'static str, functions: &'static str) -> Gradients {
    Gradients::file(name, entries).helpers(functions)
}

/// The files, each attached to one of its operators.
const FILES: [(&str, Gradients); 13] = [
    (
        "aten::mul.Tensor",
        file("pointwise.grads", include_str!("pointwise.grads"), include_str!("pointwise.py")),
    ),
    ("aten::sum", file("reduce.grads", include_str!("reduce.grads"), include_str!("reduce.py"))),
    ("aten::reshape", file("shape.grads", include_str!("shape.grads"), include_str!("shape.py"))),
    ("aten::mm", file("products.grads", include_str!("products.grads"), include_str!("products.py"))),
    ("aten::linalg_inv", file("linalg.grads", include_str!("linalg.grads"), include_str!("linalg.py"))),
    ("aten::fft_fft", file("fft.grads", include_str!("fft.grads"), include_str!("fft.py"))),
    ("aten::relu", file("nn.grads", include_str!("nn.grads"), include_str!("nn.py"))),
    ("aten::layer_norm", file("norm.grads", include_str!("norm.grads"), include_str!("norm.py"))),
    ("aten::convolution", file("conv.grads", include_str!("conv.grads"), include_str!("conv.py"))),
    ("aten::avg_pool2d", file("resize.grads", include_str!("resize.grads"), include_str!("resize.py"))),
    ("aten::mse_loss", file("loss.grads", include_str!("loss.grads"), include_str!("loss.py"))),
    ("aten::t", file("views.grads", include_str!("views.grads"), include_str!("views.py"))),
    (
        "aten::lstm.input",
        file("recurrent.grads", include_str!("recurrent.grads"), include_str!("recurrent.py")),
    ),
];

/// Adds the derivatives.
pub(crate) fn add(builder: &mut RegistryBuilder) {
    for (op, gradients) in FILES {
        builder.facet(op, gradients);
    }
}
