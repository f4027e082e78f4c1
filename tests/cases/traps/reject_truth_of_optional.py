# test frontend
# An optional is not a condition.
def f(x: Optional[int]) -> int:
    if x:  # error: Could not cast value of type Optional[int] to bool
        return 1
    return 0
