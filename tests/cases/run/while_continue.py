# test run
# A loop that skips the rest of its body, and a loop that stops early.
def f(n: int):
    total = 0
    i = 0
    while i < n:
        i += 1
        if i % 3 == 0:
            continue
        total += i
    return total

def g(n: int):
    found = -1
    for i in range(n):
        if i * i > n:
            found = i
            break
    return found

# run: f(0) == 0
# run: f(10) == 37
# run: g(50) == 8
# run: g(1) == -1
