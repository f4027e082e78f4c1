# test run
# `view` takes sizes; a dtype is an integer and would be taken as a size.
def f(x: Tensor):
    return x.view(torch.int32)

# run: f(tensor([1.0, 2.0, 3.0])) == tensor([1.0, 2.0, 3.0], f32)
