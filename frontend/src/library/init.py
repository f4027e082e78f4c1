def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    with torch.no_grad():
        return tensor.fill_(val)

def _no_grad_zero_(tensor: Tensor) -> Tensor:
    with torch.no_grad():
        return tensor.zero_()

def constant_(tensor: Tensor, val: float) -> Tensor:
    return torch.nn.init._no_grad_fill_(tensor, val)

def ones_(tensor: Tensor) -> Tensor:
    return torch.nn.init._no_grad_fill_(tensor, 1.0)

def zeros_(tensor: Tensor) -> Tensor:
    return torch.nn.init._no_grad_zero_(tensor)
