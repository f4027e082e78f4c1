# test frontend
# An empty list without an annotation is a list of tensors.
def f() -> List[Tensor]:
    a = []
    a.append(1)  # error: Could not match type int
    return a
