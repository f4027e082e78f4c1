//! The passes, one file each. All query facets and effects; no pass names an operator.

pub mod activations;
pub mod batch_mm;
mod branch_lists;
pub mod canonicalize;
pub mod canonicalize_ops;
pub mod constant_pooling;
pub mod constant_propagation;
pub mod container_replacement;
pub mod cse;
pub mod dce;
pub mod differentiable;
pub mod erase;
pub mod erase_number_types;
pub mod fold_channels;
pub mod fold_facts;
pub mod functional;
pub mod fuse;
pub mod guards;
pub mod hoist;
pub mod idioms;
pub mod inline;
pub mod inline_fork_wait;
pub mod insert_forks;
pub mod lower_all_tuples;
pub mod lower_grad_of;
pub mod lower_simple_tuples;
pub mod optional_replacement;
pub mod peephole;
pub mod propagate;
pub mod refine_integer_values;
pub mod refine_tuple_types;
pub mod remove_mutation;
mod run_effects;
pub mod scalar_replacement;
pub mod specialize_autograd_zero;
pub mod unroll;
pub mod write_numbers;

#[cfg(feature = "egraph")]
use crate::egraph::Saturate;
use crate::pipeline::PassEntry;
use crate::rules::{Rewrite, RuleLibrary};
use std::sync::Arc;

/// The passes of this crate that apply no rules: first those without options, then those with options.
const PASSES: &[fn() -> PassEntry] = &[
    PassEntry::of::<activations::ActivationsInPlace>,
    PassEntry::of::<batch_mm::BatchMm>,
    PassEntry::of::<canonicalize_ops::CanonicalizeOps>,
    PassEntry::of::<constant_pooling::ConstantPooling>,
    PassEntry::of::<container_replacement::ContainerReplacement>,
    PassEntry::of::<cse::Cse>,
    PassEntry::of::<erase::EraseShapes>,
    PassEntry::of::<erase_number_types::EraseNumberTypes>,
    PassEntry::of::<fold_facts::FoldFacts>,
    PassEntry::of::<functional::CreateFunctionalGraphs>,
    PassEntry::of::<functional::InlineFunctionalGraphs>,
    PassEntry::of::<fuse::Fuse>,
    PassEntry::of::<guards::bailout::InsertBailouts>,
    PassEntry::of::<guards::coalesce::CoalesceGuards>,
    PassEntry::of::<guards::eliminate::EliminateGuards>,
    PassEntry::of::<guards::insert::InsertGuards>,
    PassEntry::of::<guards::motion::MoveGuardsToDefinitions>,
    PassEntry::of::<guards::count::InsertBranchCounters>,
    PassEntry::of::<guards::profile::InsertProfileNodes>,
    PassEntry::of::<guards::profile::RemoveProfileNodes>,
    PassEntry::of::<hoist::Hoist>,
    PassEntry::of::<idioms::Idioms>,
    PassEntry::of::<inline_fork_wait::InlineForkWait>,
    PassEntry::of::<lower_all_tuples::LowerAllTuples>,
    PassEntry::of::<lower_grad_of::LowerGradOf>,
    PassEntry::of::<lower_simple_tuples::LowerSimpleTuples>,
    PassEntry::of::<optional_replacement::OptionalReplacement>,
    PassEntry::of::<refine_integer_values::RefineIntegerValues>,
    PassEntry::of::<refine_tuple_types::RefineTupleTypes>,
    PassEntry::of::<scalar_replacement::ScalarReplacement>,
    PassEntry::of::<specialize_autograd_zero::SpecializeAutogradZero>,
    PassEntry::of::<write_numbers::WriteNumbers>,
    PassEntry::configured::<constant_propagation::ConstantPropagation>,
    PassEntry::configured::<canonicalize::Canonicalize>,
    PassEntry::configured::<dce::Dce>,
    PassEntry::configured::<differentiable::CreateAutodiffSubgraphs>,
    PassEntry::configured::<differentiable::InlineAutodiffSubgraphs>,
    PassEntry::configured::<fold_channels::FoldChannels>,
    PassEntry::configured::<inline::Inline>,
    PassEntry::configured::<insert_forks::InsertForks>,
    PassEntry::configured::<propagate::PropagateShapes>,
    PassEntry::configured::<remove_mutation::RemoveMutation>,
    PassEntry::configured::<unroll::Unroll>,
];

/// Named pipelines; most names are PyTorch's.
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
    ("guards", "insert_guards,move_guards_to_definitions,coalesce_guards,eliminate_guards,insert_bailouts"),
    ("remove_expands", "rewrite{only=expand-same},dce"),
    ("run_decompositions", "decompose_ops,fix{2}(peephole,constant_propagation)"),
    // Equality saturation with exact rules in small windows; nothing in a build without the feature.
    #[cfg(feature = "egraph")]
    ("saturate", "egraph{window=100},dce"),
    #[cfg(not(feature = "egraph"))]
    ("saturate", "dce"),
];

/// Returns the entries of all passes of this crate.
pub(crate) fn standard() -> Vec<PassEntry> {
    let mut all: Vec<PassEntry> = PASSES.iter().map(|entry| entry()).collect();
    all.extend(by_rules(RuleLibrary::new()));
    all
}

/// Returns the entries of the passes that apply rules, with a library of additional rules.
pub(crate) fn by_rules(library: RuleLibrary) -> Vec<PassEntry> {
    let library = Arc::new(library);
    vec![
        peephole::Peephole::entry(Arc::clone(&library)),
        Rewrite::entry(Arc::clone(&library)),
        #[cfg(feature = "egraph")]
        Saturate::entry(library),
    ]
}

/// Passes missing in this build, each with the feature that enables it.
pub(crate) const MISSING_PASSES: &[(&str, &str)] = &[
    #[cfg(not(feature = "egraph"))]
    ("egraph", "egraph"),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Lines of a folder's files, tests left out, that run a pass.
    fn calls(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                calls(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let product = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
            let runs = product.filter(|line| line.contains(".run(cx)") || line.contains("Pass::run("));
            found.extend(runs.map(|line| format!("{}: {}", path.display(), line.trim())));
        }
    }

    #[test]
    fn no_pass_calls_another() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        ["passes", "rules", "egraph", "outline"]
            .iter()
            .for_each(|folder| calls(&source.join(folder), &mut found));
        assert!(found.is_empty(), "a pass states the passes it needs in its schedule:\n{}", found.join("\n"));
    }
}
