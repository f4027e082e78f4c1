# test frontend
# An attribute may change between the test and the use, so it is not refined: a variable is.
class C:
    def __init__(self, x: Optional[int]):
        self.x = x

def f(n: int) -> int:
    c = C(n)
    if c.x is not None:
        return c.x + 1  # error: are not valid
    return 0

def g(n: int) -> int:
    x = C(n).x
    if x is not None:
        return x + 1
    return 0
