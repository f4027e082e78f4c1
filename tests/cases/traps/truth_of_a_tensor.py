# test source
# A tensor of several elements is not a condition.
def f(x: Tensor) -> int:
    if x:
        return 1
    return 0

# run: f(tensor(2)) == 1
# run: f(tensor([1, 1])) raises "Boolean value of Tensor with more than one value is ambiguous"

# == source
# def f(x: Tensor) -> int:
#   if bool(x):
#     _0 = 1
#   else:
#     _0 = 0
#   return _0
