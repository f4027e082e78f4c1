//! Convolutions and pooling: windows that move over up to three spatial dimensions.

use super::{Args, Array, Number, Reference};

pub(super) fn reference(name: &str) -> Option<Reference> {
    let run: fn(Args<'_>) -> Option<Vec<Array>> = match name {
        "aten::convolution" => {
            |args| convolution(args, args.flag(6)?, args.ints(7)?, args.int(8)?, args.ints(5)?)
        }
        "aten::conv1d" | "aten::conv2d" | "aten::conv3d" => {
            |args| convolution(args, false, vec![0; 3], args.int(6)?, args.ints(5)?)
        }
        "aten::conv_transpose1d" | "aten::conv_transpose2d.input" | "aten::conv_transpose3d.input" => {
            |args| convolution(args, true, args.ints(5)?, args.int(6)?, args.ints(7)?)
        }
        "aten::max_pool1d" | "aten::max_pool2d" | "aten::max_pool3d" => |args| {
            let pool = Pool::of(args, args.ints(4)?, args.flag(5)?)?;
            let (x, lowest) = (&pool.input, f64::NEG_INFINITY);
            pool.each(|places, _| {
                let largest = places.iter().flatten().map(|&at| x.data[at].re);
                Number::from(largest.fold(lowest, |a, b| if a.is_nan() || b <= a { a } else { b }))
            })
        },
        "aten::avg_pool1d" | "aten::avg_pool2d" | "aten::avg_pool3d" => |args| {
            let pool = Pool::of(args, vec![1; 3], args.flag(4)?)?;
            let (all, divisor) = (args.flag(5)?, args.int(6));
            pool.each(|places, padded| {
                let sum: Number = places.iter().flatten().map(|&at| pool.input.data[at]).sum();
                let count = if all { padded } else { places.iter().flatten().count() };
                sum / divisor.map_or(count as f64, |d| d as f64)
            })
        },
        _ => return None,
    };
    Some(Reference { run, exact: !name.contains("avg") })
}

/// Returns up to three values, preceded by `one` for each missing value.
fn per_dimension(values: &[i64], space: usize, one: i64) -> Option<[i64; 3]> {
    let mut all = [one; 3];
    for d in 0..space {
        all[3 - space + d] =
            *values.get(d).or(values.first()).filter(|_| values.len() != space || d < space)?;
    }
    Some(all)
}

/// Returns the spatial sizes of an array with two leading dimensions, preceded by 1s.
fn spatial_sizes(array: &Array, space: usize) -> Option<[usize; 3]> {
    let mut sizes = [1; 3];
    for d in 0..space {
        sizes[3 - space + d] = *array.sizes.get(2 + d)?;
    }
    Some(sizes)
}

fn indices(sizes: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    let [a, b, c] = sizes;
    (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| [i, j, k])))
}

/// Returns a spatial position as an index, if it is inside the sizes.
fn inside(at: [i64; 3], sizes: [usize; 3]) -> Option<usize> {
    let fits = at.iter().zip(sizes).all(|(&i, n)| i >= 0 && i < n as i64);
    fits.then(|| at.iter().zip(sizes).fold(0, |sum, (&i, n)| sum * n + i as usize))
}

