# test frontend
# A variable begins with a value.
def f(n: int) -> int:
    x: int  # error: an rhs must be present
    x = n
    return x
