# test frontend
# Containers without comparison: mixed tuples, lists of lists, dictionaries, order of tuples.
def f() -> bool:
    return (1, "a") == (1, "a")  # error: no variant of `aten::eq` takes them

def g() -> bool:
    return [[1]] == [[1]]  # error: no variant of `aten::eq` takes them

def h(a: Dict[str, int]) -> bool:
    return a == a  # error: no variant of `aten::eq` takes them

def i(a: Tuple[int, int]) -> bool:
    return a < a  # error: no variant of `aten::lt` takes them
