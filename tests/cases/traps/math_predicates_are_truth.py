# test run
# `math.isnan` and similar functions return bools, as their types state; PyTorch returns integers.
def f(x: float) -> Tuple[bool, bool, bool]:
    return math.isnan(x), math.isinf(x), math.isfinite(x)

def g(x: float) -> str:
    return str(math.isnan(x))

# run: f(nan) == (True, False, False)
# run: f(1.5) == (False, False, True)
# run: g(1.5) == "False"
