# test frontend
# An optional is compared with None by `is`.
def f(x: Optional[int]) -> bool:
    return x == None  # error: are not valid
