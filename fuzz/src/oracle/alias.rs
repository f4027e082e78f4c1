//! Whatever shares storage in a run was predicted to.

use super::{Oracle, Outcome, host};
use crate::generate::Case;
use flambeau_analysis::AliasDb;
use flambeau_exec::reference;
use flambeau_ir::{CompilationUnit, Graph, IValue, ValueId};
use std::sync::Arc;

/// Observed sharing against [`AliasDb`].
///
/// The program is run with every tensor of its outermost block as an output; those that share a storage at the end, or
/// are one tensor, must be predicted to. The prediction is made for the program as it is, without these outputs.
pub struct AliasTruth;

impl Oracle for AliasTruth {
    fn name(&self) -> String {
        "alias".into()
    }

    fn check(&self, case: &Case) -> Outcome {
        let g = &case.graph;
        let alias = AliasDb::new(g);
        let values: Vec<ValueId> = g
            .inputs()
            .chain(g.nodes(g.root()).flat_map(|n| g.results(n)))
            .filter(|&v| g.ty(v).is_tensor())
            .collect();
        let mut open: Graph = (**g).clone();
        let before = open.outputs().len();
        for &v in &values {
            open.edit().add_output(v);
        }
        // One argument given twice: inputs may be one tensor, and the prediction must allow for it.
        let run = reference::run(&Arc::new(open), case.fresh_inputs(), &CompilationUnit::new(), &mut host());
        let Ok(results) = run else { return Outcome::Rejected("the program fails") };
        let tensors = &results[before..];
        for (i, a) in tensors.iter().enumerate() {
            for (j, b) in tensors.iter().enumerate().skip(i + 1) {
                let (IValue::Tensor(a), IValue::Tensor(b)) = (a, b) else { continue };
                if a.shares_storage(b) && !alias.may_alias(values[i], values[j]) {
                    let (x, y) = (g.name(values[i]), g.name(values[j]));
                    return Outcome::Failed(format!("%{x} and %{y} share a storage, which is not predicted"));
                }
            }
        }
        Outcome::Checked
    }
}
