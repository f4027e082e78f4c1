# Functions for the formulas of `views.grads`.

def permuted_back(grad: Tensor, dims: List[int]) -> Tensor:
    back = [0] * len(dims)
    for i in range(len(dims)):
        d = dims[i]
        back[d if d >= 0 else d + len(dims)] = i
    return grad.permute(back)

def reversed_dims(rank: int) -> List[int]:
    return [rank - 1 - i for i in range(rank)]

def common_size(tensors: List[Tensor]) -> List[int]:
    return torch.broadcast_tensors([t.detach() for t in tensors])[0].size()

def storage_extent(size: List[int], stride: List[int], offset: int) -> int:
    end = offset + 1
    for i in range(len(size)):
        if size[i] == 0:
            return 0
        end += (size[i] - 1) * stride[i]
    return end

def as_strided_back(grad: Tensor, like: Tensor, size: List[int], stride: List[int], offset: Optional[int]) -> Tensor:
    own = like.storage_offset()
    at = own if offset is None else offset
    end = max(storage_extent(like.size(), like.stride(), own), storage_extent(size, stride, at))
    cells = torch.arange(end)
    read = cells.as_strided(size, stride, at).reshape([-1])
    owned = cells.as_strided(like.size(), like.stride(), own).reshape([-1])
    memory = torch.zeros([end], dtype=grad.dtype)
    shares = memory.index_add(0, owned, torch.ones([owned.numel()], dtype=grad.dtype))
    memory = memory.index_add(0, read, grad.reshape([-1]))
    found = memory.index_select(0, owned) / shares.index_select(0, owned)
    return found.reshape(like.size())

def split_gradient(grads: List[Tensor], self: Tensor, indices: List[int], dim: int) -> Tensor:
    count = 0
    for grad in grads:
        count = count + grad.size(dim)
    if count == self.size(dim):
        return torch.cat(grads, dim)
    # Parts at decreasing indices overlap.
    sum = torch.zeros_like(self)
    for i in range(len(grads)):
        start = 0 if i == 0 else indices[i - 1]
        end = self.size(dim) if i == len(indices) else indices[i]
        sum = sum + torch.slice_scatter(torch.zeros_like(self), grads[i], dim, start, end)
    return sum
