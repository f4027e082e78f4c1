# test source
# `shape` is a list, and unpacking it checks its length.
def f(x: Tensor) -> Tuple[int, int]:
    a, b = x.shape
    return a, b

# run: f(tensor([[1, 2]])) == (1, 2)
# run: f(tensor([1])) raises "Expected 2 elements in a list but found 1"

# == source
# def f(x: Tensor) -> Tuple[int, int]:
#   a, b, = torch.size(x)
#   return (a, b)
