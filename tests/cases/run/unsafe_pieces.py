# test run
# Pieces of `unsafe_chunk` may be written without an effect on what formulas saved of the others, as cells of recurrent networks do.
def cell(x: Tensor, w: Tensor, v: Tensor):
    w, v = w.clone().requires_grad_(True), v.clone().requires_grad_(True)
    i = torch.unsafe_chunk(x @ w, 3, 1)
    h = torch.unsafe_split(x @ v, 2, 1)
    reset = h[0].add_(i[0]).sigmoid_()
    update = h[1].add_(i[1]).sigmoid_()
    new = torch.add(i[2], h[2].mul_(reset)).tanh_()
    out = torch.sub(x, new).mul_(update).add_(new)
    out.sum().backward()
    return out.detach(), w.grad, v.grad

def separate(x: Tensor, w: Tensor, v: Tensor):
    w, v = w.clone().requires_grad_(True), v.clone().requires_grad_(True)
    i, h = (x @ w).chunk(3, 1), (x @ v).chunk(3, 1)
    reset, update = (h[0] + i[0]).sigmoid(), (h[1] + i[1]).sigmoid()
    new = torch.tanh(i[2] + h[2] * reset)
    out = (x - new) * update + new
    out.sum().backward()
    return out.detach(), w.grad, v.grad

def close(x: Tensor, w: Tensor, v: Tensor):
    same = True
    for a, b in zip(cell(x, w, v), separate(x, w, v)):
        same = same and a is not None and b is not None and torch.allclose(a, b)
    return same

def shared(x: Tensor):
    x.unsafe_chunk(2, 0)[1].add_(1)
    return x

# run: close(rand([2, 2], f64, 1), rand([2, 6], f64, 2), rand([2, 6], f64, 3)) == True
# run: shared(tensor([1.0, 2.0], f32)) == tensor([1.0, 3.0], f32)
