# test frontend
# A parameter without annotation is a tensor; the error of a call with a number states it.
def g(x):
    return x + 1

def f(n: int):
    return g(n)  # error: Expected a value of type 'Tensor (inferred)' for argument 'x'
