//! Operators with several names. PyTorch declares the overloads of each name and replaces the synonym by the canonical
//! name when it compiles a call ("operator aliases"), so a synonym occurs in IR text only.
//!
//! This table is the only place that relates the names. Frontends read it from the registry; checks of dtypes, outputs
//! and overlaps that are recorded by name are looked up by the canonical one ([`canonical`]), so they are the same for
//! both. A test compares the names on hostile arguments.

use flambeau_ir::RegistryBuilder;
use std::borrow::Cow;

/// Synonyms, and their canonical operators. Both also have in-place variants, with `_` behind the names, if the
/// variant of the synonym is declared. Sorted by synonym: [`canonical`] searches by bisection.
pub(crate) const SYNONYMS: &[(&str, &str)] = &[
    ("absolute", "abs"),
    ("arccos", "acos"),
    ("arccosh", "acosh"),
    ("arcsin", "asin"),
    ("arcsinh", "asinh"),
    ("arctan", "atan"),
    ("arctan2", "atan2"),
    ("arctanh", "atanh"),
    ("clip", "clamp"),
    ("concat", "cat"),
    ("concatenate", "cat"),
    ("det", "linalg_det"),
    ("divide", "div"),
    ("fix", "trunc"),
    ("ger", "outer"),
    ("greater", "gt"),
    ("greater_equal", "ge"),
    ("inverse", "linalg_inv"),
    ("less", "lt"),
    ("less_equal", "le"),
    ("linalg_matmul", "matmul"),
    ("matrix_exp", "linalg_matrix_exp"),
    ("matrix_power", "linalg_matrix_power"),
    ("moveaxis", "movedim"),
    ("multiply", "mul"),
    ("negative", "neg"),
    ("not_equal", "ne"),
    ("orgqr", "linalg_householder_product"),
    ("row_stack", "vstack"),
    ("special_digamma", "digamma"),
    ("special_erf", "erf"),
    ("special_erfc", "erfc"),
    ("special_erfinv", "erfinv"),
    ("special_exp2", "exp2"),
    ("special_expit", "sigmoid"),
    ("special_expm1", "expm1"),
    ("special_gammainc", "igamma"),
    ("special_gammaincc", "igammac"),
    ("special_gammaln", "lgamma"),
    ("special_i0", "i0"),
    ("special_log1p", "log1p"),
    ("special_log_softmax", "log_softmax"),
    ("special_logit", "logit"),
    ("special_logsumexp", "logsumexp"),
    ("special_multigammaln", "mvlgamma"),
    ("special_polygamma", "polygamma"),
    ("special_psi", "digamma"),
    ("special_round", "round"),
    ("special_sinc", "sinc"),
    ("special_softmax", "softmax"),
    ("special_xlogy", "xlogy"),
    ("subtract", "sub"),
    ("swapaxes", "transpose"),
    ("swapdims", "transpose"),
    ("true_divide", "div"),
];

/// Returns the canonical name of an operator; both begin with the namespace and may end in `_`.
pub(crate) fn canonical(name: &str) -> Cow<'_, str> {
    let Some(base) = name.strip_prefix("aten::") else { return Cow::Borrowed(name) };
    let (base, suffix) = base.strip_suffix('_').map_or((base, ""), |base| (base, "_"));
    match SYNONYMS.binary_search_by_key(&base, |row| row.0) {
        Ok(row) => Cow::Owned(format!("aten::{}{suffix}", SYNONYMS[row].1)),
        Err(_) => Cow::Borrowed(name),
    }
}

/// States the synonyms.
pub(crate) fn add(builder: &mut RegistryBuilder) {
    for (name, canonical) in SYNONYMS {
        for suffix in ["", "_"] {
            builder.synonym(&format!("aten::{name}{suffix}"), &format!("aten::{canonical}{suffix}"));
        }
    }
}
