# test run
# Functions that PyTorch has for floats only are refused if both operands are integers; one float converts both.
def hypot(a: Tensor, b: Tensor):
    return torch.hypot(a, b)

def logaddexp(a: Tensor, b: Tensor):
    return torch.logaddexp(a, b)

def logaddexp2(a: Tensor, b: Tensor):
    return torch.logaddexp2(a, b)

# run: hypot(tensor([3, 6]), tensor([4, 8])) raises "\"hypot_cpu\" not implemented for 'Long'"
# run: hypot(tensor([True]), tensor([True])) raises "\"hypot_cpu\" not implemented for 'Bool'"
# run: hypot(tensor([3, 6]), tensor([4.0, 8.0])) == tensor([5.0, 10.0], f32)
# run: logaddexp(tensor([3]), tensor([4])) raises "\"logaddexp_cpu\" not implemented for 'Long'"
# run: logaddexp(tensor([0]), tensor([0.0])) ~= tensor([0.6931472], f32)
# run: logaddexp2(tensor([3]), tensor([4])) raises "\"logaddexp2_cpu\" not implemented for 'Long'"
# run: logaddexp2(tensor([1]), tensor([1.0])) ~= tensor([2.0], f32)
