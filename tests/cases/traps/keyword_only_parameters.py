# test run
# Parameters after `*` are passed by name.
def g(a: int, *, b: int = 3) -> int:
    return a * 10 + b

def f(a: int) -> Tuple[int, int]:
    return g(a), g(a, b=4)

# run: g(1, b=4) == 14
# run: f(1) == (13, 14)
