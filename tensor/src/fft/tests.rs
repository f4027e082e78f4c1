//! Transforms of rows compared with the definition, for lengths that are computed in different ways.

use std::f64::consts::PI;

use super::*;

/// Lengths computed in each of the ways that the planner knows: butterflies, their products, mixed radices, convolutions
/// of prime lengths.
const LENGTHS: &[usize] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 12, 30, 31, 37, 49, 61, 62, 64, 67, 74, 97, 101, 128, 134, 243, 360, 361, 384,
    500, 625, 719, 1009,
];

fn row(n: usize) -> Vec<C> {
    (0..n).map(|k| C::new((k * 7 % 11) as f64 - 5.0, (k * 5 % 13) as f64)).collect()
}

fn by_definition(x: &[C], sign: f64) -> Vec<C> {
    let n = x.len();
    let roots: Vec<C> = (0..n).map(|k| C::from_polar(1.0, sign * 2.0 * PI * k as f64 / n as f64)).collect();
    (0..n).map(|j| x.iter().enumerate().map(|(k, x)| x * roots[j * k % n]).sum()).collect()
}

fn close(got: &[C], want: &[C], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let bound = 1e-10 * want.len() as f64;
    for (k, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).norm() < bound, "{what} at {k}: {got} {want}");
    }
}

fn kind(inverse: bool) -> FftKind {
    FftKind { inverse, scale: 1.0 }
}

#[test]
fn complex_rows_agree_with_the_definition() {
    for &n in LENGTHS {
        let x = Tensor::from_slice(&row(n), &[n as i64]).expect("small");
        for (inverse, sign) in [(false, -1.0), (true, 1.0)] {
            let got = complex::<C>(&x, 0, n, kind(inverse)).and_then(|y| y.to_vec::<C>()).expect("small");
            close(&got, &by_definition(&row(n), sign), &format!("length {n}, inverse {inverse}"));
        }
    }
}

#[test]
fn real_rows_agree_with_the_definition() {
    for &n in LENGTHS {
        let parts: Vec<f64> = row(n).iter().map(|x| x.re).collect();
        let wide: Vec<C> = parts.iter().map(|x| C::new(*x, 0.0)).collect();
        let x = Tensor::from_slice(&parts, &[n as i64]).expect("small");
        for (inverse, sign) in [(false, -1.0), (true, 1.0)] {
            let want = by_definition(&wide, sign);
            let of = |onesided| {
                real::<C>(&x, 0, n, kind(inverse), onesided).and_then(|y| y.to_vec::<C>()).expect("small")
            };
            close(&of(false), &want, &format!("length {n}, inverse {inverse}"));
            close(&of(true), &want[..n / 2 + 1], &format!("length {n}, inverse {inverse}, one side"));
        }
    }
}

#[test]
fn conjugate_symmetric_rows_agree_with_the_definition() {
    for &n in LENGTHS {
        // Imaginary parts of the numbers that are their own conjugates are ignored.
        let given = row(n / 2 + 1);
        let mut whole = given.clone();
        whole[0].im = 0.0;
        if n.is_multiple_of(2) {
            whole[n / 2].im = 0.0;
        }
        whole.truncate(n);
        whole.extend((n / 2 + 1..n).map(|k| given[n - k].conj()));
        let x = Tensor::from_slice(&given, &[given.len() as i64]).expect("small");
        for (inverse, sign) in [(false, -1.0), (true, 1.0)] {
            let want: Vec<C> = by_definition(&whole, sign).iter().map(|x| C::new(x.re, 0.0)).collect();
            let got = hermitian::<f64>(&x, 0, n, kind(inverse)).and_then(|y| y.to_vec::<C>()).expect("small");
            close(&got, &want, &format!("length {n}, inverse {inverse}"));
        }
    }
}

#[test]
fn rows_are_truncated_and_padded() {
    let x = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0], &[5]).expect("small");
    for n in [3, 4, 8, 9] {
        let fitted: Vec<C> = (0..n).map(|k| C::new(if k < 5 { k as f64 + 1.0 } else { 0.0 }, 0.0)).collect();
        let want = by_definition(&fitted, -1.0);
        let of_real = real::<C>(&x, 0, n, kind(false), false).and_then(|y| y.to_vec::<C>()).expect("small");
        close(&of_real, &want, &format!("real, {n}"));
        let of_complex = complex::<C>(&x, 0, n, kind(false)).and_then(|y| y.to_vec::<C>()).expect("small");
        close(&of_complex, &want, &format!("complex, {n}"));
    }
}

#[test]
fn planned_again_and_on_several_threads_a_row_has_the_same_bits() {
    let rows: Vec<C> = (0..97).flat_map(|_| row(202)).collect();
    let x = Tensor::from_slice(&rows, &[97, 202]).expect("small");
    let of = |count| {
        threads::with(count, || complex::<C>(&x, 1, 202, kind(false)).and_then(|y| y.to_vec::<C>()))
            .expect("small")
    };
    let alone = of(1);
    assert!(alone.chunks(202).all(|row| row == &alone[..202]));
    assert_eq!(of(4), alone);
    // Enough other lengths that the plan of this one is made again.
    (1..=200).for_each(|n| drop(FftPlan::of(Rows::Complex, n, false)));
    assert_eq!(of(3), alone);
}

#[test]
fn large_prime_lengths_take_bounded_time_and_memory() {
    let n = 100_003;
    let mut values = vec![0.0; n];
    values[1] = 1.0;
    let x = Tensor::from_slice(&values, &[n as i64]).expect("small");
    let y = complex::<C>(&x, 0, n, kind(false)).and_then(|y| y.to_vec::<C>()).expect("small");
    let want: Vec<C> = (0..n).map(|k| C::from_polar(1.0, -2.0 * PI * k as f64 / n as f64)).collect();
    close(&y, &want, "an impulse");
    let budget = crate::MemoryBudget::new(8 << 20);
    assert!(budget.run(|| complex::<C>(&x, 0, 65_536, kind(false))).is_ok());
    assert!(budget.run(|| complex::<C>(&x, 0, n, kind(false))).is_err(), "its plan may take 16 MB");
}
