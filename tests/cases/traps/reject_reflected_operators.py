# test frontend
# Methods of the right operand's class are not called.
class Money:
    cents: int
    def __init__(self, cents: int):
        self.cents = cents
    def __radd__(self, other: int) -> int:
        return self.cents + other

def f(n: int) -> int:
    return n + Money(n)  # error: no variant of `aten::add` takes them
