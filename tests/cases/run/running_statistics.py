# test run
# Normalization updates the running statistics even if its result has no uses, unless it normalizes by them; as in PyTorch.
def kept(x: Tensor, m: Tensor, v: Tensor):
    unread = torch.batch_norm(x, None, None, m, v, True, 0.5, 1e-5, True)
    return m

def by_element(x: Tensor, m: Tensor, v: Tensor):
    unread = torch.instance_norm(x, None, None, m, v, True, 0.5, 1e-5, True)
    return m

def used(x: Tensor, m: Tensor, v: Tensor):
    unread = torch.batch_norm(x, None, None, m, v, False, 0.5, 1e-5, True)
    return m

# run: kept(tensor([[1.0, 2.0], [3.0, 6.0]]), tensor([0.0, 0.0]), tensor([1.0, 1.0])) == tensor([1.0, 2.0], f32)
# run: by_element(tensor([[[1.0, 2.0], [3.0, 6.0]]]), tensor([0.0, 0.0]), tensor([1.0, 1.0])) == tensor([0.75, 2.25], f32)
# run: used(tensor([[1.0, 2.0], [3.0, 6.0]]), tensor([0.0, 0.0]), tensor([1.0, 1.0])) == tensor([0.0, 0.0], f32)
