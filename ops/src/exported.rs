//! Operators that occur in exported programs only: assertions, constraints of symbolic integers, casts of autocast
//! regions; and the facets by which the lowering of exported programs finds operators.
//!
//! Exported programs call functions of Python on symbolic numbers. [`PYTHON`] states the operators that compute them, for
//! integers and floats, in the order in which the lowering tries them.

use crate::support::kernel;
use flambeau_analysis::shape::Dim;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, KernelResult, Sample};
use flambeau_ir::{
    AutocastPolicy, Doc, Effects, IValue, LoweringRole, OpDef, PythonFunction, RegistryBuilder,
};
use flambeau_tensor::{DType, Scalar, Tensor};

/// Overloads for pairs of integers and floats.
const PAIRS: &[&str] = &["int", "float", "int_float", "float_int"];
/// Overloads for an integer or a float.
const INT_OR_FLOAT: &[&str] = &["int", "float"];

/// Python functions, the operator that computes them, and its overloads.
const PYTHON: &[(&[&str], &str, &[&str])] = &[
    (&["_operator.add"], "aten::add", PAIRS),
    (&["_operator.sub"], "aten::sub", PAIRS),
    (&["_operator.mul"], "aten::mul", PAIRS),
    (&["_operator.truediv"], "aten::div", INT_OR_FLOAT),
    (&["_operator.floordiv"], "aten::floordiv", PAIRS),
    (&["_operator.mod"], "aten::remainder", PAIRS),
    (&["_operator.pow"], "aten::pow", &["int_to_int", "float", "int_float", "float_int"]),
    (&["_operator.neg"], "aten::neg", INT_OR_FLOAT),
    (&["_operator.abs", "builtins.abs"], "prim::abs", INT_OR_FLOAT),
    (&["_operator.eq"], "aten::eq", &["int", "float", "int_float", "float_int", "bool", ""]),
    (&["_operator.ne"], "aten::ne", &["int", "float", "int_float", "float_int", "bool", ""]),
    (&["_operator.lt"], "aten::lt", PAIRS),
    (&["_operator.le"], "aten::le", PAIRS),
    (&["_operator.gt"], "aten::gt", PAIRS),
    (&["_operator.ge"], "aten::ge", PAIRS),
    (&["_operator.and_"], "aten::__and__", &["bool", "int"]),
    (&["_operator.or_"], "aten::__or__", &["bool", "int"]),
    (&["_operator.xor"], "aten::__xor__", &["bool", "int"]),
    (&["_operator.not_", "torch.sym_not"], "aten::__not__", &[""]),
    (&["_operator.lshift"], "aten::__lshift__", &["int"]),
    (&["_operator.rshift"], "aten::__rshift__", &["int"]),
    (&["math.trunc", "torch.sym_int"], "aten::Int", &["float"]),
    (&["math.ceil"], "aten::ceil", INT_OR_FLOAT),
    (&["math.floor"], "aten::floor", INT_OR_FLOAT),
    (&["numpy.rint"], "aten::round", INT_OR_FLOAT),
    (&["torch.sym_float"], "aten::Float", &["int"]),
    (&["torch.sym_max"], "prim::max", PAIRS),
    (&["torch.sym_min"], "prim::min", PAIRS),
    (&["torch._sym_sqrt"], "aten::sqrt", INT_OR_FLOAT),
    (&["torch._sym_cos"], "aten::cos", INT_OR_FLOAT),
    (&["torch._sym_cosh"], "aten::cosh", INT_OR_FLOAT),
    (&["torch._sym_sin"], "aten::sin", INT_OR_FLOAT),
    (&["torch._sym_sinh"], "aten::sinh", INT_OR_FLOAT),
    (&["torch._sym_tan"], "aten::tan", INT_OR_FLOAT),
    (&["torch._sym_tanh"], "aten::tanh", INT_OR_FLOAT),
    (&["torch._sym_asin"], "aten::asin", INT_OR_FLOAT),
    (&["torch._sym_acos"], "aten::acos", INT_OR_FLOAT),
    (&["torch._sym_atan"], "aten::atan", INT_OR_FLOAT),
    (&["torch._sym_exp"], "aten::exp", INT_OR_FLOAT),
    (&["torch._sym_log"], "aten::log", INT_OR_FLOAT),
    (&["torch._sym_asinh"], "aten::asinh", INT_OR_FLOAT),
];

