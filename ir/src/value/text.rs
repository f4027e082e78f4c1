//! Byte strings, and the text of strings and numbers.

use std::fmt::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flambeau_tensor::{Complex, Shared};
use smallvec::SmallVec;

use super::compare::hash_bytes;

/// Strings of at most this many bytes are in the block of their reference count.
const INLINE: usize = 24;

/// A byte string, as in TorchScript: usually UTF-8, but indexing may split a character.
#[derive(Clone)]
pub struct Str(Shared<Text>);

struct Text {
    bytes: SmallVec<[u8; INLINE]>,
    /// The hash as a dictionary key; 0 until it is computed. Every thread computes the same, hence relaxed.
    hash: AtomicU64,
}

impl Text {
    #[inline]
    fn new(bytes: SmallVec<[u8; INLINE]>) -> Shared<Text> {
        Shared::new(Text { bytes, hash: AtomicU64::new(0) })
    }
}

impl Str {
    /// Returns the bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Returns the hash of the bytes, which the string keeps.
    #[inline]
    pub(super) fn hash_bytes(&self) -> u64 {
        match self.0.hash.load(Relaxed) {
            0 => self.compute_hash(),
            hash => hash,
        }
    }

    #[inline(never)]
    fn compute_hash(&self) -> u64 {
        let hash = hash_bytes(self.as_bytes()).max(1);
        self.0.hash.store(hash, Relaxed);
        hash
    }

    /// Returns a string of one byte. Strings of one byte are shared by the process.
    #[must_use]
    pub fn of_byte(byte: u8) -> Str {
        static SHARED: OnceLock<Vec<Str>> = OnceLock::new();
        let all = SHARED.get_or_init(|| (0..=u8::MAX).map(|byte| Str::from(vec![byte])).collect());
        all[usize::from(byte)].clone()
    }

    /// Returns the text if the bytes are UTF-8.
    #[must_use]
    pub fn to_str(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()).ok()
    }

    /// Returns the text with invalid bytes replaced.
    #[must_use]
    pub fn to_text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.bytes.len()
    }

    /// Returns whether the string is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.bytes.is_empty()
    }

    /// Returns whether both handles refer to the same string.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Shared::ptr_eq(&self.0, &other.0)
    }

    /// Returns the concatenation of two strings.
    #[must_use]
    pub fn concat(a: &[u8], b: &[u8]) -> Str {
        let mut bytes = SmallVec::with_capacity(a.len() + b.len());
        bytes.extend_from_slice(a);
        bytes.extend_from_slice(b);
        Str(Text::new(bytes))
    }

    /// Appends bytes if this is the only handle; returns whether it is. `may_grow` is asked about a larger capacity in bytes.
    #[must_use]
    pub fn append(&mut self, more: &[u8], may_grow: impl FnOnce(usize) -> bool) -> bool {
        let Some(text) = self.0.get_mut() else { return false };
        let (len, capacity) = (text.bytes.len() + more.len(), text.bytes.capacity());
        if len > capacity {
            // Twice the capacity, so that appending costs constant time per byte.
            let larger = len.max(2 * capacity);
            if !may_grow(larger) || text.bytes.try_grow(larger).is_err() {
                return false;
            }
        }
        text.bytes.extend_from_slice(more);
        *text.hash.get_mut() = 0;
        true
    }

    pub(super) fn id(&self) -> usize {
        self.0.address()
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self::from(text.as_bytes())
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self::from(text.into_bytes())
    }
}

impl From<Vec<u8>> for Str {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() <= INLINE {
            return Self::from(&bytes[..]);
        }
        // The capacity is reduced to the length, since strings do not grow.
        Self(Text::new(SmallVec::from_vec(bytes.into_boxed_slice().into_vec())))
    }
}

impl From<&[u8]> for Str {
    fn from(bytes: &[u8]) -> Self {
        Self(Text::new(SmallVec::from_slice(bytes)))
    }
}

