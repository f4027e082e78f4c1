//! Prints what one operation costs: pointwise, reduction, copy and matrix product, by size.
//!
//! `cargo run --release -p flambeau-tensor --example loops_bench [filter]`

use std::hint::black_box;
use std::time::Instant;

use flambeau_tensor::{DType, Recycler, Scalar, Tensor, loops};

/// Nanoseconds of one call: the best of several batches.
fn time(mut f: impl FnMut()) -> f64 {
    f();
    let start = Instant::now();
    f();
    let once = start.elapsed().as_nanos().max(20) as f64;
    let batch = ((2e6 / once) as usize).clamp(1, 100_000);
    let mut best = f64::MAX;
    for _ in 0..9 {
        let start = Instant::now();
        for _ in 0..batch {
            f();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / batch as f64);
    }
    best
}

fn line(filter: &str, name: &str, n: usize, mut f: impl FnMut()) {
    if !name.contains(filter) {
        return;
    }
    let plain = time(&mut f);
    let mut recycler = Recycler::new(1 << 28);
    let recycled = recycler.run(|| time(&mut f));
    let per = plain / n as f64;
    println!(
        "{name:28} {n:>9} elements  {plain:>12.1} ns  recycled {recycled:>12.1} ns  {per:>8.3} ns/element"
    );
}

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    println!("instruction set: {:?}", flambeau_tensor::simd::isa());
    for n in [16usize, 4096, 65536, 1 << 20] {
        let values: Vec<f32> = (0..n).map(|i| (i % 1000) as f32 / 250.0 - 2.0).collect();
        let x = Tensor::from_slice(&values, &[n as i64]).expect("fits");
        let y = Tensor::from_slice(&values, &[n as i64]).expect("fits");
        let out = Tensor::zeros(&[n as i64], DType::F32).expect("fits");
        let one = Tensor::scalar(Scalar::Float(1.5), DType::F32).expect("fits");
        line(&filter, "neg", n, || drop(black_box(loops::unary(&x, |v: f32| -v))));
        line(&filter, "add", n, || drop(black_box(loops::binary(&x, &y, |a: f32, b: f32| a + b))));
        line(&filter, "add 0-dim", n, || drop(black_box(loops::binary(&x, &one, |a: f32, b: f32| a + b))));
        line(&filter, "add in place", n, || {
            drop(black_box(loops::binary_into(&out, &out, &y, |a: f32, b: f32| a + b)));
        });
        line(&filter, "less", n, || drop(black_box(loops::binary(&x, &y, |a: f32, b: f32| a < b))));
        line(&filter, "relu", n, || {
            drop(black_box(loops::unary(&x, |v: f32| if v > 0.0 || v.is_nan() { v } else { 0.0 })));
        });
        line(&filter, "to f64", n, || drop(black_box(x.to_dtype(DType::F64))));
        if n >= 4096 {
            let side = n.isqrt() as i64;
            let square = x.view(&[side, side]).expect("square");
            let turned = square.t().expect("matrix");
            let row = x.narrow(0, 0, side).expect("row");
            line(&filter, "add row (broadcast)", n, || {
                drop(black_box(loops::binary(&square, &row, |a: f32, b: f32| a + b)));
            });
            line(&filter, "add transposed", n, || {
                drop(black_box(loops::binary(&square, &turned, |a: f32, b: f32| a + b)));
            });
            line(&filter, "contiguous of transposed", n, || drop(black_box(turned.contiguous())));
        }
    }
    let x = Tensor::zeros(&[4, 4], DType::F32).expect("fits");
    line(&filter, "select (view)", 1, || drop(black_box(x.select(0, 1))));
    line(&filter, "transpose (view)", 1, || drop(black_box(x.transpose(0, 1))));
    line(&filter, "item", 1, || {
        drop(black_box(x.select(0, 1).and_then(|r| r.select(0, 2)).and_then(|e| e.item())))
    });
}
