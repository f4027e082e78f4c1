# test run
# Operands are normalized in their own dtypes, so a tensor without dimensions widens the result, unlike in a product.
def f(x: Tensor, y: Tensor):
    return torch.cosine_similarity(x, y, 0).dtype

# run: f(tensor([3.0, 4.0], f32), tensor(2.0, f64)) == 7
# run: f(tensor(2.0, f32), tensor([3.0, 4.0], f16)) == 6
# run: f(tensor([3.0, 4.0], f16), tensor([2, 2])) == 5
