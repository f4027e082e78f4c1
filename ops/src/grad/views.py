# Functions for the formulas of `views.grads`.

def permuted_back(grad: Tensor, dims: List[int]) -> Tensor:
    back = [0] * len(dims)
    for i in range(len(dims)):
        d = dims[i]
        back[d if d >= 0 else d + len(dims)] = i
    return grad.permute(back)

def reversed_dims(rank: int) -> List[int]:
    return [rank - 1 - i for i in range(rank)]

def unbroadcast(grads: List[Tensor], tensors: List[Tensor]) -> List[Tensor]:
    return [grads[i].sum_to_size(tensors[i].size()) for i in range(len(grads))]
