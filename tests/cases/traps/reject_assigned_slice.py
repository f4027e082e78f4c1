# test frontend
# Parts of a list are not assigned or deleted.
def f(a: List[int]) -> List[int]:
    a[0:2] = [1]  # error: assignment to a slice
    return a
