# test run
# A value from either branch.
def f(a, b, c: bool):
    d = a + b
    if c:
        e = d * d
    else:
        e = b + d
    return e

# run: f(tensor([1.0, 2.0]), tensor([3.0, 4.0]), True) ~= tensor([16.0, 36.0], f32)
# run: f(tensor([1.0, 2.0]), tensor([3.0, 4.0]), False) ~= tensor([7.0, 10.0], f32)
