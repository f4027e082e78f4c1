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

def return_then_break(x: int) -> Tuple[int, List[int]]:
    log = Log()
    for i in range(3):
        with log:
            if x == 1:
                return i, log.l
            if x == 2:
                break
    return 5, log.l

def return_then_continue(x: int) -> Tuple[int, int]:
    n = 0
    for i in range(3):
        with Log():
            n += 10
            with Log():
                if x == i:
                    return i, n
                if x > i:
                    n += 1
                    continue
            n += 100
    return 5, n

def break_of_an_inner_loop(x: int) -> int:
    n = 0
    while n < 50:
        with Log():
            for i in range(4):
                with Log() as log:
                    if n == x:
                        return n + len(log.l)
                    n += 1
                    if i == x:
                        break
            if n > 7:
                break
            n += 10
    return -n

def cause():
    raise ValueError("x") from None

# run: last() == [1, 2]
# run: nested() == ([1, 2], [1, 2])
# run: two() == ([1, 2], [1, 2])
# run: maybe(5) == [1, 2]
# run: maybe(1) == [1, 2, 3]
# run: looped() == [1, 2, 1, 2]
# run: return_then_break(1) == (0, [1, 2])
# run: return_then_break(2) == (5, [1, 2])
# run: return_then_break(3) == (5, [1, 2, 1, 2, 1, 2])
# run: return_then_continue(0) == (0, 10)
# run: return_then_continue(2) == (2, 32)
# run: return_then_continue(-1) == (5, 330)
# run: return_then_continue(9) == (5, 33)
# run: break_of_an_inner_loop(0) == 1
# run: break_of_an_inner_loop(1) == 2
# run: break_of_an_inner_loop(12) == -18
# run: break_of_an_inner_loop(16) == 17
# run: cause() raises "x"
