# test frontend
# Tuples and strings cannot be changed; a write to a list converted from them would be lost.
def f(t: Tuple[int, int]) -> int:
    t[0] = 1  # error: does not support subscripted assignment
    return t[0]

def g(s: str) -> str:
    s[0] = "a"  # error: does not support subscripted assignment
    return s

def h(t: Tuple[int, str]):
    t[0] += 1  # error: does not support augmented assignment
    return t
