# test frontend
# What may be None has no truth value.
def f(x: Optional[int]) -> int:
    if x:  # error: Could not cast value of type Optional[int] to bool
        return 1
    return 0
