# test source
# Control flow as source: what is carried around loops keeps one name, conditions are variables of their own.
def fibonacci(n: int) -> int:
    a, b = 0, 1
    while b < n:
        a, b = b, a + b
    return a

def early(x: Optional[int], n: int) -> int:
    if x is None:
        return n
    for i in range(n):
        if i == x:
            continue
        if i * x > 20:
            return i
    return -1

def empty(x: int) -> int:
    if x > 3:
        pass
    else:
        assert x < 2, "too small a number, or too large a one"
    return x

def alternatives(c: bool, x: Tensor) -> Tensor:
    y = x + 1 if c else x * 2
    z, w = y, x
    if c:
        z, w = w, z
    return z - w
