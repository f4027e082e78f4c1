//! Functional variants of in-place operators that do not follow from names and schemas, and in-place operators without
//! one. A test checks that every operator which writes and returns its first operand, a tensor, has the facet
//! [`InplaceOf`].

use flambeau_ir::{InplaceOf, RegistryBuilder};

/// In-place operators with their functional variants, which have another name, overload, or annotation, or name or
/// order their parameters in another way.
const VARIANTS: &[(&str, &str)] = &[
    ("aten::__iand__.Tensor", "aten::__and__.Tensor"),
    ("aten::__iand__.Scalar", "aten::__and__.Scalar"),
    ("aten::__ilshift__.Tensor", "aten::__lshift__.Tensor"),
    ("aten::__ilshift__.Scalar", "aten::__lshift__.Scalar"),
    ("aten::__ior__.Tensor", "aten::__or__.Tensor"),
    ("aten::__ior__.Scalar", "aten::__or__.Scalar"),
    ("aten::__irshift__.Tensor", "aten::__rshift__.Tensor"),
    ("aten::__irshift__.Scalar", "aten::__rshift__.Scalar"),
    ("aten::__ixor__.Tensor", "aten::__xor__.Tensor"),
    ("aten::__ixor__.Scalar", "aten::__xor__.Scalar"),
    ("aten::_amp_update_scale_", "aten::_amp_update_scale"),
    ("aten::_index_put_impl_.hacked_twin", "aten::_index_put_impl"),
    ("aten::alpha_dropout_", "aten::alpha_dropout"),
    ("aten::bernoulli_.float", "aten::bernoulli.p"),
    ("aten::copy_.Tensor", "aten::copy"),
    ("aten::copy_.float", "aten::fill.Scalar"),
    ("aten::copy_.int", "aten::fill.Scalar"),
    ("aten::dropout_", "aten::dropout"),
    ("aten::feature_alpha_dropout_", "aten::feature_alpha_dropout"),
    ("aten::feature_dropout_", "aten::feature_dropout"),
    ("aten::float_power_.Scalar", "aten::float_power.Tensor_Scalar"),
    ("aten::float_power_.Tensor", "aten::float_power.Tensor_Tensor"),
    ("aten::floor_divide_.Tensor", "aten::floor_divide"),
    ("aten::ldexp_", "aten::ldexp.Tensor"),
    ("aten::normal_", "aten::normal_functional"),
    ("aten::polygamma_", "aten::polygamma"),
    ("aten::pow_.Scalar", "aten::pow.Tensor_Scalar"),
    ("aten::pow_.Tensor", "aten::pow.Tensor_Tensor"),
    ("aten::set_.source_Storage", "aten::set.source_Storage"),
    ("aten::set_.source_Storage_storage_offset", "aten::set.source_Storage_storage_offset"),
    ("aten::set_.source_Tensor", "aten::set.source_Tensor"),
    ("aten::transpose_", "aten::transpose.int"),
    ("mkldnn::_convolution_pointwise_.binary", "mkldnn::_convolution_pointwise.binary"),
    ("prim::MKLDNNHardSigmoid_", "prim::MKLDNNHardSigmoid"),
    ("prim::MKLDNNHardSwish_", "prim::MKLDNNHardSwish"),
];

/// In-place operators for which no other operator computes the same in new memory.
const WITHOUT_COUNTERPART: &[&str] = &[
    "aten::_fill_mem_eff_dropout_mask_",
    "aten::_no_grad_fill_",
    "aten::_no_grad_normal_",
    "aten::_no_grad_uniform_",
    "aten::_no_grad_zero_",
    "aten::_sobol_engine_ff_",
    "aten::_sobol_engine_initialize_state_",
    "aten::_sobol_engine_scramble_",
    "aten::fill_diagonal_",
    "aten::requires_grad_",
    "aten::set_.source_Tensor_storage_offset",
    "prims::as_strided",
    "prims::copy_to",
    "prims::resize",
    "symm_mem::memset32_",
    "symm_mem::multimem_all_reduce_",
    "symm_mem::stream_write_value32_",
    "symm_mem::two_shot_all_reduce_",
];

/// States the variants.
pub(crate) fn add(builder: &mut RegistryBuilder) {
    for (in_place, function) in VARIANTS {
        builder.facet(in_place, InplaceOf::named(function));
    }
    for in_place in WITHOUT_COUNTERPART {
        builder.facet(in_place, InplaceOf::NoVariant);
    }
}
