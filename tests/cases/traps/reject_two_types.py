# test frontend
# A variable keeps its type in inner blocks.
def f(c: bool) -> int:
    x = 1
    if c:
        x = "a"  # error: previously had type int
    return x
