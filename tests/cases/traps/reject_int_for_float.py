# test frontend
# An integer is no float in calls of functions.
def g(x: float) -> float:
    return x

def f(a: int) -> float:
    return g(a)  # error: Expected a value of type 'float'
