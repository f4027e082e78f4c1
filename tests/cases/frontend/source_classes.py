# test source
# Objects, enums, named tuples, properties and context managers in printed source.
class Colour(Enum):
    RED = 1
    BLUE = 2

class Pair(NamedTuple):
    left: int
    right: Tensor

class Counter:
    count: int
    def __init__(self, start: int):
        self.count = start
    def add(self, n: int) -> int:
        self.count += n
        return self.count
    @property
    def half(self) -> int:
        return self.count // 2
    @half.setter
    def half(self, value: int):
        self.count = value * 2
    def __enter__(self) -> int:
        return self.count
    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.count = 0

def f(x: Tensor) -> Tensor:
    c = Counter(3)
    c.half = c.half + c.add(4)
    p = Pair(c.count, x)
    with c as n:
        y = p.right * n
    with c:
        pass
    return y + p.left

def name(c: Colour) -> str:
    if c == Colour.RED:
        return c.name
    return "not " + str(c.value)

# run: f(tensor([1.0, 2.0])) == tensor([32.0, 48.0], f32)

# == source
# def f(x: Tensor) -> Tensor:
#   c = __torch__.Counter.__new__(__torch__.Counter)
#   _0 = (c).__init__(3, )
#   _1 = torch.add((c).__half_getter(), (c).add(4, ))
#   _2 = (c).__half_setter(_1, )
#   count = c.count
#   with c as n:
#     y = torch.mul(x, n)
#   with c:
#     pass
#   return torch.add(y, count)
#
# def name(c: __torch__.Colour) -> str:
#   if torch.eq(c, __torch__.Colour.RED):
#     _0 = (c).name
#   else:
#     _0 = torch.add("not ", str((c).value))
#   return _0
