# test source
# `round` gives a float and rounds half to even; `min` of mixed numbers is a float.
def f(x: float) -> float:
    return round(x)

def g(a: int, b: float) -> float:
    return min(a, b)

# run: f(2.5) == 2.0
# run: f(3.5) == 4.0
# run: g(1, 2.0) == 1.0

# == source
# def f(x: float) -> float:
#   return torch.round(x)
#
# def g(a: int,
#     b: float) -> float:
#   return ops.prim.min(a, b)
