# test run
# The product or difference of a bool tensor and a bool is an integer tensor.
def f(x: Tensor):
    return x * True, x + True

def g(x: Tensor):
    return x - True

# run: f(tensor([True, False])) == (tensor([1, 0], i64), tensor([2, 1], i64))
# run: g(tensor([1, 2])) == tensor([0, 1], i64)
# run: g(tensor([True, False])) raises "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
