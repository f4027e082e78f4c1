# test run
# The dtype of a result depends on categories first, and on operands with dimensions before scalars.
def add(a, b):
    return a + b

def scalar(a, n: int, x: float):
    return a + n, a * x, a / n

# run: add(tensor([1, 2], i32), tensor([1.5, 2.5], f32)) ~= tensor([2.5, 4.5], f32)
# run: add(tensor([1, 2], u8), tensor(300, i64)) == tensor([45, 46], u8)
# run: add(tensor([True, False], bool), tensor([1, 1], i8)) == tensor([2, 1], i8)
# run: add(tensor([1.5], f32), tensor(1.5, f64)) ~= tensor([3.0], f32)
# run: scalar(tensor([1, 2], i32), 3, 0.5) ~= (tensor([4, 5], i32), tensor([0.5, 1.0], f32), tensor([0.33333334, 0.6666667], f32))
# run: scalar(tensor([True, False], bool), 3, 0.5) ~= (tensor([4, 3], i64), tensor([0.5, 0.0], f32), tensor([0.33333334, 0.0], f32))
