//! Concatenation of tensors and lookup of matrix rows, compared with the definition, with one thread and several.
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]

use flambeau_tensor::rows::{joined, lookup};
use flambeau_tensor::{DType, Tensor, threads};

fn counted(sizes: &[i64], first: i64, dtype: DType) -> Tensor {
    let count: i64 = sizes.iter().product();
    let values = (0..count).map(|i| ((first + i) % 113) as f64).collect();
    Tensor::from_vec::<f64>(values, sizes).unwrap().to_dtype(dtype).unwrap()
}

fn values(t: &Tensor) -> Vec<f64> {
    t.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

const DTYPES: [DType; 5] = [DType::F32, DType::I8, DType::BF16, DType::C128, DType::Bool];

#[test]
fn joined_tensors_are_adjacent_in_every_line() {
    for dtype in DTYPES {
        // Lines before the dimension, elements behind it, and each tensor's size along it. The last cases have several
        // parts, as one line and as many.
        for (lines, behind, along) in [
            (1, 1, &[3][..]),
            (1, 5, &[2, 0, 7]),
            (4, 3, &[1, 2]),
            (7, 1, &[5, 5, 5, 1]),
            (1, 40_000, &[1, 2]),
            (300, 100, &[2, 3]),
        ] {
            let parts: Vec<Tensor> =
                (0..).zip(along).map(|(k, along)| counted(&[lines, *along, behind], 31 * k, dtype)).collect();
            let sizes = [lines, along.iter().sum(), behind];
            let mut wanted = Vec::new();
            for line in 0..lines as usize {
                for part in parts.iter().map(values) {
                    let length = part.len() / lines as usize;
                    wanted.extend_from_slice(&part[line * length..(line + 1) * length]);
                }
            }
            for count in [1, 4] {
                let all: Vec<&Tensor> = parts.iter().collect();
                let got = threads::with(count, || joined(&all, &sizes, 1)).unwrap().unwrap();
                assert_eq!(got.sizes(), sizes);
                assert!(values(&got) == wanted, "{dtype:?} {lines} {behind} {along:?}");
            }
        }
    }
}

#[test]
fn tensors_that_do_not_divide_into_lines_are_not_joined() {
    let (a, b) = (counted(&[3], 0, DType::U8), counted(&[5], 0, DType::U8));
    assert!(joined(&[&a, &b], &[4, 2], 1).unwrap().is_none());
}

#[test]
fn picked_rows_equal_the_source_rows() {
    for dtype in DTYPES {
        for (rows, width, picked) in [(3, 4, 5), (1, 1, 7), (9, 0, 4), (5, 3, 0), (50, 300, 400)] {
            let table = counted(&[rows, width], 7, dtype);
            let indices: Vec<i64> = (0..picked).map(|i| (i * 29 + 3) % rows).collect();
            let all = values(&table);
            let row = |i: &i64| all[(i * width) as usize..((i + 1) * width) as usize].to_vec();
            let wanted: Vec<f64> = indices.iter().flat_map(row).collect();
            for count in [1, 4] {
                let got = threads::with(count, || lookup(&table, &indices, &[picked, width])).unwrap();
                assert!(values(&got) == wanted, "{dtype:?} {rows} {width} {picked}");
            }
        }
    }
    let table = counted(&[3, 2], 0, DType::F32);
    assert!(lookup(&table, &[3], &[1, 2]).is_err() && lookup(&table, &[-1], &[1, 2]).is_err());
}
