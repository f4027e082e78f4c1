# test run
# `+=` on an object calls `__iadd__`, or else `__add__`.
class Total:
    n: int
    def __init__(self, n: int):
        self.n = n
    def __iadd__(self, k: int) -> "Total":
        self.n += k
        return self
    def __mul__(self, k: int) -> "Total":
        return Total(self.n * k)

def f(n: int) -> Tuple[int, int, int]:
    a = Total(n)
    b = a
    b += 1
    a *= 10
    return a.n, b.n, n

# run: f(3) == (40, 4, 3)
