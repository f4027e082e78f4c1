# test run
# A write through one name is visible through the other; which tensor it is, is known at run time only.
def foo(a, b):
    c = b * 2
    a += 1
    if bool(a.sum() > 4):
        r = a[0]
    else:
        r = b[0]
    r += 10
    return c, r, a, b

# run: foo(tensor([1.0, 2.0]), tensor([5.0, 6.0])) ~= (tensor([10.0, 12.0], f32), tensor(12.0, f32), tensor([12.0, 3.0], f32), tensor([5.0, 6.0], f32))
# run: foo(tensor([0.0, 0.0]), tensor([5.0, 6.0])) ~= (tensor([10.0, 12.0], f32), tensor(15.0, f32), tensor([1.0, 1.0], f32), tensor([15.0, 6.0], f32))
