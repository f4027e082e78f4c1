# test frontend
# All functions of a file are compiled, whatever is wrong with one.
def f(x: int) -> int:
    return y  # error: undefined value y

def g(x: int) -> int:
    return x

def h(x: int) -> str:
    return x  # error: annotated as having type str
