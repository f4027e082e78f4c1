//! Passes, one file each. All ask facets and effects, none knows an operator by name.

macro_rules! builtin {
    ($name:ident = [$($pass:path,)*] with options [$($configured:path,)*]) => {
        /// The passes of this crate, in order.
        #[expect(non_snake_case, reason = "stands for a list")]
        fn $name() -> Vec<PassEntry> {
            vec![$(PassEntry::of::<$pass>(),)* $(PassEntry::configured::<$configured>(),)*]
        }
    };
}

pub mod activations;
pub mod canonicalize;
pub mod canonicalize_ops;
pub mod constant_pooling;
pub mod constant_propagation;
pub mod cse;
pub mod dce;
pub mod differentiable;
pub mod erase;
pub mod erase_number_types;
pub mod functional;
pub mod fuse;
pub mod idioms;
pub mod inline;
pub mod inline_fork_wait;
pub mod lower_all_tuples;
pub mod lower_grad_of;
pub mod lower_simple_tuples;
pub mod peephole;
pub mod propagate;
pub mod refine_tuple_types;
pub mod remove_mutation;
pub mod specialize_autograd_zero;
pub mod unroll;

use crate::egraph::{Rewrite, Rulebook, Saturate};
use crate::pipeline::PassEntry;
use std::sync::Arc;

builtin! {
    PASSES = [
        activations::ActivationsInPlace,
        canonicalize_ops::CanonicalizeOps,
        constant_pooling::ConstantPooling,
        cse::Cse,
        erase::EraseShapes,
        erase_number_types::EraseNumberTypes,
        functional::CreateFunctionalGraphs,
        functional::InlineFunctionalGraphs,
        fuse::Fuse,
        idioms::Idioms,
        inline_fork_wait::InlineForkWait,
        lower_all_tuples::LowerAllTuples,
        lower_grad_of::LowerGradOf,
        lower_simple_tuples::LowerSimpleTuples,
        refine_tuple_types::RefineTupleTypes,
        specialize_autograd_zero::SpecializeAutogradZero,
    ] with options [
        constant_propagation::ConstantPropagation,
        canonicalize::Canonicalize,
        dce::Dce,
        differentiable::CreateAutodiffSubgraphs,
        differentiable::InlineAutodiffSubgraphs,
        inline::Inline,
        propagate::PropagateShapes,
        remove_mutation::RemoveMutation,
        unroll::Unroll,
    ]
}

/// Pipelines that are known by a name, most of them PyTorch's.
pub(crate) const PIPELINES: &[(&str, &str)] = &[
    ("dce_with_side_effects", "dce{side_effects}"),
    ("constant_propagation_immutable_types", "constant_propagation{immutable}"),
    ("canonicalize_keep_names", "canonicalize"),
    ("constant_loop_unrolling", "loop_unrolling{constant}"),
    ("propagate_dtype", "propagate_shapes{dtypes}"),
    ("remove_list_mutation", "remove_mutation{lists}"),
    ("remove_tensor_mutation", "remove_mutation{tensors}"),
    ("remove_inplace_ops", "remove_mutation{tensors}"),
    ("inplace_to_functional_activation", "remove_mutation{activations}"),
    ("decompose_ops", "rewrite{only=decompose,accept=rounding},dce"),
    ("fuse_linear", "rewrite{only=fuse_linear,accept=rounding},dce"),
    ("fuse_addmm", "rewrite{only=mm-add|add-mm,accept=rounding},dce"),
    ("remove_expands", "rewrite{only=expand-same},dce"),
    ("run_decompositions", "decompose_ops,fix{2}(peephole,constant_propagation)"),
];

/// Entries of all passes of this crate.
pub(crate) fn standard() -> Vec<PassEntry> {
    let mut all = PASSES();
    all.extend(by_rules(Rulebook::new()));
    all
}

/// Entries of the passes that apply rules, with a book of them at hand.
pub(crate) fn by_rules(book: Rulebook) -> [PassEntry; 3] {
    let book = Arc::new(book);
    let (peephole, rewrite) = (Arc::clone(&book), Arc::clone(&book));
    [peephole::Peephole::entry(peephole), Rewrite::entry(rewrite), Saturate::entry(book)]
}
