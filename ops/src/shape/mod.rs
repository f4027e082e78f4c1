//! Shape operators that copy: triangles, diagonals, reordering, repetition, combination of tensors.

mod combine;
mod diagonals;
mod dtypes;
mod reorder;
mod triangles;

pub(crate) use reorder::rolled;

use flambeau_exec::Sample;
use flambeau_ir::value::List;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::DType;

/// All operators of the family.
pub(crate) fn family() -> Vec<OpDef> {
    let mut defs = triangles::family();
    defs.extend(diagonals::family());
    defs.extend(reorder::family());
    defs.extend(combine::family());
    defs.extend(dtypes::family());
    defs
}

/// Samples: one tensor, then the given arguments.
fn sample(rank: usize, args: Vec<IValue>) -> Sample {
    Sample::tensors(1).numbers().rank(rank, rank).then(args).exact().not_differentiable()
}

/// Samples: a list of tensors of these sizes.
fn tensors(sizes: &'static [&'static [i64]]) -> Sample {
    Sample::args(move |g| {
        let elements = flambeau_exec::sample::ElementDistribution::default();
        let all = sizes
            .iter()
            .map(|sizes| flambeau_exec::sample::tensor(g, sizes, DType::F32, &elements))
            .collect();
        vec![IValue::List(List::from_tensors(all))]
    })
    .exact()
    .not_differentiable()
}
