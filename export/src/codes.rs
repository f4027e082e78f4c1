//! Enumerations of the schema: element types, memory layouts and memory formats. Files hold the number of a value, printed
//! programs its name; a table per enumeration has both.

use flambeau_tensor::DType;

/// An enumeration of the schema.
pub trait SchemaEnum: Copy + PartialEq + 'static {
    /// All values, with their numbers in the schema and their names without `torch.`.
    const ALL: &'static [(Self, i64, &'static str)];

    /// Returns the value with this number in the schema.
    fn of_number(number: i64) -> Option<Self> {
        Self::ALL.iter().find(|row| row.1 == number).map(|row| row.0)
    }

    /// Returns the number in the schema.
    fn number(self) -> i64 {
        Self::ALL.iter().find(|row| row.0 == self).map_or(0, |row| row.1)
    }

    /// Returns the name without `torch.`.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|row| row.0 == self).map_or("", |row| row.2)
    }
}

/// Element types of the schema. Their numbers are not those of TorchScript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScalarType {
    /// `unknown`.
    Unknown,
    /// `uint8`.
    U8,
    /// `int8`.
    I8,
    /// `int16`.
    I16,
    /// `int32`.
    I32,
    /// `int64`.
    I64,
    /// `float16`.
    F16,
    /// `float32`.
    F32,
    /// `float64`.
    F64,
    /// `complex32`.
    C32,
    /// `complex64`.
    C64,
    /// `complex128`.
    C128,
    /// `bool`.
    Bool,
    /// `bfloat16`.
    BF16,
    /// `uint16`.
    U16,
    /// `float8_e4m3fn`.
    F8E4M3FN,
    /// `float8_e5m2`.
    F8E5M2,
    /// `float8_e4m3fnuz`.
    F8E4M3FNUZ,
    /// `float8_e5m2fnuz`.
    F8E5M2FNUZ,
    /// `float8_e8m0fnu`.
    F8E8M0FNU,
    /// `uint32`.
    U32,
    /// `uint64`.
    U64,
}

impl SchemaEnum for ScalarType {
    const ALL: &[(ScalarType, i64, &str)] = &[
        (ScalarType::Unknown, 0, "unknown"),
        (ScalarType::U8, 1, "uint8"),
        (ScalarType::I8, 2, "int8"),
        (ScalarType::I16, 3, "int16"),
        (ScalarType::I32, 4, "int32"),
        (ScalarType::I64, 5, "int64"),
        (ScalarType::F16, 6, "float16"),
        (ScalarType::F32, 7, "float32"),
        (ScalarType::F64, 8, "float64"),
        (ScalarType::C32, 9, "complex32"),
        (ScalarType::C64, 10, "complex64"),
        (ScalarType::C128, 11, "complex128"),
        (ScalarType::Bool, 12, "bool"),
        (ScalarType::BF16, 13, "bfloat16"),
        (ScalarType::U16, 28, "uint16"),
        (ScalarType::F8E4M3FN, 29, "float8_e4m3fn"),
        (ScalarType::F8E5M2, 30, "float8_e5m2"),
        (ScalarType::F8E4M3FNUZ, 31, "float8_e4m3fnuz"),
        (ScalarType::F8E5M2FNUZ, 32, "float8_e5m2fnuz"),
        (ScalarType::F8E8M0FNU, 33, "float8_e8m0fnu"),
        (ScalarType::U32, 34, "uint32"),
        (ScalarType::U64, 35, "uint64"),
    ];
}

/// Memory layouts of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// `unknown`.
    Unknown,
    /// `sparse_coo`.
    SparseCoo,
    /// `sparse_csr`.
    SparseCsr,
    /// `sparse_csc`.
    SparseCsc,
    /// `sparse_bsr`.
    SparseBsr,
    /// `sparse_bsc`.
    SparseBsc,
    /// `_mkldnn`.
    Mkldnn,
    /// `strided`.
    Strided,
}

impl SchemaEnum for Layout {
    const ALL: &[(Layout, i64, &str)] = &[
        (Layout::Unknown, 0, "unknown"),
        (Layout::SparseCoo, 1, "sparse_coo"),
        (Layout::SparseCsr, 2, "sparse_csr"),
        (Layout::SparseCsc, 3, "sparse_csc"),
        (Layout::SparseBsr, 4, "sparse_bsr"),
        (Layout::SparseBsc, 5, "sparse_bsc"),
        (Layout::Mkldnn, 6, "_mkldnn"),
        (Layout::Strided, 7, "strided"),
    ];
}

/// Memory formats of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryFormat {
    /// `unknown`.
    Unknown,
    /// `contiguous_format`.
    Contiguous,
    /// `channels_last`.
    ChannelsLast,
    /// `channels_last_3d`.
    ChannelsLast3d,
    /// `preserve_format`.
    Preserve,
}

impl SchemaEnum for MemoryFormat {
    const ALL: &[(MemoryFormat, i64, &str)] = &[
        (MemoryFormat::Unknown, 0, "unknown"),
        (MemoryFormat::Contiguous, 1, "contiguous_format"),
        (MemoryFormat::ChannelsLast, 2, "channels_last"),
        (MemoryFormat::ChannelsLast3d, 3, "channels_last_3d"),
        (MemoryFormat::Preserve, 4, "preserve_format"),
    ];
}

impl ScalarType {
    /// Returns the element type of tensors of a dtype.
    pub fn of_dtype(dtype: DType) -> Option<ScalarType> {
        Self::ALL.iter().map(|row| row.0).find(|own| own.dtype() == Some(dtype))
    }

    /// Returns the dtype of tensors, or `None` if such tensors are not supported.
    pub fn dtype(self) -> Option<DType> {
        Some(match self {
            ScalarType::U8 => DType::U8,
            ScalarType::I8 => DType::I8,
            ScalarType::I16 => DType::I16,
            ScalarType::I32 => DType::I32,
            ScalarType::I64 => DType::I64,
            ScalarType::F16 => DType::F16,
            ScalarType::F32 => DType::F32,
            ScalarType::F64 => DType::F64,
            ScalarType::C32 => DType::C32,
            ScalarType::C64 => DType::C64,
            ScalarType::C128 => DType::C128,
            ScalarType::Bool => DType::Bool,
            ScalarType::BF16 => DType::BF16,
            _ => return None,
        })
    }
}
