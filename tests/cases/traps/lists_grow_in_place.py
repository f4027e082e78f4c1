# test run
# `+=` and `*=` on a list change the list for all its aliases.
def f(a: List[int]) -> Tuple[List[int], List[int]]:
    b = a
    b += [3]
    c = a
    c *= 2
    d = a
    d = d + [9]
    return a, d

def itself(a: List[int]) -> List[int]:
    a += a
    return a

# run: itself([1, 2, 3]) == [1, 2, 3, 1, 2, 3]
# run: f([1]) == ([1, 3, 1, 3], [1, 3, 1, 3, 9])
