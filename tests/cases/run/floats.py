# test run
# Floats as in Python.
def f(a: float, b: float):
    return a + b, a - b, a * b, a / b, a // b, a % b

def compare(a: float, b: float):
    return a < b, a <= b, a == b, a != b

def convert(a: float, n: int):
    return int(a), float(n), bool(n), a * n

# run: f(7.5, 2.0) == (9.5, 5.5, 15.0, 3.75, 3.0, 1.5)
# run: f(-7.5, 2.0) == (-5.5, -9.5, -15.0, -3.75, -4.0, 0.5)
# run: f(1.0, 0.0) == (1.0, 1.0, 0.0, inf, inf, nan)
# run: compare(1.0, nan) == (False, False, False, True)
# run: compare(1.0, 1.0) == (False, True, True, False)
# run: convert(-2.7, 3) == (-2, 3.0, True, -8.100000000000001)
# run: convert(2.7, 0) == (2, 0.0, False, 0.0)
