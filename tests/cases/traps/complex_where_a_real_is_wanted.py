# test frontend
# A number of unknown kind may be complex; an operation without meaning for it is an error and never uses the real part.
def f(a: complex, b: float):
    a %= b
    return a

def g(a: complex):
    return math.ceil(a)

def h(a: complex, b: complex):
    return math.copysign(a, b)

def log(a: complex, b: float):
    return math.log(a, b)

# run: f(complex(1.0, 2.0), 2.0) raises "aten::fmod is not defined for complex numbers"
# run: g(complex(1.0, 2.0)) raises "aten::ceil is not defined for complex numbers"
# run: h(complex(1.0, 2.0), complex(1.0, 0.0)) raises "aten::copysign is not defined for complex numbers"
# run: log(complex(1.0, 2.0), 2.0) ~= complex(1.1609640474436813, 1.5972779646881088)

# == frontend
# def f
# graph(%a.1 : complex,
#       %b.1 : float):
#   %a.5 : float = aten::fmod(%a.1, %b.1)
#   return (%a.5)
#
# def g
# graph(%a.1 : complex):
#   %2 : Scalar = aten::ceil(%a.1)
#   return (%2)
#
# def h
# graph(%a.1 : complex,
#       %b.1 : complex):
#   %4 : float = aten::copysign(%a.1, %b.1)
#   return (%4)
#
# def log
# graph(%a.1 : complex,
#       %b.1 : float):
#   %4 : complex = aten::log(%a.1, %b.1)
#   return (%4)
