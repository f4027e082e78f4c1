# test run
# The floor division of a number by a tensor treats the tensor as a number.
def f(x: Tensor):
    return 7 // x

def g(x: Tensor):
    return 7.5 // x

# run: f(tensor(2)) == 3
# run: f(tensor([2, 3])) raises "Cannot input a tensor of dimension other than 0 as a scalar argument: 1 dimensions"
# run: g(tensor(2.0)) == 3.0
