# test frontend
# `__bool__` of a class must return a truth value if an object is a condition.
class Pair:
    def __init__(self, n: int):
        self.n = n
    def __bool__(self):
        return (self.n, 2)

def f(x: int):
    pair = Pair(x)
    if pair: # error: expected a bool expression for condition but found 'Tuple[int, int]'
        return 1
    return 2
