# test run
# What a range was made of is read once; assigning to its variable changes nothing.
def f(n: int) -> List[int]:
    r: List[int] = []
    for i in range(n):
        r.append(i)
        i += 5
        n = 0
    return r

# run: f(3) == [0, 1, 2]
