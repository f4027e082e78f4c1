# test frontend
# A function that calls itself.
def f(x: int) -> int:  # error: called recursively
    return f(x - 1)
