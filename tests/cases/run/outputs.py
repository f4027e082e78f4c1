# test run
# `out=` variants: refused arguments, strides of resized outputs, and the dtype of the computation.


def doubles(x: Tensor):
    return torch.neg(x, out=torch.zeros([2, 2], dtype=torch.float64))


def truths(x: Tensor):
    return torch.isinf(x, out=torch.zeros([2, 2], dtype=torch.uint8))


def castable(x: Tensor):
    return torch.exp(x, out=torch.zeros([2, 2], dtype=torch.float64)).dtype


def partly(x: Tensor):
    memory = x.reshape([-1])
    return torch.exp(memory[:3], out=memory[1:])


def wholly(x: Tensor):
    y = x.clone()
    return torch.exp(y, out=y)


def repeated(x: Tensor):
    return torch.exp(x, out=torch.zeros([1]).expand([3]))


def laid(x: Tensor):
    y = torch.exp(x.t(), out=torch.zeros([0]))
    z = torch.cumsum(x.t(), 0, out=torch.zeros([0]))
    return y.stride(), z.stride()


def typed(x: Tensor):
    total = torch.sum(x, [0], out=torch.zeros([0], dtype=torch.int32))
    running = torch.cumsum(x, 0, out=torch.zeros([0], dtype=torch.int64))
    return total, running


def average(x: Tensor):
    return torch.mean(x, [0], out=torch.zeros([0], dtype=torch.int32))


# run: doubles(tensor([[1.0, 2.0], [3.0, 4.0]], f32)) raises "Expected out tensor to have dtype Float, but got Double instead"
# run: truths(tensor([[1.0, 2.0], [3.0, 4.0]], f32)) raises "Expected out tensor to have dtype Bool, but got Byte instead"
# run: castable(tensor([[1.0, 2.0], [3.0, 4.0]], f32)) == 7
# run: partly(tensor([[1.0, 2.0], [3.0, 4.0]], f32)) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: wholly(tensor([[1.0, 2.0], [3.0, 4.0]], f32)) ~= tensor([[2.7182817, 7.389056], [20.085537, 54.59815]], f32)
# run: repeated(tensor([[1.0, 2.0], [3.0, 4.0]], f32)) raises "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation."
# run: laid(tensor([[1.0, 2.0, 5.0], [3.0, 4.0, 6.0]], f32)) == ([1, 3], [2, 1])
# run: typed(tensor([[1.75, 2.0], [3.5, 4.0]], f32)) == (tensor([4, 6], i32), tensor([[1, 2], [4, 6]], i64))
# run: average(tensor([[1.75, 2.0], [3.5, 4.0]], f32)) raises "result type Float can't be cast to the desired output type Int"
