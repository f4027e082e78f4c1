//! Rules put together from parts: sizes of operands, numbers among the arguments, and what follows from both.
//!
//! A part that is not known is [`Dim::Unknown`]; in the rule's result it becomes a size of its own. So a rule names the
//! parts and need not ask whether each is known, as long as the rank follows from what it does ask.

use super::cx::wrap;
use super::{Arg, Dims, Fact, Shape, ShapeCx, Symbols, TensorFact, broadcast_dims};
use flambeau_ir::types::Dim;

impl ShapeCx<'_> {
    /// The size of a tensor operand at a position, counted from the end if negative.
    #[must_use]
    pub fn size(&self, arg: impl Into<Arg>, at: i64) -> Dim {
        let size = self.dims(arg).and_then(|dims| dims.get(wrap(at, dims.len())?).copied());
        size.unwrap_or(Dim::Unknown)
    }

    /// An integer argument.
    #[must_use]
    pub fn number(&self, arg: impl Into<Arg>) -> Dim {
        self.int(arg).unwrap_or(Dim::Unknown)
    }

    /// Number `d` of a list of integers, one of which may stand for all.
    #[must_use]
    pub fn along(&self, arg: impl Into<Arg>, d: usize) -> Dim {
        match self.ints(arg).as_deref() {
            Some([all]) => *all,
            Some(each) => each.get(d).copied().unwrap_or(Dim::Unknown),
            None => Dim::Unknown,
        }
    }

    /// The sizes of a tensor operand but for the last `n`, if its rank is known and allows that.
    #[must_use]
    pub fn lead(&self, arg: impl Into<Arg>, n: usize) -> Option<Dims> {
        let dims = self.dims(arg)?;
        Some(Dims::from_slice(&dims[..dims.len().checked_sub(n)?]))
    }

    /// Which of two sizes a truth value chooses.
    #[must_use]
    pub fn either(&self, flag: impl Into<Arg>, yes: Dim, no: Dim) -> Dim {
        match self.bool(flag) {
            Some(true) => yes,
            Some(false) => no,
            None if yes == no => yes,
            None => Dim::Unknown,
        }
    }

    /// The sizes that all of these broadcast to; `None` if they never do.
    #[must_use]
    pub fn broadcast(&mut self, all: &[&[Dim]]) -> Option<Dims> {
        broadcast_dims(all, self.symbols)
    }

    /// The text of a string argument that is a constant.
    #[must_use]
    pub fn text(&self, arg: impl Into<Arg>) -> Option<&[u8]> {
        Some(self.constant(arg)?.as_str()?.as_bytes())
    }
}

impl Symbols {
    /// How many windows of `kernel` elements, each `dilation` from the next, there are in `n` elements widened by
    /// `padding` on both sides, if they start `stride` apart.
    pub fn windows(&mut self, n: Dim, kernel: Dim, stride: Dim, padding: Dim, dilation: Dim) -> Dim {
        let sides = self.mul(padding, Dim::Known(2));
        let wide = self.sub(sides, Dim::Known(1));
        let steps = self.sub(kernel, Dim::Known(1));
        let reach = self.mul(dilation, steps);
        // One more window, taken before the division: what keeps a size is then the size itself.
        let more = self.sub(wide, reach);
        let more = self.add(more, stride);
        let last = self.add(n, more);
        self.floor_div(last, stride)
    }

