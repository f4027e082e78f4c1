# test alias
# test alias dot
# test alias why %r %a.1
# test alias why %r %c.1
# The example of the overview: the returned `r` may be either input, and `c` is a new tensor.
def foo(a, b):
    c = a.mul(b)
    a.add_(1)
    if bool(a.max() > 4):
        r = a
    else:
        r = b
    return c, r

# == alias
# %a.1 : Tensor -> *input Tensor; written
# %b.1 : Tensor -> *input Tensor; written
# %c.1 : Tensor -> new; returned
# %8 : Tensor -> *input Tensor; written
# %10 : Tensor -> new
# %12 : Tensor -> new
# %r : Tensor -> *input Tensor; written
# %18 : (Tensor, Tensor) -> new, holds %c.1, *input Tensor
# writes:
#   aten::add_(%a.1, %6, %6): *input Tensor

# == alias dot
# digraph memory {
#   rankdir=LR;
#   node [fontname="monospace"];
#   e6 [label="*input Tensor : Tensor", shape=box, style=filled, fillcolor=lightgrey, color=red];
#   e7 [label="%18 : (Tensor, Tensor)", shape=ellipse];
#   e8 [label="%c.1 : Tensor", shape=box];
#   e9 [label="contents of %18 : Tensor", shape=ellipse];
#   e7 -> e9 [style=dashed];
#   e9 -> e6;
#   e9 -> e8;
# }

# == alias why %r %a.1
# %r may alias %a.1: both may be *input Tensor
#   %r -> *input Tensor
#   %a.1 -> *input Tensor
#   written by aten::add_

# == alias why %r %c.1
# %r cannot alias %c.1: they have no memory in common
#   %r is *input Tensor
#   %c.1 is its own memory
