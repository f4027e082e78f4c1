# test frontend
# There are no functions without a name.
def f(x: int) -> int:
    g = lambda y: y + 1  # error: `lambda`
    return g(x)
