# test frontend
# Python that TorchScript does not have.
def f(x: int) -> int:
    global y  # error: `global`
    return x

def g(x: int) -> int:
    import math  # error: import statements
    return x

def h(x: int) -> int:
    del x.y  # error: deletion
    return x
