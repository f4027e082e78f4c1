# test frontend
# `x or default` would return an operand; here `or` returns a bool.
def f(x: Optional[int]) -> int:
    return x or 3  # error: Could not cast
