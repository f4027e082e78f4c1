# test run
# Tensors with several elements at one address: operators that write them, and operators that refuse them.


def filled(x: Tensor):
    y = x.expand([2, 3])
    return y.fill_(2), y.zero_().sum(), y.index_fill_(1, torch.tensor([0]), 4.0), y.tril_()


def put(x: Tensor):
    return x.expand([2, 3]).index_put_([torch.tensor([0, 1])], torch.tensor(5.0), True)


def added(x: Tensor):
    return x.expand([2, 3]).index_add_(1, torch.tensor([0]), torch.ones([2, 1]))


def scaled(x: Tensor):
    return x.expand([2, 3]).mul_(2)


# run: filled(tensor([1.0], f32)) ~= (tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], f32), tensor(0.0, f32), tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], f32), tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], f32))
# run: put(tensor([1.0], f32)) ~= tensor([[31.0, 31.0, 31.0], [31.0, 31.0, 31.0]], f32)
# run: added(tensor([1.0], f32)) raises "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation."
# run: scaled(tensor([1.0], f32)) raises "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation."
