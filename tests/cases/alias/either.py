# test alias
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
