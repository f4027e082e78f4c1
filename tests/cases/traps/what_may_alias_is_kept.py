# test run
# Writes are visible through every alias: in tuples, lists, dictionaries, objects and around loops.
class Pair(NamedTuple):
    left: Tensor
    right: Tensor

class Holder:
    x: Tensor
    y: Tensor
    def __init__(self, x: Tensor):
        self.x = x
        self.y = x

def named(x: Tensor) -> Tensor:
    p = Pair(x, x + 1)
    p.left.add_(10)
    return x

def returned(x: Tensor) -> Dict[str, Tensor]:
    d = {"a": x}
    x += 1
    return d

def object(x: Tensor) -> Tensor:
    h = Holder(x)
    h.x += 5
    return h.y

def rotated(x: Tensor) -> Tensor:
    a = x + 0
    b = x + 0
    for i in range(3):
        c = a
        a = b
        b = c
        a += 1
    return a * 10 + b

def constants(n: int) -> List[int]:
    r: List[int] = []
    for i in range(n):
        a = [1, 2]
        a.append(i)
        r.append(len(a))
    return r

# run: named(tensor([1, 2])) == tensor([11, 12], i64)
# run: returned(tensor([1, 2])) == {"a": tensor([2, 3], i64)}
# run: object(tensor([1, 2])) == tensor([6, 7], i64)
# run: rotated(tensor([1, 2])) == tensor([32, 43], i64)
# run: constants(2) == [3, 3]