    /// The inverse of [`Symbols::windows`]: how many elements `n` windows touch, those of the padding left out.
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

impl Shape {
    /// The sizes that a rule gives, those that are unknown each a size of its own; where it gives none, a tensor.
    pub fn dims<D: IntoIterator<Item = Dim>>(
        rule: impl Fn(&mut ShapeCx<'_>) -> Option<D> + Send + Sync + 'static,
    ) -> Shape {
        Shape::from(move |cx| {
            let Some(dims) = rule(cx) else { return Some(TensorFact::default()) };
            let dims: Dims = dims.into_iter().collect();
            if dims.iter().any(|&d| cx.symbols.range(d).max < 0) {
                // The node fails when it runs.
                return None;
            }
            Some(TensorFact::of_dims(dims.into_iter().map(|d| cx.size_or_fresh(d))))
        })
    }

    /// A tensor with so many dimensions.
    pub fn ranked(rank: usize) -> Shape {
        Shape::dims(move |_| Some(std::iter::repeat_n(Dim::Unknown, rank)))
    }

    /// A tensor with as many dimensions as an operand has.
    pub fn ranked_as(arg: impl Into<Arg>) -> Shape {
        let arg = arg.into();
        Shape::dims(move |cx| Some(std::iter::repeat_n(Dim::Unknown, cx.rank(arg)?)))
    }

    /// A vector without elements: what stands for a result that was not asked for.
    pub fn nothing() -> Shape {
        Shape::dims(|_| Some([Dim::Known(0)]))
    }

    /// A tensor of which nothing can be said: how many dimensions it has depends on elements.
    pub fn any() -> Shape {
        Shape::from(|_| Some(TensorFact::default()))
    }

    /// What a truth value chooses; what both have in common if it is not known.
    pub fn either(flag: impl Into<Arg>, yes: Shape, no: Shape) -> Shape {
        let flag = flag.into();
        Shape::from(move |cx| match cx.bool(flag) {
            Some(true) => yes.result(0, cx),
            Some(false) => no.result(0, cx),
            None => {
                let (yes, no) = (yes.result(0, cx)?, no.result(0, cx)?);
                Some(yes.join(&no, cx.symbols))
            }
        })
    }

    /// A result that a flag asks for; a vector without elements otherwise.
    pub fn wanted(flag: impl Into<Arg>, shape: Shape) -> Shape {
        Shape::either(flag, shape, Shape::nothing())
    }

    /// A loss: its elements if the integer `reduction` is 0, else their mean or sum.
    pub fn loss(reduction: impl Into<Arg>, elements: Shape) -> Shape {
        let reduction = reduction.into();
        Shape::from(move |cx| match cx.known_int(reduction) {
            Some(0) => elements.result(0, cx),
            Some(_) => Some(Fact::Tensor(TensorFact::contiguous([]))),
            None => Some(Fact::any_tensor()),
        })
    }

    /// What each matrix of a batch gives: the batch's sizes, then those that the rule gives of rows and columns.
    pub fn per_matrix<const N: usize>(
        arg: impl Into<Arg>,
        rule: impl Fn(&mut ShapeCx<'_>, Dim, Dim) -> [Dim; N] + Send + Sync + 'static,
    ) -> Shape {
        let arg = arg.into();
        Shape::dims(move |cx| {
            let mut dims = cx.lead(arg, 2)?;
            let (rows, columns) = (cx.size(arg, -2), cx.size(arg, -1));
            dims.extend(rule(cx, rows, columns));
            Some(dims)
        })
    }

    /// Matrices as large as those of `of`, in the batch that its and `with`'s broadcast to: systems of equations.
    pub fn matrices_with(of: impl Into<Arg>, with: impl Into<Arg>) -> Shape {
        let (of, with) = (of.into(), with.into());
        Shape::dims(move |cx| {
            let (a, b) = (cx.lead(of, 2)?, cx.lead(with, 2)?);
            let mut dims = cx.broadcast(&[&a, &b])?;
            dims.extend([cx.size(of, -2), cx.size(of, -1)]);
            Some(dims)
        })
    }

    /// Operand 0 with its last `space` sizes replaced by those of a list argument, one of which may stand for all.
    pub fn resized(space: usize, sizes: impl Into<Arg>) -> Shape {
        let sizes = sizes.into();
        Shape::dims(move |cx| {
            let mut dims = cx.lead(0, space)?;
            dims.extend((0..space).map(|d| cx.along(sizes, d)));
            Some(dims)
        })
    }
}
