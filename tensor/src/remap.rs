//! Index maps per dimension: padding of all kinds, nearest-neighbour interpolation.
//!
//! The result's element `i, j, …` is the input's at `maps[0][i], maps[1][j], …`, or a fill value where a map has no
//! index.

use crate::access;
use crate::dispatch;
use crate::error::Result;
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use crate::threads;

/// Entry of a map for the fill value.
pub const FILL: i64 = -1;

/// Maps a tensor's elements to a fresh row-major tensor. There is one map per dimension, whose entries are positions of
/// the input, or [`FILL`].
///
/// # Errors
/// Returns an error if memory is exhausted.
///
/// # Panics
/// Panics if the number of maps is not the rank, or an entry is out of range.
pub fn remap(x: &Tensor, maps: &[Vec<i64>], fill: Scalar) -> Result<Tensor> {
    assert_eq!(maps.len(), x.rank(), "invariant: one map per dimension");
    for (map, &size) in maps.iter().zip(x.sizes()) {
        assert!(
            map.iter().all(|&i| i == FILL || (0..size).contains(&i)),
            "invariant: positions are in range"
        );
    }
    let sizes: Vec<i64> = maps.iter().map(|m| m.len() as i64).collect();
    let Some((inner, outer)) = maps.split_last() else { return x.clone_contiguous() };
    let strides = x.strides();
    let step = strides[outer.len()];
    // A map of successive positions is a contiguous copy.
    let run = step == 1
        && inner.windows(2).all(|w| w[0] >= 0 && w[1] == w[0] + 1)
        && inner.first().is_some_and(|i| *i >= 0);
    dispatch!(all, x.dtype(), "pad", T => {
        let out = Tensor::full(&sizes, fill, x.dtype())?;
        if out.numel() == 0 {
            return Ok(out);
        }
        access::edit_with::<T, T, _>(&out, &[x], |mut out, ins| {
            let (data, out) = (ins[0].data(), out.data());
            let strides = ins[0].layout().strides();
            let step = strides[outer.len()];
            let width = inner.len();
            threads::chunks(out, threads::rows(width) * width, |first, own| {
            let mut index = vec![0_usize; outer.len()];
            let mut number = first / width;
            for (i, map) in index.iter_mut().zip(outer).rev() {
                *i = number % map.len();
                number /= map.len();
            }
            for row in own.chunks_exact_mut(width) {
                let from = index.iter().zip(outer).zip(strides).try_fold(0, |sum, ((&i, map), &stride)| {
                    (map[i] != FILL).then(|| sum + map[i] * stride)
                });
                if let Some(from) = from {
                    if run && step == 1 {
                        row.copy_from_slice(&data[(from + inner[0]) as usize..][..row.len()]);
                    } else {
                        for (to, &i) in row.iter_mut().zip(inner) {
                            if i != FILL {
                                *to = data[(from + i * step) as usize];
                            }
                        }
                    }
                }
                for d in (0..index.len()).rev() {
                    index[d] += 1;
                    if index[d] < outer[d].len() {
                        break;
                    }
                    index[d] = 0;
                }
            }
            });
        })?;
        Ok(out)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_pick_and_fill() {
        let x = Tensor::from_vec((0..6).collect::<Vec<i64>>(), &[2, 3]).unwrap();
        let maps = [vec![1, FILL, 0], vec![2, 0, FILL]];
        let got = remap(&x, &maps, Scalar::Int(9)).unwrap();
        assert_eq!(got.to_vec::<i64>().unwrap(), [5, 3, 9, 9, 9, 9, 2, 0, 9]);
        let transposed = remap(&x.t().unwrap(), &[vec![0, 1, 2], vec![0, 1]], Scalar::Int(0)).unwrap();
        assert_eq!(transposed.to_vec::<i64>().unwrap(), [0, 3, 1, 4, 2, 5]);
    }
}