/// The operators that the lowering of control flow needs.
const ROLES: &[(LoweringRole, &str)] = &[
    (LoweringRole::Size, "aten::size.int"),
    (LoweringRole::Select, "aten::select.int"),
    (LoweringRole::Stack, "aten::stack"),
    (LoweringRole::Append, "aten::append.t"),
    (LoweringRole::Reverse, "aten::reverse.t"),
    (LoweringRole::MoveDim, "aten::movedim.int"),
    (LoweringRole::Flip, "aten::flip"),
    (LoweringRole::IsNot, "aten::__isnot__"),
    (LoweringRole::ToBool, "aten::Bool.Tensor"),
    (LoweringRole::Clone, "aten::clone"),
    (LoweringRole::ToReducedPrecision, "aten::_autocast_to_reduced_precision"),
    (LoweringRole::ToFullPrecision, "aten::_autocast_to_full_precision"),
    (LoweringRole::GradEnabled, "aten::is_grad_enabled"),
    (LoweringRole::SetGradEnabled, "aten::set_grad_enabled"),
];

/// Operators that compute in the dtype of a region of automatic mixed precision.
const REDUCED: &[&str] = &[
    "aten::conv1d",
    "aten::conv1d.padding",
    "aten::conv2d",
    "aten::conv2d.padding",
    "aten::conv3d",
    "aten::conv3d.padding",
    "aten::bmm",
    "aten::mm",
    "aten::linalg_vecdot",
    "aten::baddbmm",
    "aten::addmm",
    "aten::addbmm",
    "aten::linear",
    "aten::_convolution.deprecated",
    "aten::matmul",
    "aten::conv_tbc",
    "aten::conv_transpose1d",
    "aten::conv_transpose2d.input",
    "aten::conv_transpose3d.input",
    "aten::prelu",
    "aten::scaled_dot_product_attention",
    "aten::_addmm_activation",
];

/// Operators that compute in single precision in such a region.
const FULL: &[&str] = &[
    "aten::avg_pool3d",
    "aten::binary_cross_entropy",
    "aten::grid_sampler",
    "aten::polar",
    "aten::prod",
    "aten::prod.dim_int",
    "aten::quantile",
    "aten::quantile.scalar",
    "aten::nanquantile",
    "aten::nanquantile.scalar",
    "aten::stft",
    "aten::stft.center",
    "aten::cdist",
    "aten::grid_sampler_2d",
    "aten::grid_sampler_3d",
    "aten::trace",
    "aten::view_as_complex",
    "aten::cholesky",
    "aten::cholesky_inverse",
    "aten::cholesky_solve",
    "aten::inverse",
    "aten::lu_solve",
    "aten::orgqr",
    "aten::ormqr",
    "aten::pinverse",
    "aten::max_pool3d",
    "aten::max_unpool2d",
    "aten::max_unpool3d",
    "aten::adaptive_avg_pool3d",
    "aten::reflection_pad1d",
    "aten::reflection_pad2d",
    "aten::replication_pad1d",
    "aten::replication_pad2d",
    "aten::replication_pad3d",
    "aten::mse_loss",
    "aten::cosine_embedding_loss",
    "aten::nll_loss",
    "aten::nll_loss2d",
    "aten::hinge_embedding_loss",
    "aten::poisson_nll_loss",
    "aten::smooth_l1_loss",
    "aten::cross_entropy_loss",
    "aten::l1_loss",
    "aten::huber_loss",
    "aten::margin_ranking_loss",
    "aten::soft_margin_loss",
    "aten::triplet_margin_loss",
    "aten::multi_margin_loss",
    "aten::ctc_loss.IntList",
    "aten::ctc_loss.Tensor",
    "aten::kl_div",
    "aten::multilabel_margin_loss",
    "aten::binary_cross_entropy_with_logits",
    "aten::fft_fft",
    "aten::fft_ifft",
    "aten::fft_fft2",
    "aten::fft_ifft2",
    "aten::fft_fftn",
    "aten::fft_ifftn",
    "aten::fft_rfft",
    "aten::fft_irfft",
    "aten::fft_rfft2",
    "aten::fft_irfft2",
    "aten::fft_rfftn",
    "aten::fft_irfftn",
    "aten::fft_hfft",
    "aten::fft_ihfft",
    "aten::linalg_cond",
    "aten::linalg_cond.p_str",
    "aten::linalg_matrix_rank",
    "aten::linalg_solve",
    "aten::linalg_cholesky",
    "aten::linalg_svdvals",
    "aten::linalg_eigvals",
    "aten::linalg_eigvalsh",
    "aten::linalg_inv",
    "aten::linalg_householder_product",
    "aten::linalg_tensorinv",
    "aten::linalg_tensorsolve",
    "aten::linalg_qr",
    "aten::linalg_cholesky_ex",
    "aten::linalg_svd",
    "aten::linalg_eig",
    "aten::linalg_eigh",
    "aten::linalg_lstsq",
    "aten::linalg_inv_ex",
    "aten::linalg_matrix_rank.tol_tensor",
    "aten::linalg_matrix_rank.atol_rtol_tensor",
    "aten::linalg_matrix_rank.atol_rtol_float",
    "aten::adaptive_max_pool3d",
    "aten::fractional_max_pool2d",
    "aten::fractional_max_pool3d",
    "aten::multilabel_margin_loss_forward",
    "aten::_lu_with_info",
    "aten::geqrf",
    "aten::qr",
    "aten::svd",
    "aten::triangular_solve",
];

