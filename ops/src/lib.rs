//! The operator library: the facts of each operator in one place, grouped by family.
//!
//! `schemas.txt` declares every operator that TorchScript registers, with overloads in the order of overload
//! resolution. A family file adds facts to some of them: documentation, shape and dtype rules, kernel, fused formula,
//! samples, rewrite rules. An operator without facts can be compiled, analysed and printed; running it is an error that
//! names it.
//!
//! To add an operator, add one entry to its family's file. To add a family, add one file and one line in [`FAMILIES`].

mod autograd;
mod compute;
mod counts;
mod create;
pub mod decompositions;
mod dict;
mod exported;
mod facts;
mod fft;
mod gamma;
mod grad;
mod hash;
mod index;
mod join;
mod linalg;
mod list;
mod misc;
mod nn;
mod order;
mod output_layout;
mod overlap;
mod per_type;
mod pointwise;
mod products;
mod random;
mod reduce;
mod rules;
mod scalar;
mod shape;
mod sort;
mod string;
mod support;
mod synonyms;
mod variants;
mod view;

use flambeau_ir::{OpDef, Registry, RegistryBuilder};
use std::sync::{Arc, OnceLock};

/// The schemas of all operators that TorchScript registers, one per line.
const SCHEMAS: &str = include_str!("schemas.txt");

/// Corrected schemas. PyTorch's do not declare that a result may be an operand or share its storage.
const SOUND: &str = "aten::type_as(Tensor(a) self, Tensor other) -> Tensor(a)
aten::chalf(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)
aten::conj_physical(Tensor(a) self) -> Tensor(a)
aten::einsum(str equation, Tensor(a)[] tensors, *, int[]? path=None) -> Tensor(a)
aten::unsafe_chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]
aten::unsafe_split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]
aten::unsafe_split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]
aten::_unsafe_view(Tensor(a) self, SymInt[] size) -> Tensor(a)
aten::atleast_1d(Tensor(a) self) -> Tensor(a)
aten::atleast_2d(Tensor(a) self) -> Tensor(a)
aten::atleast_3d(Tensor(a) self) -> Tensor(a)
aten::atleast_1d.Sequence(Tensor(a)[] tensors) -> Tensor(a)[]
aten::atleast_2d.Sequence(Tensor(a)[] tensors) -> Tensor(a)[]
aten::atleast_3d.Sequence(Tensor(a)[] tensors) -> Tensor(a)[]
aten::broadcast_tensors(Tensor(a)[] tensors) -> Tensor(a)[]
aten::meshgrid(Tensor(a)[] tensors) -> Tensor(a)[]
aten::meshgrid.indexing(Tensor(a)[] tensors, *, str indexing) -> Tensor(a)[]
aten::sum_to_size(Tensor(a) self, SymInt[] size) -> Tensor(a)
aten::dropout(Tensor(a) input, float p, bool train) -> Tensor(a)
aten::feature_dropout(Tensor(a) input, float p, bool train) -> Tensor(a)
aten::alpha_dropout(Tensor(a) input, float p, bool train) -> Tensor(a)
aten::feature_alpha_dropout(Tensor(a) input, float p, bool train) -> Tensor(a)
aten::set_.source_Tensor(Tensor(a! -> *) self, Tensor(b -> *) source) -> Tensor(a!)
aten::set_.source_Tensor_storage_offset(Tensor(a! -> *) self, Tensor(b -> *) source, SymInt storage_offset, SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)
aten::set_.source_Storage(Tensor(a! -> *) self, Storage source) -> Tensor(a!)
aten::set_.source_Storage_storage_offset(Tensor(a! -> *) self, Storage source, SymInt storage_offset, SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)
aten::set_data(Tensor(a! -> *) self, Tensor(b -> *) new_data) -> ()
aten::extend.t(t[](a!) self, t(b -> *)[] other) -> ()
aten::add_.t(t[](a!) self, t(c -> *)[] b) -> t[](a!)
aten::get.default_str(Dict(str, t) self, str key, t(b -> *) default_value) -> t(*)
aten::get.default_int(Dict(int, t) self, int key, t(b -> *) default_value) -> t(*)
aten::get.default_bool(Dict(bool, t) self, bool key, t(b -> *) default_value) -> t(*)
aten::get.default_float(Dict(float, t) self, float key, t(b -> *) default_value) -> t(*)
aten::get.default_complex(Dict(complex, t) self, complex key, t(b -> *) default_value) -> t(*)
aten::get.default_Tensor(Dict(Tensor, t) self, Tensor key, t(b -> *) default_value) -> t(*)
aten::pop.Dict_default_str(Dict(str, t)(a!) self, str key, t(b -> *) default_value) -> t(*)
aten::pop.Dict_default_int(Dict(int, t)(a!) self, int key, t(b -> *) default_value) -> t(*)
aten::pop.Dict_default_bool(Dict(bool, t)(a!) self, bool key, t(b -> *) default_value) -> t(*)
aten::pop.Dict_default_float(Dict(float, t)(a!) self, float key, t(b -> *) default_value) -> t(*)
aten::pop.Dict_default_complex(Dict(complex, t)(a!) self, complex key, t(b -> *) default_value) -> t(*)
aten::pop.Dict_default_Tensor(Dict(Tensor, t)(a!) self, Tensor key, t(b -> *) default_value) -> t(*)
";

/// The families of operators with facts.
const FAMILIES: &[fn() -> Vec<OpDef>] = &[
    scalar::family,
    pointwise::family,
    create::family,
    facts::family,
    fft::family,
    view::family,
    join::family,
    index::family,
    order::family,
    shape::family,
    reduce::family,
    products::family,
    linalg::family,
    list::family,
    dict::family,
    string::family,
    misc::family,
    random::family,
    autograd::family,
    counts::family,
    exported::family,
    gamma::family,
    nn::family,
];

/// Adds the standard operators.
pub fn standard(builder: &mut RegistryBuilder) {
    builder.declare(SCHEMAS).declare(SOUND);
    for family in FAMILIES {
        builder.family(*family);
    }
    rules::add(builder);
    variants::add(builder);
    synonyms::add(builder);
    grad::add(builder);
    autograd::add_facets(builder);
    exported::add(builder);
}

/// Returns a registry of the standard operators, created once per process.
#[expect(clippy::missing_panics_doc, reason = "a test builds the standard operators")]
pub fn registry() -> Arc<Registry> {
    static STANDARD: OnceLock<Arc<Registry>> = OnceLock::new();
    Arc::clone(STANDARD.get_or_init(|| {
        let mut builder = RegistryBuilder::new();
        standard(&mut builder);
        builder
            .build()
            .unwrap_or_else(|errors| panic!("invariant: the standard operators fit together: {errors:?}"))
    }))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_standard_registry_builds() {
        let mut builder = flambeau_ir::RegistryBuilder::new();
        super::standard(&mut builder);
        let errors: Vec<String> =
            builder.build().err().into_iter().flatten().map(|e| e.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
    }
}
