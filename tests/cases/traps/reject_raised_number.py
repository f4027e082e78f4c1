# test frontend
# What is raised is an exception.
def f(n: int) -> int:
    raise n  # error: exceptions must derive from BaseException
