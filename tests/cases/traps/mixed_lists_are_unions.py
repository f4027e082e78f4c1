# test run
# A list of several types has the union of them as element type.
def f(x: bool):
    a = [1, "a", 2]
    r = 0
    for b in a:
        if isinstance(b, int):
            r += b
        else:
            r += len(b) * 10
    return r

# run: f(True) == 13
