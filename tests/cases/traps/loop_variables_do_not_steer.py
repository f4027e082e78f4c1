# test run
# The arguments of a range are read once; assigning to the loop variable has no effect.
def f(n: int) -> List[int]:
    r: List[int] = []
    for i in range(n):
        r.append(i)
        i += 5
        n = 0
    return r

# run: f(3) == [0, 1, 2]
