# test frontend
# Methods of Python's value classes are not supported: members of an enum by value, methods of numbers.
class Colour(Enum):
    RED = 1

def f(n: int) -> int:
    return Colour(n).value  # error: cannot call a enum class

def g(x: float) -> bool:
    return x.is_integer()  # error: 'float' object has no attribute or method 'is_integer'

def h(n: int) -> int:
    return n.bit_length()  # error: 'int' object has no attribute or method 'bit_length'
