# test frontend
# Arguments by name come last.
def g(a: int, b: int) -> int:
    return a - b

def f(x: int) -> int:
    return g(a=x, 2)  # error: cannot follow a keyword argument
