# test frontend
# An operator that does not exist.
def f(x: Tensor) -> Tensor:
    return torch.sigmiod(x)  # error: Unknown builtin op
