//! Element types, with PyTorch's names and numbers.
//!
//! Variants are in the order of PyTorch's integers. Dtypes are compared only for equality; [`Category`] has the order
//! that promotion uses.

use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DType {
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// IEEE half precision.
    F16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// Complex number of two f16: can be stored, copied and converted, but not computed with.
    C32,
    /// Complex number of two f32.
    C64,
    /// Complex number of two f64.
    C128,
    /// `bool`: one byte; every non-zero byte reads as true.
    Bool,
    /// bfloat16: the upper half of an f32.
    BF16,
}

/// Categories in the order of promotion: bool, integers, floats, complex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Category {
    /// `bool`.
    Bool,
    /// Integers.
    Integral,
    /// Floats.
    Floating,
    /// Complex numbers.
    Complex,
}

/// Properties of a dtype; one row per dtype, in the order of the variants.
struct Row {
    dtype: DType,
    name: &'static str,
    alias: &'static str,
    short: &'static str,
    ir: &'static str,
    scalar_type: i64,
    size: usize,
    category: Category,
}

/// `names`: name, alias, short name and name in IR types.
const fn row(
    dtype: DType,
    names: [&'static str; 4],
    scalar_type: i64,
    size: usize,
    category: Category,
) -> Row {
    let [name, alias, short, ir] = names;
    Row { dtype, name, alias, short, ir, scalar_type, size, category }
}

const ROWS: [Row; 13] = [
    row(DType::U8, ["uint8", "uint8", "u8", "Byte"], 0, 1, Category::Integral),
    row(DType::I8, ["int8", "int8", "i8", "Char"], 1, 1, Category::Integral),
    row(DType::I16, ["int16", "short", "i16", "Short"], 2, 2, Category::Integral),
    row(DType::I32, ["int32", "int", "i32", "Int"], 3, 4, Category::Integral),
    row(DType::I64, ["int64", "long", "i64", "Long"], 4, 8, Category::Integral),
    row(DType::F16, ["float16", "half", "f16", "Half"], 5, 2, Category::Floating),
    row(DType::F32, ["float32", "float", "f32", "Float"], 6, 4, Category::Floating),
    row(DType::F64, ["float64", "double", "f64", "Double"], 7, 8, Category::Floating),
    row(DType::C32, ["complex32", "chalf", "c32", "ComplexHalf"], 8, 4, Category::Complex),
    row(DType::C64, ["complex64", "cfloat", "c64", "ComplexFloat"], 9, 8, Category::Complex),
    row(DType::C128, ["complex128", "cdouble", "c128", "ComplexDouble"], 10, 16, Category::Complex),
    row(DType::Bool, ["bool", "bool", "bool", "Bool"], 11, 1, Category::Bool),
    row(DType::BF16, ["bfloat16", "bfloat16", "bf16", "BFloat16"], 15, 2, Category::Floating),
];

impl DType {
    /// Every dtype, in the order of PyTorch's integers.
    pub const ALL: [DType; 13] = [
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::F32,
        DType::F64,
        DType::C32,
        DType::C64,
        DType::C128,
        DType::Bool,
        DType::BF16,
    ];

    fn info(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Returns PyTorch's name, such as `"float32"`.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns the dtype with a name, with or without `torch.`, including aliases (`"float"`, `"long"`).
    pub fn from_name(name: &str) -> Option<DType> {
        let name = name.strip_prefix("torch.").unwrap_or(name);
        ROWS.iter().find(|row| row.name == name || row.alias == name).map(|row| row.dtype)
    }

    /// Returns the short name, such as `"f32"`: the kind and the number of bits.
    pub fn short_name(self) -> &'static str {
        self.info().short
    }

    /// Returns the dtype with a short name.
    pub fn from_short_name(name: &str) -> Option<DType> {
        ROWS.iter().find(|row| row.short == name).map(|row| row.dtype)
    }

    /// Returns the name in IR types and in error messages, such as `"Float"`, `"Long"`.
    pub fn ir_name(self) -> &'static str {
        self.info().ir
    }

    /// Returns the name of the type of tensors on the CPU in error messages: `torch.FloatTensor`, or `CPUBoolType` for dtypes
    /// without a legacy type.
    pub fn tensor_type_name(self) -> String {
        let name = self.ir_name();
        match self.is_complex() || matches!(self, DType::Bool | DType::BF16) {
            true => format!("CPU{name}Type"),
            false => format!("torch.{name}Tensor"),
        }
    }

    /// Returns the dtype with an IR type name.
    pub fn from_ir_name(name: &str) -> Option<DType> {
        ROWS.iter().find(|row| row.ir == name).map(|row| row.dtype)
    }

    /// Returns PyTorch's `ScalarType` integer.
    pub fn scalar_type(self) -> i64 {
        self.info().scalar_type
    }

    /// Returns the dtype with a `ScalarType` integer.
    pub fn from_scalar_type(number: i64) -> Option<DType> {
        ROWS.iter().find(|row| row.scalar_type == number).map(|row| row.dtype)
    }

    /// Returns the dtype of the same element size that copies use: a copy moves bits, so one instance per size suffices. These
    /// dtypes are the group `widths` of [`dispatch!`](crate::dispatch).
    pub fn bits(self) -> DType {
        match self.size() {
            1 => DType::U8,
            2 => DType::I16,
            4 => DType::I32,
            8 => DType::I64,
            _ => DType::C128,
        }
    }

    /// Returns the dtype that represents this dtype's elements exactly during computation: `int64` for integers and
    /// `bool`, `float32` for f16 and bf16. Results converted back equal those of the dtype itself for operations that
    /// PyTorch defines by wrapping, or by rounding once from f32.
    #[inline]
    pub const fn carrier(self) -> DType {
        match self {
            DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => DType::I64,
            DType::F16 | DType::BF16 | DType::F32 => DType::F32,
            other => other,
        }
    }

    /// Returns the bytes per element.
    #[inline]
    pub fn size(self) -> usize {
        self.info().size
    }

    /// Returns the category for promotion.
    #[inline]
    pub fn category(self) -> Category {
        self.info().category
    }

    /// Returns whether the dtype is a (real) floating-point type.
    #[inline]
    pub fn is_floating(self) -> bool {
        self.category() == Category::Floating
    }

    /// Returns whether the dtype is complex.
    #[inline]
    pub fn is_complex(self) -> bool {
        self.category() == Category::Complex
    }

    /// Returns whether the dtype is an integer type; `bool` counts if `include_bool` is set.
    #[inline]
    pub fn is_integral(self, include_bool: bool) -> bool {
        self.category() == Category::Integral || (include_bool && self == DType::Bool)
    }

    /// Returns whether negative values exist.
    pub fn is_signed(self) -> bool {
        !matches!(self, DType::U8 | DType::Bool)
    }

    /// Returns the float type of a complex type's parts; other dtypes are returned unchanged.
    pub fn to_real(self) -> DType {
        match self {
            DType::C32 => DType::F16,
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// Returns the complex type with parts of this float type (`complex64` for `bfloat16`); complex types are returned
    /// unchanged.
    pub fn to_complex(self) -> DType {
        match self {
            DType::F64 | DType::C128 => DType::C128,
            DType::F16 | DType::C32 => DType::C32,
            _ => DType::C64,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dtypes_are_ordered_and_names_read_back() {
        for (i, dtype) in DType::ALL.into_iter().enumerate() {
            assert_eq!(dtype as usize, i);
            assert_eq!(ROWS[i].dtype, dtype);
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
            assert_eq!(DType::from_ir_name(dtype.ir_name()), Some(dtype));
            assert_eq!(DType::from_scalar_type(dtype.scalar_type()), Some(dtype));
        }
        assert_eq!(DType::from_name("torch.half"), Some(DType::F16));
        assert_eq!(DType::from_scalar_type(12), None);
    }
}
