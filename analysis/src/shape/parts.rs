//! Building blocks for rules: sizes of operands, numeric arguments, and values derived from both.
//!
//! An unknown part is [`Dim::Unknown`]; in the result of a rule it becomes a new symbol. So a rule can use parts
//! without checking whether each is known, as long as the rank is determined.

use super::cx::wrap;
use super::{ArgRef, Dims, Fact, ResultShapes, ShapeCx, Symbols, TensorFact, broadcast_dims};
use flambeau_ir::types::Dim;

impl ShapeCx<'_> {
    /// Returns the size of a tensor operand at a position; negative positions count from the end.
    #[must_use]
    pub fn size(&self, arg: impl Into<ArgRef>, at: i64) -> Dim {
        let size = self.dims(arg).and_then(|dims| dims.get(wrap(at, dims.len())?).copied());
        size.unwrap_or(Dim::Unknown)
    }

    /// Returns an integer argument.
    #[must_use]
    pub fn number(&self, arg: impl Into<ArgRef>) -> Dim {
        self.int(arg).unwrap_or(Dim::Unknown)
    }

    /// Returns element `d` of a list of integers; a list of one element applies to all positions.
    #[must_use]
    pub fn along(&self, arg: impl Into<ArgRef>, d: usize) -> Dim {
        match self.ints(arg).as_deref() {
            Some([all]) => *all,
            Some(each) => each.get(d).copied().unwrap_or(Dim::Unknown),
            None => Dim::Unknown,
        }
    }

    /// Returns the sizes of a tensor operand without the last `n`, if its rank is known and at least `n`.
    #[must_use]
    pub fn lead(&self, arg: impl Into<ArgRef>, n: usize) -> Option<Dims> {
        let dims = self.dims(arg)?;
        Some(Dims::from_slice(&dims[..dims.len().checked_sub(n)?]))
    }

    /// Returns the one of two sizes that a bool argument selects.
    #[must_use]
    pub fn either(&self, flag: impl Into<ArgRef>, yes: Dim, no: Dim) -> Dim {
        match self.bool(flag) {
            Some(true) => yes,
            Some(false) => no,
            None if yes == no => yes,
            None => Dim::Unknown,
        }
    }

    /// Returns the broadcast of several size lists; `None` if they are incompatible.
    #[must_use]
    pub fn broadcast(&mut self, all: &[&[Dim]]) -> Option<Dims> {
        broadcast_dims(all, self.symbols)
    }

    /// Returns the text of a constant string argument.
    #[must_use]
    pub fn text(&self, arg: impl Into<ArgRef>) -> Option<&[u8]> {
        Some(self.constant(arg)?.as_str()?.as_bytes())
    }
}

impl Symbols {
    /// Returns the number of windows of `kernel` elements with spacing `dilation` in `n` elements, padded by `padding`
    /// on both sides, with starts `stride` apart.
    pub fn windows(&mut self, n: Dim, kernel: Dim, stride: Dim, padding: Dim, dilation: Dim) -> Dim {
        let sides = self.mul(padding, Dim::Known(2));
        let wide = self.sub(sides, Dim::Known(1));
        let steps = self.sub(kernel, Dim::Known(1));
        let reach = self.mul(dilation, steps);
        // The extra window is added before the division, so that a size-preserving window yields the same symbol.
        let more = self.sub(wide, reach);
        let more = self.add(more, stride);
        let last = self.add(n, more);
        self.floor_div(last, stride)
    }

    /// The inverse of [`Symbols::windows`]: returns the number of elements that `n` windows cover, without the padding.
    pub fn spread(&mut self, n: Dim, kernel: Dim, stride: Dim, padding: Dim, dilation: Dim) -> Dim {
        let sides = self.mul(padding, Dim::Known(2));
        let steps = self.sub(kernel, Dim::Known(1));
        let reach = self.mul(dilation, steps);
        let more = self.sub(reach, sides);
        let more = self.sub(more, stride);
        let more = self.add(more, Dim::Known(1));
        let starts = self.mul(n, stride);
        self.add(starts, more)
    }
}

