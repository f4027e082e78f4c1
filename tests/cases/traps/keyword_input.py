# test run
# The first argument of an operator may be called `input` or `self`.
def f(x: Tensor):
    return torch.sum(input=x), torch.sum(self=x), torch.add(input=x, other=x)

# run: f(tensor([1, 2])) == (tensor(3, i64), tensor(3, i64), tensor([2, 4], i64))
