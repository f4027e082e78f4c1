# test frontend
# A nested function can only be forked.
def f(x: int) -> int:
    def g(y: int) -> int:
        return y
    return g(x)  # error: calling a function inside of a function
