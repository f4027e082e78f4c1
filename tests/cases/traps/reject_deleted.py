# test frontend
# A deleted variable is gone.
def f(x: int) -> int:
    y = x
    del y
    return y  # error: undefined value y
