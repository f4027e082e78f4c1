# test frontend
# `break` needs a loop that exists at run time, not an unrolled one.
def f() -> int:
    n = 0
    for x in (1, 2.5):
        break  # error: unrolled loops
    return n
