# test frontend
# An empty list without a type is one of tensors.
def f() -> List[Tensor]:
    a = []
    a.append(1)  # error: Could not match type int
    return a
