# test frontend
# `with` needs `__enter__` and `__exit__`.
def f(n: int) -> int:
    with n:  # error: With item expression must return an object
        n += 1
    return n
