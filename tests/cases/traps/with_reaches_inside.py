# test run
# Several contexts are entered in order and left in reverse.
class Trace:
    log: List[str]
    name: str
    def __init__(self, log: List[str], name: str):
        self.log = log
        self.name = name
    def __enter__(self) -> str:
        self.log.append("enter " + self.name)
        return self.name
    def __exit__(self, a: Any, b: Any, c: Any) -> None:
        self.log.append("exit " + self.name)

def f(n: int) -> List[str]:
    log: List[str] = []
    with Trace(log, "a") as a, Trace(log, "b") as b:
        log.append(a + b)
        if n > 0:
            return log
    log.append("end")
    return log

# run: f(0) == ["enter a", "enter b", "ab", "exit b", "exit a", "end"]
# run: f(1) == ["enter a", "enter b", "ab", "exit b", "exit a"]
