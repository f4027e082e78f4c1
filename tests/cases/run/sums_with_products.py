# test run
# The addend of a matrix-vector product is a vector of its size or one number; in place it has that size.
def addmv(bias: Tensor, matrix: Tensor, vector: Tensor):
    return torch.addmv(bias, matrix, vector)

def addmv_(bias: Tensor, matrix: Tensor, vector: Tensor):
    return bias.addmv_(matrix, vector)

# run: addmv(tensor([1.0, 2.0]), tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), tensor([1.0, 2.0, 3.0])) == tensor([8.0, 8.0], f32)
# run: addmv(tensor([1.0]), tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), tensor([1.0, 2.0, 3.0])) == tensor([8.0, 7.0], f32)
# run: addmv(tensor(1.0), tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), tensor([1.0, 2.0, 3.0])) == tensor([8.0, 7.0], f32)
# run: addmv(tensor([[1.0, 2.0]]), tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), tensor([1.0, 2.0, 3.0])) raises "vector + matrix @ vector expected, got 2, 2, 1"
# run: addmv(tensor([1.0]), tensor([1.0, 0.0, 2.0]), tensor([1.0, 2.0, 3.0])) raises "vector + matrix @ vector expected, got 1, 1, 1"
# run: addmv(tensor([1.0, 2.0, 3.0]), tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), tensor([1.0, 2.0, 3.0])) raises "size mismatch, got input (3), mat (2x3), vec (3)"
# run: addmv(tensor([1.0, 2.0]), tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), tensor([1.0, 2.0])) raises "size mismatch, got input (2), mat (2x3), vec (2)"
# run: addmv_(tensor([[1.0, 2.0]]), tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), tensor([1.0, 2.0, 3.0])) raises "vector + matrix @ vector expected, got 2, 2, 1"
