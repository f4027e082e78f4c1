# test frontend
# A parameter without a type is a tensor, and a call with a number says so.
def g(x):
    return x + 1

def f(n: int):
    return g(n)  # error: Expected a value of type 'Tensor' for argument 'x'
