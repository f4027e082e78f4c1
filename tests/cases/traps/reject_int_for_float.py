# test frontend
# An integer is not converted to float in calls of functions.
def g(x: float) -> float:
    return x

def f(a: int) -> float:
    return g(a)  # error: Expected a value of type 'float'
