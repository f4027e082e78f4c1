# test frontend
# A variable of one branch alone.
def f(c: bool) -> int:
    if c:
        x = 1
    return x  # error: x is not defined in the false branch
