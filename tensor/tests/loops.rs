//! Loops, views, copies, reductions and products, compared with naive indexed references over generated layouts.
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]

use flambeau_tensor::{
    Complex, DType, Dims, Element, Layout, Scalar, Tensor, compare, loops, matmul, reduce, rows,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::collections::BTreeMap;

/// A tensor of some rank with small sizes, made by views: permuted, sliced, expanded.
#[derive(Clone, Debug)]
struct GeneratedTensor {
    sizes: Vec<i64>,
    order: Vec<usize>,
    step: i64,
    skip: i64,
    expand: Option<usize>,
    seed: u64,
}

fn made(max_rank: usize) -> impl Strategy<Value = GeneratedTensor> {
    (
        prop::collection::vec(prop_oneof![8 => 1i64..7, 1 => Just(0i64), 1 => 30i64..70], 0..=max_rank),
        any::<u64>(),
    )
        .prop_flat_map(|(sizes, seed)| {
            let rank = sizes.len();
            (
                Just(sizes),
                Just((0..rank).collect::<Vec<_>>()).prop_shuffle(),
                1i64..3,
                0i64..3,
                prop::option::of(0..rank.max(1)),
                Just(seed),
            )
        })
        .prop_map(|(sizes, order, step, skip, expand, seed)| GeneratedTensor {
            sizes,
            order,
            step,
            skip,
            expand,
            seed,
        })
}

fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *seed >> 33
}

impl GeneratedTensor {
    /// Makes the tensor, with the sizes `self.sizes`; optionally one of them is 1 in memory and expanded.
    fn tensor(&self, dtype: DType, overlap: bool) -> Tensor {
        let rank = self.sizes.len();
        let mut seed = self.seed;
        let mut stored = vec![0; rank];
        for (place, &dim) in self.order.iter().enumerate() {
            let expanded = overlap && self.expand == Some(dim) && self.sizes[dim] > 1;
            stored[place] = if expanded { 1 } else { self.sizes[dim] * self.step + self.skip };
        }
        let count: i64 = stored.iter().product();
        let values: Vec<Scalar> = (0..count)
            .map(|_| {
                let value = random(&mut seed) as i64 % 17 - 8;
                if dtype.is_integral(true) { Scalar::Int(value) } else { Scalar::Float(value as f64 * 0.5) }
            })
            .collect();
        let mut t = Tensor::from_scalars(&values, &stored, dtype).unwrap();
        for (place, &dim) in self.order.iter().enumerate() {
            if stored[place] != 1 || self.sizes[dim] == 1 && self.step + self.skip != 1 {
                let start = self.skip.min(stored[place]);
                t = t.slice(place as i64, Some(start), None, self.step).unwrap();
                t = t.narrow(place as i64, 0, self.sizes[dim]).unwrap();
            }
        }
        let mut back = vec![0; rank];
        self.order.iter().enumerate().for_each(|(place, dim)| back[*dim] = place as i64);
        t.permute(&back).unwrap().expand(&self.sizes).unwrap()
    }
}

/// Returns every index of sizes, in row-major order.
fn indices(sizes: &[i64]) -> Vec<Vec<i64>> {
    let mut out = vec![vec![]];
    for &size in sizes {
        out = out.iter().flat_map(|index| (0..size).map(move |i| [&index[..], &[i]].concat())).collect();
    }
    out
}

/// Returns the element at an index, by selecting dimension after dimension.
fn at(t: &Tensor, index: &[i64]) -> f64 {
    let mut t = t.clone();
    for i in index {
        t = t.select(0, *i).unwrap();
    }
    t.item().unwrap().to_f64()
}

fn at_broadcast(t: &Tensor, index: &[i64]) -> f64 {
    let lead = index.len() - t.rank();
    let own: Vec<i64> =
        index[lead..].iter().zip(t.sizes()).map(|(i, size)| if *size == 1 { 0 } else { *i }).collect();
    at(t, &own)
}

