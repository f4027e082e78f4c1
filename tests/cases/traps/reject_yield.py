# test frontend
# There are no generators.
def f(x: int) -> int:
    yield x  # error: `yield`
