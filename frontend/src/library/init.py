def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    with torch.no_grad():
        return tensor.fill_(val)

def _no_grad_zero_(tensor: Tensor) -> Tensor:
    with torch.no_grad():
        return tensor.zero_()

def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Optional[Generator] = None) -> Tensor:
    with torch.no_grad():
        return tensor.uniform_(a, b, generator=generator)

def _no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: Optional[Generator] = None) -> Tensor:
    with torch.no_grad():
        return tensor.normal_(mean, std, generator=generator)

def constant_(tensor: Tensor, val: float) -> Tensor:
    return torch.nn.init._no_grad_fill_(tensor, val)

def ones_(tensor: Tensor) -> Tensor:
    return torch.nn.init._no_grad_fill_(tensor, 1.0)

def zeros_(tensor: Tensor) -> Tensor:
    return torch.nn.init._no_grad_zero_(tensor)
