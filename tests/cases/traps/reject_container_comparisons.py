# test frontend
# Containers without comparison: mixed tuples, lists of lists, dictionaries, order of tuples.
def f() -> bool:
    return (1, "a") == (1, "a")  # error: call of `aten::eq` are not valid

def g() -> bool:
    return [[1]] == [[1]]  # error: call of `aten::eq` are not valid

def h(a: Dict[str, int]) -> bool:
    return a == a  # error: call of `aten::eq` are not valid

def i(a: Tuple[int, int]) -> bool:
    return a < a  # error: call of `aten::lt` are not valid
