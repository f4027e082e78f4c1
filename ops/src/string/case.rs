//! Classes of characters, and case. Bytes outside ASCII are of no class.

use super::{asked, mapped};
use crate::per_type::OverloadRow;

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t'..=b'\r')
}

/// Whether a string has bytes and all are of a class.
fn all(s: &[u8], class: fn(u8) -> bool) -> bool {
    !s.is_empty() && s.iter().all(|&b| class(b))
}

fn digits(s: &[u8]) -> bool {
    all(s, |b| b.is_ascii_digit())
}

/// Changes each letter by whether it continues a word.
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
        mapped("aten::lower", "Capital letters made small.", <[u8]>::to_ascii_lowercase),
        mapped("aten::upper", "Small letters made capital.", <[u8]>::to_ascii_uppercase),
        mapped("aten::swapcase", "Small letters made capital and capital ones small.", swap_case),
        mapped("aten::capitalize", "The first letter made capital, all others small.", capitalize),
        mapped("aten::title", "The first letter of every word made capital, all others small.", title),
        asked("aten::isalnum", "Whether all bytes are letters or digits, and there are some.", |s| {
            all(s, |b| b.is_ascii_alphanumeric())
        }),
        asked("aten::isalpha", "Whether all bytes are letters, and there are some.", |s| {
            all(s, |b| b.is_ascii_alphabetic())
        }),
        asked("aten::isdecimal", "Whether all bytes are digits, and there are some.", digits),
        asked("aten::isdigit", "Whether all bytes are digits, and there are some.", digits),
        asked("aten::isnumeric", "Whether all bytes are digits, and there are some.", digits),
        asked(
            "aten::isidentifier",
            "Whether it is letters and digits, no digit first. `_` is not allowed.",
            is_identifier,
        ),
        asked("aten::islower", "Whether there are small letters and no capital ones.", |s| {
            s.iter().any(u8::is_ascii_lowercase) && !s.iter().any(u8::is_ascii_uppercase)
        }),
        asked("aten::isupper", "Whether there are capital letters and no small ones.", |s| {
            s.iter().any(u8::is_ascii_uppercase) && !s.iter().any(u8::is_ascii_lowercase)
        }),
        asked("aten::isprintable", "Whether all bytes are printable ASCII.", |s| {
            s.iter().all(|&b| matches!(b, b' '..=b'~'))
        }),
        asked("aten::isspace", "Whether all bytes are white space, and there are some.", |s| {
            all(s, is_space)
        }),
        asked("aten::istitle", "Whether the capital letters are exactly the first ones of words.", is_title),
    ]
}
