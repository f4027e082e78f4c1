# test frontend
# A function has a fixed number of parameters.
def f(*args) -> int:  # error: a variable number of parameters
    return 1
