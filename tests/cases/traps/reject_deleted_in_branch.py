# test frontend
# What one branch deletes is gone behind both.
def f(a: int, b: bool) -> int:
    x = a
    if b:
        del x
    return x  # error: x
