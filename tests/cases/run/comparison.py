# test run
# Comparisons return bool tensors, by which `where` selects.
def f(a, b):
    return a < b, a >= b, a == b, torch.where(a > b, a, b)

def logic(a, b):
    return a & b, a | b, ~a, a ^ b

def truth(x):
    if bool(x > 0):
        return 1
    return 0

# run: f(tensor([1.0, nan, 3.0]), tensor([2.0, 2.0, 3.0])) ~= (tensor([True, False, False], bool), tensor([False, False, True], bool), tensor([False, False, True], bool), tensor([2.0, 2.0, 3.0], f32))
# run: f(tensor([1, 2], i32), tensor([1.5, 1.5])) ~= (tensor([True, False], bool), tensor([False, True], bool), tensor([False, False], bool), tensor([1.5, 2.0], f32))
# run: logic(tensor([True, False]), tensor([True, True])) == (tensor([True, False], bool), tensor([True, True], bool), tensor([False, True], bool), tensor([False, True], bool))
# run: truth(tensor(1.5)) == 1
# run: truth(tensor([1.0, 2.0])) raises "Boolean value of Tensor with more than one value is ambiguous"
