# test frontend
# A bool as an index is not a mask.
def f(x: Tensor):
    return x[True]  # error: unsupported index type 'bool'
