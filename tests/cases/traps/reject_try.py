# test frontend
# Errors end the program: nothing catches them.
def f(x: int) -> int:
    try:  # error: `try`
        return x
    except RuntimeError:  # error: `except`
        return 0
