# test frontend
# What `print` gives can be named and not used.
def f(a: int) -> int:
    x = print(a)
    return a

def g(a: int):
    return print(a)  # error: cannot be used as a value
