# test frontend
# The result of `print` can be assigned but not used.
def f(a: int) -> int:
    x = print(a)
    return a

def g(a: int):
    return print(a)  # error: cannot be used as a value
