# test frontend
# Errors end the program and cannot be caught.
def f(x: int) -> int:
    try:  # error: `try`
        return x
    except RuntimeError:  # error: `except`
        return 0
