# test frontend
# A variable is annotated once.
def f(c: bool) -> int:
    x = 1
    if c:
        x: int = 2  # error: already defined in an outer block
    return x
