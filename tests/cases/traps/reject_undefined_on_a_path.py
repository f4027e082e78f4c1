# test frontend
# A variable that only one branch defines.
def f(c: bool) -> int:
    if c:
        x = 1
    return x  # error: x is not defined in the false branch
