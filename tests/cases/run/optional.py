# test run
# A value that is known not to be None may be used.
def f(x: Optional[int], y: Optional[int]) -> int:
    if x is None:
        return 0
    if y is not None:
        return x + y
    return x

def unwrap(x: Optional[int]) -> int:
    assert x is not None, "x is missing"
    return x + 1

# run: f(None, 1) == 0
# run: f(1, 2) == 3
# run: f(1, None) == 1
# run: unwrap(1) == 2
# run: unwrap(None) raises "AssertionError: x is missing"
