# test frontend
# Names that are nearly right are suggested.
def f(length: int) -> int:
    return lenght  # error: undefined value lenght
