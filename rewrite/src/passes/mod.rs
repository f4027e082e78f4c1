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

pub mod canonicalize;
pub mod canonicalize_ops;
pub mod constant_pooling;
pub mod constant_propagation;
pub mod cse;
pub mod dce;
pub mod erase;
pub mod fuse;
pub mod inline;
pub mod lower_simple_tuples;

use crate::egraph::{Peephole, Rulebook, Saturate};
use crate::pipeline::PassEntry;
use std::sync::Arc;

builtin! {
    PASSES = [
        canonicalize_ops::CanonicalizeOps,
        constant_pooling::ConstantPooling,
        cse::Cse,
        erase::EraseShapes,
        fuse::Fuse,
        lower_simple_tuples::LowerSimpleTuples,
    ] with options [
        constant_propagation::ConstantPropagation,
        canonicalize::Canonicalize,
        dce::Dce,
        inline::Inline,
    ]
}

/// Entries of all passes of this crate.
pub(crate) fn standard() -> Vec<PassEntry> {
    let mut all = PASSES();
    all.extend(by_rules(Rulebook::new()));
    all
}

/// Entries of the passes that apply rules, with a book of them at hand.
pub(crate) fn by_rules(book: Rulebook) -> [PassEntry; 2] {
    let book = Arc::new(book);
    [Peephole::entry(Arc::clone(&book)), Saturate::entry(book)]
}
