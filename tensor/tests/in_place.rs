//! In-place results, and the small blocks that threads keep: neither may be observable by a caller.
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]

use flambeau_tensor::loops::{OutputHint, binary_in, unary_in};
use flambeau_tensor::{DType, Recycler, Storage, Tensor};

fn ramp(n: i64) -> Tensor {
    Tensor::from_vec((0..n).map(|i| i as f32).collect(), &[n]).unwrap()
}

/// Computes `x + 10 y` over `x`, if it may be overwritten.
fn added(x: &Tensor, y: &Tensor) -> Tensor {
    binary_in::<f32>(OutputHint::over(DType::F32, Some(x)), x, y, |a, b| a + 10.0 * b).unwrap()
}

#[test]
fn in_place_results_of_any_length() {
    for n in [0, 1, 16, 511, 512, 513, 1300] {
        let (x, y) = (ramp(n), ramp(n));
        let version = x.version();
        let result = added(&x, &y);
        assert!(result.ptr_eq(&x), "{n}");
        assert_eq!(x.version(), version + 1, "{n}");
        let wanted: Vec<f32> = (0..n).map(|i| 11.0 * i as f32).collect();
        assert_eq!(x.to_vec::<f32>().unwrap(), wanted, "{n}");
        // Both operands are the tensor itself.
        assert!(added(&y, &y).ptr_eq(&y));
        assert_eq!(y.to_vec::<f32>().unwrap(), wanted, "{n}");
    }
}

#[test]
fn writing_a_view_changes_only_its_elements() {
    let whole = ramp(8);
    let (low, high) = (whole.narrow(0, 0, 4).unwrap(), whole.narrow(0, 4, 4).unwrap());
    let result = unary_in::<f32>(OutputHint::over(DType::F32, Some(&high)), &high, |v| -v).unwrap();
    assert!(result.ptr_eq(&high));
    assert_eq!(whole.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, -4.0, -5.0, -6.0, -7.0]);
    // An operand in the same storage, but disjoint.
    assert!(added(&low, &high).ptr_eq(&low));
    assert_eq!(whole.to_vec::<f32>().unwrap(), [-40.0, -49.0, -58.0, -67.0, -4.0, -5.0, -6.0, -7.0]);
    // If an operand overlaps a part of the target, the result is fresh, and nothing changes.
    let whole = ramp(8);
    let (low, middle) = (whole.narrow(0, 0, 4).unwrap(), whole.narrow(0, 3, 4).unwrap());
    let result = added(&low, &middle);
    assert!(!result.shares_storage(&whole));
    assert_eq!(result.to_vec::<f32>().unwrap(), [30.0, 41.0, 52.0, 63.0]);
    assert_eq!(low.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0]);
}

#[test]
fn results_that_do_not_fit_are_allocated() {
    let x = ramp(4);
    let wide = ramp(4).to_dtype(DType::F64).unwrap();
    let grown = binary_in::<f32>(OutputHint::over(DType::F32, Some(&x)), &x, &ramp(1), |a, _| a).unwrap();
    assert!(!grown.ptr_eq(&x), "shapes differ");
    assert!(!added(&x, &wide).ptr_eq(&x), "dtypes differ");
    let turned = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap().t().unwrap();
    assert!(!added(&turned, &turned).ptr_eq(&turned), "not row-major");
    let half = ramp(4).to_dtype(DType::F16).unwrap();
    let result =
        binary_in::<f32>(OutputHint::over(DType::F16, Some(&half)), &half, &half, |a, b| a + b).unwrap();
    assert!(!result.ptr_eq(&half) && result.dtype() == DType::F16, "computed in another dtype");
}

#[test]
fn threads_keep_small_blocks_across_recyclers() {
    // The first block that is freed creates the thread's pool.
    drop(Storage::zeroed(1000).unwrap());
    let first = Storage::zeroed(1000).unwrap();
    let address = first.address();
    drop(first);
    let mut recycler = Recycler::new(1 << 20);
    let second = recycler.run(|| Storage::zeroed(1000).unwrap());
    assert_eq!(second.address(), address);
    // A block that is dropped on a thread that ends is neither lost nor used twice.
    std::thread::spawn(move || drop(second)).join().unwrap();
    assert_eq!(recycler.held(), 0);
    let zeroed = Storage::zeroed(1000).unwrap();
    let tensor =
        Tensor::from_storage(zeroed, DType::U8, flambeau_tensor::Layout::contiguous(&[1000]).unwrap());
    assert!(tensor.unwrap().to_vec::<u8>().unwrap().iter().all(|byte| *byte == 0));
}
