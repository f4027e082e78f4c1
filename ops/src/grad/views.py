# Functions for the formulas of `views.grads`.

def permuted_back(grad: Tensor, dims: List[int]) -> Tensor:
    back = [0] * len(dims)
    for i in range(len(dims)):
        d = dims[i]
        back[d if d >= 0 else d + len(dims)] = i
    return grad.permute(back)
