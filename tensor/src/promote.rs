//! Type promotion: the dtype in which an operation on several operands computes.
//!
//! PyTorch's rule has three classes of operands: tensors with dimensions, tensors without, and numbers of the program
//! ("wrapped numbers"). The highest class determines the dtype, unless a lower class has a higher [`Category`]. Then
//! the lower one's dtype takes part, at the default precision for wrapped numbers.

use crate::dtype::{Category, DType};
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// The default dtype of floats.
pub const DEFAULT_FLOAT: DType = DType::F32;
/// The default dtype of complex numbers.
pub const DEFAULT_COMPLEX: DType = DType::C64;

/// Collects operands and computes the dtype of the result.
#[derive(Clone, Copy, Debug, Default)]
pub struct Promotion {
    dims: Option<DType>,
    zero_dims: Option<DType>,
    wrapped: Option<DType>,
}

impl Promotion {
    /// Makes a promotion without operands.
    pub fn new() -> Promotion {
        Promotion::default()
    }

    /// Adds a tensor.
    pub fn tensor(self, tensor: &Tensor) -> Promotion {
        self.operand(tensor.dtype(), tensor.rank() > 0)
    }

    /// Adds a tensor of which only the dtype is known, and whether it has dimensions.
    pub fn operand(mut self, dtype: DType, has_dims: bool) -> Promotion {
        let class = if has_dims { &mut self.dims } else { &mut self.zero_dims };
        *class = Some(class.map_or(dtype, |class| promote(class, dtype)));
        self
    }

    /// Adds a number of the program.
    pub fn scalar(self, scalar: Scalar) -> Promotion {
        self.wrapped(scalar.dtype())
    }

    /// Adds a number of which only the dtype is known (`bool`, `int64`, `float64`, `complex128`), or a zero-dimensional
    /// tensor made of one.
    pub fn wrapped(mut self, dtype: DType) -> Promotion {
        let dtype = match dtype.category() {
            Category::Floating => DEFAULT_FLOAT,
            Category::Complex => DEFAULT_COMPLEX,
            _ => dtype,
        };
        self.wrapped = Some(self.wrapped.map_or(dtype, |class| promote(class, dtype)));
        self
    }

    /// Returns the dtype of the result; `None` without operands.
    pub fn result(self) -> Option<DType> {
        let combine = |higher: Option<DType>, lower: Option<DType>| match (higher, lower) {
            // A float keeps its precision beside a complex operand of a lower class.
            (Some(higher), Some(lower)) if higher.is_floating() && lower.is_complex() => {
                Some(higher.to_complex())
            }
            (Some(higher), Some(lower)) if higher.category() < lower.category() => {
                Some(promote(higher, lower))
            }
            (Some(higher), _) => Some(higher),
            (None, lower) => lower,
        };
        combine(self.dims, combine(self.zero_dims, self.wrapped))
    }
}

/// Returns the dtype of an operation on tensors only.
pub fn result_type(tensors: &[&Tensor]) -> Option<DType> {
    tensors.iter().fold(Promotion::new(), |p, tensor| p.tensor(tensor)).result()
}

/// Returns the smallest dtype that both convert to, by PyTorch's table.
pub fn promote(a: DType, b: DType) -> DType {
    if a == b {
        return a;
    }
    let (low, high) = if a.category() <= b.category() { (a, b) } else { (b, a) };
    match (low.category(), high.category()) {
        (Category::Integral, Category::Integral) => match (low.is_signed(), high.is_signed()) {
            // Unsigned and signed bytes need sixteen bits; wider signed types contain either.
            (true, true) => wider(low, high),
            _ if low.size() == high.size() => DType::I16,
            _ => wider(low, high),
        },
        (Category::Floating, Category::Floating) => {
            if low.size() == high.size() {
                DType::F32
            } else {
                wider(low, high)
            }
        }
        (Category::Floating, Category::Complex) => {
            let parts = low.to_complex();
            if parts == high { high } else { wider(parts, high) }
        }
        (Category::Complex, Category::Complex) => wider(low, high),
        _ => high,
    }
}

fn wider(a: DType, b: DType) -> DType {
    if a.size() >= b.size() { a } else { b }
}

/// Returns the dtype that true division, `exp` and similar functions compute in: integers become the default float.
pub fn to_float(dtype: DType) -> DType {
    if dtype.is_integral(true) { DEFAULT_FLOAT } else { dtype }
}

/// Returns whether a result may be stored in an output: complex not in real, float not in integer, and only bool in
/// bool.
pub fn can_cast(from: DType, to: DType) -> bool {
    let (from, to) = (from.category(), to.category());
    !(from == Category::Complex && to != Category::Complex
        || from == Category::Floating && to < Category::Floating
        || from != Category::Bool && to == Category::Bool)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected dtypes were recorded by `tests/oracle/promote.py`.
    #[test]
    fn as_recorded() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/oracle/promote.txt");
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines = 0;
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let (operands, want) = words.split_at(words.len() - 1);
            let mut promotion = Promotion::new();
            for word in operands {
                let (class, name) = word.split_once(':').unwrap();
                let dtype = DType::from_name(name).unwrap();
                promotion = match class {
                    "dim" => promotion.operand(dtype, true),
                    "zero" => promotion.operand(dtype, false),
                    _ => promotion.wrapped(dtype),
                };
            }
            assert_eq!(promotion.result().unwrap().name(), want[0], "{line}");
            lines += 1;
        }
        assert!(lines == 28 * 28);
    }
}
