//! Convolutions whose results have one position, or a few, compared with the definition. A result with one column is a
//! vector, which is computed by another method.
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]

use flambeau_tensor::conv::{ConvSpec, convolution};
use flambeau_tensor::{DType, Tensor};

/// Returns small integers, so that every sum is exact in any order.
fn filled(sizes: &[i64], seed: i64) -> Tensor {
    let count: i64 = sizes.iter().product();
    let values = (0..count).map(|i| ((i * 37 + seed) % 7 - 3) as f64).collect();
    Tensor::from_vec::<f64>(values, sizes).unwrap()
}

/// Returns the index of an element in a row-major tensor.
fn index_of(mut at: i64, sizes: &[i64]) -> Vec<i64> {
    let mut index = vec![0; sizes.len()];
    for d in (0..sizes.len()).rev() {
        index[d] = at % sizes[d];
        at /= sizes[d];
    }
    index
}

/// Returns the position of an index in a row-major tensor; `None` beyond its borders.
fn place_of(index: &[i64], sizes: &[i64]) -> Option<usize> {
    let mut at = 0;
    for (i, size) in index.iter().zip(sizes) {
        if !(0..*size).contains(i) {
            return None;
        }
        at = at * size + i;
    }
    Some(at as usize)
}

/// Reference implementation: the definition, one multiplication at a time, in any number of dimensions.
fn defined(x: &Tensor, w: &Tensor, bias: Option<&Tensor>, spec: &ConvSpec, sizes: &[i64]) -> Vec<f64> {
    let values = |t: &Tensor| t.to_vec::<f64>().unwrap();
    let (xs, ws, xv, wv) = (x.sizes(), w.sizes(), values(x), values(w));
    let inner: i64 = sizes[2..].iter().product();
    let mut out: Vec<f64> = match bias.map(values) {
        None => vec![0.0; sizes.iter().product::<i64>() as usize],
        Some(bias) => {
            (0..sizes.iter().product::<i64>()).map(|at| bias[(at / inner % sizes[1]) as usize]).collect()
        }
    };
    let (channels, results) = (xs[1] / spec.groups, sizes[1] / spec.groups);
    // Iterates over the elements of the kernel and the positions of the side that has fewer of them.
    let few = if spec.transposed { xs } else { sizes };
    let positions: i64 = few[2..].iter().product();
    for element in 0..wv.len() as i64 {
        let k = index_of(element, ws);
        for n in 0..xs[0] {
            for position in 0..positions {
                let o = index_of(position, &few[2..]);
                let far = (0..o.len())
                    .map(|d| o[d] * spec.stride[d] + k[d + 2] * spec.dilation[d] - spec.padding[d]);
                let far: Vec<i64> = far.collect();
                let groups =
                    if spec.transposed { 0..spec.groups } else { k[0] / results..k[0] / results + 1 };
                for group in groups {
                    let (i, to, from, at) = if spec.transposed {
                        if k[0] / channels != group {
                            continue;
                        }
                        (k[0], group * results + k[1], &o, &far)
                    } else {
                        (group * channels + k[1], k[0], &far, &o)
                    };
                    let from = place_of(&[&[n, i], &from[..]].concat(), xs);
                    let to = place_of(&[&[n, to], &at[..]].concat(), sizes);
                    if let (Some(from), Some(to)) = (from, to) {
                        out[to] += xv[from] * wv[element as usize];
                    }
                }
            }
        }
    }
    out
}

