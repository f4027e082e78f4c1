# test frontend
# Classes have no base.
class Base:
    x: int
    def __init__(self, x: int):
        self.x = x

class Derived(Base):  # error: a class that derives from `Base`
    def twice(self) -> int:
        return self.x * 2
