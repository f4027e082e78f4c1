# test frontend
# Builtins take fewer arguments than Python's.
def f(a: List[int]) -> List[int]:
    return sorted(a, key=len)  # error: builtin cannot be used as a value

def g(a: List[int]) -> int:
    return sum(a, 1)  # error: no variant of `aten::sum` takes them

def h(s: str) -> int:
    return int(s, 16)  # error: no variant of `aten::Int` takes them

def i(x: float) -> float:
    return round(x, 2)  # error: no variant of `aten::round` takes them
