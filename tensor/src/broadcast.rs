//! Broadcasting of shapes: aligned at the right, sizes equal or 1.

use crate::error::{Result, TensorError};
use crate::layout::Dims;

/// Returns the shape that two shapes broadcast to.
///
/// # Errors
/// Returns [`TensorError::Broadcast`] if they do not broadcast together.
pub fn broadcast_shapes(a: &[i64], b: &[i64]) -> Result<Dims> {
    let mut shape = Dims::from_slice(a);
    broadcast_into(&mut shape, b)?;
    Ok(shape)
}

/// Replaces `shape` by the shape that it and `other` broadcast to.
///
/// # Errors
/// Returns [`TensorError::Broadcast`] if they do not broadcast together.
pub fn broadcast_into(shape: &mut Dims, other: &[i64]) -> Result<()> {
    if other.len() > shape.len() {
        let lead = other.len() - shape.len();
        shape.insert_from_slice(0, &other[..lead]);
    }
    let lead = shape.len() - other.len();
    for (i, &size) in other.iter().enumerate() {
        let dim = lead + i;
        if shape[dim] == size || size == 1 {
            continue;
        }
        if shape[dim] != 1 {
            return Err(TensorError::Broadcast { a: shape[dim], b: size, dim });
        }
        shape[dim] = size;
    }
    Ok(())
}

/// Returns whether `from` can be expanded to `to`.
pub fn expandable(from: &[i64], to: &[i64]) -> bool {
    from.len() <= to.len() && from.iter().rev().zip(to.iter().rev()).all(|(a, b)| a == b || *a == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasts() {
        assert_eq!(broadcast_shapes(&[3, 1], &[2, 1, 4]).unwrap()[..], [2, 3, 4]);
        assert_eq!(broadcast_shapes(&[], &[2]).unwrap()[..], [2]);
        assert_eq!(broadcast_shapes(&[1], &[0]).unwrap()[..], [0]);
        assert_eq!(
            broadcast_shapes(&[3], &[4]).unwrap_err().to_string(),
            "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0"
        );
        assert!(expandable(&[1, 3], &[2, 5, 3]) && !expandable(&[2], &[3]));
    }
}