/// Operators that PyTorch computes by calls of operators of the lists above. Other composite operators call none of them.
const COMPOSITE: &[&str] = &[
    "aten::einsum",
    "aten::tensordot",
    "aten::inner",
    "aten::chain_matmul",
    "aten::linalg_multi_dot",
    "aten::linalg_matrix_power",
    "aten::matrix_power",
    "aten::pad",
    "aten::lstm.input",
    "aten::gru.input",
    "aten::rnn_tanh.input",
    "aten::rnn_relu.input",
    "aten::lstm_cell",
    "aten::gru_cell",
    "aten::rnn_tanh_cell",
    "aten::rnn_relu_cell",
];

/// States the Python functions and roles of operators.
pub(crate) fn add(builder: &mut RegistryBuilder) {
    for (functions, name, overloads) in PYTHON {
        for overload in *overloads {
            let dot = if overload.is_empty() { "" } else { "." };
            builder.facet(&format!("{name}{dot}{overload}"), PythonFunction(functions));
        }
    }
    let policies = [
        (REDUCED, AutocastPolicy::Reduced),
        (FULL, AutocastPolicy::Full),
        (COMPOSITE, AutocastPolicy::Composite),
    ];
    for (operators, policy) in policies {
        for operator in operators {
            builder.facet(operator, policy);
        }
    }
    for (role, operator) in ROLES {
        builder.facet(operator, *role);
    }
}

/// All operators of the family.
pub(crate) fn family() -> Vec<OpDef> {
    vec![
        assert_async("", "Fails if a tensor is zero."),
        assert_async("msg", "Fails with a message if a tensor is zero."),
        metadata(),
        constrain("sym_constrain_range", false),
        constrain("sym_constrain_range_for_size", true),
        to_reduced(),
        to_full(),
    ]
}

fn to_reduced() -> OpDef {
    let number = |dtype: DType| IValue::Int(dtype.scalar_type());
    let args = [IValue::Bool(false), IValue::Bool(true), number(DType::F16), number(DType::BF16)];
    OpDef::named("aten::_autocast_to_reduced_precision")
        .with(Doc(
            "Casts a float32 tensor to the autocast dtype of its device; returns any other tensor unchanged.",
        ))
        .with(ResultShapes::same_as(0))
        .with(Dtype::from(|cx| match (cx.dtype(0)?, cx.bool(2)?, cx.number(4)) {
            (DType::F32, true, Dim::Known(number)) => DType::from_scalar_type(number),
            (DType::F32, true, _) => None,
            (dtype, ..) => Some(dtype),
        }))
        .with(Sample::tensors(1).floats().then(args).exact().not_differentiable())
        .with(kernel(|cx| {
            let tensor = cx.tensor(0)?;
            let casts = cx.boolean(2)? && tensor.dtype() == DType::F32;
            let result = if casts { tensor.to_dtype(cx.dtype(4)?)? } else { tensor.clone() };
            cx.ret(result);
            Ok(())
        }))
}

fn to_full() -> OpDef {
    let is_half = |dtype: DType| matches!(dtype, DType::F16 | DType::BF16);
    OpDef::named("aten::_autocast_to_full_precision")
        .with(Doc("Casts a float16 or bfloat16 tensor to float32 if `cpu_enabled`; returns any other tensor unchanged."))
        .with(ResultShapes::same_as(0))
        .with(Dtype::from(move |cx| match (cx.dtype(0)?, cx.bool(2)?) {
            (dtype, true) if is_half(dtype) => Some(DType::F32),
            (dtype, _) => Some(dtype),
        }))
        .with(
            Sample::tensors(1)
                .floats()
                .then([IValue::Bool(false), IValue::Bool(true)])
                .exact()
                .not_differentiable(),
        )
        .with(kernel(move |cx| {
            let tensor = cx.tensor(0)?;
            let casts = cx.boolean(2)? && is_half(tensor.dtype());
            let result = if casts { tensor.to_dtype(DType::F32)? } else { tensor.clone() };
            cx.ret(result);
            Ok(())
        }))
}

