# test run
# A number divided by a tensor and rounded down takes the tensor for a number.
def f(x: Tensor):
    return 7 // x

def g(x: Tensor):
    return 7.5 // x

# run: f(tensor(2)) == 3
# run: f(tensor([2, 3])) raises "Cannot input a tensor of dimension other than 0 as a scalar argument: 1 dimensions"
# run: g(tensor(2.0)) == 3.0
