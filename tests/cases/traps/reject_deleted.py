# test frontend
# A deleted variable is undefined.
def f(x: int) -> int:
    y = x
    del y
    return y  # error: undefined value y
