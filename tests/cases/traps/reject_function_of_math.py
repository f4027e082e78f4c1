# test frontend
# The functions of `math` are those that TorchScript has, whatever operators have similar names.
def f(n: int) -> int:
    return math.isqrt(n)  # error: Python builtin <built-in function isqrt> is currently not supported

def g(x: float) -> float:
    return math.hypot(x, 1.0)  # error: Python builtin <built-in function hypot> is currently not supported
