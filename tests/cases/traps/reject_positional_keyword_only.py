# test frontend
# What stands behind `*` in a schema is given by name only.
def f(x: Tensor) -> Tensor:
    return torch.sum(x, [0], False, torch.float64)  # error: are not valid
