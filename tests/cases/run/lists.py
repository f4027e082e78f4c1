# test run
# Lists are shared, sliced by copy, and grow in place.

def f(n: int):
    l: List[int] = []
    for i in range(n):
        l.append(i * i)
    m = l
    m.append(-1)
    return l, l[1:3], l[-1], len(l), l[::2]

def nested(a: List[List[int]]):
    total = 0
    for row in a:
        for x in row:
            total += x
    return total, a[0]

def outside(l: List[int], i: int):
    return l[i]

# run: f(4) == ([0, 1, 4, 9, -1], [1, 4], -1, 5, [0, 4, -1])
# run: nested([[1, 2], [3]]) == (6, [1, 2])
# run: outside([1, 2, 3], -1) == 3
# run: outside([1, 2, 3], 3) raises "list index out of range"
