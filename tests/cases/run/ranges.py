# test run
# range, enumerate, zip, and a loop over a tensor's rows.
def f(n: int):
    out: List[int] = []
    for i in range(1, n, 2):
        out.append(i)
    for i in range(n, 0, -3):
        out.append(i)
    return out

def pairs(a: List[int], b: List[str]):
    out: List[str] = []
    for i, (x, y) in enumerate(zip(a, b)):
        out.append(str(i) + str(x) + y)
    return out

def rows(x):
    total = 0.0
    for r in x:
        total += float(r.sum())
    return total

def largest(xs: List[int]):
    out: List[int] = []
    for x, i in zip(xs, range(0, 9223372036854775807, 9223372036854775806)):
        out.append(i)
    for n, i in enumerate(range(9223372036854775805, 9223372036854775807)):
        out.append(n)
    return out

# run: largest([1, 2, 3, 4]) == [0, 9223372036854775806, 0, 1]
def from_the_largest(xs: List[int], start: int):
    out: List[int] = []
    for n, x in enumerate(xs, start):
        if n != 0:
            out.append(1)
    return out

# run: from_the_largest([1, 2, 3], 9223372036854775806) == [1, 1, 1]
# run: f(7) == [1, 3, 5, 7, 4, 1]
# run: f(0) == []
# run: pairs([1, 2, 3], ["a", "b"]) == ["01a", "12b"]
# run: rows(iota([3, 2], f32)) == 15.0
