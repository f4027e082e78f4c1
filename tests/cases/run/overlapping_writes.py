# test run
# Writes to a tensor that shares part of its memory with an operand, or has several elements at one address.
def row_added():
    x = torch.ones([3, 3])
    return x.add_(x[0])


def rows_moved():
    x = torch.ones([3, 3])
    x[0:2] = x[1:3]
    return x


def by_element():
    x = torch.ones([3, 3])
    x *= x[0, 0]
    return x


def turned():
    x = torch.ones([3, 3])
    return x.mul_(x.t())


def itself():
    x = torch.full([3, 3], 2.0)
    return x.mul_(x)


def halves_apart():
    x = torch.ones([4])
    x[:2].add_(x[2:])
    return x


def halves_meet():
    x = torch.ones([4])
    return x[:3].add_(x[1:])


def of_three():
    x = torch.ones([4])
    return x[:3].addcmul_(torch.ones([3]), x[1:])


def bounded():
    x = torch.ones([4])
    return x[:3].clamp_(x[1:])


def copied_to_itself():
    x = torch.ones([4])
    return x.copy_(x)


def scattered():
    x = torch.ones([4])
    return x[:3].scatter_add_(0, torch.tensor([0, 1, 2]), x[1:])


def scattered_whole():
    x = torch.ones([4])
    return x.index_add_(0, torch.tensor([0, 1, 2, 3]), x)


def put():
    x = torch.ones([4])
    x[torch.tensor([0, 1])] = x[1:3]
    return x


def compared():
    x = torch.ones([4])
    return x[:3].eq_(x[1:])


def multiplied():
    x = torch.ones([2, 2])
    y = torch.ones([5])
    z = y[:4].view([2, 2])
    return z.addmm_(x, y[1:].view([2, 2])).shape


def into():
    x = torch.ones([4])
    return torch.add(x[:3], 1, out=x[1:])


def raised():
    x = torch.ones([1]).expand([3])
    return x.add_(1)


def raised_by_rows():
    x = torch.ones([1, 3]).expand([2, 3])
    return x.copy_(torch.ones([2, 3]))


# run: row_added() raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: rows_moved() raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: by_element() raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: turned() raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: itself() ~= tensor([[4.0, 4.0, 4.0], [4.0, 4.0, 4.0], [4.0, 4.0, 4.0]], f32)
# run: halves_apart() ~= tensor([2.0, 2.0, 1.0, 1.0], f32)
# run: halves_meet() raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: of_three() raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: bounded() raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: copied_to_itself() ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: scattered() raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: scattered_whole() raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: put() raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: compared() raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: multiplied() == [2, 2]
# run: into() ~= tensor([2.0, 2.0, 2.0], f32)
# run: raised() raises "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation."
# run: raised_by_rows() raises "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation."
