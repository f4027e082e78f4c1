# test run
# A tuple of one element type can be indexed at run time.
def f(t: Tuple[int, int, int], i: int) -> int:
    return t[i]

# run: f((1, 2, 3), -1) == 3
# run: f((1, 2, 3), 3) raises "Tuple index out of range"
