//! Loops over any layouts compute the same bits with any number of threads.
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]

use flambeau_tensor::{DType, Tensor, index_set, loops, matmul, reduce, rows, threads};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::I32, DType::BF16];

/// A tensor of at most some hundred thousand elements, made by a view.
fn strided_tensor() -> impl Strategy<Value = Tensor> {
    let sizes = prop_oneof![
        (30_000i64..80_000).prop_map(|n| vec![n]),
        (1i64..300, 100i64..300).prop_map(|(a, b)| vec![a, b]),
        (20_000i64..30_000, 2i64..4).prop_map(|(a, b)| vec![a, b]),
        (1i64..9, 1i64..90, 60i64..200).prop_map(|(a, b, c)| vec![a, b, c]),
    ];
    (sizes, 0..DTYPES.len(), any::<u32>(), 0..4usize).prop_map(|(sizes, dtype, seed, view)| {
        let n: i64 = sizes.iter().product();
        let value =
            |i: i64| (((i as u32).wrapping_mul(2_654_435_761).wrapping_add(seed)) >> 16) as f32 / 3e3 - 9.0;
        let t = Tensor::from_vec((0..n).map(value).collect(), &sizes).unwrap();
        let t = t.to_dtype(DTYPES[dtype]).unwrap();
        let last = t.rank() as i64 - 1;
        match view {
            0 => t.transpose(0, last).unwrap(),
            1 => t.slice(last, Some(1), None, 2).unwrap(),
            2 => t.slice(0, Some(t.sizes()[0] / 5), None, 1).unwrap(),
            _ => t,
        }
    })
}

/// Returns the result of a function with one thread, after checking that it is the same with several.
fn same_on_any_threads(what: &str, f: impl Fn() -> Tensor) -> Result<Tensor, TestCaseError> {
    let single = threads::with(1, &f);
    let bits = |t: &Tensor| t.contiguous().unwrap().view_dtype(t.dtype().bits()).unwrap().to_bytes().unwrap();
    let want = bits(&single);
    for count in [2, 3, 8] {
        let got = threads::with(count, &f);
        prop_assert!(got.sizes() == single.sizes() && got.strides() == single.strides());
        prop_assert!(bits(&got) == want, "{what} with {count} threads");
    }
    Ok(single)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, max_shrink_iters: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn loops_and_copies(x in strided_tensor()) {
        same_on_any_threads("unary", || loops::unary(&x, |v: f32| v * 0.3 + 1.0).unwrap())?;
        let twice = same_on_any_threads("to doubles", || x.to_dtype(DType::F64).unwrap())?;
        same_on_any_threads("copy", || x.clone_contiguous().unwrap())?;
        same_on_any_threads("binary", || loops::binary(&x, &twice, |a: f32, b: f64| f64::from(a) - b * b).unwrap())?;
        let row = x.select(0, 0).unwrap();
        same_on_any_threads("row", || loops::binary(&x, &row, |a: f32, b: f32| a / (b + 0.1)).unwrap())?;
        let column = x.narrow(x.rank() as i64 - 1, 0, 1).unwrap();
        same_on_any_threads("column", || loops::ternary(&x, &column, &x, |a: f32, b: f32, c: f32| a * b + c).unwrap())?;
        same_on_any_threads("into", || {
            let out = Tensor::zeros(x.sizes(), DType::F32).unwrap().transpose(0, -1).unwrap();
            let x = x.transpose(0, -1).unwrap();
            loops::binary_into(&out, &x, &x, |a: f32, b: f32| a * b - 1.0).unwrap();
            loops::unary_into(&out, &out, |a: f32| a.sqrt()).unwrap();
            out
        })?;
    }

    #[test]
    fn folds_and_rows(x in strided_tensor(), mask in 1u64..8) {
        let dims: Vec<i64> = (0..x.rank() as i64).filter(|d| mask >> d & 1 == 1).collect();
        same_on_any_threads("sum", || reduce::sum(&x, Some(&dims), false, None).unwrap())?;
        same_on_any_threads("sum of all", || reduce::sum(&x, None, false, Some(DType::F32)).unwrap())?;
        same_on_any_threads("maximum", || reduce::amax(&x, Some(&dims), true).unwrap())?;
        let last = x.rank() as i64 - 1;
        same_on_any_threads("running sums", || reduce::cumsum(&x, last, None).unwrap())?;
        let index = same_on_any_threads("reversed rows", || rows::map_rows::<f32, i64>(&x, 0, None, |row, out| {
            out.iter_mut().enumerate().for_each(|(i, out)| *out = (row.len() - 1 - i) as i64);
        }).unwrap())?;
        same_on_any_threads("gather", || rows::gather(&x, 0, &index).unwrap())?;
        same_on_any_threads("index", || {
            let rows: Vec<usize> = (0..2 * x.sizes()[0] as usize).map(|i| i * 7 % x.sizes()[0] as usize).collect();
            let mut sizes = x.sizes().to_vec();
            sizes[0] *= 2;
            index_set::read_at(&x, &index_set::IndexSet::along(&x, 0, &rows).unwrap(), &sizes).unwrap()
        })?;
    }

    #[test]
    fn products(m in 1i64..300, k in 1i64..200, n in 1i64..300, batch in 1i64..4, dtype in 0..DTYPES.len()) {
        let matrix = |sizes: &[i64]| {
            let n: i64 = sizes.iter().product();
            let values = (0..n).map(|i| ((i * 37) % 101) as f32 / 7.0 - 7.0).collect();
            Tensor::from_vec::<f32>(values, sizes).unwrap().to_dtype(DTYPES[dtype]).unwrap()
        };
        let (a, b) = (matrix(&[batch, m, k]), matrix(&[batch, n, k]).transpose(1, 2).unwrap());
        same_on_any_threads("products", || matmul::bmm(&a, &b).unwrap())?;
        let (a, b) = (a.select(0, 0).unwrap(), b.select(0, 0).unwrap());
        same_on_any_threads("product", || matmul::mm(&a, &b).unwrap())?;
    }
}
