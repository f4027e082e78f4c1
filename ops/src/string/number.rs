//! Formats numbers as C and C++ streams do.

/// `%e` with `precision` digits after the point: `1.500000e+00`.
pub(crate) fn scientific(x: f64, precision: usize) -> String {
    if !x.is_finite() {
        return special(x);
    }
    let text = format!("{x:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').expect("invariant: scientific form has an exponent");
    let exponent: i32 = exponent.parse().expect("invariant: the exponent is a number");
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// `%g` with `precision` significant digits: `1.5`, `1e+20`.
pub(crate) fn general(x: f64, precision: usize) -> String {
    if !x.is_finite() {
        return special(x);
    }
    let digits = precision.max(1) - 1;
    let text = format!("{x:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').expect("invariant: scientific form has an exponent");
    let exponent: i32 = exponent.parse().expect("invariant: the exponent is a number");
    if exponent >= -4 && exponent <= digits as i32 {
        let decimals = (digits as i32 - exponent) as usize;
        return trim(&format!("{x:.decimals$}")).to_owned();
    }
    format!("{}e{}{:02}", trim(mantissa), if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// `%f` with `precision` digits after the point.
pub(crate) fn fixed(x: f64, precision: usize) -> String {
    if x.is_finite() { format!("{x:.precision$}") } else { special(x) }
}

fn special(x: f64) -> String {
    let name = if x.is_nan() { "nan" } else { "inf" };
    if x.is_sign_negative() { format!("-{name}") } else { name.to_owned() }
}

fn trim(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_in_c() {
        assert_eq!(general(1.0, 6), "1");
        assert_eq!(general(1.123_456_789, 6), "1.12346");
        assert_eq!(general(1e20, 6), "1e+20");
        assert_eq!(general(-2.5e-7, 6), "-2.5e-07");
        assert_eq!(general(0.0001, 6), "0.0001");
        assert_eq!(general(999_999.5, 6), "1e+06");
        assert_eq!(scientific(1.5, 6), "1.500000e+00");
        assert_eq!(scientific(f64::NEG_INFINITY, 6), "-inf");
        assert_eq!(fixed(2.0, 6), "2.000000");
    }
}
