# test run
# Boundary cases of gradients: history changed in place, values from containers, losses without counted targets.
def cut():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.detach_()
    return torch.autograd.grad([(y * x).sum()], [x])[0]


def cut_view():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * 2)[0]
    y.detach_()
    return torch.autograd.grad([x.sum()], [x])[0], y


def cut_leaf():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.detach_()
    return x.requires_grad


def out_of_dict(present: bool):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    other = torch.tensor([3.0, 4.0], requires_grad=True)
    kept: Dict[str, Tensor] = {}
    if present:
        kept["a"] = x * x
    y = kept.get("a", other * 3)
    return torch.autograd.grad([(y * y).sum()], [x if present else other])[0]


def put_by_default(present: bool):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    kept: Dict[str, Tensor] = {}
    if present:
        kept["a"] = x * x
    y = kept.setdefault("a", x * 3)
    return torch.autograd.grad([(y * y).sum()], [x])[0]


def gaussian(reduction: str):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    var = torch.tensor([0.5, 2.0, 1e-9], requires_grad=True)
    loss = torch.nn.functional.gaussian_nll_loss(x, torch.tensor([1.0, 1.0, 3.5]), var, reduction=reduction)
    grads = torch.autograd.grad([loss.sum()], [x, var])
    return grads[0], grads[1]


def by_class(target: Tensor, reduction: str):
    x = torch.tensor([[1.0, 2.0, 3.0], [0.5, 0.25, 0.125]], requires_grad=True)
    loss = torch.nn.functional.nll_loss(x, target, reduction=reduction)
    return torch.autograd.grad([loss.sum()], [x])[0]


def by_entropy(target: Tensor, smoothing: float):
    x = torch.tensor([[1.0, 2.0, 3.0], [0.5, 0.25, 0.125]], requires_grad=True)
    loss = torch.nn.functional.cross_entropy(x, target, label_smoothing=smoothing)
    return torch.autograd.grad([loss.sum()], [x])[0]


# run: cut() ~= tensor([2.0, 4.0], f32)
# run: cut_view() raises "Can't detach views in-place. Use detach() instead."
# run: cut_leaf() == False
# run: out_of_dict(True) ~= tensor([4.0, 32.0], f32)
# run: out_of_dict(False) ~= tensor([54.0, 72.0], f32)
# run: put_by_default(True) ~= tensor([4.0, 32.0], f32)
# run: put_by_default(False) ~= tensor([18.0, 36.0], f32)
# run: gaussian("mean") ~= (tensor([0.0, 0.16666667, -166666.67], f32), tensor([0.33333334, 0.041666668, -41666500000.0], f32))
# run: gaussian("none") ~= (tensor([0.0, 0.5, -500000.0], f32), tensor([1.0, 0.125, -124999500000.0], f32))
# run: by_class(tensor([-100, -100], i64), "mean") ~= tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], f32)
# run: by_class(tensor([-100, 1], i64), "mean") ~= tensor([[0.0, 0.0, 0.0], [0.0, -1.0, 0.0]], f32)
# run: by_class(tensor([-100, -100], i64), "sum") ~= tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], f32)
# run: by_entropy(tensor([-100, -100], i64), 0.0) ~= tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], f32)
# run: by_entropy(tensor([-100, -100], i64), 0.25) ~= tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], f32)
# run: by_entropy(tensor([-100, 2], i64), 0.25) ~= tensor([[0.0, 0.0, 0.0], [0.32216686, 0.23247054, -0.5546374]], f32)
