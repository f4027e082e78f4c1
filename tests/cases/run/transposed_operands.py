# test run
# test bytecode
# A product with an operand that is transposed directly before it makes no view, unless the view is used elsewhere. Other ranks, sizes
# and dtypes, errors and recorded calls take the path of two operators.


def product(x: Tensor, w: Tensor):
    return torch.mm(x, w.t())


def products(x: Tensor, w: Tensor):
    return torch.matmul(torch.matmul(x, w.t()), w)


def kept(x: Tensor, w: Tensor):
    view = w.t()
    return torch.mm(x, view), view


def of_itself(x: Tensor):
    return torch.mm(x, x.t())


def of_view(x: Tensor):
    view = x.t()
    return torch.mm(view, view)


def written(x: Tensor, w: Tensor):
    y = torch.mm(x, w.t())
    w.mul_(2.0)
    return y + torch.mm(x, w.t())


def gradient(x: Tensor, w: Tensor):
    w.requires_grad_(True)
    y = torch.mm(x, w.t())
    y.sum().backward()
    return w.grad


# run: product(tensor([[1, 2]], f32), tensor([[3, 4], [5, 6], [7, 8]], f32)) == tensor([[11, 17, 23]], f32)
# run: product(tensor([[1, 2]], f64), tensor([[3, 4], [5, 6], [7, 8]], f64)) == tensor([[11, 17, 23]], f64)
# run: product(tensor([[1, 2]]), tensor([[3, 4], [5, 6], [7, 8]])) == tensor([[11, 17, 23]])
# run: product(tensor([[1, 2]], bf16), tensor([[3, 4], [5, 6], [7, 8]], bf16)) == tensor([[11, 17, 23]], bf16)
# run: product(full([1, 0], 1, f32), full([2, 0], 1, f32)) == tensor([[0, 0]], f32)
# run: product(full([0, 3], 1, f32), full([2, 3], 1, f32)) == full([0, 2], 0, f32)
# run: product(full([40, 50], 1, f32), full([30, 50], 2, f32)) == full([40, 30], 100, f32)
# run: product(full([1, 15], 1, f32), full([41, 15], 2, f32)) == full([1, 41], 30, f32)
# run: product(full([3, 13], 1, f32), full([37, 13], 2, f32)) == full([3, 37], 26, f32)
# run: product(full([1, 2], 1, f32), full([2, 3], 1, f32)) raises "mat1 and mat2 shapes cannot be multiplied (1x2 and 3x2)"
# run: product(full([1, 2], 1, f32), full([2, 2], 1, f64)) raises "expected m1 and m2 to have the same dtype, but got: Float != Double"
# run: product(full([1, 2], 1, f32), full([2], 1, f32)) raises "mat2 must be a matrix"
# run: product(full([2], 1, f32), full([2, 2], 1, f32)) raises "self must be a matrix"
# run: product(full([1, 2], 1, f32), full([2, 2, 2], 1, f32)) raises "t() expects a tensor with <= 2 dimensions, but self is 3D"
# run: products(tensor([[1, 2]], f32), tensor([[3, 4], [5, 6]], f32)) == tensor([[118, 146]], f32)
# run: products(tensor([[[1, 2]]], f32), tensor([[3, 4], [5, 6]], f32)) == tensor([[[118, 146]]], f32)
# run: products(tensor([1, 2], f32), tensor([[3, 4], [5, 6]], f32)) == tensor([118, 146], f32)
# run: kept(tensor([[1, 2]], f32), tensor([[3, 4]], f32)) == (tensor([[11]], f32), tensor([[3], [4]], f32))
# run: of_itself(tensor([[1, 2], [3, 4]], f32)) == tensor([[5, 11], [11, 25]], f32)
# run: of_view(tensor([[1, 2], [3, 4]], f32)) == tensor([[7, 15], [10, 22]], f32)
# run: written(tensor([[1, 2]], f32), tensor([[3, 4]], f32)) == tensor([[33]], f32)
# run: gradient(tensor([[1, 2]], f32), tensor([[3, 4], [5, 6]], f32)) == tensor([[1, 2], [1, 2]], f32)

# == bytecode
# code(v0, v1): 1 words, 2 values
#    0  Transposed v0 = aten::mm(move v0, move v1), else
#    1  v1 = aten::t(move v1)
#    2  v0 = aten::mm(move v0, move v1)
#    3  Ret (move v0)
# code(v0, v1): 1 words, 3 values
#    0  Transposed v0 = aten::matmul(move v0, v1), else
#    1  v2 = aten::t(v1)                             ; v1 counted: used later
#    2  v0 = aten::matmul(move v0, move v2)
#    3  v0 = aten::matmul(move v0, move v1)
#    4  Ret (move v0)
# code(v0, v1): 1 words, 2 values
#    0  View, else
#    1  v1 = aten::t(move v1)
#    2  v0 = aten::mm(move v0, v1)                   ; v1 counted: used later
#    3  v0 = prim::TupleConstruct(move v0, move v1)
#    4  Ret (move v0)
# code(v0): 1 words, 2 values
#    0  Transposed v0 = aten::mm(move v0, v0), else
#    1  v1 = aten::t(v0)                             ; v0 counted: used later
#    2  v0 = aten::mm(move v0, move v1)
#    3  Ret (move v0)
# code(v0): 1 words, 1 values
#    0  View, else
#    1  v0 = aten::t(move v0)
#    2  v0 = aten::mm(v0, move v0)                   ; v0 counted: moved by a later operand
#    3  Ret (move v0)
# code(v0, v1): 3 words, 3 values
#    0  Transposed v2 = aten::mm(v0, v1), else
#    1  v2 = aten::t(v1)                             ; v1 counted: used later
#    2  v2 = aten::mm(v0, move v2)                   ; v0 counted: used later
#    3  _ = aten::mul_.Scalar(v1, 2.)                ; v1 counted: used later
#    4  Transposed v0 = aten::mm(move v0, move v1), else
#    5  v1 = aten::t(move v1)
#    6  v0 = aten::mm(move v0, move v1)
#    7  v2 = aten::add.Tensor(move v2, move v0, 1)
#    8  Ret (move v2)
# code(v0, v1): 2 words, 3 values
#    0  _ = aten::requires_grad_(v1, True)           ; v1 counted: used later
#    1  Transposed v0 = aten::mm(move v0, v1), else
#    2  v2 = aten::t(v1)                             ; v1 counted: used later
#    3  v0 = aten::mm(move v0, move v2)
#    4  v0 = aten::sum(move v0, None)
#    5  aten::backward(move v0, None, None, False)
#    6  v1 = prim::grad(move v1)
#    7  Ret (move v1)
