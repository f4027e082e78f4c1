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

def _single(x: BroadcastingList1[float]) -> List[float]:
    return x

def _pair(x: BroadcastingList2[float]) -> List[float]:
    return x

def _triple(x: BroadcastingList3[float]) -> List[float]:
    return x

def _single(x: BroadcastingList1[int]) -> List[int]:
    return x

def _pair(x: BroadcastingList2[int]) -> List[int]:
    return x

def _triple(x: BroadcastingList3[int]) -> List[int]:
    return x
