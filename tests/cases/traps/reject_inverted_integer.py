# test frontend
# `~` is for tensors.
def f(x: int) -> int:
    return ~x  # error: no variant of `aten::bitwise_not` takes them

def g(x: bool) -> bool:
    return ~x  # error: no variant of `aten::bitwise_not` takes them
