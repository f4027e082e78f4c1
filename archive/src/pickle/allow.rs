//! The allow-list: the globals that a pickle may name, as a table from names to enum variants.
//!
//! `GLOBAL` cannot reach anything else. A variant is data, not a function. A name that is not in the table is an error
//! that shows the name.

/// A global of the allow-list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Global {
    /// `torch._utils._rebuild_tensor_v2`: a strided tensor over a storage.
    RebuildTensor,
    /// `torch._utils._rebuild_parameter`: a parameter.
    RebuildParameter,
    /// `torch._tensor._rebuild_from_type_v2`: a tensor with Python attributes, such as `torch.nn.Buffer`.
    RebuildWithAttributes,
    /// Another function that rebuilds a tensor (sparse, quantized, nested, without storage), by name.
    RebuildOther(&'static str),
    /// `torch.jit._pickle.build_intlist`: a list of integers.
    BuildIntList,
    /// `torch.jit._pickle.build_doublelist`: a list of floats.
    BuildDoubleList,
    /// `torch.jit._pickle.build_boollist`: a list of booleans.
    BuildBoolList,
    /// `torch.jit._pickle.build_tensorlist`: a list of tensors.
    BuildTensorList,
    /// `torch.jit._pickle.restore_type_tag`: a list or dict with the text of its type.
    RestoreTypeTag,
    /// `collections.OrderedDict`.
    OrderedDict,
    /// `builtins.complex`.
    Complex,
    /// `torch.device`.
    Device,
    /// A storage class, such as `torch.FloatStorage`.
    Storage(StorageType),
    /// A quantization scheme or dtype, by its name in `torch`. Only unsupported kinds of tensors name these.
    Constant(&'static str),
    /// A class of tensors in PyTorch whose instances are tensors without further content.
    TensorClass,
    /// A class of the archive's own code, by qualified name (`__torch__.net.Block`).
    Class(String),
}

impl Global {
    /// Returns true if a call of the global is a tensor.
    pub(crate) fn rebuilds_tensor(&self) -> bool {
        matches!(
            self,
            Global::RebuildTensor
                | Global::RebuildParameter
                | Global::RebuildWithAttributes
                | Global::RebuildOther(_)
        )
    }

    /// Returns true if a pickle may call the global.
    pub(super) fn is_callable(&self) -> bool {
        !matches!(self, Global::Storage(_) | Global::Constant(_) | Global::TensorClass)
    }
}

/// Element type of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "named after the storage classes of torch")]
pub enum StorageType {
    Byte,
    Char,
    Short,
    Int,
    Long,
    Half,
    BFloat16,
    Float,
    Double,
    Bool,
    ComplexFloat,
    ComplexDouble,
    ComplexHalf,
    QInt8,
    QUInt8,
    QInt32,
    QUInt4x2,
    QUInt2x4,
    Float8E4M3,
    Float8E5M2,
    UInt16,
    UInt32,
    UInt64,
    Untyped,
}

const TORCH: &[(&str, Global)] = &[
    ("device", Global::Device),
    ("Tensor", Global::TensorClass),
    ("ByteStorage", Global::Storage(StorageType::Byte)),
    ("CharStorage", Global::Storage(StorageType::Char)),
    ("ShortStorage", Global::Storage(StorageType::Short)),
    ("IntStorage", Global::Storage(StorageType::Int)),
    ("LongStorage", Global::Storage(StorageType::Long)),
    ("HalfStorage", Global::Storage(StorageType::Half)),
    ("BFloat16Storage", Global::Storage(StorageType::BFloat16)),
    ("FloatStorage", Global::Storage(StorageType::Float)),
    ("DoubleStorage", Global::Storage(StorageType::Double)),
    ("BoolStorage", Global::Storage(StorageType::Bool)),
    ("ComplexFloatStorage", Global::Storage(StorageType::ComplexFloat)),
    ("ComplexDoubleStorage", Global::Storage(StorageType::ComplexDouble)),
    ("ComplexHalfStorage", Global::Storage(StorageType::ComplexHalf)),
    ("QInt8Storage", Global::Storage(StorageType::QInt8)),
    ("QUInt8Storage", Global::Storage(StorageType::QUInt8)),
    ("QInt32Storage", Global::Storage(StorageType::QInt32)),
    ("QUInt4x2Storage", Global::Storage(StorageType::QUInt4x2)),
    ("QUInt2x4Storage", Global::Storage(StorageType::QUInt2x4)),
    ("Float8_e4m3fnStorage", Global::Storage(StorageType::Float8E4M3)),
    ("Float8_e5m2Storage", Global::Storage(StorageType::Float8E5M2)),
    ("UInt16Storage", Global::Storage(StorageType::UInt16)),
    ("UInt32Storage", Global::Storage(StorageType::UInt32)),
    ("UInt64Storage", Global::Storage(StorageType::UInt64)),
    ("UntypedStorage", Global::Storage(StorageType::Untyped)),
    ("per_tensor_affine", Global::Constant("per_tensor_affine")),
    ("per_channel_affine", Global::Constant("per_channel_affine")),
    ("per_channel_affine_float_qparams", Global::Constant("per_channel_affine_float_qparams")),
    ("uint8", Global::Constant("uint8")),
    ("int8", Global::Constant("int8")),
    ("int16", Global::Constant("int16")),
    ("int32", Global::Constant("int32")),
    ("int64", Global::Constant("int64")),
    ("float16", Global::Constant("float16")),
    ("float32", Global::Constant("float32")),
    ("float64", Global::Constant("float64")),
    ("complex32", Global::Constant("complex32")),
    ("complex64", Global::Constant("complex64")),
    ("complex128", Global::Constant("complex128")),
    ("bool", Global::Constant("bool")),
    ("bfloat16", Global::Constant("bfloat16")),
];

const UTILS: &[(&str, Global)] = &[
    ("_rebuild_tensor_v2", Global::RebuildTensor),
    ("_rebuild_parameter", Global::RebuildParameter),
    // A parameter with attributes of its own, as the fourth argument, which are not used.
    ("_rebuild_parameter_with_state", Global::RebuildParameter),
    ("_rebuild_qtensor", Global::RebuildOther("_rebuild_qtensor")),
    ("_rebuild_sparse_tensor", Global::RebuildOther("_rebuild_sparse_tensor")),
    ("_rebuild_sparse_csr_tensor", Global::RebuildOther("_rebuild_sparse_csr_tensor")),
    ("_rebuild_nested_tensor", Global::RebuildOther("_rebuild_nested_tensor")),
    ("_rebuild_meta_tensor_no_storage", Global::RebuildOther("_rebuild_meta_tensor_no_storage")),
];

const JIT_PICKLE: &[(&str, Global)] = &[
    ("build_intlist", Global::BuildIntList),
    ("build_doublelist", Global::BuildDoubleList),
    ("build_boollist", Global::BuildBoolList),
    ("build_tensorlist", Global::BuildTensorList),
    ("restore_type_tag", Global::RestoreTypeTag),
];

/// Modules and their allowed names.
const MODULES: &[(&str, &[(&str, Global)])] = &[
    ("torch", TORCH),
    ("torch._utils", UTILS),
    ("torch._tensor", &[("_rebuild_from_type_v2", Global::RebuildWithAttributes)]),
    ("torch.nn.parameter", &[("Parameter", Global::TensorClass), ("Buffer", Global::TensorClass)]),
    ("torch.jit._pickle", JIT_PICKLE),
    ("torch.serialization", &[("_get_layout", Global::RebuildOther("_get_layout"))]),
    ("collections", &[("OrderedDict", Global::OrderedDict)]),
    ("builtins", &[("complex", Global::Complex)]),
    ("__builtin__", &[("complex", Global::Complex)]),
];

/// Returns the global `module.name` if it is allowed.
pub(super) fn look_up(module: &str, name: &str) -> Option<Global> {
    if module == "__torch__" || module.starts_with("__torch__.") {
        let qualified = format!("{module}.{name}");
        return is_qualified(&qualified).then_some(Global::Class(qualified));
    }
    let (_, names) = MODULES.iter().find(|(m, _)| *m == module)?;
    names.iter().find(|(n, _)| *n == name).map(|(_, global)| global.clone())
}

/// Returns true for dotted Python identifiers.
fn is_qualified(name: &str) -> bool {
    name.split('.').all(|part| {
        let mut chars = part.chars();
        chars.next().is_some_and(|c| c == '_' || c.is_alphabetic())
            && chars.all(|c| c == '_' || c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_names_are_known() {
        assert_eq!(look_up("torch", "FloatStorage"), Some(Global::Storage(StorageType::Float)));
        assert_eq!(look_up("__torch__.a.b", "C"), Some(Global::Class("__torch__.a.b.C".into())));
        assert_eq!(
            look_up("__torch__", "___torch_mangle_0.C"),
            Some(Global::Class("__torch__.___torch_mangle_0.C".into()))
        );
        for (module, name) in [
            ("os", "system"),
            ("torch", "load"),
            ("torch._utils", "_rebuild_parameter_nope"),
            ("builtins", "eval"),
            ("__torch__evil", "C"),
            ("__torch__", "a..b"),
            ("__torch__.a/../b", "C"),
            ("", ""),
        ] {
            assert_eq!(look_up(module, name), None, "{module}.{name}");
        }
    }
}
