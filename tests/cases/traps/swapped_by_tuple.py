# test run
# The right side is evaluated before the assignment.
def f(a: int, b: int, l: List[int]) -> Tuple[int, int, List[int]]:
    a, b = b, a
    i = 0
    i, l[i] = 1, 7
    return a, b, l

# run: f(1, 2, [0, 0]) == (2, 1, [0, 7])
