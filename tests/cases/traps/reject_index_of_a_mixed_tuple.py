# test frontend
# The index into a tuple of several types must be a constant.
def f(t: Tuple[int, str], i: int):
    return t[i]  # error: with a non-integer literal
