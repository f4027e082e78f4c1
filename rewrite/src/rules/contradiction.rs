//! Whether two types can describe the same value.

use flambeau_ir::Type;
use flambeau_ir::types::Dim;

/// The reason why no value can have both types; `None` if one can.
pub(crate) fn contradiction(a: Type, b: Type) -> Option<String> {
    let (x, y) = (a.as_tensor()?, b.as_tensor()?);
    let differ = |what: &str| Some(format!("{what} of `{a}` and `{b}`"));
    if let (Some(p), Some(q)) = (x.dtype, y.dtype)
        && p != q
    {
        return differ("element types");
    }
    if let (Some(p), Some(q)) = (&x.sizes, &y.sizes) {
        if p.len() != q.len() {
            return differ("ranks");
        }
        if p.iter().zip(q).any(|(m, n)| matches!((m, n), (Dim::Known(m), Dim::Known(n)) if m != n)) {
            return differ("sizes");
        }
    }
    None
}
