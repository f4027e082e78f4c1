//! Selection and sorting with a defined treatment of equal keys.
//!
//! The choice among equal elements (the index that `topk`, `median` or `mode` returns) is unspecified, but visible to
//! programs. These are the algorithms of the C++ library in PyTorch's builds, step by step, so that the same elements
//! are chosen: quickselect and introsort with the median of three, a heap if the pivots are bad, and insertion sort for
//! small ranges. The order must be a strict weak order, in which NaN has a position. With any other the result is some
//! permutation.

/// Below this number of elements introsort uses insertion sort.
pub(crate) const THRESHOLD: usize = 16;

fn depth_limit(n: usize) -> u32 {
    2 * n.max(1).ilog2()
}

/// Partially sorts: `v[nth]` becomes the element of the sorted order; no element before it is larger, none after it is
/// smaller.
pub fn nth_element<T: Copy>(v: &mut [T], nth: usize, less: &impl Fn(T, T) -> bool) {
    if v.is_empty() || nth >= v.len() {
        return;
    }
    let (mut first, mut last, mut depth) = (0, v.len(), depth_limit(v.len()));
    while last - first > 3 {
        if depth == 0 {
            heap_select(&mut v[first..last], nth + 1 - first, less);
            v.swap(first, nth);
            return;
        }
        depth -= 1;
        let cut = first + partition(&mut v[first..last], less);
        if cut <= nth {
            first = cut;
        } else {
            last = cut;
        }
    }
    insertion_sort(&mut v[first..last], less);
}

/// Sorts; not stable.
pub fn sort<T: Copy>(v: &mut [T], less: &impl Fn(T, T) -> bool) {
    let mut todo = vec![(0, v.len(), depth_limit(v.len()))];
    while let Some((first, mut last, mut depth)) = todo.pop() {
        while last - first > THRESHOLD {
            if depth == 0 {
                let n = last - first;
                partial_sort(&mut v[first..last], n, less);
                break;
            }
            depth -= 1;
            let cut = first + partition(&mut v[first..last], less);
            todo.push((cut, last, depth));
            last = cut;
        }
    }
    let head = v.len().min(THRESHOLD);
    insertion_sort(&mut v[..head], less);
    for i in head..v.len() {
        insert(v, i, less);
    }
}

/// Moves the `n` smallest elements, sorted, to the front.
pub fn partial_sort<T: Copy>(v: &mut [T], n: usize, less: &impl Fn(T, T) -> bool) {
    heap_select(v, n, less);
    for last in (1..n).rev() {
        pop_heap(v, last, last, less);
    }
}

/// Moves the median of the second, middle and last element, the pivot, to `v[0]` and partitions the others by it.
/// Returns the first position of the larger part.
fn partition<T: Copy>(v: &mut [T], less: &impl Fn(T, T) -> bool) -> usize {
    let (a, b, c) = (1, v.len() / 2, v.len() - 1);
    let median = match (less(v[a], v[b]), less(v[b], v[c]), less(v[a], v[c])) {
        (true, true, _) => b,
        (true, false, true) => c,
        (true, false, false) => a,
        (false, _, true) => a,
        (false, true, false) => c,
        (false, false, false) => b,
    };
    v.swap(0, median);
    let pivot = v[0];
    let (mut first, mut last) = (1, v.len());
    loop {
        // The median of three bounds both scans; the checks are for inconsistent orders.
        while first < v.len() && less(v[first], pivot) {
            first += 1;
        }
        last -= 1;
        while last > 0 && less(pivot, v[last]) {
            last -= 1;
        }
        if first >= last {
            return first.min(v.len() - 1);
        }
        v.swap(first, last);
        first += 1;
    }
}

fn insertion_sort<T: Copy>(v: &mut [T], less: &impl Fn(T, T) -> bool) {
    for i in 1..v.len() {
        if less(v[i], v[0]) {
            v[..=i].rotate_right(1);
        } else {
            insert(v, i, less);
        }
    }
}

/// Moves element `i` down to its position behind an element that is not larger.
fn insert<T: Copy>(v: &mut [T], i: usize, less: &impl Fn(T, T) -> bool) {
    let value = v[i];
    let mut at = i;
    while at > 0 && less(value, v[at - 1]) {
        v[at] = v[at - 1];
        at -= 1;
    }
    v[at] = value;
}

