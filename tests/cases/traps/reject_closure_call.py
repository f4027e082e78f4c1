# test frontend
# A function inside of another can be forked and nothing else.
def f(x: int) -> int:
    def g(y: int) -> int:
        return y
    return g(x)  # error: calling a function inside of a function
