# test run
# A number is accepted as a list of one element for a parameter that is a list of numbers, in operators and functions.
def g(sizes: List[int]) -> int:
    return len(sizes)

def k(sizes: List[float]) -> int:
    return len(sizes)

def f(x: Tensor, n: int):
    return g(3), g(n), k(0.5), torch.permute(x, 0), x.sum(0), torch.zeros(n), x.view(n)

# run: f(tensor([1, 2]), 2) == (1, 1, 1, tensor([1, 2], i64), tensor(3, i64), tensor([0.0, 0.0], f32), tensor([1, 2], i64))
