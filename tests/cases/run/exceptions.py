# test run
# Raised errors end the call.
def f(x: int) -> int:
    if x < 0:
        raise ValueError("x is negative")
    return x

def g(x: int) -> int:
    return f(x) + f(-x)

# run: f(1) == 1
# run: f(-1) raises "x is negative"
# run: g(0) == 0
# run: g(2) raises "x is negative"
