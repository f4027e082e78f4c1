def ndim(a: Tensor) -> int:
    return a.dim()

def T(a: Tensor) -> Tensor:
    return a.numpy_T()

def H(a: Tensor) -> Tensor:
    return a.matrix_H()

def shape(a: Tensor) -> List[int]:
    return a.size()
