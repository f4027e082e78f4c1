# test frontend
# An element of a tuple of several types is chosen when it is compiled.
def f(t: Tuple[int, str], i: int):
    return t[i]  # error: with a non-integer literal
