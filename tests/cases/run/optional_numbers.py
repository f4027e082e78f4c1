# test run
# Optional numbers that branches return and loops carry.
def pick(i: int) -> Optional[int]:
    if i % 3 == 0:
        return None
    return i

def picked(n: int):
    s = 0
    for i in range(n):
        x = pick(i)
        if x is not None:
            s += x
        else:
            s -= 1
    return s

def last(a: List[int]):
    found: Optional[int] = None
    for x in a:
        if found is None or x > found:
            found = x
    if found is None:
        return -1
    return found

def cleared(a: List[float]):
    held: Optional[float] = None
    s = 0.0
    for x in a:
        if held is not None:
            s += held
            held = None
        elif x > 1.0:
            held = x
        else:
            held = 0.5
    return s, held is None

def printed(c: bool):
    x: Optional[int] = None
    if c:
        x = 3
    y = x is None
    return x, y

def unwrapped(c: bool) -> int:
    x: Optional[int] = None
    if c:
        x = 3
    assert x is not None, "no number"
    return x

# run: picked(10) == 23
# run: last([3, 5, 4]) == 5
# run: last([]) == -1
# run: cleared([2.0, 0.0, 0.0, 3.0, 4.0]) == (2.5, False)
# run: printed(True) == (3, False)
# run: printed(False) == (None, True)
# run: unwrapped(True) == 3
# run: unwrapped(False) raises "AssertionError: no number"