/// Makes the first `n` elements a heap of the `n` smallest, with the largest at the root.
fn heap_select<T: Copy>(v: &mut [T], n: usize, less: &impl Fn(T, T) -> bool) {
    for parent in (0..n / 2).rev() {
        let value = v[parent];
        sift(v, parent, n, value, less);
    }
    for i in n..v.len() {
        if n > 0 && less(v[i], v[0]) {
            pop_heap(v, n, i, less);
        }
    }
}

/// Exchanges the root of the heap of `n` elements with element `result`.
fn pop_heap<T: Copy>(v: &mut [T], n: usize, result: usize, less: &impl Fn(T, T) -> bool) {
    let value = v[result];
    v[result] = v[0];
    sift(v, 0, n, value, less);
}

/// Fills a hole by moving larger children up to the bottom, then moves the value up from there.
fn sift<T: Copy>(v: &mut [T], mut hole: usize, n: usize, value: T, less: &impl Fn(T, T) -> bool) {
    let top = hole;
    let mut child = hole;
    while child < (n - 1) / 2 {
        child = 2 * (child + 1);
        if less(v[child], v[child - 1]) {
            child -= 1;
        }
        v[hole] = v[child];
        hole = child;
    }
    if n & 1 == 0 && child == (n - 2) / 2 {
        child = 2 * (child + 1);
        v[hole] = v[child - 1];
        hole = child - 1;
    }
    while hole > top && less(v[(hole - 1) / 2], value) {
        v[hole] = v[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    v[hole] = value;
}

/// Quickselect with the median of three as pivot, as in PyTorch's `kthvalue`. `greater` must order NaN after
/// everything.
pub fn quick_select<T: Copy>(v: &mut [T], k: usize, greater: &impl Fn(T, T) -> bool) {
    if v.is_empty() {
        return;
    }
    let (mut l, mut r) = (0, v.len() - 1);
    while r > l {
        if r == l + 1 {
            if greater(v[l], v[r]) {
                v.swap(l, r);
            }
            return;
        }
        v.swap(l + (r - l) / 2, l + 1);
        for (a, b) in [(l + 1, r), (l, r), (l + 1, l)] {
            if greater(v[a], v[b]) {
                v.swap(a, b);
            }
        }
        let pivot = v[l];
        let (mut i, mut j) = (l + 1, r);
        loop {
            i += 1;
            while i < r && greater(pivot, v[i]) {
                i += 1;
            }
            j -= 1;
            while j > l && greater(v[j], pivot) {
                j -= 1;
            }
            if j < i {
                break;
            }
            v.swap(i, j);
        }
        v.swap(l, j);
        if j <= k {
            l = i;
        }
        if j >= k {
            if j == 0 {
                return;
            }
            r = j - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns numbers with many repetitions, in pseudorandom order.
    fn mixed(n: u64, kinds: u64) -> Vec<u64> {
        (0..n).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % kinds).collect()
    }

    #[test]
    fn hard_inputs_are_sorted_and_partitioned() {
        for n in [0, 1, 2, 3, 4, 15, 16, 17, 40, 300, 5000] {
            for kinds in [1, 3, 1000] {
                let values = mixed(n, kinds);
                let mut want = values.clone();
                want.sort_unstable();
                let mut got = values.clone();
                sort(&mut got, &|a, b| a < b);
                assert_eq!(got, want);
                for k in [0, n / 3, n / 2, n.saturating_sub(1)]
                    .map(|k| k as usize)
                    .into_iter()
                    .filter(|&k| k < n as usize)
                {
                    let mut got = values.clone();
                    nth_element(&mut got, k, &|a, b| a < b);
                    assert_eq!(got[k], want[k]);
                    assert!(got[..k].iter().all(|x| *x <= want[k]) && got[k..].iter().all(|x| *x >= want[k]));
                    let mut got = values.clone();
                    quick_select(&mut got, k, &|a, b| a > b);
                    assert_eq!(got[k], want[k]);
                    let mut got = values.clone();
                    partial_sort(&mut got, k, &|a, b| a < b);
                    assert_eq!(got[..k], want[..k]);
                }
            }
        }
    }

    #[test]
    fn inconsistent_orders_terminate() {
        let values: Vec<f64> =
            (0..100).map(|i| if i % 3 == 0 { f64::NAN } else { f64::from(i % 7) }).collect();
        let mut got = values.clone();
        sort(&mut got, &|a, b| a < b);
        nth_element(&mut got, 50, &|_, _| true);
        assert_eq!(got.len(), 100);
    }
}
