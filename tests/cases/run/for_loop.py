# test run
# A loop with a known trip count that carries a tensor.
def f(x, n: int):
    z = x
    for i in range(n):
        if i % 2 == 0:
            z = z * x
        else:
            z = z + i
    return z

# run: f(tensor([2.0, -1.0]), 0) ~= tensor([2.0, -1.0], f32)
# run: f(tensor([2.0, -1.0]), 5) ~= tensor([26.0, -1.0], f32)
# run: f(tensor([2.0, -1.0]), -3) ~= tensor([2.0, -1.0], f32)
