# test frontend
# Lambdas are not supported.
def f(x: int) -> int:
    g = lambda y: y + 1  # error: `lambda`
    return g(x)
