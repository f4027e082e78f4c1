# test frontend
# What may be None is compared with it first.
def f(x: Optional[int]) -> int:
    return x * 2  # error: aten::mul