fn check(got: &Tensor, sizes: &[i64], want: impl Fn(&[i64]) -> f64) -> Result<(), TestCaseError> {
    prop_assert_eq!(got.sizes(), sizes);
    let values = got.to_vec::<f64>().unwrap();
    for (value, index) in values.into_iter().zip(indices(sizes)) {
        let want = want(&index);
        prop_assert!(
            value == want || (value - want).abs() <= 1e-5 * want.abs(),
            "{:?}: {} {}",
            index,
            value,
            want
        );
    }
    Ok(())
}

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::I32, DType::F16];

#[test]
fn a_function_of_no_inputs_fills_a_scalar() {
    let made = loops::nary::<f32, f32>(&[], |_, out| out.fill(3.0)).unwrap();
    assert_eq!((made.sizes(), made.item().unwrap()), (&[][..], Scalar::Float(3.0)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn unary_is_per_element(made in made(4), dtype in 0..4usize) {
        let x = made.tensor(DTYPES[dtype], true);
        let y = loops::unary(&x, |v: f32| v * 2.0 + 1.0).unwrap();
        check(&y, x.sizes(), |i| at(&x, i) * 2.0 + 1.0)?;
        let bools = loops::unary(&x, |v: f64| v > 0.0).unwrap();
        prop_assert_eq!(bools.dtype(), DType::Bool);
        check(&bools, x.sizes(), |i| f64::from(at(&x, i) > 0.0))?;
    }

    #[test]
    fn binary_broadcasts(made in made(4), drop in 0..3usize, ones in any::<u8>(), dtypes in (0..4usize, 0..4usize)) {
        let a = made.tensor(DTYPES[dtypes.0], true);
        let mut other = GeneratedTensor { seed: made.seed ^ 1, ..made.clone() };
        other.order.reverse();
        let mut b = other.tensor(DTYPES[dtypes.1], true);
        for d in 0..b.rank() {
            if ones >> d & 1 == 1 && b.sizes()[d] > 0 && a.sizes()[d] > 0 {
                b = b.narrow(d as i64, 0, 1).unwrap();
            }
        }
        for _ in 0..drop.min(b.rank()) {
            if b.sizes()[0] > 0 { b = b.select(0, 0).unwrap(); }
        }
        let got = loops::binary(&a, &b, |x: f32, y: f32| x - y).unwrap();
        check(&got, a.sizes(), |i| at(&a, i) - at_broadcast(&b, i))?;
        let three = loops::ternary(&a, &b, &got, |x: f64, y: f64, z: f32| x + y * z as f64).unwrap();
        check(&three, a.sizes(), |i| at(&a, i) + at_broadcast(&b, i) * at(&got, i))?;
        let many = loops::nary::<f32, f64>(&[&a, &b, &got], |ins, out| {
            for (k, out) in out.iter_mut().enumerate() { *out = (ins[0][k] + ins[1][k] * ins[2][k]) as f64; }
        }).unwrap();
        check(&many, a.sizes(), |i| at(&a, i) + at_broadcast(&b, i) * at(&got, i))?;
        // In place, into the dtype of the output.
        let out = made.tensor(DTYPES[dtypes.0], false);
        let before = out.clone_data().unwrap();
        let version = out.version();
        loops::binary_into(&out, &out, &b, |x: f32, y: f32| x + y).unwrap();
        check(&out, a.sizes(), |i| {
            let sum = at(&before, i) + at_broadcast(&b, i);
            if dtypes.0 == 2 { sum.trunc() } else { sum }
        })?;
        prop_assert_eq!(out.version(), version + 1);
    }

    #[test]
    fn sweeps_fill_all_outputs(made in made(4), ones in any::<u8>()) {
        let a = made.tensor(DType::F32, true);
        let mut b = GeneratedTensor { seed: made.seed ^ 3, ..made.clone() }.tensor(DType::F32, true);
        for d in 0..b.rank() {
            if ones >> d & 1 == 1 && b.sizes()[d] > 0 {
                b = b.narrow(d as i64, 0, 1).unwrap();
            }
        }
        let sweep = |_| |inputs: &[&[f32]], outputs: &mut [&mut [f32]]| {
            for k in 0..outputs[0].len() {
                outputs[0][k] = inputs[0][k] + inputs[1][k];
                outputs[1][k] = inputs[0][k] * inputs[1][k];
            }
        };
        // Layouts that `blockwise` does not support are handled by another loop.
        if let Some(outputs) = loops::blockwise::<f32, _>(&[&a, &b], 2, sweep).unwrap() {
            check(&outputs[0], a.sizes(), |i| at(&a, i) + at_broadcast(&b, i))?;
            check(&outputs[1], a.sizes(), |i| at(&a, i) * at_broadcast(&b, i))?;
        }
    }

    #[test]
    fn writes_reach_strided_outputs(made in made(4), dtypes in (0..4usize, 0..4usize)) {
        let x = GeneratedTensor { seed: made.seed ^ 5, ..made.clone() }.tensor(DTYPES[dtypes.1], true);
        let out = || made.tensor(DTYPES[dtypes.0], false);
        let truncated = |v: f64| if dtypes.0 == 2 { v.trunc() } else { v };
        let one = out();
        loops::unary_into(&one, &x, |v: f64| (v * 2.0) as f32).unwrap();
        check(&one, one.sizes(), |i| truncated(at(&x, i) * 2.0))?;
        let three = out();
        loops::ternary_into(&three, &x, &one, &x, |x: f32, y: f32, z: f32| x + y * z).unwrap();
        check(&three, three.sizes(), |i| truncated(at(&x, i) + at(&one, i) * at(&x, i)))?;
        let many = out();
        loops::nary_into::<f32, f32>(&many, &[&x, &one], |ins, out| {
            for (k, out) in out.iter_mut().enumerate() { *out = ins[0][k] - ins[1][k]; }
        }).unwrap();
        check(&many, many.sizes(), |i| truncated(at(&x, i) - at(&one, i)))?;
        // The memory between strided rows of the output does not change.
        let whole = Tensor::zeros(&[4, 6], DType::F32).unwrap();
        let inner = whole.narrow(0, 1, 2).unwrap().slice(1, Some(1), None, 2).unwrap();
        loops::unary_into(&inner, &inner, |_: f32| 1.0f32).unwrap();
        check(&whole, &[4, 6], |i| f64::from((1..3).contains(&i[0]) && i[1] % 2 == 1))?;
    }

    #[test]
    fn carried_elements_are_those_of_their_dtype(made in made(3), dtype in 0..4usize) {
        // Integers wrap as in their own dtype, and f16 and bf16 are rounded to it, although the computation is wider.
        let dtype = [DType::I8, DType::U8, DType::BF16, DType::F16][dtype];
        let x = made.tensor(DType::I32, true);
        let fits = |v: f64| Tensor::from_scalars(&[Scalar::Float(v)], &[1], DType::F64).unwrap()
            .to_dtype(DType::I64).unwrap().to_dtype(dtype).unwrap().to_vec::<f64>().unwrap()[0];
        let y = x.to_dtype(dtype).unwrap();
        let (sum, product, test) = if dtype.is_integral(false) {
            (
                loops::unary_in::<i64>(dtype, &y, |v| v + 100).unwrap(),
                loops::ternary_in::<i64>(dtype, &y, &y, &y, |a, b, c| a * b * c).unwrap(),
                loops::test_in::<i64>(dtype, &y, &x, |a, b| a == b).unwrap(),
            )
        } else {
            (
                loops::unary_in::<f32>(dtype, &y, |v| v + 100.0).unwrap(),
                loops::ternary_in::<f32>(dtype, &y, &y, &y, |a, b, c| a * b * c).unwrap(),
                loops::test_in::<f32>(dtype, &y, &x, |a, b| a == b).unwrap(),
            )
        };
        prop_assert_eq!(sum.dtype(), dtype);
        check(&sum, x.sizes(), |i| fits(at(&y, i) + 100.0))?;
        check(&product, x.sizes(), |i| fits(at(&y, i).powi(3)))?;
        check(&test, x.sizes(), |_| 1.0)?;
    }

    #[test]
    fn copies_keep_elements(made in made(4), dtype in 0..4usize) {
        let x = made.tensor(DType::F32, true);
        for y in [
            x.clone_data().unwrap(), x.clone_contiguous().unwrap(), x.cast_copy(DTYPES[dtype]).unwrap(),
        ] {
            prop_assert!(!y.shares_storage(&x));
            prop_assert!(y.layout().is_non_overlapping_and_dense());
            let ints = y.dtype() == DType::I32;
            check(&y, x.sizes(), |i| if ints { at(&x, i).trunc() } else { at(&x, i) })?;
        }
        let out = GeneratedTensor { seed: 0, ..made.clone() }.tensor(DTYPES[dtype], false);
        out.copy_(&x).unwrap();
        check(&out, x.sizes(), |i| if dtype == 2 { at(&x, i).trunc() } else { at(&x, i) })?;
        out.fill_(Scalar::Int(3)).unwrap();
        check(&out, x.sizes(), |_| 3.0)?;
        let bytes = x.to_bytes().unwrap();
        let again = Tensor::from_bytes(&bytes, DType::F32, Layout::contiguous(x.sizes()).unwrap()).unwrap();
        prop_assert!(compare::bitwise_equal(&again, &x).unwrap());
    }

    #[test]
    fn overlapping_copies_read_first(n in 2i64..40, shift in 1i64..5, back in any::<bool>()) {
        let x = Tensor::arange(Scalar::Int(0), Scalar::Int(n + shift), Scalar::Int(1), DType::I64).unwrap();
        let (low, high) = (x.narrow(0, 0, n).unwrap(), x.narrow(0, shift, n).unwrap());
        let (to, from) = if back { (low, high) } else { (high, low) };
        let want = from.to_vec::<i64>().unwrap();
        to.copy_(&from).unwrap();
        prop_assert_eq!(to.to_vec::<i64>().unwrap(), want);
        let partial = shift < n;
        prop_assert_eq!(loops::binary_into(&to, &to, &from, |a: i64, b: i64| a + b).is_err(), partial);
    }

    #[test]
    fn reductions_fold(made in made(4), mask in any::<u8>(), keepdim in any::<bool>(), dtype in 0..4usize) {
        let x = made.tensor(DTYPES[dtype], true);
        prop_assume!(x.numel() < 3000);
        let dims: Vec<i64> = (0..x.rank() as i64).filter(|d| mask >> d & 1 == 1).collect();
        let reduced = |d: usize| dims.is_empty() || dims.contains(&(d as i64));
        // The elements of each group, by the indices that remain.
        let mut groups: BTreeMap<Vec<i64>, Vec<f64>> = BTreeMap::new();
        for index in indices(x.sizes()) {
            let kept = index.iter().enumerate().filter(|(d, _)| !reduced(*d)).map(|(_, i)| *i).collect();
            groups.entry(kept).or_default().push(at(&x, &index));
        }
        let fold = |i: &[i64], start: f64, f: &dyn Fn(f64, f64) -> f64| {
            let kept = i.iter().enumerate().filter(|(d, _)| !keepdim || !reduced(*d)).map(|(_, i)| *i);
            let group = groups.get(&kept.collect::<Vec<i64>>());
            group.map_or(start, |elements| elements.iter().fold(start, |acc, x| f(acc, *x)))
        };
        let sizes: Vec<i64> = x.sizes().iter().enumerate()
            .filter(|(d, _)| keepdim || !reduced(*d))
            .map(|(d, size)| if reduced(d) { 1 } else { *size }).collect();
        let dims = Some(&dims[..]);
        // Small numbers in f16: every partial sum is exact, and only the result is rounded.
        let rounded = |v: f64| if dtype == 3 { f64::from(flambeau_tensor::f16::from_f64(v)) } else { v };
        check(&reduce::sum(&x, dims, keepdim, None).unwrap(), &sizes, |i| rounded(fold(i, 0.0, &|a, b| a + b)))?;
        check(&reduce::any(&x, dims, keepdim).unwrap(), &sizes, |i| fold(i, 0.0, &|a, b| f64::from(a != 0.0 || b != 0.0)))?;
        check(&reduce::all(&x, dims, keepdim).unwrap(), &sizes, |i| fold(i, 1.0, &|a, b| f64::from(a != 0.0 && b != 0.0)))?;
        if x.numel() > 0 {
            check(&reduce::amax(&x, dims, keepdim).unwrap(), &sizes, |i| fold(i, f64::MIN, &f64::max))?;
            check(&reduce::amin(&x, dims, keepdim).unwrap(), &sizes, |i| fold(i, f64::MAX, &f64::min))?;
        }
        if x.rank() > 0 && !x.sizes().contains(&0) {
            let dim = i64::from(mask) % x.rank() as i64;
            let (values, positions) = reduce::max_dim(&x, dim, true).unwrap();
            let positions = positions.to_vec::<i64>().unwrap();
            let check_sizes: Vec<i64> = values.sizes().to_vec();
            for (k, index) in indices(&check_sizes).into_iter().enumerate() {
                let mut full = index.clone();
                full[dim as usize] = positions[k];
                prop_assert_eq!(at(&values, &index), at(&x, &full));
                for i in 0..x.sizes()[dim as usize] {
                    full[dim as usize] = i;
                    let other = at(&x, &full);
                    prop_assert!(other < at(&values, &index) || i >= positions[k]);
                }
            }
            let sums = reduce::cumsum(&x, dim, Some(DType::F64)).unwrap();
            check(&sums, x.sizes(), |i| {
                let mut index = i.to_vec();
                (0..=i[dim as usize]).map(|k| { index[dim as usize] = k; at(&x, &index) }).sum()
            })?;
            let reversed = rows::map_rows::<f32, f32>(&x, dim, None, |row, out| {
                out.copy_from_slice(row);
                out.reverse();
            }).unwrap();
            check(&reversed, x.sizes(), |i| {
                let mut index = i.to_vec();
                index[dim as usize] = x.sizes()[dim as usize] - 1 - i[dim as usize];
                at(&x, &index)
            })?;
        }
    }

    #[test]
    fn products_multiply(sizes in (1i64..40, 0i64..40, 1i64..40), transposed in any::<[bool; 2]>(), dtype in 0..8usize, seed in any::<u64>()) {
        let (m, k, n) = sizes;
        let dtype = [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::U8, DType::C64, DType::C128][dtype];
        let make = |rows: i64, columns: i64, turn: bool, seed: u64| {
            let order = if turn { vec![1, 0] } else { vec![0, 1] };
            GeneratedTensor { sizes: vec![rows, columns], order, step: 1 + (seed % 2) as i64, skip: 0, expand: None, seed }
                .tensor(dtype, false)
        };
        let (a, b) = (make(m, k, transposed[0], seed), make(k, n, transposed[1], seed ^ 5));
        let (x, y) = (a.to_vec::<f64>().unwrap(), b.to_vec::<f64>().unwrap());
        let want = |i: &[i64]| -> f64 {
            let sum: f64 = (0..k).map(|l| x[(i[0] * k + l) as usize] * y[(l * n + i[1]) as usize]).sum();
            match dtype {
                DType::U8 => f64::from((sum as i64 % 256) as u8),
                DType::BF16 => f64::from(flambeau_tensor::bf16::from_f64(sum)),
                DType::F16 => f64::from(flambeau_tensor::f16::from_f64(sum)),
                _ => sum,
            }
        };
        check(&matmul::mm(&a, &b).unwrap(), &[m, n], want)?;
        let batch = a.expand(&[2, m, k]).unwrap();
        let product = matmul::matmul(&batch, &b).unwrap();
        check(&product, &[2, m, n], |i| want(&i[1..]))?;
        if !dtype.is_integral(true) {
            let bias = Tensor::full(&[n], Scalar::Float(2.0), dtype).unwrap();
            let got = matmul::addmm(&bias, &a, &b, Scalar::Float(0.5), Scalar::Int(1)).unwrap();
            if dtype == DType::F64 {
                check(&got, &[m, n], |i| want(i) + 1.0)?;
            }
            prop_assert_eq!(got.sizes(), [m, n]);
        }
    }

    #[test]
    fn views_show_the_same_elements(made in made(4), numbers in any::<[u8; 4]>()) {
        let x = made.tensor(DType::F32, true);
        let rank = x.rank() as i64;
        prop_assume!(rank > 0);
        let d = i64::from(numbers[0]) % rank;
        let size = x.sizes()[d as usize];
        let with = |i: &[i64], value: i64| { let mut i = i.to_vec(); i[d as usize] = value; i };
        let (start, step) = (i64::from(numbers[1]) % 9 - 3, i64::from(numbers[2]) % 3 + 1);
        let sliced = x.slice(d, Some(start), Some(start + 5), step).unwrap();
        let from = if start < 0 { (start + size).max(0) } else { start.min(size) };
        let mut sizes = x.sizes().to_vec();
        sizes[d as usize] = sliced.sizes()[d as usize];
        check(&sliced, &sizes, |i| at(&x, &with(i, from + i[d as usize] * step)))?;
        let e = i64::from(numbers[3]) % rank;
        let transposed = x.transpose(d, e).unwrap();
        let mut sizes = x.sizes().to_vec();
        sizes.swap(d as usize, e as usize);
        check(&transposed, &sizes, |i| { let mut i = i.to_vec(); i.swap(d as usize, e as usize); at(&x, &i) })?;
        // Flat, and any view that is possible.
        let want = x.to_vec::<f32>().unwrap();
        prop_assert_eq!(&x.reshape(&[-1]).map_or(vec![], |f| f.to_vec::<f32>().unwrap()), &if x.numel() == 0 { vec![] } else { want.clone() });
        let mut merged: Vec<i64> = x.sizes().to_vec();
        if rank > 1 && d > 0 {
            let size = merged.remove(d as usize);
            merged[d as usize - 1] *= size;
        }
        merged.insert((e as usize).min(merged.len()), 1);
        match x.view(&merged) {
            Ok(v) => {
                prop_assert!(v.shares_storage(&x));
                prop_assert_eq!(v.to_vec::<f32>().unwrap(), want);
            }
            Err(_) => prop_assert!(!x.is_contiguous()),
        }
        let pieces = x.chunk(3, d).unwrap();
        let total: i64 = pieces.iter().map(|p| p.sizes()[d as usize]).sum();
        prop_assert_eq!(total, size);
        if rank > 1 && d != e {
            let offset = i64::from(numbers[1]) % 5 - 2;
            let diagonal = x.diagonal(offset, d, e).unwrap();
            let (row, column) = (0.max(-offset), 0.max(offset));
            let rest: Vec<usize> = (0..rank as usize).filter(|k| *k != d as usize && *k != e as usize).collect();
            check(&diagonal, diagonal.sizes(), |i| {
                let mut full = vec![0; rank as usize];
                rest.iter().zip(i).for_each(|(k, i)| full[*k] = *i);
                let k = i[i.len() - 1];
                full[d as usize] = row + k;
                full[e as usize] = column + k;
                at(&x, &full)
            })?;
        }
        if size >= 2 {
            let windows = x.unfold(d, 2, step).unwrap();
            check(&windows, windows.sizes(), |i| {
                at(&x, &with(&i[..rank as usize], i[d as usize] * step + i[rank as usize]))
            })?;
        }
    }

    #[test]
    fn casts_are_per_element(from in 0..12usize, to in 0..12usize, values in prop::collection::vec(-300.0f64..300.0, 1..100)) {
        let (from, to) = (DType::ALL[from], DType::ALL[to]);
        let x = Tensor::from_slice(&values, &[values.len() as i64]).unwrap().to_dtype(from).unwrap();
        let y = x.to_dtype(to).unwrap();
        for i in 0..values.len() as i64 {
            let (a, b) = (x.select(0, i).unwrap().item().unwrap(), y.select(0, i).unwrap().item().unwrap());
            let want = Tensor::scalar(a, to).unwrap().item().unwrap();
            // In this range f32 wraps to narrow integers in the same way by way of 32 or 64 bits.
            prop_assert!(b.bit_eq(want), "{} {} -> {} {} want {}", from, a, to, b, want);
        }
    }
}

#[test]
fn strides_of_results_follow_inputs() {
    let x = Tensor::zeros(&[2, 3, 4], DType::F32).unwrap().permute(&[2, 0, 1]).unwrap();
    let neg = loops::unary(&x, |v: f32| -v).unwrap();
    assert_eq!(neg.strides(), x.strides());
    let row = Tensor::zeros(&[3], DType::F32).unwrap();
    let sum = loops::binary(&x, &row, |a: f32, b: f32| a + b).unwrap();
    assert_eq!(sum.strides(), x.strides());
    let other = Tensor::zeros(&[4, 2, 3], DType::F32).unwrap();
    assert_eq!(loops::binary(&other, &x, |a: f32, b: f32| a + b).unwrap().strides(), other.strides());
    assert_eq!(loops::binary(&x, &other, |a: f32, b: f32| a + b).unwrap().strides(), x.strides());
}

#[test]
fn threads_do_not_race_or_deadlock() {
    let a = Tensor::zeros(&[1000], DType::F32).unwrap();
    let b = Tensor::zeros(&[1000], DType::F32).unwrap();
    std::thread::scope(|scope| {
        for i in 0..4 {
            let (a, b) = (&a, &b);
            scope.spawn(move || {
                let (to, from) = if i % 2 == 0 { (a, b) } else { (b, a) };
                for _ in 0..500 {
                    loops::binary_into(to, to, from, |x: f32, y: f32| x * 0.5 + y * 0.5 + 1.0).unwrap();
                    loops::binary(to, from, |x: f32, y: f32| x + y).unwrap();
                }
            });
        }
    });
    // All elements had the same writes: no write was interleaved with another.
    let values = a.to_vec::<f32>().unwrap();
    assert!(values.iter().all(|v| *v == values[0]));
}

/// Large products whose columns do not fill vectors: one or several remaining columns are computed separately.
#[test]
fn remaining_columns_are_transposed() {
    for n in [49, 97, 100, 196] {
        let (m, k) = (64, 512);
        let of = |rows: i64, columns: i64, by: i64| -> Vec<f64> {
            (0..rows * columns).map(|i| (i * by % 17 - 8) as f64).collect()
        };
        let (x, y) = (of(m, k, 5), of(k, n, 7));
        let tensor = |v: &[f64], sizes: [i64; 2]| {
            Tensor::from_vec(v.to_vec(), &sizes).unwrap().to_dtype(DType::F32).unwrap()
        };
        let got = matmul::mm(&tensor(&x, [m, k]), &tensor(&y, [k, n])).unwrap().to_vec::<f64>().unwrap();
        for (at, got) in got.iter().enumerate() {
            let (i, j) = (at as i64 / n, at as i64 % n);
            let want: f64 = (0..k).map(|l| x[(i * k + l) as usize] * y[(l * n + j) as usize]).sum();
            assert_eq!(*got, want, "row {i}, column {j} of {n}");
        }
    }
}

#[test]
fn complex_products_and_views() {
    let z = Tensor::from_slice(&[Complex::new(1.0f32, 2.0), Complex::new(0.0, -1.0)], &[2, 1]).unwrap();
    let parts = z.view_as_real().unwrap();
    assert_eq!(parts.sizes(), [2, 1, 2]);
    assert_eq!(parts.to_vec::<f32>().unwrap(), [1.0, 2.0, 0.0, -1.0]);
    assert!(parts.view_as_complex().unwrap().shares_storage(&z));
    let row = z.t().unwrap();
    assert_eq!(matmul::mm(&row, &z).unwrap().item().unwrap(), Scalar::Complex(Complex::new(-4.0, 4.0)));
    let _: Dims = Dims::from_slice(z.sizes());
    assert_eq!(Complex::<f32>::DTYPE, DType::C64);
}

#[test]
fn matrices_of_any_size_are_transposed() {
    // Lines that are close together and lines that are not, whole tiles and partial ones, an odd column at the end.
    for [rows, columns] in
        [[1i64, 2], [33, 64], [64, 33], [64, 64], [65, 128], [40, 129], [130, 257], [5, 1000], [1000, 5]]
    {
        let n = rows * columns;
        let at = |i: i64| i % rows * columns + i / rows;
        let singles = Tensor::from_vec((0..n).map(|i| i as f32).collect(), &[rows, columns]).unwrap();
        let transposed = singles.t().unwrap().contiguous().unwrap().to_vec::<f32>().unwrap();
        assert_eq!(transposed, (0..n).map(|i| at(i) as f32).collect::<Vec<_>>(), "{rows} by {columns}");
        // Four bytes of any type are moved unchanged, including bit patterns of NaN.
        let bits = |i: i64| 0x7f80_0001 + i as i32;
        let whole = Tensor::from_vec((0..n).map(bits).collect(), &[rows, columns]).unwrap();
        let moved = whole.t().unwrap().contiguous().unwrap().to_vec::<i32>().unwrap();
        assert_eq!(moved, (0..n).map(|i| bits(at(i))).collect::<Vec<_>>(), "{rows} by {columns}");
        let doubles = singles.t().unwrap().to_dtype(DType::F64).unwrap().contiguous().unwrap();
        let doubles = doubles.to_vec::<f64>().unwrap();
        assert_eq!(doubles, (0..n).map(|i| at(i) as f64).collect::<Vec<_>>(), "{rows} by {columns}");
        let wide = singles.to_dtype(DType::I64).unwrap().t().unwrap().contiguous().unwrap();
        assert_eq!(wide.to_vec::<i64>().unwrap(), (0..n).map(at).collect::<Vec<_>>(), "{rows} by {columns}");
    }
}

/// The order in which elements are compared depends on the strides; the sign of a zero does not.
#[test]
fn the_extreme_of_zeros_is_the_same_for_any_strides() {
    let mut seed = 5;
    for sizes in [[7, 8, 96], [2, 513, 2], [1, 1, 1000], [33, 1, 2]] {
        let count = sizes.iter().product::<i64>() as usize;
        let zeros: Vec<f64> =
            (0..count).map(|_| if random(&mut seed) % 3 == 0 { 0.0 } else { -0.0 }).collect();
        for dtype in [DType::F32, DType::F64, DType::F16] {
            let x = Tensor::from_slice(&zeros, &sizes).unwrap().to_dtype(dtype).unwrap();
            let reversed = x.transpose(0, 2).unwrap().contiguous().unwrap().transpose(0, 2).unwrap();
            for dims in [&[0_i64][..], &[2], &[0, 2], &[0, 1, 2]] {
                let signs = |x: &Tensor| {
                    let ends = [reduce::amax, reduce::amin].map(|f| f(x, Some(dims), true).unwrap());
                    ends.map(|end| {
                        indices(end.sizes()).iter().map(|i| at(&end, i).is_sign_negative()).collect()
                    })
                };
                let (all, of_reversed): ([Vec<bool>; 2], _) = (signs(&x), signs(&reversed));
                assert_eq!(all, of_reversed, "{sizes:?} {dims:?} {dtype:?}");
                let grouped = indices(&sizes).into_iter().map(|index| {
                    let kept: Vec<i64> =
                        (0..3).map(|d| if dims.contains(&d) { 0 } else { index[d as usize] }).collect();
                    (kept, at(&x, &index).is_sign_negative())
                });
                let mut groups: BTreeMap<Vec<i64>, [bool; 2]> = BTreeMap::new();
                for (kept, is_negative) in grouped {
                    let [max, min] = groups.entry(kept).or_insert([true, false]);
                    (*max, *min) = (*max && is_negative, *min || is_negative);
                }
                assert!(groups.values().map(|g| g[0]).eq(all[0].iter().copied()), "largest of {sizes:?}");
                assert!(groups.values().map(|g| g[1]).eq(all[1].iter().copied()), "smallest of {sizes:?}");
            }
        }
    }
}
