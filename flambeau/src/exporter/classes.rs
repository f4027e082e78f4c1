//! The ways in which operators are exported: recorded, computed, or read.
//!
//! Operators that return tensors are recorded. All others are evaluated; the tables list reads of data and queries of
//! metadata among them. An operator on tensors in no table counts as a read of data, so an unknown one is refused
//! rather than made a constant.

use super::symbolic::reads_element;
use flambeau_ir::Effects;
use flambeau_ir::schema::FunctionSchema;
use flambeau_ir::types::TypeKind;

/// The way in which an operator is exported.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OpClass {
    /// It becomes a node.
    Record,
    /// It is computed.
    Compute,
    /// It is computed if the operands do not vary; its result is a number that it reads from a tensor.
    ReadElement,
    /// It is computed if the operands do not vary.
    Read,
    /// It has an effect that a graph cannot have.
    Effect,
}

/// Operators that make a tensor of numbers. A tensor without a node becomes a constant of the program when it is used.
const FROM_NUMBERS: &[&str] =
    &["aten::tensor", "aten::as_tensor", "prim::NumToTensor", "aten::_make_per_tensor_quantized_tensor"];

/// Operators that read only the metadata of tensors, not their data, beside those of the namespace `prim`.
const METADATA_QUERIES: &[&str] = &[
    "aten::size",
    "aten::stride",
    "aten::sym_size",
    "aten::sym_stride",
    "aten::sym_numel",
    "aten::dim",
    "aten::numel",
    "aten::len",
    "aten::is_contiguous",
    "aten::is_same_size",
    "aten::is_floating_point",
    "aten::is_complex",
    "aten::is_signed",
    "aten::is_conj",
    "aten::is_neg",
    "aten::is_inference",
    "aten::storage_offset",
    "aten::get_device",
    "aten::element_size",
    "aten::result_type",
    "aten::can_cast",
    "aten::requires_grad",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
    "aten::retains_grad",
    "aten::ndimension",
    "aten::__is__",
    "aten::__isnot__",
    "aten::__range_length",
    "aten::device",
    "aten::is_pinned",
    "aten::nelement",
];

/// A query of sizes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SizeQuery {
    /// All sizes, or one.
    Sizes,
    /// The first size.
    Length,
    /// The number of elements.
    Count,
    /// Anything else that depends on sizes.
    Other,
}

impl SizeQuery {
    pub(super) fn of(schema: &FunctionSchema) -> Option<SizeQuery> {
        Some(match schema.name.as_str() {
            "aten::size" | "aten::sym_size" => SizeQuery::Sizes,
            "aten::len" => SizeQuery::Length,
            "aten::numel" | "aten::sym_numel" | "aten::nelement" => SizeQuery::Count,
            "aten::stride" | "aten::sym_stride" | "aten::is_same_size" | "aten::storage_offset" => {
                SizeQuery::Other
            }
            _ => return None,
        })
    }
}

/// Operators on values of any type that read the contents of tensors.
pub(super) const READS_ANY: &[&str] = &[
    "aten::str",
    "aten::format",
    "aten::percentFormat",
    "aten::eq",
    "aten::ne",
    "aten::sort",
    "aten::sorted",
    "aten::index",
    "aten::count",
    "aten::remove",
    "aten::hash",
];

/// Returns how an operator is exported.
pub(super) fn class_of(schema: &FunctionSchema, effects: Effects) -> OpClass {
    let name = schema.name.as_str();
    let takes = |arg: &flambeau_ir::schema::Argument| arg.ty.contains_tensor() && !arg.ty.has_vars();
    let takes_tensors = schema.args.iter().any(takes);
    let computes =
        |arg: &flambeau_ir::schema::Argument| takes(arg) && !matches!(arg.ty.kind(), TypeKind::Dict(..));
    if FROM_NUMBERS.contains(&name) {
        return OpClass::Compute;
    }
    if schema.returns.iter().any(computes) || (takes_tensors && schema.returns.is_empty()) {
        return OpClass::Record;
    }
    if reads_element(schema.name) && takes_tensors {
        return OpClass::ReadElement;
    }
    // A generic parameter or `Any` may be a tensor, as in `format`.
    let takes_any = schema.args.iter().any(|arg| matches!(arg.ty.kind(), TypeKind::Any));
    if (takes_tensors && !name.starts_with("prim::") && !METADATA_QUERIES.contains(&name))
        || takes_any
        || READS_ANY.contains(&name)
    {
        return OpClass::Read;
    }
    let is_lasting =
        [Effects::WRITES_STATE, Effects::HOST, Effects::RANDOM].iter().any(|&e| effects.contains(e));
    if is_lasting { OpClass::Effect } else { OpClass::Compute }
}

pub(super) fn is_conversion(schema: &FunctionSchema) -> bool {
    matches!(schema.name.as_str(), "aten::Int" | "aten::Float")
}
