# test frontend
# Parameters after `*` in a schema are passed by name only.
def f(x: Tensor) -> Tensor:
    return torch.sum(x, [0], False, torch.float64)  # error: are not valid
