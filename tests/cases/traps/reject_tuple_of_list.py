# test frontend
# The length of a tuple is known at compile time; that of a list is not.
def f(a: List[int]) -> int:
    b = tuple(a)  # error: cannot statically infer the expected size
    return b[0]
