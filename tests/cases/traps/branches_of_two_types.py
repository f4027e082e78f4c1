# test run
# A variable with different types in two branches is unusable, unless one of them is None.
def f(c: bool) -> Optional[int]:
    if c:
        x = 1
    else:
        x = None
    return x

def g(c: bool) -> int:
    if c:
        y = 1
    else:
        y = "a"
    return 3

# run: f(True) == 1
# run: f(False) == None
# run: g(False) == 3
