# test frontend
# A tensor behind `...` has no place among the dimensions.
def f(x: Tensor, i: Tensor):
    return x[..., i]  # error: Ellipses followed by tensor indexing
