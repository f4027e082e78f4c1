# test frontend
# A loop has no `else`.
def f(x: int) -> int:
    for i in range(x):
        x += i
    else:  # error: `else` of a loop
        x = 0
    return x
