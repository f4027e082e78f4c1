# test frontend
# `__iter__` is not called.
class Numbers:
    n: int
    def __init__(self, n: int):
        self.n = n
    def __iter__(self) -> List[int]:
        return [self.n]

def f(n: int) -> int:
    for i in Numbers(n):  # error: is not iterable
        n += i
    return n
