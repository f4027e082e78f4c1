# test run
# In place, the sum of products resizes its operand as `out=` does; other views of the memory keep their sizes.


def resized(x: Tensor, a: Tensor, b: Tensor):
    row = x.clone()
    seen = row.view(-1)
    row.addbmm_(a, b)
    return row, row.stride(), seen.numel()


def fits(a: Tensor, b: Tensor):
    x = torch.ones(3, 2).t()
    x.addbmm_(a, b, beta=2, alpha=3)
    return x, x.stride()


# run: resized(tensor([1.0, 2.0, 3.0], f32), rand([2, 2, 4], f32, 1), rand([2, 4, 3], f32, 2)) ~= (tensor([[-0.47558594, -0.3947754, -0.96606445], [0.39135742, 5.60083, 9.987305]], f32), [3, 1], 3)
# run: resized(tensor(1.0, f32), rand([2, 2, 4], f32, 1), rand([2, 4, 3], f32, 2)) ~= (tensor([[-0.47558594, -1.3947754, -2.9660645], [0.39135742, 4.60083, 7.9873047]], f32), [3, 1], 1)
# run: resized(tensor([1.0, 2.0], f32), rand([2, 2, 4], f32, 1), rand([2, 4, 3], f32, 2)) raises "[2, 3]"
# run: fits(rand([2, 2, 4], f32, 1), rand([2, 4, 3], f32, 2)) ~= (tensor([[-2.4267578, -5.184326, -9.898193], [0.17407227, 12.80249, 22.961914]], f32), [1, 2])
