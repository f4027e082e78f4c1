# test frontend
# An optional must be compared with None before its use.
def f(x: Optional[int]) -> int:
    return x * 2  # error: aten::mul
