# test frontend
# The two sides of a conditional expression have one type.
def f(a: int):
    return 1 if a > 0 else 2.0  # error: float
