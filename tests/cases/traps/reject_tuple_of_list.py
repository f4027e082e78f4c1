# test frontend
# A tuple has a length when it is compiled; a list has none.
def f(a: List[int]) -> int:
    b = tuple(a)  # error: cannot statically infer the expected size
    return b[0]
