# test source
# Interfaces in printed source: a class with the methods is accepted in attributes, lists and calls.
class Shape(Interface):
    def area(self, scale: float) -> float:
        pass

@torch.jit.interface
class Named:
    def name(self) -> str:
        pass

class Square:
    side: float
    def __init__(self, side: float):
        self.side = side
    def area(self, scale: float) -> float:
        return self.side * self.side * scale
    def name(self) -> str:
        return "square"

class Disc:
    radius: float
    def __init__(self, radius: float):
        self.radius = radius
    def area(self, scale: float) -> float:
        return self.radius * self.radius * 3.0 * scale

class Holder:
    shape: Shape
    def __init__(self, shape: Shape):
        self.shape = shape

def total(shapes: List[Shape]) -> float:
    sum = 0.0
    for shape in shapes:
        sum += shape.area(1.0)
    return sum

def named(x: Named) -> str:
    return x.name()

def f(n: int) -> Tuple[float, float, str]:
    holder = Holder(Square(2.0))
    before = holder.shape.area(0.5)
    holder.shape = Disc(1.0)
    shapes: List[Shape] = [Square(float(n)), Disc(1.0), holder.shape]
    return before, total(shapes), named(Square(1.0))

# run: f(3) == (2.0, 15.0, "square")

# == source
# def total(shapes: List[__torch__.Shape]) -> float:
#   sum = 0.
#   for _0 in range(torch.len(shapes)):
#     shape = shapes[_0]
#     sum = torch.add(sum, (shape).area(1., ))
#   return sum
#
# def named(x: __torch__.Named) -> str:
#   return (x).name()
#
# def f(n: int) -> Tuple[float, float, str]:
#   _0 = __torch__.Square.__new__(__torch__.Square)
#   _1 = (_0).__init__(2., )
#   holder = __torch__.Holder.__new__(__torch__.Holder)
#   _2 = (holder).__init__(_0, )
#   shape = holder.shape
#   before = (shape).area(0.5, )
#   _3 = __torch__.Disc.__new__(__torch__.Disc)
#   _4 = (_3).__init__(1., )
#   holder.shape = _3
#   _5 = float(n)
#   _6 = __torch__.Square.__new__(__torch__.Square)
#   _7 = (_6).__init__(_5, )
#   _8 = __torch__.Disc.__new__(__torch__.Disc)
#   _9 = (_8).__init__(1., )
#   shape0 = holder.shape
#   shapes = annotate(List[__torch__.Shape], [_6, _8, shape0])
#   _10 = total(shapes, )
#   _11 = __torch__.Square.__new__(__torch__.Square)
#   _12 = (_11).__init__(1., )
#   return (before, _10, named(_11, ))
