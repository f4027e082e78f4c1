# test run
# Tuples, nested and carried through control flow.
def f(a: int, b: Tuple[int, str]):
    x, y = b
    return (a, (x, y)), b[0], b[1]

def swap(n: int):
    a, b = 0, 1
    for i in range(n):
        a, b = b, a + b
    return a, b

def either(c: bool):
    if c:
        t = (1, 2.0)
    else:
        t = (3, 4.0)
    return t

# run: f(1, (2, "x")) == ((1, (2, "x")), 2, "x")
# run: swap(10) == (55, 89)
# run: either(True) == (1, 2.0)
# run: either(False) == (3, 4.0)
