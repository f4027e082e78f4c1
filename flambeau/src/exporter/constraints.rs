//! Ranges that the caller states for sizes, and what the program needs of these sizes.
//!
//! A branch on a size restricts it to the values with the example's answer. A bound that the caller has not stated follows from
//! the program. A bound that the caller states must hold as it is, as in PyTorch: a program that needs a narrower range, or a
//! certain size, is refused with the range that would work.

use super::sizes::{Compare, Sizes};
use super::{DynamicSize, Stop, refused};
use flambeau_analysis::shape::{Dim, Range};

/// A branch that restricts a size beyond a bound that the caller states.
pub(super) struct Narrowing {
    /// The caller's name for the size.
    pub(super) name: String,
    /// The condition of the branch, in the caller's names.
    pub(super) condition: String,
    /// The active calls with their source lines.
    pub(super) trace: Option<String>,
}

/// Returns the error for sizes whose stated ranges are wider than what the program needs.
pub(super) fn check_stated(
    narrowings: &[Narrowing],
    dynamic: &[DynamicSize],
    sizes: &Sizes,
) -> Result<(), Stop> {
    let mut problems = Vec::new();
    let mut specs = Vec::new();
    for own in dynamic {
        let causes: Vec<&Narrowing> = narrowings.iter().filter(|found| found.name == own.name).collect();
        let (Some(needed), false) = (sizes.named_range(&own.name), causes.is_empty()) else { continue };
        let mut problem = format!(
            "{} varies {} by the request, and the program needs it {}",
            described(own),
            range_text(Range { min: own.min.unwrap_or(0), max: own.max.unwrap_or(i64::MAX) }),
            range_text(needed)
        );
        for cause in causes {
            problem += &format!("\nbecause of `{}`", cause.condition);
            if let Some(trace) = &cause.trace {
                problem += &format!(":\n{}", trace.trim_end());
            }
        }
        problems.push(problem);
        specs.push(format!("`{}`", spec(own, needed)));
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(refused(format!("{}\nThe export works with {}", problems.join("\n"), specs.join(", ")))),
    }
}

/// Returns how the request must change for a comparison to have the example's answer for all sizes; empty if no range does.
pub(super) fn suggestion(
    (compare, a, b): (Compare, Dim, Dim),
    holds: bool,
    dynamic: &[DynamicSize],
    sizes: &Sizes,
) -> String {
    let named = |dim: Dim| {
        let name = sizes.name_of(dim)?;
        dynamic.iter().find(|own| own.name == name)
    };
    let is_equal = matches!((compare, holds), (Compare::Eq, true) | (Compare::Ne, false));
    let is_unequal = matches!((compare, holds), (Compare::Eq, false) | (Compare::Ne, true));
    let (size, other) = if let Dim::Known(_) = a { (b, a) } else { (a, b) };
    match (named(size), named(other), other) {
        (Some(size), _, Dim::Known(n)) if is_equal => format!(
            "; the program needs {} to be {n}: the export works without `{}:{}={}`",
            described(size),
            size.input,
            size.dim,
            size.name
        ),
        (Some(size), _, Dim::Known(n)) if is_unequal => {
            let (Some(hint), Some(range)) = (sizes.hint_of(&size.name), sizes.named_range(&size.name)) else {
                return String::new();
            };
            let needed = match hint < n {
                true => Range { min: range.min, max: range.max.min(n - 1) },
                false => Range { min: range.min.max(n + 1), max: range.max },
            };
            format!("; the export works with `{}`", spec(size, needed))
        }
        (Some(one), Some(two), _) if is_equal => format!(
            "; the program needs {} and {} to be equal: the export works with one name, `{}:{}={}`",
            described(one),
            described(two),
            two.input,
            two.dim,
            one.name
        ),
        _ => String::new(),
    }
}

/// Returns the sizes of a second example by name, for an error of the program on it.
pub(super) fn second_sizes<'a>(sizes: impl Iterator<Item = (&'a str, i64)>) -> String {
    sizes.map(|(name, size)| format!("`{name}` = {size}")).collect::<Vec<_>>().join(", ")
}

fn described(own: &DynamicSize) -> String {
    format!("the size `{}` (dimension {} of `{}`)", own.name, own.dim, own.input)
}

fn range_text(range: Range) -> String {
    match range.max {
        i64::MAX => format!("from {}", range.min),
        max if max == range.min => format!("to be {max}"),
        max => format!("from {} to {max}", range.min),
    }
}

/// Returns the request for a size with another range.
fn spec(own: &DynamicSize, range: Range) -> String {
    let max = if range.max == i64::MAX { String::new() } else { range.max.to_string() };
    format!("{}:{}={}:{}..{max}", own.input, own.dim, own.name, range.min)
}
