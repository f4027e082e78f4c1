# test frontend
# Parts of a list are not assigned or deleted.
def f(a: List[int]) -> List[int]:
    del a[0:2]  # error: deletion at a single index
    return a
