//! Elements that lie apart: every so many of a row, which convolutions and pooling take, and lines that become columns.
#![allow(unsafe_code, reason = "reads lines and writes columns by pointers")]

/// `f` of every `step`-th element, with as many places as there are.
#[inline(always)]
pub(crate) fn strided<T: Copy, R>(from: &[T], step: usize, to: &mut [R], f: impl Fn(&mut R, T)) {
    match step {
        1 => to.iter_mut().zip(from).for_each(|(t, s)| f(t, *s)),
        2 => {
            // Pairs are loaded by the vector, where there is an element behind each.
            let pairs = (from.len() / 2).min(to.len());
            let (whole, rest) = to.split_at_mut(pairs);
            whole.iter_mut().zip(from.chunks_exact(2)).for_each(|(t, pair)| f(t, pair[0]));
            rest.iter_mut().zip(&from[pairs * 2..]).for_each(|(t, s)| f(t, *s));
        }
        _ => to.iter_mut().zip(from.iter().step_by(step)).for_each(|(t, s)| f(t, *s)),
    }
}

/// Lines that are turned at a time.
pub(crate) const LINES: usize = 4;

/// `N` elements of each of some lines, `line` apart, as columns of rows that are `row` apart: first one element of each line
/// in turn, which is vector code where elements are floats, then so many at once to each row.
///
/// Not inlined: of the same in a function for a wider instruction set LLVM makes no vectors.
///
/// # Safety
/// The lines may be read, the columns written.
#[inline(never)]
pub(crate) unsafe fn turn_lines<T: Copy, const N: usize>(
    from: *const T,
    line: isize,
    to: *mut T,
    row: isize,
) {
    // SAFETY: the caller's word.
    unsafe {
        let lines: [&[T; N]; LINES] = [0, 1, 2, 3].map(|k| &*from.offset(k * line).cast());
        let mut turned = [[lines[0][0]; LINES]; N];
        for i in 0..N {
            for k in 0..LINES {
                turned[i][k] = lines[k][i];
            }
        }
        for (i, turned) in turned.iter().enumerate() {
            to.offset(i as isize * row).cast::<[T; LINES]>().write_unaligned(*turned);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::strided;

    #[test]
    fn all_steps_take_as_many_as_there_is_room_for() {
        let from: Vec<i32> = (0..11).collect();
        for step in 1..4 {
            for room in 0..=from.len().div_ceil(step) {
                let mut to = vec![-1; room];
                strided(&from, step, &mut to, |t, s| *t = s);
                let want: Vec<i32> = from.iter().step_by(step).take(room).copied().collect();
                assert_eq!(to, want, "step {step}, {room} places");
            }
        }
    }
}
