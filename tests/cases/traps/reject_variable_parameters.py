# test frontend
# A function takes a certain number of arguments.
def f(*args) -> int:  # error: a variable number of parameters
    return 1
