# test run
# Functions call functions, with defaults and by name.
def scale(x, factor: float = 2.0, shift: int = 0):
    return x * factor + shift

def f(x):
    return scale(x), scale(x, 3.0), scale(x, shift=1), scale(shift=1, x=x, factor=0.5)

# run: f(tensor([1.0, 2.0])) ~= (tensor([2.0, 4.0], f32), tensor([3.0, 6.0], f32), tensor([3.0, 5.0], f32), tensor([1.5, 2.0], f32))
# run: scale(tensor([1.0]), factor=4.0) ~= tensor([4.0], f32)