fn assert_async(overload: &str, doc: &'static str) -> OpDef {
    let has_message = !overload.is_empty();
    let sample = Sample::args(move |g| {
        let value = [Scalar::Float(g.float(0.5, 2.0))];
        let tensor = Tensor::from_scalars(&value, &[], DType::F32);
        let tensor = tensor.expect("invariant: one element fits a tensor without dimensions");
        let message = has_message.then(|| IValue::str("zero"));
        [IValue::Tensor(tensor)].into_iter().chain(message).collect()
    });
    OpDef::overload("aten::_assert_async", overload)
        .with(Doc(doc))
        .with(Effects::IO | Effects::RAISES)
        .with(sample.exact().not_differentiable())
        .with(kernel(move |cx| {
            let tensor = cx.tensor(0)?;
            if tensor.numel() != 1 {
                let message = format!(
                    "Boolean value of Tensor with {} is ambiguous",
                    if tensor.numel() == 0 { "no values" } else { "more than one value" }
                );
                return Err(KernelError::input(message));
            }
            match (tensor.item()?.to_bool(), has_message) {
                (true, _) => Ok(()),
                (false, true) => Err(KernelError::input(cx.string(1)?.to_text())),
                (false, false) => {
                    Err(KernelError::input("Expected Tensor with single nonzero value, but got zero"))
                }
            }
        }))
}

fn metadata() -> OpDef {
    OpDef::named("aten::_assert_tensor_metadata")
        .with(Doc("Fails if a tensor has other sizes, strides or another dtype, device or layout."))
        .with(Effects::IO | Effects::RAISES)
        .with(Sample::tensors(1).floats().exact().not_differentiable().then([
            IValue::None,
            IValue::None,
            IValue::None,
            IValue::None,
            IValue::None,
        ]))
        .with(kernel(|cx| {
            let tensor = cx.tensor(0)?;
            for (i, what, own) in [(1, "sizes", tensor.sizes()), (2, "strides", tensor.strides())] {
                if let Some(wanted) = cx.opt_ints(i)? {
                    expect(what, &own, &wanted.as_slice())?;
                }
            }
            if let Some(dtype) = cx.opt_dtype(3)? {
                expect("dtype", &tensor.dtype(), &dtype)?;
            }
            if let Some(device) = cx.opt_device(4)? {
                expect("device", &tensor.device(), &device)?;
            }
            match cx.opt_int(5)? {
                None | Some(0) => Ok(()),
                Some(layout) => Err(KernelError::input(format!(
                    "Tensor layout mismatch! Expected: layout {layout}, Got: strided"
                ))),
            }
        }))
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, own: &T, wanted: &T) -> KernelResult {
    if own == wanted {
        return Ok(());
    }
    Err(KernelError::input(format!("Tensor {what} mismatch! Expected: {wanted:?}, Got: {own:?}")))
}

/// A check that an integer is within bounds; the lower bound of a size is 0 by default.
fn constrain(name: &str, is_size: bool) -> OpDef {
    let doc = if is_size {
        "Fails if a size is not within bounds."
    } else {
        "Fails if a number is not within bounds."
    };
    OpDef::named(&format!("aten::{name}"))
        .with(Doc(doc))
        .with(Effects::IO | Effects::RAISES)
        .with(
            Sample::args(|g| vec![IValue::Int(g.int(3, 9)), IValue::Int(0), IValue::Int(12)])
                .exact()
                .not_differentiable(),
        )
        .with(kernel(move |cx| {
            let size = whole(cx)?;
            let (min, max) = (cx.opt_int(1)?, cx.opt_int(2)?);
            if let Some(max) = max.filter(|max| is_size && *max <= 2) {
                let message =
                    format!("Max value to constrain_range_for_size must be greater than 2. got: {max}");
                return Err(KernelError::input(message));
            }
            let min = min.unwrap_or(if is_size { 0 } else { i64::MIN });
            let max = max.unwrap_or(i64::MAX);
            if max < min {
                let message = format!("Max must be greater than or equal to min. Got min={min} max={max}");
                return Err(KernelError::input(message));
            }
            if min <= size && size <= max {
                return Ok(());
            }
            Err(KernelError::input(format!("Invalid value range for {size} between [{min}, {max}].")))
        }))
}

fn whole(cx: &KernelCx<'_>) -> Result<i64, KernelError> {
    match cx.scalar(0)? {
        Scalar::Int(size) => Ok(size),
        Scalar::Bool(b) => Ok(i64::from(b)),
        Scalar::Float(_) | Scalar::Complex(_) => {
            Err(KernelError::input("Constraining SymFloat or SymBool is nyi"))
        }
    }
}
