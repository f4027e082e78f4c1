# test run
# A tuple of one type that is repeated becomes a list.
def f() -> List[int]:
    return (1, 2) * 2

def g(a: Tuple[int, int], b: Tuple[int, str]):
    return a + b, a[0:1] + a

# run: f() == [1, 2, 1, 2]
# run: g((1, 2), (3, "x")) == ((1, 2, 3, "x"), (1, 1, 2))
