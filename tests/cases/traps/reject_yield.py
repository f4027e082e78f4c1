# test frontend
# Generators are not supported.
def f(x: int) -> int:
    yield x  # error: `yield`
