# test run
# The sizes of a tensor from nested lists are the lengths of the lists at each level.
def f():
    t = torch.tensor([[[1.0, 0.5, 0.0], [0.0, 1.0, 0.2]]])
    return torch.dim(t), t.size()[-2], t.size()[-1], t.size()

# run: f() == (3, 2, 3, [1, 2, 3])
