# test frontend
# `raise` needs an exception.
def f(n: int) -> int:
    raise n  # error: exceptions must derive from BaseException