fn convolution(
    args: Args<'_>,
    transposed: bool,
    more: Vec<i64>,
    groups: i64,
    dilation: Vec<i64>,
) -> Option<Vec<Array>> {
    let (x, w, bias) = (args.array(0)?, args.array(1)?, args.optional(2)?);
    let space = w.sizes.len().checked_sub(2)?;
    if x.sizes.len() != w.sizes.len() || !(1..=3).contains(&space) {
        return None;
    }
    let stride = per_dimension(&args.ints(3)?, space, 1)?;
    let padding = per_dimension(&args.ints(4)?, space, 0)?;
    let dilation = per_dimension(&dilation, space, 1)?;
    let more = per_dimension(&more, space, 0)?;
    let groups = usize::try_from(groups).ok()?;
    let (input, kernel) = (spatial_sizes(&x, space)?, spatial_sizes(&w, space)?);
    let (channels, results) = (x.sizes[1], if transposed { w.sizes[1] * groups } else { w.sizes[0] });
    let (own, per) = (channels / groups, results / groups);
    let mut output = [0; 3];
    for d in 0..3 {
        let reach = dilation[d] * (kernel[d] as i64 - 1) + 1;
        let n = input[d] as i64;
        output[d] = usize::try_from(if transposed {
            (n - 1) * stride[d] + reach - 2 * padding[d] + more[d]
        } else {
            (n + 2 * padding[d] - reach) / stride[d] + 1
        })
        .ok()?;
    }
    let taps: Vec<[usize; 3]> = indices(kernel).collect();
    let (volume, depth) = (input.iter().product::<usize>(), taps.len());
    let mut out = Array::from_fn(&[x.sizes[0], results, output[0], output[1], output[2]], |index| {
        let (image, result) = (index[0], index[1]);
        let group = result / per;
        let mut sum = bias.as_ref().map_or(Number::default(), |b| b.data[result]);
        for (t, tap) in taps.iter().enumerate() {
            let mut at = [0; 3];
            for d in 0..3 {
                let (p, k) = (index[2 + d] as i64, tap[d] as i64);
                at[d] = if transposed {
                    let from = p + padding[d] - k * dilation[d];
                    if from % stride[d] == 0 { from / stride[d] } else { -1 }
                } else {
                    p * stride[d] - padding[d] + k * dilation[d]
                };
            }
            let Some(at) = inside(at, input) else { continue };
            for c in 0..own {
                let from = x.data[(image * channels + group * own + c) * volume + at];
                let by = if transposed {
                    ((group * own + c) * per + result % per) * depth + t
                } else {
                    (result * own + c) * depth + t
                };
                sum += from * w.data[by];
            }
        }
        sum
    });
    out.sizes.drain(2..5 - space);
    Some(vec![out])
}

/// A pooling window.
struct Pool {
    input: Array,
    space: usize,
    sizes: [usize; 3],
    kernel: [i64; 3],
    stride: [i64; 3],
    padding: [i64; 3],
    dilation: [i64; 3],
    output: [usize; 3],
}

impl Pool {
    fn of(args: Args<'_>, dilation: Vec<i64>, ceil: bool) -> Option<Pool> {
        let input = args.array(0)?;
        let space = input.sizes.len().checked_sub(2).filter(|s| (1..=3).contains(s))?;
        let kernel = per_dimension(&args.ints(1)?, space, 1)?;
        let given = args.ints(2)?;
        let stride = if given.is_empty() { kernel } else { per_dimension(&given, space, 1)? };
        let padding = per_dimension(&args.ints(3)?, space, 0)?;
        let dilation = per_dimension(&dilation, space, 1)?;
        let sizes = spatial_sizes(&input, space)?;
        let mut output = [0; 3];
        for d in 0..3 {
            let n = sizes[d] as i64;
            let free = n + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
            let up = if ceil { stride[d] - 1 } else { 0 };
            let mut count = (free + up).div_euclid(stride[d]) + 1;
            if ceil && (count - 1) * stride[d] >= n + padding[d] {
                count -= 1;
            }
            output[d] = usize::try_from(count).ok()?;
        }
        Some(Pool { input, space, sizes, kernel, stride, padding, dilation, output })
    }

    /// Applies a function to the positions under each window (`None` in the padding), and to the number of positions
    /// that are within the padded input.
    fn each(&self, f: impl Fn(&[Option<usize>], usize) -> Number) -> Option<Vec<Array>> {
        let (n, c) = (self.input.sizes[0], self.input.sizes[1]);
        let volume = self.sizes.iter().product::<usize>();
        let mut out = Array::from_fn(&[n, c, self.output[0], self.output[1], self.output[2]], |index| {
            let plane = (index[0] * c + index[1]) * volume;
            let (mut places, mut padded) = (Vec::new(), 0);
            for tap in indices(self.kernel.map(|k| k as usize)) {
                let mut at = [0; 3];
                let mut within = true;
                for d in 0..3 {
                    at[d] = index[2 + d] as i64 * self.stride[d] - self.padding[d]
                        + tap[d] as i64 * self.dilation[d];
                    within &= at[d] < self.sizes[d] as i64 + self.padding[d];
                }
                padded += usize::from(within);
                places.push(inside(at, self.sizes).map(|at| plane + at));
            }
            f(&places, padded)
        });
        out.sizes.drain(2..5 - self.space);
        Some(vec![out])
    }
}
