//! Options of an export: the sizes of arguments that may vary.

use crate::error::Error;
use flambeau_ir::Fault;
use std::str::FromStr;

/// Options of an export.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// The sizes that may differ from those of the example.
    pub dynamic: Vec<DynamicSize>,
    /// Whether operators that write remain as they are. By default they are replaced, and new contents of buffers,
    /// parameters and arguments are outputs that the signature states.
    pub in_place: bool,
}

/// A size of an argument that may vary between calls of the exported program. Sizes of one name are equal.
///
/// ```
/// use flambeau::DynamicSize;
///
/// let size: DynamicSize = "x:0=batch:1..64".parse()?;
/// assert_eq!((&*size.input, size.dim, &*size.name), ("x", 0, "batch"));
/// assert_eq!((size.min, size.max), (Some(1), Some(64)));
/// # Ok::<(), flambeau::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicSize {
    /// The argument: the name of a parameter, or `d_k` and `t_0` for an element of a dictionary or sequence.
    pub input: String,
    /// The dimension.
    pub dim: usize,
    /// The name of the size.
    pub name: String,
    /// The least value.
    pub min: Option<i64>,
    /// The greatest value.
    pub max: Option<i64>,
}

impl FromStr for DynamicSize {
    type Err = Error;

    /// Reads `INPUT:DIM=NAME` or `INPUT:DIM=NAME:MIN..MAX`, where either bound may be left out.
    fn from_str(text: &str) -> Result<DynamicSize, Error> {
        let wrong = || {
            let form = "INPUT:DIM=NAME or INPUT:DIM=NAME:MIN..MAX, such as x:0=batch:1..64";
            Error::new(Fault::Misuse, "X0004", format!("`{text}` is not {form}"))
        };
        let (place, rest) = text.split_once('=').ok_or_else(wrong)?;
        let (input, dim) = place.rsplit_once(':').ok_or_else(wrong)?;
        let dim = dim.parse().map_err(|_| wrong())?;
        let (name, range) = rest.split_once(':').unwrap_or((rest, ".."));
        let (min, max) = range.split_once("..").ok_or_else(wrong)?;
        let bound = |text: &str| match text {
            "" => Ok(None),
            digits => digits.parse::<i64>().ok().filter(|n| *n >= 0).map(Some).ok_or_else(wrong),
        };
        let (min, max) = (bound(min)?, bound(max)?);
        let is_empty = matches!((min, max), (Some(min), Some(max)) if min > max);
        if input.is_empty() || name.is_empty() || is_empty {
            return Err(wrong());
        }
        Ok(DynamicSize { input: input.to_owned(), dim, name: name.to_owned(), min, max })
    }
}
