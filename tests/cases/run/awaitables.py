# test run
# An awaitable is computed once, at the first wait, with the contents of its arguments at that time; without a wait, never.
class Pair:
    def __init__(self, left: Tensor, right: int):
        self.left = left
        self.right = right
    def sum(self) -> Tensor:
        return self.left + self.right

def double(x: Tensor, log: List[str]) -> Tensor:
    log.append("double")
    return x * 2

def fail(n: int) -> int:
    raise ValueError("asked for")

def pair(x: Tensor) -> Pair:
    return Pair(x, 3)

def later(x: Tensor):
    log: List[str] = []
    a = torch.jit._awaitable(double, x, log)
    log.append("before")
    x.add_(10)
    first = torch.jit._awaitable_wait(a)
    again = torch.jit._awaitable_wait(a)
    return first, again is first, log

def never(n: int, ask: bool):
    a = torch.jit._awaitable(fail, n)
    if ask:
        return torch.jit._awaitable_wait(a)
    return n

def ready(x: Tensor):
    a = torch.jit._awaitable_nowait(x)
    x.add_(1)
    return torch.jit._awaitable_wait(a)

def members(x: Tensor):
    a = torch.jit._awaitable(pair, x)
    return a.sum(), a.right

def several(n: int):
    waiting = [torch.jit._awaitable(double, torch.tensor(i), [""]) for i in range(n)]
    return [int(torch.jit._awaitable_wait(a)) for a in waiting]

def passed(a: Await[Tensor]) -> Tensor:
    return torch.jit._awaitable_wait(a) + 1

def given(x: Tensor):
    return passed(torch.jit._awaitable(double, x, [""]))

# run: later(tensor([1, 2])) == (tensor([22, 24], i64), True, ["before", "double"])
# run: never(3, False) == 3
# run: never(3, True) raises "asked for"
# run: ready(tensor([1, 2])) == tensor([2, 3], i64)
# run: members(tensor([1, 2])) == (tensor([4, 5], i64), 3)
# run: several(4) == [0, 2, 4, 6]
# run: given(tensor([1, 2])) == tensor([3, 5], i64)
