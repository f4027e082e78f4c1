# test frontend
# `~` is for tensors.
def f(x: int) -> int:
    return ~x  # error: call of `aten::bitwise_not` are not valid

def g(x: bool) -> bool:
    return ~x  # error: call of `aten::bitwise_not` are not valid
