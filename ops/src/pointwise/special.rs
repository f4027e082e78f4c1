//! Special functions: of one tensor, of two operands (either may be a number), orthogonal polynomials, derivatives of
//! gamma.
//!
//! The functions are implemented in `flambeau_tensor::math::special`. They compute in f64, except where PyTorch's
//! result depends on its precision (near poles, and where recurrences overflow).

use super::pairs::{Pair, in_place, pairs};
use crate::support::{Computed, OutputLayout, fresh, into_out, into_outputs, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::loops::{binary_in, unary_in};
use flambeau_tensor::math::special::{self as sf, Chebyshev, Orthogonal};
use flambeau_tensor::math::{Float, Real};
use flambeau_tensor::promote::to_float;
use flambeau_tensor::{DType, Element, Tensor, TensorError, check_budget, dispatch};

/// Whether a function supports f16 and bf16, as in PyTorch.
#[derive(Clone, Copy, PartialEq)]
enum F16Support {
    Taken,
    Refused,
    /// Supports them, but no integers.
    FloatsOnly,
}

use F16Support::{FloatsOnly, Refused, Taken};

/// Names, the name of PyTorch's kernel, documentation, function, f16 support.
type Row = (&'static str, &'static str, &'static str, fn(f64) -> f64, F16Support);

const UNARY: &[Row] = &[
    ("special_airy_ai", "airy_ai_cpu", "The Airy function of the first kind.", sf::airy_ai, Refused),
    (
        "special_bessel_j0",
        "bessel_j0_cpu",
        "The Bessel function of the first kind, order 0.",
        sf::bessel_j0,
        Refused,
    ),
    (
        "special_bessel_j1",
        "bessel_j1_cpu",
        "The Bessel function of the first kind, order 1.",
        sf::bessel_j1,
        Refused,
    ),
    (
        "special_bessel_y0",
        "bessel_y0_cpu",
        "The Bessel function of the second kind, order 0.",
        sf::bessel_y0,
        Refused,
    ),
    (
        "special_bessel_y1",
        "bessel_y1_cpu",
        "The Bessel function of the second kind, order 1.",
        sf::bessel_y1,
        Refused,
    ),
    (
        "i0 special_i0",
        "i0_vml_cpu",
        "The modified Bessel function of the first kind, order 0.",
        sf::i0,
        Taken,
    ),
    ("special_i1", "i1_cpu", "The modified Bessel function of the first kind, order 1.", sf::i1, Taken),
    ("special_i0e", "i0e_cpu", "`e^-|x| i0(x)`.", sf::i0e, Taken),
    ("special_i1e", "i1e_cpu", "`e^-|x| i1(x)`.", sf::i1e, Taken),
    (
        "special_modified_bessel_i0",
        "modified_bessel_i0_cpu",
        "The modified Bessel function of the first kind, order 0.",
        sf::i0,
        Refused,
    ),
    (
        "special_modified_bessel_i1",
        "modified_bessel_i1_cpu",
        "The modified Bessel function of the first kind, order 1.",
        sf::i1,
        Refused,
    ),
    (
        "special_modified_bessel_k0",
        "modified_bessel_k0_cpu",
        "The modified Bessel function of the second kind, order 0.",
        sf::k0,
        Refused,
    ),
    (
        "special_modified_bessel_k1",
        "modified_bessel_k1_cpu",
        "The modified Bessel function of the second kind, order 1.",
        sf::k1,
        Refused,
    ),
    ("special_scaled_modified_bessel_k0", "scaled_modified_bessel_k0_cpu", "`e^x k0(x)`.", sf::k0e, Refused),
    ("special_scaled_modified_bessel_k1", "scaled_modified_bessel_k1_cpu", "`e^x k1(x)`.", sf::k1e, Refused),
    ("special_spherical_bessel_j0", "spherical_bessel_j0_cpu", "`sin(x) / x`.", sf::spherical_j0, Refused),
    ("special_entr", "entr_cpu", "`-x log(x)`, 0 at 0.", sf::entropy_term, Taken),
    ("special_erfcx", "erfcx_cpu", "`e^(x^2) erfc(x)`.", sf::erfcx, Refused),
    (
        "special_log_ndtr",
        "log_ndtr_cpu",
        "Logarithm of the cumulative distribution function of the standard normal distribution.",
        sf::log_ndtr,
        Refused,
    ),
    (
        "special_ndtri",
        "ndtri_cpu",
        "Quantile of the standard normal distribution: the inverse of `special_ndtr`.",
        sf::ndtri,
        Refused,
    ),
];

/// Returns the result dtype, or an error for dtypes that are unsupported.
fn check(dtype: DType, f16_support: F16Support, name: &'static str) -> Result<DType, TensorError> {
    match to_float(dtype) {
        _ if f16_support == FloatsOnly && !dtype.is_floating() => Err(TensorError::DType { op: name, dtype }),
        d @ (DType::F16 | DType::BF16) if f16_support == Refused => {
            Err(TensorError::DType { op: name, dtype: d })
        }
        d => Ok(d),
    }
}

fn of_floats(d: OpDef) -> OpDef {
    d.with(ResultShapes::same_as(0))
        .with(Dtype::float_promote([0]))
        .with(Sample::tensors(1).floats().range(0.05, 0.95))
}

/// Computes `special_ndtr`. f16 and bf16 round the result of every step.
fn ndtr(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    let dtype = to_float(x.dtype());
    dispatch!(floats, dtype, "erf_vml_cpu", T => Ok(match dtype {
        DType::F16 | DType::BF16 => unary_in::<T>(dtype, x, |v: T| {
            let step = |x: f64| T::from_f64(x).to_f64();
            let error = step(libm::erf(step(v.to_f64() * std::f64::consts::FRAC_1_SQRT_2)));
            T::from_f64(step(1.0 + error) / 2.0)
        }),
        _ => unary_in::<T>(dtype, x, |v: T| T::from_f64(sf::ndtr(v.to_f64()))),
    }?))
}

fn of_one() -> Vec<OpDef> {
    let row = |&(names, kernel, doc, f, f16_support): &Row| {
        op(names, "", doc).facts(of_floats).one(move |cx| {
            let x = cx.tensor(0)?;
            let dtype = check(x.dtype(), f16_support, kernel)?;
            dispatch!(carried_floats, dtype, kernel, T => {
                Ok(unary_in::<T>(dtype, x, move |v: T| T::from_f64(f(v.to_f64())))?)
            })
        })
    };
    let mut defs: Vec<OpDef> = UNARY.iter().flat_map(row).collect();
    defs.extend(
        op("special_ndtr", "", "The cumulative distribution function of the standard normal distribution.")
            .facts(of_floats)
            .one(ndtr),
    );
    defs
}

/// Name, the name of PyTorch's kernel, overloads, documentation, function, f16 support.
type BinaryRow =
    (&'static str, &'static str, &'static [&'static str], &'static str, fn(f64, f64) -> f64, F16Support);

const ANY: &[&str] = &["", "self_scalar", "other_scalar"];

const BINARY: &[BinaryRow] = &[
    (
        "special_zeta",
        "zeta_cpu",
        ANY,
        "Hurwitz's zeta function: the sum of `(k + other)^-self`.",
        sf::zeta,
        Refused,
    ),
    ("special_xlog1py", "xlog1py_cpu", ANY, "`self * log(1 + other)`, 0 where `self` is.", xlog1py, Taken),
    ("special_xlogy", "xlogy_cpu", ANY, "`self * log(other)`, 0 where `self` is.", xlogy, Taken),
    (
        "xlogy",
        "xlogy_cpu",
        &["Tensor", "Scalar_Self", "Scalar_Other"],
        "`self * log(other)`, 0 where `self` is.",
        xlogy,
        Taken,
    ),
    (
        "igamma special_gammainc",
        "igamma_cpu",
        &[""],
        "The lower incomplete gamma function, regularized.",
        sf::gamma_p,
        FloatsOnly,
    ),
    (
        "igammac special_gammaincc",
        "igammac_cpu",
        &[""],
        "The upper incomplete gamma function, regularized.",
        sf::gamma_q,
        FloatsOnly,
    ),
];

fn xlogy(a: f64, b: f64) -> f64 {
    if b.is_nan() {
        b
    } else if a == 0.0 {
        0.0
    } else {
        a * b.ln()
    }
}

fn xlog1py(a: f64, b: f64) -> f64 {
    if b.is_nan() {
        b
    } else if a == 0.0 {
        0.0
    } else {
        a * b.ln_1p()
    }
}

fn of_two() -> Vec<OpDef> {
    let row = |&(names, kernel, overloads, doc, f, f16_support): &BinaryRow| {
        pairs(names, overloads, doc, Dtype::float_promote([0, 1]), (1.1, 3.0), move |pair: Pair| {
            let dtype = check(pair.dtype, f16_support, kernel)?;
            dispatch!(carried_floats, dtype, kernel, T => {
                Ok(binary_in::<T>(dtype, &pair.a, &pair.b, move |a: T, b: T| T::from_f64(f(a.to_f64(), b.to_f64())))?)
            })
        })
    };
    BINARY.iter().flat_map(row).collect()
}

/// A family of polynomials.
#[derive(Clone, Copy)]
enum Polynomial {
    Chebyshev(Chebyshev),
    /// On [0, 1] instead of [-1, 1].
    Shifted(Chebyshev),
    Other(Orthogonal),
}

impl Polynomial {
    #[inline]
    fn at<A: Real>(self, x: A, n: i64) -> A {
        match self {
            Polynomial::Chebyshev(kind) => kind.at(x, n),
            Polynomial::Shifted(kind) => kind.at(x + x - A::ONE, n),
            Polynomial::Other(family) => family.at(x, n),
        }
    }
}

const POLYNOMIALS: &[(&str, &str, Polynomial)] = &[
    ("chebyshev_polynomial_t", "Chebyshev's of the first kind", Polynomial::Chebyshev(Chebyshev::T)),
    ("chebyshev_polynomial_u", "Chebyshev's of the second kind", Polynomial::Chebyshev(Chebyshev::U)),
    ("chebyshev_polynomial_v", "Chebyshev's of the third kind", Polynomial::Chebyshev(Chebyshev::V)),
    ("chebyshev_polynomial_w", "Chebyshev's of the fourth kind", Polynomial::Chebyshev(Chebyshev::W)),
    ("shifted_chebyshev_polynomial_t", "Chebyshev's, shifted", Polynomial::Shifted(Chebyshev::T)),
    ("shifted_chebyshev_polynomial_u", "Chebyshev's, shifted", Polynomial::Shifted(Chebyshev::U)),
    ("shifted_chebyshev_polynomial_v", "Chebyshev's, shifted", Polynomial::Shifted(Chebyshev::V)),
    ("shifted_chebyshev_polynomial_w", "Chebyshev's, shifted", Polynomial::Shifted(Chebyshev::W)),
    ("hermite_polynomial_h", "Hermite's, the physicists'", Polynomial::Other(Orthogonal::HermiteH)),
    ("hermite_polynomial_he", "Hermite's, the probabilists'", Polynomial::Other(Orthogonal::HermiteHe)),
    ("laguerre_polynomial_l", "Laguerre's", Polynomial::Other(Orthogonal::Laguerre)),
    ("legendre_polynomial_p", "Legendre's", Polynomial::Other(Orthogonal::Legendre)),
];

/// The maximal degree, because recurrences take linear time.
const MAX_DEGREE: i64 = 1_000_000;

/// Converts a degree to an integer; values out of range of i64 count as negative.
fn degree(n: f64) -> i64 {
    if n.abs() < 9.2e18 { n as i64 } else { -1 }
}

fn check_degrees(n: &Tensor) -> Result<(), KernelError> {
    let largest = n.to_vec::<f64>()?.into_iter().map(degree).max().unwrap_or(0);
    if largest > MAX_DEGREE {
        return Err(KernelError::limit(format!("polynomial of degree {largest}")));
    }
    Ok(())
}

fn polynomials() -> Vec<OpDef> {
    let row = |&(name, _, polynomial): &(&'static str, &'static str, Polynomial)| {
        let doc = "The orthogonal polynomial of degree `n` at `x`.";
        let name = format!("special_{name}");
        pairs(
            &name,
            &["", "x_scalar", "n_scalar"],
            doc,
            Dtype::float_promote([0, 1]),
            (0.5, 5.0),
            move |pair: Pair| {
                check_degrees(&pair.b)?;
                let dtype = check(pair.dtype, Refused, "polynomial")?;
                dispatch!(carried_floats, dtype, "polynomial", T => {
                    Ok(binary_in::<T>(dtype, &pair.a, &pair.b, move |x: T, n: T| {
                        T::from_acc(polynomial.at(x.acc(), degree(n.to_f64())))
                    })?)
                })
            },
        )
    };
    POLYNOMIALS.iter().flat_map(row).collect()
}

fn polygamma_of(n: i64, x: &Tensor) -> Computed {
    if n < 0 {
        return Err(KernelError::input("polygamma(n, x) does not support negative n."));
    }
    let kernel = match n {
        0 => "digamma",
        1 => "trigamma",
        _ => "polygamma",
    };
    dispatch!(carried_floats, to_float(x.dtype()), kernel, T => Ok(match n {
        0 => unary_in::<T>(to_float(x.dtype()), x, |v: T| T::from_acc(v.acc().digamma())),
        1 => unary_in::<T>(to_float(x.dtype()), x, |v: T| T::from_acc(sf::trigamma(v.acc()))),
        _ => unary_in::<T>(to_float(x.dtype()), x, move |v: T| T::from_f64(sf::polygamma(n, v.to_f64()))),
    }?))
}

fn polygamma(cx: &KernelCx<'_>) -> Computed {
    polygamma_of(cx.int(0)?, cx.tensor(1)?)
}

/// Logarithm of the multivariate gamma function: a sum of [`Real::lgamma`]s.
fn mvlgamma(cx: &KernelCx<'_>) -> Computed {
    let (x, p) = (cx.tensor(0)?, cx.int(1)?);
    if x.dtype() == DType::Bool {
        return Err(KernelError::input("The input tensor may not be a boolean tensor."));
    }
    if p < 1 {
        return Err(KernelError::input("p has to be greater than or equal to 1"));
    }
    // PyTorch allocates a tensor of all terms; the same amount is checked against the memory limit.
    check_budget(x.numel().saturating_mul(p as usize).saturating_mul(size_of::<f64>()))?;
    let p = p as f64;
    dispatch!(carried_floats, to_float(x.dtype()), "mvlgamma", T => Ok(unary_in::<T>(to_float(x.dtype()), x, move |v: T| {
        let x = v.to_f64();
        let mut sum = p * (p - 1.0) / 4.0 * std::f64::consts::PI.ln();
        let mut i = 0.0;
        while i < p {
            sum += libm::lgamma(x - i / 2.0);
            i += 1.0;
        }
        T::from_f64(sum)
    })?))
}

fn gammas() -> Vec<OpDef> {
    let floats = |d: OpDef, at: usize| d.with(ResultShapes::same_as(at)).with(Dtype::float_promote([at]));
    let doc = "Derivative `n` of the digamma function.";
    let facts = |d: OpDef| {
        let sample = Sample::args(|g| {
            let x = flambeau_exec::sample::tensor(g, &[2, 3], DType::F64, &Default::default());
            vec![IValue::Int(g.int(0, 3)), IValue::Tensor(x)]
        });
        floats(d, 1).with(sample)
    };
    let mut defs = op("special_polygamma", "", doc).facts(facts).one(polygamma);
    // The in-place variant takes the tensor first, so it cannot be derived.
    defs.push(facts(OpDef::named("aten::polygamma").with(Doc(doc)).with(fresh(polygamma))));
    defs.push(into_outputs("aten::polygamma", "out", facts, into_out(polygamma)));
    defs.push(in_place("aten::polygamma_", "", |cx| polygamma_of(cx.int(1)?, cx.tensor(0)?)));
    let doc = "Logarithm of the multivariate gamma function of dimension `p`.";
    let facts =
        |d: OpDef| floats(d, 0).with(Sample::tensors(1).floats().range(2.0, 5.0).then([IValue::Int(3)]));
    defs.extend(
        op("mvlgamma special_multigammaln", "", doc)
            .output_layout(OutputLayout::RowMajor)
            .facts(facts)
            .one(mvlgamma),
    );
    defs
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = of_one();
    defs.extend(of_two());
    defs.extend(polynomials());
    defs.extend(gammas());
    defs
}