/// Checks a convolution in every dtype, three times: weights that were used before may be prepacked.
fn check(input: &[i64], results: i64, kernel: &[i64], spec: &ConvSpec, biased: bool) {
    let x = filled(input, 3);
    let sizes = match spec.transposed {
        false => [&[results, input[1] / spec.groups], kernel].concat(),
        true => [&[input[1], results / spec.groups], kernel].concat(),
    };
    let w = filled(&sizes, 5);
    let bias = biased.then(|| filled(&[results], 2));
    let sizes = spec.output_sizes(input, w.sizes(), bias.as_ref().map(Tensor::sizes)).unwrap();
    let wanted = defined(&x, &w, bias.as_ref(), spec, &sizes);
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::C64, DType::C128] {
        let to = |t: &Tensor| t.to_dtype(dtype).unwrap();
        let wanted = to(&Tensor::from_vec::<f64>(wanted.clone(), &sizes).unwrap());
        let (x, w, bias) = (to(&x), to(&w), bias.as_ref().map(to));
        for _ in 0..3 {
            let got = convolution(&x, &w, bias.as_ref(), spec).unwrap();
            assert_eq!(got.sizes(), sizes);
            let parts = |t: &Tensor| t.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
            assert!(
                parts(&got) == parts(&wanted),
                "{dtype:?} {input:?} to {results} by {kernel:?}, bias {biased}: {spec:?}"
            );
        }
    }
}

/// A convolution without padding, strides and dilation.
fn spec(space: usize, groups: i64) -> ConvSpec {
    ConvSpec {
        stride: vec![1; space],
        padding: vec![0; space],
        dilation: vec![1; space],
        output_padding: vec![0; space],
        transposed: false,
        groups,
    }
}

/// Kernels with similar numbers of elements in one to three dimensions.
const KERNELS: [&[i64]; 4] = [&[9], &[3, 3], &[2, 2, 2], &[1, 7]];

#[test]
fn kernels_as_large_as_their_input() {
    for kernel in KERNELS {
        // Below and above the number of multiplications from which on operands are packed.
        for (channels, results, groups) in
            [(4, 4, 1), (26, 26, 1), (32, 24, 1), (64, 32, 2), (32, 2, 1), (80, 1, 1), (8, 8, 8), (96, 96, 4)]
        {
            for biased in [false, true] {
                let input = [&[1, channels], kernel].concat();
                check(&input, results, kernel, &spec(kernel.len(), groups), biased);
            }
        }
    }
}

#[test]
fn strides_padding_and_dilation_with_one_position() {
    for kernel in KERNELS {
        let space = kernel.len();
        let wide = [&[2, 32], &kernel.iter().map(|k| k + 2).collect::<Vec<_>>()[..]].concat();
        check(&wide, 30, kernel, &ConvSpec { stride: vec![4; space], ..spec(space, 1) }, true);
        check(&wide, 32, kernel, &ConvSpec { stride: vec![9; space], ..spec(space, 2) }, false);
        let small: Vec<i64> = [2, 32].into_iter().chain(kernel.iter().map(|k| (k - 2).max(1))).collect();
        let padding = kernel.iter().zip(&small[2..]).map(|(k, n)| (k - n + 1) / 2).collect();
        let padded = ConvSpec { padding, stride: vec![2; space], ..spec(space, 1) };
        check(&small, 28, kernel, &padded, true);
        let reach: Vec<i64> = [1, 32].into_iter().chain(kernel.iter().map(|k| 2 * (k - 1) + 1)).collect();
        check(&reach, 28, kernel, &ConvSpec { dilation: vec![2; space], ..spec(space, 1) }, true);
    }
}

#[test]
fn transposed_from_and_to_one_position() {
    for kernel in KERNELS {
        let space = kernel.len();
        let input = [&[1, 64], &vec![1; space][..]].concat();
        let turned = ConvSpec { transposed: true, ..spec(space, 1) };
        check(&input, 24, kernel, &turned, true);
        check(&input, 24, kernel, &ConvSpec { groups: 4, stride: vec![2; space], ..turned.clone() }, false);
        let padding = kernel.iter().map(|k| (k - 1) / 2).collect();
        check(&input, 24, kernel, &ConvSpec { padding, ..turned }, true);
    }
}

#[test]
fn results_with_few_positions() {
    for kernel in KERNELS {
        for more in 1..4 {
            let mut input = [&[1, 32], kernel].concat();
            *input.last_mut().unwrap() += more;
            check(&input, 24, kernel, &spec(kernel.len(), 1), true);
        }
    }
}
