# test frontend
# Special forms accept only their documented arguments. PyTorch 2.6 refuses most of these calls; it ignores the
# second dictionary of `dict`, and the keywords of `list`, `range` and `zip`.
def tuples(a: Tuple[int, int], b: Tuple[int, int]) -> Tuple[int, int]:
    return tuple(a, b)  # error: tuple expected at most 1 arguments, got 2

def lists(a: List[int], b: List[int]) -> List[int]:
    return list(a, b)  # error: list expected at most 1 arguments, got 2

def named_list(a: List[int]) -> List[int]:
    return list(x=a)  # error: list does not accept any keyword arguments

def dicts(a: Dict[str, int], b: Dict[str, int]) -> Dict[str, int]:
    return dict(a, b)  # error: dict expected at most 1 arguments, got 2

def counted(a: List[int]) -> int:
    n = 0
    for i, x in enumerate(a, 0, 1):  # error: enumerate expected at most 2 arguments, got 3
        n += i
    return n

def counted_twice(a: List[int]) -> int:
    n = 0
    for i, x in enumerate(a, 1, start=1):  # error: enumerate expected at most 2 arguments, but found 3
        n += i
    return n

def counted_from(a: List[int]) -> int:
    n = 0
    for i, x in enumerate(a, begin=1):  # error: enumerate expected keyword `start`, but found `begin`
        n += i
    return n

def counted_nothing() -> int:
    n = 0
    for i in enumerate():  # error: enumerate expected at least 1 arguments, got 0
        n += 1
    return n

def strict(a: List[int]) -> int:
    n = 0
    for x, y in zip(a, a, strict=True):  # error: zip does not accept any keyword arguments
        n += x
    return n

def stepped(n: int) -> int:
    for i in range(n, step=2):  # error: range does not accept any keyword arguments
        n += i
    return n

def sliced(a: List[int]) -> List[int]:
    return a[slice(1, step=2)]  # error: Slice does not accept any keyword arguments

def tested(a: Any) -> bool:
    return isinstance(a, int, strict=True)  # error: isinstance does not accept any keyword arguments

def tested_in_condition(a: Any) -> int:
    if isinstance(a, int, str):  # error: isinstance expected exactly 2 arguments, got 3
        return 1
    return 2

def named(a: int) -> int:
    return annotate(int, a, 3)  # error: annotate expected exactly 2 arguments, got 3

def raised(a: int) -> int:
    if a > 0:
        raise ValueError("a", b=1)  # error: ValueError takes no keyword arguments
    return a

def fields(a: List[int]) -> int:
    return hasattr(a, "x", y=1)  # error: hasattr does not accept any keyword arguments
