//! Prints the time of single operations (pointwise, reduction, copy, matrix product) by size.
//!
//! `cargo run --release -p flambeau-tensor --example loops_bench [filter]`

use std::hint::black_box;
use std::time::Instant;

use flambeau_tensor::math::Real;
use flambeau_tensor::{DType, Recycler, Scalar, Tensor, loops, matmul, reduce};

/// Returns the nanoseconds per call: the minimum over several batches.
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
        line(&filter, "exp", n, || drop(black_box(loops::unary(&x, |v: f32| Real::exp(v)))));
        line(&filter, "tanh", n, || drop(black_box(loops::unary(&x, |v: f32| Real::tanh(v)))));
        line(&filter, "sigmoid", n, || drop(black_box(loops::unary(&x, |v: f32| Real::sigmoid(v)))));
        line(&filter, "ln", n, || drop(black_box(loops::unary(&x, |v: f32| Real::ln(v)))));
        line(&filter, "sin", n, || drop(black_box(loops::unary(&x, |v: f32| Real::sin(v)))));
        line(&filter, "erf", n, || drop(black_box(loops::unary(&x, |v: f32| Real::erf(v)))));
        line(&filter, "sum", n, || drop(black_box(reduce::sum(&x, None, false, None))));
        line(&filter, "amax", n, || drop(black_box(reduce::amax(&x, None, false))));
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
            line(&filter, "sum rows", n, || drop(black_box(reduce::sum(&square, Some(&[1]), false, None))));
            line(&filter, "sum columns", n, || {
                drop(black_box(reduce::sum(&square, Some(&[0]), false, None)))
            });
            line(&filter, "max of rows", n, || drop(black_box(reduce::max_dim(&square, 1, false))));
            line(&filter, "contiguous of transposed", n, || drop(black_box(turned.contiguous())));
        }
    }
    let x = Tensor::zeros(&[4, 4], DType::F32).expect("fits");
    line(&filter, "select (view)", 1, || drop(black_box(x.select(0, 1))));
    line(&filter, "transpose (view)", 1, || drop(black_box(x.transpose(0, 1))));
    line(&filter, "item", 1, || {
        drop(black_box(x.select(0, 1).and_then(|r| r.select(0, 2)).and_then(|e| e.item())))
    });
    products(&filter);
}

fn products(filter: &str) {
    if !"mm".contains(filter) && !filter.starts_with("mm") {
        return;
    }
    for (m, k, n) in [
        (1, 8, 32),
        (1, 32, 32),
        (4, 16, 16),
        (16, 16, 16),
        (32, 32, 32),
        (1, 784, 256),
        (64, 64, 64),
        (128, 128, 128),
        (256, 256, 256),
        (512, 512, 512),
        (1024, 1024, 1024),
    ] {
        for turned in [false, true] {
            let a = Tensor::full(&[m, k], Scalar::Float(0.5), DType::F32).expect("fits");
            let b = Tensor::full(&[k, n], Scalar::Float(0.25), DType::F32).expect("fits");
            let b = if turned { b.view(&[n, k]).and_then(|b| b.t()).expect("matrix") } else { b };
            let ns = time(|| drop(black_box(matmul::mm(&a, &b))));
            let name = if turned { "mm (transposed)" } else { "mm" };
            println!("{name:18} {m}x{k}x{n}: {ns:>12.1} ns  {:>7.1} GFLOP/s", (2 * m * k * n) as f64 / ns);
        }
    }
}
