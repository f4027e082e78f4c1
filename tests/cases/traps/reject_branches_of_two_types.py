# test frontend
# A variable that two branches give different types is unusable behind them.
def f(c: bool):
    if c:
        x = 1
    else:
        x = "a"
    return x  # error: Type mismatch: x is set to type int in the true branch and type str
