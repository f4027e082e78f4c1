# test run
# A class with the methods of an interface, with matching types, implements it; the method is selected at run time.
class Shape(Interface):
    def area(self) -> float:
        pass

class Square:
    side: float
    def __init__(self, side: float):
        self.side = side
    def area(self) -> float:
        return self.side * self.side

class Circle:
    radius: float
    def __init__(self, radius: float):
        self.radius = radius
    def area(self) -> float:
        return self.radius * 3.0

def f(c: bool) -> float:
    shape: Shape = Square(2.0)
    if c:
        shape = Circle(2.0)
    return shape.area()

# run: f(True) == 6.0
# run: f(False) == 4.0
