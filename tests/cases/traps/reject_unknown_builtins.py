# test frontend
# The error names unsupported builtins of Python.
def f(a: List[int]) -> int:
    return len(set(a))  # error: set

def g(a: int) -> int:
    return reversed([a])  # error: reversed

def h(a: int) -> int:
    return type(a)  # error: type
