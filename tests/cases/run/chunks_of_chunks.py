# test run
# A chunk of a chunk: both lists are unpacked at once.
def f(x: Tensor) -> Tuple[Tensor, Tensor]:
    a, b = torch.chunk(x, 2, 1)
    c, d = torch.chunk(a, 2, 1)
    e, g = torch.chunk(c * 2.0, 2, 0)
    return d, e + g

# run: f(tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])) == (tensor([[2.0], [6.0]], f32), tensor([[12.0]], f32))
