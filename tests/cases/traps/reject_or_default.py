# test frontend
# `x or default` would be an operand, and `or` gives a truth value.
def f(x: Optional[int]) -> int:
    return x or 3  # error: Could not cast
