# test run
# A `with` runs `__exit__` on every exit from its body, also if the body is the end of the function.
class Log:
    size: Final[int] = 2
    def __init__(self):
        self.l: List[int] = []
    def __enter__(self) -> Log:
        self.l.append(1)
        return self
    def __exit__(self, t: Any, v: Any, tb: Any) -> None:
        self.l.append(self.size)

def last() -> List[int]:
    log = Log()
    with log:
        return log.l

def nested() -> Tuple[List[int], List[int]]:
    log = Log()
    with log:
        with Log() as inner:
            return log.l, inner.l

def two() -> Tuple[List[int], List[int]]:
    log = Log()
    with log, Log() as inner:
        return log.l, inner.l

def maybe(a: int) -> List[int]:
    log = Log()
    with log:
        if a > 3:
            return log.l
    log.l.append(3)
    return log.l

def looped() -> List[int]:
    log = Log()
    for i in range(3):
        with log:
            if i == 1:
                break
    return log.l

def cause():
    raise ValueError("x") from None

# run: last() == [1, 2]
# run: nested() == ([1, 2], [1, 2])
# run: two() == ([1, 2], [1, 2])
# run: maybe(5) == [1, 2]
# run: maybe(1) == [1, 2, 3]
# run: looped() == [1, 2, 1, 2]
# run: cause() raises "x"
