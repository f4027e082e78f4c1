# test frontend
# All functions of a file are compiled, even if one has errors.
def f(x: int) -> int:
    return y  # error: undefined value y

def g(x: int) -> int:
    return x

def h(x: int) -> str:
    return x  # error: annotated as having type str

# So are all statements of a function, except errors that only follow from earlier ones.
def several(a: int, b: Optional[int]) -> int:
    c = a + "s"  # error: are not valid
    d = c.upper() + c[0]
    if a > 0:
        e = undefined(a)  # error: undefined value undefined
    else:
        e = 1
    for i in range(a):
        f = i.nothing  # error: nothing
        break
    while missing > 0:  # error: undefined value missing
        a += 1
    [a, b] = d
    return a + e + b

def nested(a: int) -> int:
    if a > 0:
        return undefined  # error: undefined value undefined
    b: str = a  # error: is annotated with type str
    return several(a, None)

def bodies(a: int, x: Optional[int]) -> int:
    if a > "s":  # error: are not valid
        return undefined  # error: undefined value undefined
    else:
        d = "t"
    for i in a:  # error: iter
        j: int = "u"  # error: is annotated with type int
    while x is not None and wrong:  # error: undefined value wrong
        b: int = x
        c: str = 3  # error: is annotated with type str
    return a
