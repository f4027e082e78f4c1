# test run
# Strings, formatting and comparison.
def f(a: str, b: str):
    return a + b, a == b, a < b, len(a), a[0], a.upper()

def show(x: int, y: float, s: str):
    return "x={} y={} s={}".format(x, y, s)

# run: f("one", "two") == ("onetwo", False, True, 3, "o", "ONE")
# run: f("a", "a") == ("aa", True, False, 1, "a", "A")
# run: show(1, 2.5, "z") == "x=1 y=2.5 s=z"
# run: show(-1, 1e20, "") == "x=-1 y=1e+20 s="
