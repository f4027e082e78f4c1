# test frontend
# Similar names are suggested.
def f(length: int) -> int:
    return lenght  # error: undefined value lenght
