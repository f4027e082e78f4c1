# test run
# Products of matrices, vectors and batches of matrices.
def products(a, b):
    return a.mm(b), torch.matmul(a, b), a @ b

def vector(a, v):
    return a.mv(v), torch.matmul(a, v), torch.matmul(v, v)

def batched(a, b):
    return torch.matmul(a, b), torch.bmm(a, b)

def add(c, a, b):
    return torch.addmm(c, a, b), torch.addmm(c, a, b, beta=0.5, alpha=2)

# run: products(rand([2, 3], f32, 1), rand([3, 2], f32, 2)) ~= (tensor([[2.604004, 0.43481445], [2.0627441, 2.9326172]], f32), tensor([[2.604004, 0.43481445], [2.0627441, 2.9326172]], f32), tensor([[2.604004, 0.43481445], [2.0627441, 2.9326172]], f32))
# run: products(rand([2, 3], f32, 1), rand([2, 3], f32, 2)) raises "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"
# run: vector(rand([3, 3], f64, 1), rand([3], f64, 2)) ~= (tensor([1.400146484375, 0.44775390625, -1.291015625], f64), tensor([1.400146484375, 0.44775390625, -1.291015625], f64), tensor(3.326416015625, f64))
# run: batched(rand([2, 2, 3], f32, 1), rand([2, 3, 2], f32, 2)) ~= (tensor([[[2.604004, 0.43481445], [2.0627441, 2.9326172]], [[0.64819336, 0.74194336], [-3.4121094, -4.489746]]], f32), tensor([[[2.604004, 0.43481445], [2.0627441, 2.9326172]], [[0.64819336, 0.74194336], [-3.4121094, -4.489746]]], f32))
# run: add(rand([2], f32, 3), rand([2, 3], f32, 1), rand([3, 2], f32, 2)) ~= (tensor([[4.244629, 2.0285645], [3.7033691, 4.526367]], f32), tensor([[6.0283203, 1.6665039], [4.945801, 6.6621094]], f32))
