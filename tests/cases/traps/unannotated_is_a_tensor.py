# test run
# A parameter without a type is a tensor.
def f(x):
    return x + 1

# run: f(tensor([1])) == tensor([2], i64)
# run: f(3) raises "argument `x` must be of type Tensor but is of type int"
