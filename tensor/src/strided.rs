//! Every so many elements of a row: what convolutions and pooling take from rows of space.

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
