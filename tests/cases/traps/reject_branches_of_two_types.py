# test frontend
# A variable with different types in two branches is unusable after them.
def f(c: bool):
    if c:
        x = 1
    else:
        x = "a"
    return x  # error: Type mismatch: x is set to type int in the true branch and type str
