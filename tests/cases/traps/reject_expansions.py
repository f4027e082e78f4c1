# test frontend
# Arguments are counted when a call is compiled: no dictionary of them, no variable number.
def g(x: int) -> int:
    return x

def f(a: Dict[str, int]) -> int:
    return g(**a)  # error: keyword-arg expansion
