# test source
# Functions of torch's Python library are printed as the operators with their names.
def f(x: Tensor) -> Tuple[Tensor, Tensor]:
    values, counts = torch.unique_consecutive(x, return_counts=True)
    return values, counts

# run: f(tensor([3, 3, 1])) == (tensor([3, 1], i64), tensor([2, 1], i64))

# == source
# def f(x: Tensor) -> Tuple[Tensor, Tensor]:
#   _0 = __torch__.torch.unique_consecutive__return_counts
#   values, counts, = _0(x, False, True, None, )
#   return (values, counts)
