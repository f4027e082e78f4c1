//! `im2col` and `col2im`: image patches as matrix columns, and sums of columns as images.

use super::{int_lists, sized};
use crate::pointwise::Number;
use crate::support::{Computed, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::OpDef;
use flambeau_ir::types::Dim;
use flambeau_tensor::{Element, Tensor, TensorError, access, dispatch, threads};

/// Estimated cost per pixel of a patch, in operations.
const COST_PER_PIXEL: usize = 4;

/// Geometry shared by both directions.
struct Patches {
    image: [i64; 2],
    kernel: [i64; 2],
    dilation: [i64; 2],
    padding: [i64; 2],
    stride: [i64; 2],
    blocks: [i64; 2],
}

/// Returns two numbers as PyTorch's messages show them.
fn shown([a, b]: [i64; 2]) -> String {
    format!("({a}, {b})")
}

/// Reads a list of two numbers.
fn pair(cx: &KernelCx<'_>, i: usize, name: &str) -> Result<[i64; 2], KernelError> {
    let n = cx.ints(i)?.len();
    if n != 2 {
        return Err(KernelError::input(format!("It is expected {name} equals to 2, but got size {n}")));
    }
    cx.ints_n(i, 2).map(|v| [v[0], v[1]])
}

impl Patches {
    /// Reads kernel, dilation, padding and stride from position `at`.
    fn new(cx: &KernelCx<'_>, at: usize, image: [i64; 2]) -> Result<Patches, KernelError> {
        let mut lists = [[0; 2]; 4];
        for (i, name) in ["kernel_size", "dilation", "padding", "stride"].into_iter().enumerate() {
            lists[i] = pair(cx, at + i, name)?;
        }
        let [kernel, dilation, padding, stride] = lists;
        let positive = (1, "greater than zero");
        for (name, prefix, values, (least, range)) in [
            ("kernel size", "kernel", kernel, positive),
            ("dilation", "dilation", dilation, positive),
            ("padding", "pad", padding, (0, "non-negative")),
            ("stride", "stride", stride, positive),
        ] {
            let [height, width] = values;
            if height < least || width < least {
                return Err(KernelError::input(format!(
                    "{name} should be {range}, but got {prefix}_height: {height} {prefix}_width: {width}"
                )));
            }
        }
        let along = |d: usize| {
            (image[d] + 2 * padding[d] - (dilation[d] * (kernel[d] - 1) + 1)).div_euclid(stride[d]) + 1
        };
        let blocks = [along(0), along(1)];
        Ok(Patches { image, kernel, dilation, padding, stride, blocks })
    }

    /// Returns an error if no patch fits into the image.
    fn check_blocks(&self) -> Result<(), KernelError> {
        if self.blocks.iter().all(|n| *n >= 1) {
            return Ok(());
        }
        Err(KernelError::input(format!(
            "Given input with spatial size {}, kernel_size={}, dilation={}, padding={}, calculated shape of the array of \
             sliding blocks as {}, but its components must be at least one.",
            shown(self.image),
            shown(self.kernel),
            shown(self.dilation),
            shown(self.padding),
            shown(self.blocks)
        )))
    }

    /// Returns the number of patches of an image.
    fn length(&self) -> i64 {
        self.blocks[0].saturating_mul(self.blocks[1])
    }

    /// Returns the number of pixels of an image.
    fn pixels(&self) -> i64 {
        self.image[0] * self.image[1]
    }

    /// Returns the number of pixels of a patch.
    fn depth(&self) -> i64 {
        self.kernel[0].saturating_mul(self.kernel[1])
    }

    /// Calls `f` with the positions in a channel's columns and in its image, for every patch pixel inside the image.
    fn each(&self, mut f: impl FnMut(usize, usize)) {
        let [h, w] = self.image;
        let length = self.length();
        for k in 0..self.depth() {
            let (ky, kx) = (k / self.kernel[1], k % self.kernel[1]);
            for by in 0..self.blocks[0] {
                let y = by * self.stride[0] - self.padding[0] + ky * self.dilation[0];
                if !(0..h).contains(&y) {
                    continue;
                }
                for bx in 0..self.blocks[1] {
                    let x = bx * self.stride[1] - self.padding[1] + kx * self.dilation[1];
                    if (0..w).contains(&x) {
                        f((k * length + by * self.blocks[1] + bx) as usize, (y * w + x) as usize);
                    }
                }
            }
        }
    }

    /// Calls `f(from, to)` in parallel for every channel; the channels have `reads` and `writes` elements.
    fn planes<T: Copy + Sync, R: Send>(
        &self,
        (from, to): (&[T], &mut [R]),
        [reads, writes]: [i64; 2],
        f: impl Fn(&[T], &mut [R]) + Sync,
    ) {
        let (reads, writes) = (reads as usize, writes as usize);
        if reads == 0 || writes == 0 {
            return;
        }
        threads::chunks(to, threads::rows(reads.max(writes) * COST_PER_PIXEL) * writes, |first, own| {
            let from = from[first / writes * reads..].chunks_exact(reads);
            from.zip(own.chunks_exact_mut(writes)).for_each(|(from, to)| f(from, to));
        });
    }
}

/// `(self, kernel_size, dilation, padding, stride)`.
fn im2col(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    let lead = x.rank().wrapping_sub(3);
    if lead > 1 || x.sizes()[lead..].contains(&0) {
        return Err(KernelError::input(format!(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for \
             input, but got: {:?}",
            x.sizes()
        )));
    }
    let sizes = &x.sizes()[lead..];
    let patches = Patches::new(cx, 1, [sizes[1], sizes[2]])?;
    patches.check_blocks()?;
    let mut out = x.sizes()[..lead].to_vec();
    out.extend([sizes[0].saturating_mul(patches.depth()), patches.length()]);
    if x.dtype().is_integral(false) {
        return Err(TensorError::DType { op: "im2col_out_cpu", dtype: x.dtype() }.into());
    }
    let (x, out) = (x.contiguous()?, Tensor::zeros(&out, x.dtype())?);
    let kind = x.dtype().bits();
    let (x, to) = (x.view_dtype(kind)?, out.view_dtype(kind)?);
    dispatch!(widths, kind, "im2col_out_cpu", T => access::edit_with::<T, T, _>(&to, &[&x], |mut out, ins| {
        let (from, to) = (ins[0].data(), out.data());
        let sizes = [patches.pixels(), patches.depth() * patches.length()];
        patches.planes((from, to), sizes, |from, to| patches.each(|column, image| to[column] = from[image]));
    }))?;
    Ok(out)
}

/// `(self, output_size, kernel_size, dilation, padding, stride)`.
fn col2im(cx: &KernelCx<'_>) -> Computed {
    let (x, image) = (cx.tensor(0)?, pair(cx, 1, "output_size")?);
    let lead = x.rank().wrapping_sub(2);
    if lead > 1 || x.sizes()[lead..].contains(&0) {
        return Err(KernelError::input(format!(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for \
             input, but got: {:?}",
            x.sizes()
        )));
    }
    let patches = Patches::new(cx, 2, image)?;
    let depth = patches.depth();
    let (rows, length) = (x.sizes()[lead], x.sizes()[lead + 1]);
    if rows % depth != 0 {
        return Err(KernelError::input(format!(
            "Expected size of input's dimension {lead} to be divisible by the product of kernel_size, but got \
             input.size({lead})={rows} and kernel_size={}.",
            shown(patches.kernel)
        )));
    }
    if length != patches.length() {
        let [down, across] = patches.blocks;
        return Err(KernelError::input(format!(
            "Given output_size={}, kernel_size={}, dilation={}, padding={}, stride={}, expected size of input's dimension {} \
             to match the calculated number of sliding blocks {down} * {across} = {}, but got input.size({})={length}.",
            shown(image),
            shown(patches.kernel),
            shown(patches.dilation),
            shown(patches.padding),
            shown(patches.stride),
            lead + 1,
            patches.length(),
            lead + 1
        )));
    }
    patches.check_blocks()?;
    let mut out = x.sizes()[..lead].to_vec();
    out.extend([rows / depth, image[0], image[1]]);
    let (x, out) = (x.contiguous()?, Tensor::zeros(&out, x.dtype())?);
    dispatch!(floats_complex, x.dtype(), "col2im_out_cpu", T => access::edit_with::<T, T, _>(&out, &[&x], |mut out, ins| {
        let (from, to) = (ins[0].data(), out.data());
        let sizes = [depth * length, patches.pixels()];
        patches.planes((from, to), sizes, |from, to| {
            patches.each(|column, image| {
                to[image] = T::from_raw(to[image]).add(T::from_raw(from[column])).to_raw();
            });
        });
    }))?;
    Ok(out)
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = op("im2col", "", "Patches of images as columns.")
        .facts(|d| {
            let shape = ResultShapes::dims(|cx| {
                let mut dims = cx.lead(0, 3)?;
                let (mut rows, mut columns) = (cx.size(0, -3), Dim::Known(1));
                for d in 0..2 {
                    let (n, kernel, dilation) = (cx.size(0, d as i64 - 2), cx.along(1, d), cx.along(2, d));
                    let (padding, stride) = (cx.along(3, d), cx.along(4, d));
                    rows = cx.symbols.mul(rows, kernel);
                    let blocks = cx.symbols.windows(n, kernel, stride, padding, dilation);
                    columns = cx.symbols.mul(columns, blocks);
                }
                dims.extend([rows, columns]);
                Some(dims)
            });
            d.with(shape)
                .with(Dtype::same_as(0))
                .with(sized(&[&[2, 3, 4, 5]], int_lists(&[&[2, 2], &[1, 1], &[1, 1], &[1, 2]])))
        })
        .one(im2col);
    let lists = || int_lists(&[&[4, 5], &[2, 2], &[1, 1], &[0, 0], &[1, 1]]);
    defs.extend(
        op("col2im", "", "Columns of patches summed into images.")
            .facts(|d| {
                let shape = ResultShapes::dims(|cx| {
                    let mut dims = cx.lead(0, 2)?;
                    let (rows, patch) = (cx.size(0, -2), [cx.along(2, 0), cx.along(2, 1)]);
                    let patch = cx.symbols.product(&patch);
                    dims.extend([cx.symbols.floor_div(rows, patch), cx.along(1, 0), cx.along(1, 1)]);
                    Some(dims)
                });
                d.with(shape).with(Dtype::same_as(0)).with(sized(&[&[2, 12, 12]], lists()))
            })
            .one(col2im),
    );
    defs
}
