# test run
# Jumps of branches with `break`, `continue` and `return` are threaded, ends of loops are copied, and moved numbers share registers.


def skipping(n: int):
    i, s = 0, 0
    while True:
        i += 1
        if i > n:
            break
        if i % 3 == 0:
            continue
        s += i
    return s, i


def nested(n: int):
    found, tried = 0, 0
    for i in range(n):
        for j in range(n):
            tried += 1
            if j > i:
                break
            if (i + j) % 2 == 1:
                continue
            if i * j == 12:
                return found, tried, i, j
            found += 1
    return found, tried, -1, -1


def rotated(n: int):
    a, b, c = 1, 2, 3
    for i in range(n):
        if i % 4 == 2:
            a, b = b, a
            continue
        t = a
        a = b
        b = c
        c = t + i
    return a, b, c


def kept_flag(n: int):
    last = False
    runs = 0
    for i in range(n):
        now = i % 5 < 2
        if now and not last:
            runs += 1
        last = now
    return runs, last


def previous(values: List[int]):
    before, rises = 0, 0
    for value in values:
        old = before
        before = value
        if old >= value:
            continue
        rises += value - old
    return before, rises


def floats(n: int):
    x, y = 0.5, 0.0
    k = 0
    while k < n:
        z = x * x - y
        y = x
        x = z
        k += 1
        if x > 2.0:
            x = 0.25
        elif x < -2.0:
            break
    return x, y, k


def search(values: List[int], wanted: int):
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        value = values[middle]
        if value == wanted:
            return middle
        if value < wanted:
            low = middle + 1
        else:
            high = middle
    return -1


def divided(n: int):
    s = 0
    for i in range(n, -3, -1):
        if i == 1:
            continue
        s += 12 // i
    return s


# run: skipping(0) == (0, 1)
# run: skipping(10) == (37, 11)
# run: nested(0) == (0, 0, -1, -1)
# run: nested(3) == (4, 8, -1, -1)
# run: nested(9) == (13, 30, 6, 2)
# run: rotated(0) == (1, 2, 3)
# run: rotated(11) == (12, 14, 17)
# run: kept_flag(0) == (0, False)
# run: kept_flag(13) == (3, False)
# run: previous([]) == (0, 0)
# run: previous([3, 1, 4, 1, 5, 9, 2, 6]) == (6, 18)
# run: floats(0) == (0.5, 0.0, 0)
# run: floats(7) == (-0.11095003815970422, -0.37691620154659106, 7)
# run: floats(40) == (0.24716683324173017, -0.5463642261748457, 40)
# run: search([1, 3, 5, 7, 9, 11], 7) == 3
# run: search([1, 3, 5, 7, 9, 11], 4) == -1
# run: search([], 4) == -1
# run: divided(5) raises "division by 0"
