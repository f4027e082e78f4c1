# test run
# A complex number equals an integer by value; PyTorch compiles it and fails.
def f(a: complex, b: int) -> Tuple[bool, bool, bool]:
    return a == b, b != a, a == 2.0

# run: f(complex(2.0, 0.0), 2) == (True, False, True)
# run: f(complex(2.0, 1.0), 2) == (False, True, False)
