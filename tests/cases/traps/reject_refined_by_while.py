# test frontend
# A loop's condition refines nothing in its body.
def f(x: Optional[int]) -> int:
    n = 0
    while x is not None:
        n += x  # error: are not valid
        x = None
    return n
