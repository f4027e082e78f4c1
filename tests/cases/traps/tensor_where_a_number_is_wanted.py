# test source
# A tensor of one element is converted to a number where a number is expected.
def g(n: int) -> int:
    return n + 1

def f(x: Tensor) -> int:
    return g(x)

# run: f(tensor(3)) == 4
# run: f(tensor([1, 2])) raises "Cannot input a tensor of dimension other than 0 as a scalar argument: 1 dimensions"

# == source
# def g(n: int) -> int:
#   return torch.add(n, 1)
#
# def f(x: Tensor) -> int:
#   return g(annotate(int, x), )
