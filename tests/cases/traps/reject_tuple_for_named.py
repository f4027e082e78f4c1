# test frontend
# A tuple is not a named tuple.
class P(NamedTuple):
    x: int
    y: float

def second(t: P) -> float:
    return t.y

def f(n: int) -> float:
    return second((n, 0.5))  # error: Tuple[int, float]
