# test frontend
# `break` needs a loop that is one when the program runs.
def f() -> int:
    n = 0
    for x in (1, 2.5):
        break  # error: unrolled loops
    return n
