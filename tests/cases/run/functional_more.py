# test run
# Functions of torch.nn.functional written with operators: a flag that selects the results, one number for all
# dimensions, computed defaults.
def pools(x: Tensor):
    values, places = torch.nn.functional.max_pool1d(x, 2, return_indices=True)
    return values, places, torch.nn.functional.max_unpool1d(values, places, 2)

def powers(x: Tensor, k: int = 1 + 1, r: float = 1.0 / 4):
    return torch.nn.functional.lp_pool1d(x, 2.0, k) * r

def patches(x: Tensor):
    return torch.nn.functional.fold(torch.nn.functional.unfold(x, 2), [2, 3], 2)

def losses(x: Tensor, y: Tensor):
    gaussian = torch.nn.functional.gaussian_nll_loss(x, y, 0.5)
    huber = torch.nn.functional.huber_loss(x, y, delta=0.5)
    return gaussian, huber, torch.nn.functional.multilabel_soft_margin_loss(x, y, reduction="sum")

def channels(x: Tensor, p: float):
    return torch.nn.functional.dropout1d(x, p, False)

# run: pools(tensor([[[1.0, 3.0, 2.0, 0.5]]])) == (tensor([[[3.0, 2.0]]], f32), tensor([[[1, 2]]], i64), tensor([[[0.0, 3.0, 2.0, 0.0]]], f32))
# run: powers(tensor([[[3.0, 4.0, 6.0, 8.0]]]), 2, 0.25) == tensor([[[1.25, 2.5]]], f32)
# run: patches(tensor([[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]])) == tensor([[[[1.0, 4.0, 3.0], [4.0, 10.0, 6.0]]]], f32)
# run: losses(tensor([[0.5, -1.0]]), tensor([[1.0, 0.0]])) ~= (tensor(0.2784264, f32), tensor(0.25, f32), tensor(0.39366934, f32))
# run: channels(tensor([[1.0, 2.0]]), 0.5) == tensor([[1.0, 2.0]], f32)
# run: channels(tensor([[1.0, 2.0]]), 1.5) raises "dropout probability has to be between 0 and 1, but got 1.5"
