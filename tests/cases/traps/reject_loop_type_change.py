# test frontend
# A carried value keeps its type.
def f(n: int) -> str:
    x = 0
    for i in range(n):
        x = "s"  # error: previously had type int
    return "t"
