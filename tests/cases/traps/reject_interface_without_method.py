# test frontend
# A class without the methods of an interface does not implement it.
class Shape(Interface):
    def area(self) -> float:
        pass

class Line:
    n: int
    def __init__(self, n: int):
        self.n = n
    def area(self) -> int:
        return self.n

def f(n: int) -> float:
    shape: Shape = Line(n)  # error: is annotated with type __torch__.Shape
    return shape.area()
