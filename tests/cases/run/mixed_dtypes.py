# test run
# Operands of different dtypes: products require one dtype, empty products have that of the right operand, and losses are
# computed in the dtype and memory format of certain operands.


def product(a: Tensor, b: Tensor):
    return a @ b


def products(a: Tensor, b: Tensor):
    return torch.bmm(a, b)


def layer(x: Tensor, weight: Tensor, bias: Tensor):
    return torch.nn.functional.linear(x, weight, bias)


def added_outer(x: Tensor, a: Tensor, b: Tensor):
    return torch.addr(x, a, b, beta=3, alpha=2)


def distances(a: Tensor, b: Tensor):
    return torch.cdist(a, b, 1.0)


def unpacked(x: Tensor, pivots: Tensor):
    return torch.lu_unpack(x, pivots)


def classes(x: Tensor, target: Tensor, weight: Tensor):
    return torch.nn.functional.nll_loss(x, target, weight)


def ranking(a: Tensor, b: Tensor, target: Tensor):
    return torch.nn.functional.margin_ranking_loss(a, b, target, 0.5, reduction="none")


def hinge(x: Tensor, target: Tensor):
    return torch.nn.functional.hinge_embedding_loss(x, target, 1.5, reduction="none")


def soft(x: Tensor, target: Tensor):
    return torch.nn.functional.soft_margin_loss(x, target, reduction="none")


def poisson(x: Tensor, target: Tensor):
    return torch.nn.functional.poisson_nll_loss(x, target, log_input=False, reduction="none")


def between(a: Tensor, b: Tensor, weight: Tensor):
    return torch.lerp(a, b, weight)


def windows(x: Tensor, weight: Tensor, bias: Tensor):
    return torch.conv1d(x, weight, bias)


def windows_same(x: Tensor, weight: Tensor, bias: Tensor):
    return torch.conv1d(x, weight, bias, padding="same")


def spread(x: Tensor, weight: Tensor, bias: Tensor):
    return torch.conv_transpose1d(x, weight, bias)


def norm_in_singles(x: Tensor):
    return torch.linalg.vector_norm(x, 2, dtype=torch.float32)


def summed(equation: str, x: Tensor):
    return torch.einsum(equation, [x])


def summed_first(a: Tensor, b: Tensor):
    return torch.tensordot(a, b, [[0], [1]])


