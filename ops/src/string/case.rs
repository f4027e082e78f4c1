//! Character classes and case conversion. Bytes outside ASCII belong to no class.

use super::{mapped, str_query};
use crate::per_type::OverloadRow;

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t'..=b'\r')
}

/// Whether a string is not empty and all its bytes are of a class.
fn all(s: &[u8], class: fn(u8) -> bool) -> bool {
    !s.is_empty() && s.iter().all(|&b| class(b))
}

fn digits(s: &[u8]) -> bool {
    all(s, |b| b.is_ascii_digit())
}

/// Capitalizes the first letter of each word and lowercases the others.
fn title(s: &[u8]) -> Vec<u8> {
    let mut inside = false;
    s.iter()
        .map(|&b| {
            let cased = if inside { b.to_ascii_lowercase() } else { b.to_ascii_uppercase() };
            inside = b.is_ascii_alphabetic();
            cased
        })
        .collect()
}

/// Whether every word begins with its only capital, and there is a word.
fn is_title(s: &[u8]) -> bool {
    let (mut inside, mut any) = (false, false);
    for &b in s {
        if (b.is_ascii_uppercase() && inside) || (b.is_ascii_lowercase() && !inside) {
            return false;
        }
        inside = b.is_ascii_alphabetic();
        any |= inside;
    }
    any
}

fn capitalize(s: &[u8]) -> Vec<u8> {
    let mut out = s.to_ascii_lowercase();
    if let Some(first) = out.first_mut() {
        first.make_ascii_uppercase();
    }
    out
}

fn swap_case(s: &[u8]) -> Vec<u8> {
    s.iter()
        .map(|b| if b.is_ascii_lowercase() { b.to_ascii_uppercase() } else { b.to_ascii_lowercase() })
        .collect()
}

fn is_identifier(s: &[u8]) -> bool {
    !s.first().is_some_and(u8::is_ascii_digit) && all(s, |b| b.is_ascii_alphanumeric())
}

pub(super) fn rows() -> Vec<OverloadRow> {
    vec![
        mapped("aten::lower", "Capital letters converted to lowercase.", <[u8]>::to_ascii_lowercase),
        mapped("aten::upper", "Lowercase letters converted to uppercase.", <[u8]>::to_ascii_uppercase),
        mapped("aten::swapcase", "Lowercase letters converted to uppercase and vice versa.", swap_case),
        mapped(
            "aten::capitalize",
            "The first letter converted to uppercase, all others to lowercase.",
            capitalize,
        ),
        mapped(
            "aten::title",
            "The first letter of every word converted to uppercase, all others to lowercase.",
            title,
        ),
        str_query(
            "aten::isalnum",
            "Whether the string is not empty and all bytes are letters or digits.",
            |s| all(s, |b| b.is_ascii_alphanumeric()),
        ),
        str_query("aten::isalpha", "Whether the string is not empty and all bytes are letters.", |s| {
            all(s, |b| b.is_ascii_alphabetic())
        }),
        str_query("aten::isdecimal", "Whether the string is not empty and all bytes are digits.", digits),
        str_query("aten::isdigit", "Whether the string is not empty and all bytes are digits.", digits),
        str_query("aten::isnumeric", "Whether the string is not empty and all bytes are digits.", digits),
        str_query(
            "aten::isidentifier",
            "Whether the string is not empty, consists of letters and digits, and does not begin with a digit. `_` is not allowed.",
            is_identifier,
        ),
        str_query("aten::islower", "Whether there are lowercase letters and no uppercase ones.", |s| {
            s.iter().any(u8::is_ascii_lowercase) && !s.iter().any(u8::is_ascii_uppercase)
        }),
        str_query("aten::isupper", "Whether there are uppercase letters and no lowercase ones.", |s| {
            s.iter().any(u8::is_ascii_uppercase) && !s.iter().any(u8::is_ascii_lowercase)
        }),
        str_query("aten::isprintable", "Whether all bytes are printable ASCII.", |s| {
            s.iter().all(|&b| matches!(b, b' '..=b'~'))
        }),
        str_query("aten::isspace", "Whether the string is not empty and all bytes are white space.", |s| {
            all(s, is_space)
        }),
        str_query("aten::istitle", "Whether exactly the first letters of words are uppercase.", is_title),
    ]
}
