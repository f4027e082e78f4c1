# test alias
# test alias dot
# test alias why %r %a.1
# test alias why %r %c.1
# The overview's example: what is returned as `r` may be either input, `c` is fresh.
def foo(a, b):
    c = a.mul(b)
    a.add_(1)
    if bool(a.max() > 4):
        r = a
    else:
        r = b
    return c, r

# == alias
# %a.1 : Tensor -> *Tensor; written
# %b.1 : Tensor -> *Tensor; written
# %c.1 : Tensor -> new; returned
# %8 : Tensor -> *Tensor; written
# %10 : Tensor -> new
# %12 : Tensor -> new
# %r : Tensor -> *Tensor; written
# %22 : (Tensor, Tensor) -> new, holds %c.1, *Tensor
# writes:
#   aten::add_(%a.1, %6, %6): *Tensor

# == alias dot
# digraph memory {
#   rankdir=LR;
#   node [fontname="monospace"];
#   e1 [label="*Tensor : Tensor", shape=box, style=filled, fillcolor=lightgrey, color=red];
#   e6 [label="%22 : (Tensor, Tensor)", shape=ellipse];
#   e7 [label="%c.1 : Tensor", shape=box];
#   e8 [label="contents of %22 : Tensor", shape=ellipse];
#   e6 -> e8 [style=dashed];
#   e8 -> e1;
#   e8 -> e7;
# }

# == alias why %r %a.1
# %r may be %a.1: both may be *Tensor
#   %r -> *Tensor
#   %a.1 -> *Tensor
#   written by aten::add_

# == alias why %r %c.1
# %r cannot be %c.1: they lead to no memory in common
#   %r is *Tensor
#   %c.1 is memory of its own
