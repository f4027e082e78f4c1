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
