# test frontend
# Powers and quotients of a complex number and an integer have no kernel.
def f(z: complex, n: int):
    return z ** n

def g(n: int, z: complex):
    return n / z

def h(a: complex, b: complex):
    return a ** b

# run: f(complex(0.0, 1.0), 2) raises "a power of a complex and another number is not defined"
# run: g(2, complex(0.0, 1.0)) raises "division of a complex and another number is not defined"
# run: h(complex(0.0, 1.0), complex(2.0, 0.0)) ~= complex(-1.0, 0.0)

# == frontend
# def f
# graph(%z.1 : complex,
#       %n.1 : int):
#   %4 : float = aten::pow(%z.1, %n.1)
#   return (%4)
#
# def g
# graph(%n.1 : int,
#       %z.1 : complex):
#   %4 : float = aten::div(%n.1, %z.1)
#   return (%4)
#
# def h
# graph(%a.1 : complex,
#       %b.1 : complex):
#   %4 : complex = aten::pow(%a.1, %b.1)
#   return (%4)
