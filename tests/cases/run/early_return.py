# test run
# Returns inside branches and loops.
def sign(x: int) -> int:
    if x > 0:
        return 1
    elif x < 0:
        return -1
    return 0

def first_over(limit: int, n: int) -> int:
    for i in range(n):
        for j in range(i):
            if i * j > limit:
                return i * 100 + j
    return -1

# run: sign(5) == 1
# run: sign(-5) == -1
# run: sign(0) == 0
# run: first_over(10, 8) == 403
# run: first_over(100, 8) == -1
