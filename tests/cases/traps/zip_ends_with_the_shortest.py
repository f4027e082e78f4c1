# test run
# `zip` ends with its shortest iterable.
def f(a: List[int], b: str) -> List[str]:
    r: List[str] = []
    for i, (x, c) in enumerate(zip(a, b)):
        r.append(str(i) + c + str(x))
    return r

# run: f([1, 2, 3], "ab") == ["0a1", "1b2"]
# run: f([], "ab") == []
