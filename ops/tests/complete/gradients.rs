//! What PyTorch has a formula for the derivative of, has one here, or a reason why not.

use flambeau_exec::Kernel;
use flambeau_ir::FunctionSchema;
use flambeau_rewrite::autodiff::GradientTable;

/// Recorded by `tests/oracle/differentiable.py`.
const DIFFERENTIABLE: &str = include_str!("../../../tests/oracle/differentiable.txt");

/// Operators without a derivative, and why.
pub(crate) const WITHOUT: &[(&str, &str)] = &[
    (
        "aten::_ctc_loss",
        "what is inside `ctc_loss`, which has one; its second result is in a form of its own",
    ),
    (
        "aten::_ctc_loss.Tensor",
        "what is inside `ctc_loss`, which has one; its second result is in a form of its own",
    ),
    (
        "aten::_standard_gamma",
        "it is a function of its own, `_standard_gamma_grad`: a series that nothing else here has",
    ),
    ("aten::_thnn_fused_lstm_cell", "PyTorch computes it on graphics processors only; `lstm_cell` has one"),
    ("aten::as_strided_", "changes which elements a tensor shows; `as_strided` has one"),
    ("aten::multilabel_margin_loss_forward", "what is inside `multilabel_margin_loss`, which has one"),
];

/// A view: its gradient follows from where its elements are.
fn is_view(schema: &FunctionSchema) -> bool {
    schema.returns.iter().any(|ret| ret.alias.is_some()) && !schema.is_mutable()
}

#[test]
fn what_pytorch_differentiates_is_differentiated() {
    let registry = flambeau_ops::registry();
    let table = GradientTable::from_registry(&registry).expect("derivatives can be read");
    let mut wrong = Vec::new();
    for name in DIFFERENTIABLE.lines() {
        let Some(id) = registry.lookup(&format!("aten::{name}")) else { continue };
        if registry.facet::<Kernel>(id).is_none() {
            continue;
        }
        let schema = registry.schema(id);
        let stated = is_view(schema) || table.of(schema).is_some();
        match WITHOUT.iter().any(|(excepted, _)| *excepted == schema.full_name()) {
            false if !stated => wrong.push(format!("{} has no derivative", schema.full_name())),
            true if stated => wrong.push(format!("{} has a derivative and an excuse", schema.full_name())),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