impl ResultShapes {
    /// A tensor with the sizes that the rule returns, where unknown ones become new symbols; if the rule returns
    /// `None`, a tensor.
    pub fn dims<D: IntoIterator<Item = Dim>>(
        rule: impl Fn(&mut ShapeCx<'_>) -> Option<D> + Send + Sync + 'static,
    ) -> ResultShapes {
        ResultShapes::from(move |cx| {
            let Some(dims) = rule(cx) else { return Some(TensorFact::default()) };
            let dims: Dims = dims.into_iter().collect();
            if dims.iter().any(|&d| cx.symbols.range(d).max < 0) {
                // The node raises at run time.
                return None;
            }
            Some(TensorFact::of_dims(dims.into_iter().map(|d| cx.size_or_fresh(d))))
        })
    }

    /// A tensor with this rank.
    pub fn ranked(rank: usize) -> ResultShapes {
        ResultShapes::dims(move |_| Some(std::iter::repeat_n(Dim::Unknown, rank)))
    }

    /// A tensor with the rank of an operand.
    pub fn ranked_as(arg: impl Into<ArgRef>) -> ResultShapes {
        let arg = arg.into();
        ResultShapes::dims(move |cx| Some(std::iter::repeat_n(Dim::Unknown, cx.rank(arg)?)))
    }

    /// An empty vector, the placeholder for a result that was not requested.
    pub fn nothing() -> ResultShapes {
        ResultShapes::dims(|_| Some([Dim::Known(0)]))
    }

    /// A tensor without facts: its rank depends on elements.
    pub fn any() -> ResultShapes {
        ResultShapes::from(|_| Some(TensorFact::default()))
    }

    /// The shape that a bool argument selects; the common facts of both if it is unknown.
    pub fn either(flag: impl Into<ArgRef>, yes: ResultShapes, no: ResultShapes) -> ResultShapes {
        let flag = flag.into();
        ResultShapes::from(move |cx| match cx.bool(flag) {
            Some(true) => yes.result(0, cx),
            Some(false) => no.result(0, cx),
            None => {
                let (yes, no) = (yes.result(0, cx)?, no.result(0, cx)?);
                Some(yes.join(&no, cx.symbols))
            }
        })
    }

    /// A result that a flag requests; otherwise an empty vector.
    pub fn wanted(flag: impl Into<ArgRef>, shape: ResultShapes) -> ResultShapes {
        ResultShapes::either(flag, shape, ResultShapes::nothing())
    }

    /// A loss: the shape of its elements if the integer `reduction` is 0, else a scalar (their mean or sum).
    pub fn loss(reduction: impl Into<ArgRef>, elements: ResultShapes) -> ResultShapes {
        let reduction = reduction.into();
        ResultShapes::from(move |cx| match cx.known_int(reduction) {
            Some(0) => elements.result(0, cx),
            Some(_) => Some(Fact::Tensor(TensorFact::contiguous([]))),
            None => Some(Fact::any_tensor()),
        })
    }

    /// A batched matrix function: the batch sizes, followed by the sizes that the rule computes from rows and columns.
    pub fn per_matrix<const N: usize>(
        arg: impl Into<ArgRef>,
        rule: impl Fn(&mut ShapeCx<'_>, Dim, Dim) -> [Dim; N] + Send + Sync + 'static,
    ) -> ResultShapes {
        let arg = arg.into();
        ResultShapes::dims(move |cx| {
            let mut dims = cx.lead(arg, 2)?;
            let (rows, columns) = (cx.size(arg, -2), cx.size(arg, -1));
            dims.extend(rule(cx, rows, columns));
            Some(dims)
        })
    }

    /// Matrices with the sizes of those of `of`, batched by the broadcast of the batch sizes of `of` and `with`: linear
    /// systems.
    pub fn matrices_with(of: impl Into<ArgRef>, with: impl Into<ArgRef>) -> ResultShapes {
        let (of, with) = (of.into(), with.into());
        ResultShapes::dims(move |cx| {
            let (a, b) = (cx.lead(of, 2)?, cx.lead(with, 2)?);
            let mut dims = cx.broadcast(&[&a, &b])?;
            dims.extend([cx.size(of, -2), cx.size(of, -1)]);
            Some(dims)
        })
    }

    /// Operand 0 with its last `space` sizes replaced by a list argument; a list of one element applies to all.
    pub fn resized(space: usize, sizes: impl Into<ArgRef>) -> ResultShapes {
        let sizes = sizes.into();
        ResultShapes::dims(move |cx| {
            let mut dims = cx.lead(0, space)?;
            dims.extend((0..space).map(|d| cx.along(sizes, d)));
            Some(dims)
        })
    }
}
