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

def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Optional[Generator] = None) -> Tensor:
    return torch.nn.init._no_grad_uniform_(tensor, a, b, generator)

def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Optional[Generator] = None) -> Tensor:
    return torch.nn.init._no_grad_normal_(tensor, mean, std, generator)

def _calculate_fan_in_and_fan_out(tensor: Tensor) -> Tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = 1
    for size in tensor.shape[2:]:
        field *= size
    return tensor.size(1) * field, tensor.size(0) * field

def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Optional[Generator] = None) -> Tensor:
    fan_in, fan_out = torch.nn.init._calculate_fan_in_and_fan_out(tensor)
    a = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(fan_in + fan_out)))
    return torch.nn.init._no_grad_uniform_(tensor, -a, a, generator)

def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Optional[Generator] = None) -> Tensor:
    fan_in, fan_out = torch.nn.init._calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return torch.nn.init._no_grad_normal_(tensor, 0.0, std, generator)
