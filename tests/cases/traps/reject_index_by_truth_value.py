# test frontend
# A truth value between brackets is no mask.
def f(x: Tensor):
    return x[True]  # error: unsupported index type 'bool'
