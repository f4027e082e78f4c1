# test frontend
# A variable that one branch deletes is undefined after both.
def f(a: int, b: bool) -> int:
    x = a
    if b:
        del x
    return x  # error: x
