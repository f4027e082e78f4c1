# test frontend
# A list or tuple without element types is passed on, but has no length.
def f(x: list) -> int:
    return len(x)  # error: a value of type 'list' has no length in a program

def g(x: tuple) -> int:
    return len(x)  # error: a value of type 'tuple' has no length in a program

def h(x: List[int]) -> list:
    return x
