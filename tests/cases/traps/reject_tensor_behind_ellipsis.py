# test frontend
# A tensor index after `...` is not supported.
def f(x: Tensor, i: Tensor):
    return x[..., i]  # error: Ellipses followed by tensor indexing
