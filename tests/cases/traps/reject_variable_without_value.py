# test frontend
# A variable must be initialized.
def f(n: int) -> int:
    x: int  # error: an rhs must be present
    x = n
    return x