# run: product(full([2, 2, 0], 1.0, f32), full([0], 1.0, f64)) ~= tensor([[0.0, 0.0], [0.0, 0.0]], f64)
# run: product(full([0], 1.0, f32), full([3, 0, 2], 1.0, f64)) ~= tensor([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], f32)
# run: product(full([2, 0], 1.0, f32), full([0, 2], 1.0, f64)) raises "expected m1 and m2 to have the same dtype, but got: Float != Double"
# run: product(full([2, 1], 1.0, f32), full([1], 1.0, f64)) raises "expected m1 and m2 to have the same dtype, but got: Float != Double"
# run: products(full([2, 2, 0], 1.0, f32), full([2, 0, 1], 1, i64)) == tensor([[[0], [0]], [[0], [0]]], i64)
# run: products(full([2, 2, 1], 1.0, f32), full([2, 1, 1], 1, i64)) raises "expected m1 and m2 to have the same dtype, but got: Float != Long"
# run: layer(full([2, 2, 3], 1.0, f32), full([2, 3], 1.0, f32), full([2], 1.0, f64)) raises "self and mat2 must have the same dtype, but got Double and Float"
# run: layer(full([1, 2, 2, 3], 1.0, f32), full([2, 3], 1.0, f32), full([1, 2], 1.0, f64)) ~= tensor([[[[4.0, 4.0], [4.0, 4.0]], [[4.0, 4.0], [4.0, 4.0]]]], f32)
# run: layer(full([3], 1.0, f32), full([2, 3], 1.0, f32), full([2], 1.0, f64)) raises "self and mat2 must have the same dtype, but got Double and Float"
# run: layer(full([3], 1.0, f32), full([2, 3], 1.0, f32), full([2, 2], 1.0, f32)) raises "expand(torch.FloatTensor{[2, 2]}, size=[2]): the number of sizes provided (1) must be greater or equal to the number of dimensions in the tensor (2)"
# run: added_outer(full([2, 2], 1, i64), tensor([200, 3], u8), tensor([-2, 5], i64)) == tensor([[-797, 2003], [-9, 33]], i64)
# run: distances(full([0, 2, 3], 1.0, f64), full([4, 3], 1.0, f32)) ~= full([0, 2, 4], 0, f64)
# run: distances(full([2, 3], 1.0, f64), full([4, 3], 1.0, f32)) raises "expected scalar type Double but found Float"
# run: unpacked(tensor([[4, 6], [1, 3], [2, 5]], i64), tensor([2, 3], i32)) == (tensor([[0, 0, 1], [1, 0, 0], [0, 1, 0]], i64), tensor([[1, 0], [1, 1], [2, 5]], i64), tensor([[4, 6], [0, 3]], i64))
# run: unpacked(tensor([[4.0, 6.0], [0.5, 3.0]], f16), tensor([2, 2], i32)) == (tensor([[0.0, 1.0], [1.0, 0.0]], f16), tensor([[1.0, 0.0], [0.5, 1.0]], f16), tensor([[4.0, 6.0], [0.0, 3.0]], f16))
# run: unpacked(tensor([[4.0, 6.0], [0.5, 3.0]], f16), tensor([2, 3], i32)) raises "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive: 1 and 2"
# run: classes(tensor([[-1.0, -2.0]]), tensor([1], u8), tensor([1.0, 2.0])) ~= tensor(2.0, f32)
# run: classes(tensor([[-1.0, -2.0]]), tensor([1]), tensor([1.0, 2.0], f64)) raises "expected scalar type Float but found Double"
# run: classes(tensor([[[-1.0], [-2.0]]]), tensor([[1]], u8), tensor([1.0, 2.0])) raises "expected scalar type Long but found Byte"
# run: ranking(tensor([1, 5], i64), tensor([3, 2], i64), tensor([1.0, -1.0])) ~= tensor([2.5, 3.5], f32)
# run: ranking(tensor([1.0, 5.0]), tensor([3.0, 2.0]), tensor([1, 2], u8)) ~= tensor([0.0, 762.5], f32)
# run: ranking(tensor([1.0, 5.0]), tensor([3.0, 2.0]), tensor([True, False])) raises "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
# run: ranking(tensor([1.0, 5.0]), tensor([3.0, 2.0]), tensor(1.0)) raises "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: [2], input2: [2], target: []"
# run: hinge(tensor([0.25, -3.0, 2.0], f16), tensor([1.0, -1.0, 0.0])) == tensor([0.25, 4.5, 2.0], f16)
# run: hinge(tensor([1, -3, 2], i64), tensor([1.0, -1.0, 0.0])) == tensor([1, 4, 2], i64)
# run: hinge(tensor([True, False]), tensor([1.0, -1.0])) raises "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
# run: soft(tensor([complex(0.5, 1.0)], c64), tensor([2.0])) ~= tensor([complex(-0.09367618709802628, -0.37617138028144836)], c64)
# run: soft(tensor([0.5]), tensor(1.0)) ~= tensor([0.474077], f32)
# run: soft(tensor(0.5), tensor([1.0])) raises "output with shape [] doesn't match the broadcast shape [1]"
# run: poisson(tensor([complex(0.5, 1.0)], c64), tensor([2.0])) ~= tensor([complex(0.2768564522266388, -1.2142975330352783)], c64)
# run: poisson(tensor([True]), tensor([2.0])) raises "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
# run: between(tensor([1.0]), tensor([2.0]), tensor([0.5], f64)) raises "expected dtype float for `weight` but got dtype double"
# run: between(tensor([1.0]), tensor([2.0]), tensor(1)) raises "expected dtype float for `weight` but got dtype long int"
# run: windows(full([1, 1, 3], 1.0, f32), full([1, 1, 2], 1.0, f32), tensor([1.0], f64)) raises "Input type (float) and bias type (double) should be the same"
# run: windows_same(full([1, 1, 3], 1.0, f32), full([1, 1, 2], 1.0, f32), tensor([1.5], f64)) ~= tensor([[[3.5, 3.5, 2.5]]], f32)
# run: windows_same(full([1, 1, 3], 1, i64), full([1, 1, 2], 1, i64), tensor([1.5])) == tensor([[[3, 3, 2]]], i64)
# run: spread(full([1, 1, 3], 1.0, f32), full([1, 1, 2], 1.0, f32), tensor([True])) ~= tensor([[[2.0, 3.0, 3.0, 2.0]]], f32)
# run: spread(full([1, 1, 3], 1, i64), full([1, 1, 2], 1, i64), tensor([1.5])) raises "result type Float can't be cast to the desired output type Long"
# run: norm_in_singles(tensor([3.0, 4.0], f64)) raises "linalg.vector_norm: the dtype of the input (Double) should be convertible without narrowing to the specified dtype (Float)"
# run: norm_in_singles(tensor([3.0, 4.0], f16)) ~= tensor(5.0, f32)
# run: summed("iji->j", full([1, 3, 1], 2, i32)) == tensor([2, 2, 2], i64)
# run: summed("ii->i", full([2, 2], 2, i32)) == tensor([2, 2], i32)
# run: summed_first(full([2, 1], 200, u8), full([1, 1], 1, u8)) == tensor([[144]], u8)
# run: summed_first(full([1, 1], 1, u8), full([1, 2], 200, u8)) == tensor([[144]], u8)