impl PartialEq for Str {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Str {}

impl PartialOrd for Str {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Str {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quote(self.as_bytes()))
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

/// Returns the bytes in double quotes with C escapes; a byte that is not printable ASCII becomes three octal digits.
#[must_use]
pub fn quote(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for &b in bytes {
        let escaped = match b {
            b'\\' => "\\\\",
            b'\'' => "\\'",
            b'"' => "\\\"",
            0x07 => "\\a",
            0x08 => "\\b",
            0x0c => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x0b => "\\v",
            0x20..=0x7e => {
                out.push(char::from(b));
                continue;
            }
            _ => {
                out.push('\\');
                out.extend([b >> 6, b >> 3 & 7, b & 7].map(|digit| char::from(b'0' + digit)));
                continue;
            }
        };
        out.push_str(escaped);
    }
    out.push('"');
    out
}

/// Writes a float as `str()` and `print` do: a whole number that fits 64 bits with a final dot (and without the sign of
/// a negative zero), any other number with up to 17 significant digits.
///
/// # Errors
/// Returns the errors of `out`.
pub fn write_float(out: &mut dyn Write, x: f64) -> fmt::Result {
    if x.is_finite() && !is_subnormal(x) && (x as i64) as f64 == x && x < 9.223_372_036_854_775e18 {
        return write!(out, "{}.", x as i64);
    }
    write_general(out, x)
}

/// Writes a float so that it parses back exactly, as a float. PyTorch omits the dot of whole numbers from 1e10 to 1e17,
/// which then parse as integers; here the dot is kept.
///
/// # Errors
/// Returns the errors of `out`.
pub fn write_float_exact(out: &mut dyn Write, x: f64) -> fmt::Result {
    if x == 0.0 && x.is_sign_negative() {
        return out.write_str("-0.");
    }
    if x.is_finite() && x.abs() < 1e17 && x.trunc() == x {
        return write!(out, "{}.", x as i64);
    }
    write_general(out, x)
}

fn is_subnormal(x: f64) -> bool {
    x.classify() == std::num::FpCategory::Subnormal
}

/// Writes a float like C's `%.17g`.
fn write_general(out: &mut dyn Write, x: f64) -> fmt::Result {
    if x.is_nan() {
        return out.write_str(if x.is_sign_negative() { "-nan" } else { "nan" });
    }
    if x.is_infinite() {
        return out.write_str(if x < 0.0 { "-inf" } else { "inf" });
    }
    // Format 17 significant digits in scientific notation, choose the notation by the exponent, then strip trailing
    // zeros.
    let scientific = format!("{x:.16e}");
    let (mantissa, exponent) =
        scientific.split_once('e').expect("invariant: scientific form has an exponent");
    let exponent: i32 = exponent.parse().expect("invariant: the exponent is a number");
    if (-4..17).contains(&exponent) {
        let decimals = usize::try_from(16 - exponent).expect("invariant: exponent below 17");
        let fixed = format!("{x:.decimals$}");
        return out.write_str(trim_zeros(&fixed));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(out, "{}e{sign}{:02}", trim_zeros(mantissa), exponent.abs())
}

fn trim_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// Writes a complex number with `part` for its parts: `1.+2.j`.
///
/// # Errors
/// Returns the errors of `out`.
pub fn write_complex(
    out: &mut dyn Write,
    z: Complex<f64>,
    part: fn(&mut dyn Write, f64) -> fmt::Result,
) -> fmt::Result {
    part(out, z.re)?;
    out.write_char(if z.im.is_sign_negative() { '-' } else { '+' })?;
    part(out, z.im.abs())?;
    out.write_char('j')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(x: f64) -> String {
        let mut s = String::new();
        write_float(&mut s, x).expect("a string");
        s
    }

    fn exact(x: f64) -> String {
        let mut s = String::new();
        write_float_exact(&mut s, x).expect("a string");
        s
    }

    #[test]
    fn only_handles_are_appended_to() {
        let mut text = Str::from("key");
        let hash = text.hash_bytes();
        assert!(text.append(b"s", |_| false), "there is room");
        assert_eq!((text.as_bytes(), text.hash_bytes()), (&b"keys"[..], Str::from("keys").hash_bytes()));
        assert_ne!(text.hash_bytes(), hash);
        let other = text.clone();
        assert!(!text.append(b"!", |_| true));
        drop(other);
        assert!(!text.append(&[b'x'; 40], |_| false));
        assert!(text.append(&[b'x'; 40], |capacity| capacity >= 44));
        assert_eq!(text.len(), 44);
    }

    #[test]
    fn floats_as_str_prints_them() {
        for (x, want) in [
            (1.0, "1."),
            (0.1, "0.10000000000000001"),
            (1e10, "10000000000."),
            (1e17, "100000000000000000."),
            (1e20, "1e+20"),
            (1e-5, "1.0000000000000001e-05"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
            (-0.0, "0."),
            (123456.789, "123456.789"),
            (1e100, "1e+100"),
            (-1e12, "-1000000000000."),
            (1.5e300, "1.5000000000000001e+300"),
            (3.18, "3.1800000000000002"),
            (9223372036854775808.0, "9.2233720368547758e+18"),
            (-9223372036854775808.0, "-9223372036854775808."),
        ] {
            assert_eq!(text(x), want);
        }
    }

    #[test]
    fn exact_floats_read_back() {
        for x in [-0.0, 1e10, 1e16, 99999999999999984.0, 1e17, 1e18, 0.1, -2.5, 5e-324, f64::MAX, 1e-5] {
            let written = exact(x);
            assert!(written.contains(['.', 'e']), "{written}");
            assert_eq!(written.parse::<f64>().map(f64::to_bits), Ok(x.to_bits()), "{written}");
        }
    }

    #[test]
    fn quoting_escapes_every_byte() {
        assert_eq!(quote(b"a'\"\n\t\xc3\xa9\\\x07"), r#""a\'\"\n\t\303\251\\\a""#);
    }
}
