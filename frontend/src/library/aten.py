def mul(a: Scalar, b: Tensor) -> Tensor:
    return b * a

def add(a: Scalar, b: Tensor) -> Tensor:
    return b + a

def ne(a: Scalar, b: Tensor) -> Tensor:
    return b != a

def eq(a: Scalar, b: Tensor) -> Tensor:
    return b == a

def sub(a: Scalar, b: Tensor) -> Tensor:
    return torch.neg(b) + a

def div(a: Scalar, b: Tensor) -> Tensor:
    return torch.reciprocal(b) * a

def lt(a: float, b: Tensor) -> Tensor:
    return b > a

def lt(a: int, b: Tensor) -> Tensor:
    return b > a

def le(a: float, b: Tensor) -> Tensor:
    return b >= a

def le(a: int, b: Tensor) -> Tensor:
    return b >= a

def gt(a: float, b: Tensor) -> Tensor:
    return b < a

def gt(a: int, b: Tensor) -> Tensor:
    return b < a

def ge(a: float, b: Tensor) -> Tensor:
    return b <= a

def ge(a: int, b: Tensor) -> Tensor:
    return b <= a

def floordiv(self: Tensor, other: Tensor) -> Tensor:
    return torch.floor_divide(self, other)

def floordiv(self: Tensor, other: int) -> Tensor:
    return torch.floor_divide(self, other)

def floordiv(self: Tensor, other: float) -> Tensor:
    return torch.floor_divide(self, other)

def __contains__(self: str, key: str) -> bool:
    return self.find(key, 0, len(self)) != -1

def device(type: str) -> Device:
    return torch.device(type)

def _single(x: BroadcastingList1[float]) -> List[float]:
    return x

def _pair(x: BroadcastingList2[float]) -> List[float]:
    return x

def _triple(x: BroadcastingList3[float]) -> List[float]:
    return x

def _quadruple(x: BroadcastingList4[float]) -> List[float]:
    return x

def _single(x: BroadcastingList1[int]) -> List[int]:
    return x

def _pair(x: BroadcastingList2[int]) -> List[int]:
    return x

def _triple(x: BroadcastingList3[int]) -> List[int]:
    return x

def _quadruple(x: BroadcastingList4[int]) -> List[int]:
    return x

def tensordot(a: Tensor, b: Tensor, dims: int = 2, out: Optional[Tensor] = None) -> Tensor:
    if dims < 0:
        raise RuntimeError("tensordot expects dims >= 0, but got dims=" + str(dims))
    if dims > min(a.dim(), b.dim()):
        raise RuntimeError("tensordot expects dims < ndim_a or ndim_b, but got dims=" + str(dims))
    last = [i for i in range(-dims, 0)]
    first = [i for i in range(dims)]
    if out is None:
        return torch.tensordot(a, b, last, first)
    return torch.tensordot(a, b, last, first, out=out)

def tensordot(a: Tensor, b: Tensor, dims: List[List[int]], out: Optional[Tensor] = None) -> Tensor:
    if out is None:
        return torch.tensordot(a, b, dims[0], dims[1])
    return torch.tensordot(a, b, dims[0], dims[1], out=out)

def tensordot(a: Tensor, b: Tensor, dims: Tuple[List[int], List[int]], out: Optional[Tensor] = None) -> Tensor:
    if out is None:
        return torch.tensordot(a, b, dims[0], dims[1])
    return torch.tensordot(a, b, dims[0], dims[1], out=out)

def tensordot(a: Tensor, b: Tensor, dims: Tensor, out: Optional[Tensor] = None) -> Tensor:
    if dims.numel() > 1:
        assert dims.size(0) == 2
        first = torch.jit.annotate(List[int], dims[0].tolist())
        second = torch.jit.annotate(List[int], dims[1].tolist())
    else:
        n = int(dims.item())
        if n < 0:
            raise RuntimeError("tensordot expects dims >= 0, but got dims=" + str(n))
        if n > min(a.dim(), b.dim()):
            raise RuntimeError("tensordot expects dims < ndim_a or ndim_b, but got dims=" + str(n))
        first = [i for i in range(-n, 0)]
        second = [i for i in range(n)]
    if out is None:
        return torch.tensordot(a, b, first, second)
    return torch.tensordot(a, b, first, second, out=out)

def norm(input: Tensor, p: Optional[number] = None, dim: Optional[BroadcastingList1[int]] = None, keepdim: bool = False, out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor:
    order = 2.0 if p is None else p
    if out is None:
        return torch.linalg.vector_norm(input, order, dim, keepdim, dtype=dtype)
    return torch.linalg.vector_norm(input, order, dim, keepdim, dtype=dtype, out=out)

def norm(input: Tensor, p: str, dim: Optional[List[int]] = None, keepdim: bool = False, out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor:
    if p == "nuc":
        dims = list(range(input.dim())) if dim is None else dim
        return torch.nuclear_norm(input, dims, keepdim) if out is None else torch.nuclear_norm(input, dims, keepdim, out=out)
    if p != "fro":
        raise RuntimeError("only valid string values are 'fro' and 'nuc', found " + p)
    if out is None:
        return torch.linalg.vector_norm(input, 2, dim, keepdim, dtype=dtype)
    return torch.linalg.vector_norm(input, 2, dim, keepdim, dtype=dtype, out=out)

def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    return torch.cdist(x1, x2, p, None)
